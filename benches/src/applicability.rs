//! Measures the queries that a host makes without a context, through the C ABI, for conv+bias+relu:
//! `GetApplicableEngineIds`, `EnumerateCandidates` and `GetPrediction`.
//!
//! A host asks every engine about every graph, and is declined by most of them. So the answer must
//! be cheap: it may not compile, and may not open a compiler or a device. The peer is the minimum
//! that any answer costs: decoding and validating the bytes.

use crate::report::{Bar, Row};
use crate::sampling::{interleave, timed};
use crate::subject::{Subject, conv_bias_relu};
use anyhow::Result;
use std::hint::black_box;
use std::time::Duration;

/// Limit of the time for each candidate or prediction.
const A_CANDIDATE: Duration = Duration::from_micros(200);

pub(crate) fn run() -> Result<Vec<Row>> {
    let subject = Subject::new()?;
    let graph = rotini_wire::encode(&conv_bias_relu());
    let samples = interleave(
        500,
        timed(20, || subject.expect_applicable(&graph)),
        timed(20, || Ok(rotini_wire::decode(black_box(&graph))?)),
    )?;
    let bar = Bar::Most(Duration::from_micros(100));
    let mut rows = vec![Row::new(
        "applicability of conv+bias+relu",
        "decoding alone",
        &samples,
        Some(bar),
    )];
    let count = subject.candidates(&graph)?;
    let samples = interleave(
        100,
        timed(2, || subject.candidates(&graph).map(drop)),
        timed(20, || subject.expect_applicable(&graph)),
    )?;
    rows.push(Row::new(
        format!("a page of its {count} candidates"),
        "applicability",
        &samples,
        Some(Bar::Most(A_CANDIDATE * u32::try_from(count)?)),
    ));
    let samples = interleave(
        200,
        timed(10, || subject.predict(&graph)),
        timed(20, || subject.expect_applicable(&graph)),
    )?;
    rows.push(Row::new(
        "a prediction for it",
        "applicability",
        &samples,
        Some(Bar::Most(A_CANDIDATE)),
    ));
    Ok(rows)
}
