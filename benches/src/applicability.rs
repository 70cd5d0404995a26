//! Measures `GetApplicableEngineIds` for conv+bias+relu, through the C ABI.
//!
//! A host asks every engine about every graph, and most answers are no. So the answer must be
//! cheap: it may not compile, and may not open a compiler or a device. The peer is the least that
//! any answer costs: decoding and validating the bytes.

use crate::report::{Bar, Row};
use crate::sampling::{interleave, timed};
use crate::subject::{Subject, conv_bias_relu};
use anyhow::Result;
use std::hint::black_box;
use std::time::Duration;

pub(crate) fn run() -> Result<Vec<Row>> {
    let subject = Subject::new()?;
    let graph = rotini_wire::encode(&conv_bias_relu());
    let samples = interleave(
        500,
        timed(20, || subject.expect_applicable(&graph)),
        timed(20, || Ok(rotini_wire::decode(black_box(&graph))?)),
    )?;
    let bar = Bar::Most(Duration::from_micros(100));
    Ok(vec![Row::new(
        "applicability of conv+bias+relu",
        "decoding alone",
        &samples,
        Some(bar),
    )])
}
