//! Queries of engine API 1.5.0: the configurations of a graph, and their predicted rates.
//!
//! A configuration is a value of the knob `rotini.schedule`. Listing them lowers the graph once,
//! which takes milliseconds, and compiles nothing.
//!
//! A prediction is the time in the record of `rotini tune`: measured on this device, or, on an
//! emulated device, predicted as `scripts/speed` does. A graph without a record has no prediction,
//! because `scripts/speed` needs the compiled code and an emulator, and the closed form is less
//! exact.

use crate::compile::tuned_keys;
use crate::device::Device;
use crate::engine_id;
use crate::error::Error;
use crate::knobs::{Knobs, SCHEDULE};
use crate::own_thread::on_own_thread;
use crate::prepared::{Prepared, check};
use crate::runtime::Runtime;
use crate::tuned::{self, Clock, Outcome, Record};
use rotini_emit::{Choices, Place, Target, configurations, estimated_us, places};
use rotini_wire::KnobValue;
use rotini_wire::candidate_page::{Candidate, CandidatePage, MAX_CANDIDATES};
use rotini_wire::engine_config::EngineConfig;
use rotini_wire::engine_details::EngineDetails;
use rotini_wire::prediction::{Kind, Prediction, Status};
use serde_json::json;

/// The subject of a query.
pub struct Question<'a> {
    /// The state of the process.
    pub runtime: &'a Runtime,
    /// The device.
    pub device: &'a dyn Device,
    /// The graph as the host gave it.
    pub graph: &'a [u8],
    /// The knobs of the engine config.
    pub knobs: &'a Knobs,
}

impl Question<'_> {
    fn prepared(&self) -> Result<Prepared, Error> {
        check(self.graph, &self.device.compiled_for().target)
    }

    fn device_features(&self) -> String {
        let compiled_for = self.device.compiled_for();
        json!({"target": compiled_for.target.to_string(), "measured_on": self.device.measured_on()}).to_string()
    }
}

fn problem_features(prepared: &Prepared) -> String {
    json!({
        "nodes": prepared.graph.nodes().len(),
        "operations": rotini_emit::operations(&prepared.graph),
    })
    .to_string()
}

fn setting(choices: &Choices) -> Vec<(String, KnobValue)> {
    vec![(SCHEDULE.to_owned(), KnobValue::Text(choices.to_string()))]
}

/// Returns a page of the configurations that the knobs allow, in the order of [`configurations`].
///
/// # Errors
///
/// If the graph cannot be executed; [`Error::InvalidArgument`] if `offset` or `limit` is out of
/// range.
pub fn page(question: &Question<'_>, offset: u64, limit: u64) -> Result<EngineDetails, Error> {
    if !(1..=MAX_CANDIDATES).contains(&limit) {
        return Err(Error::InvalidArgument(format!(
            "a page of {limit} candidates: from 1 to {MAX_CANDIDATES} are possible"
        )));
    }
    let prepared = question.prepared()?;
    let target = &question.device.compiled_for().target;
    let places = listed(&prepared, target)?;
    let mut all = configurations(&places);
    if let Some(demanded) = &question.knobs.schedule {
        all.retain(|choices| choices == demanded);
    }
    let total = all.len() as u64;
    if offset > total {
        return Err(Error::InvalidArgument(format!("candidate {offset} of {total}")));
    }
    let first = usize::try_from(offset).unwrap_or(usize::MAX);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let candidate = |choices: &Choices| Candidate {
        id: choices.to_string(),
        knobs: setting(choices),
        features: json!({"schedule": choices.to_string(), "estimated_us": estimated_us(&places, choices)}).to_string(),
    };
    let canonical = prepared.graph.canonical_bytes();
    let canonical = canonical.map_err(|error| Error::Internal(error.to_string()))?;
    Ok(EngineDetails {
        engine_id: engine_id::ID,
        name: engine_id::NAME.to_owned(),
        candidate_page: Some(CandidatePage {
            graph_id: blake3::hash(&canonical).to_hex().to_string(),
            device_id: question.device.measured_on(),
            device_arch: Target::device(&target.to_string()).to_owned(),
            problem_features: problem_features(&prepared),
            device_features: question.device_features(),
            total,
            offset,
            candidates: all.iter().skip(first).take(most).map(candidate).collect(),
            engine_name: engine_id::NAME.to_owned(),
        }),
        ..EngineDetails::default()
    })
}

/// Lists the places on a separate thread, because lowering needs more stack than a host thread may
/// have.
fn listed(prepared: &Prepared, target: &Target) -> Result<Vec<Place>, Error> {
    let list = || places(&prepared.graph, target, &Choices::default());
    match on_own_thread(list) {
        Ok(listed) => Ok(listed?),
        Err(error) => Err(Error::Internal(format!("there can be no thread to lower on: {error}"))),
    }
}

/// The unit of a prediction.
#[derive(Clone, Copy)]
enum Metric {
    /// Billions of operations per millisecond.
    Tflops,
    /// Milliseconds.
    Time,
}

impl Metric {
    fn parse(name: &str) -> Result<Self, Error> {
        match name {
            "" | "tflops" => Ok(Metric::Tflops),
            "time" => Ok(Metric::Time),
            other => Err(Error::EngineConfig(format!(
                "'{other}' is no metric that predictions are ranked by"
            ))),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Metric::Tflops => "tflops",
            Metric::Time => "time",
        }
    }
}

/// Returns the predicted rate of the usual form or of the fastest configuration.
///
/// # Errors
///
/// If the graph cannot be executed, or the metric is unknown. A missing record is no error: the
/// prediction is then unavailable, with a reason.
pub fn predict(question: &Question<'_>, kind: Kind, evaluate: bool) -> Result<Prediction, Error> {
    let metric = Metric::parse(&question.knobs.ranking_metric)?;
    let prepared = question.prepared()?;
    let found = if evaluate {
        known(question, &prepared).and_then(|record| value(&record, kind, question.knobs, metric))
    } else {
        Err("it was to be described, not evaluated".to_owned())
    };
    let mut prediction = Prediction {
        engine_id: engine_id::ID,
        kind,
        status: Status::Unavailable,
        value: 0.0,
        metric: metric.name().to_owned(),
        reason: String::new(),
        config: None,
        binding: json!({"model": "rotini tune", "knob": SCHEDULE}).to_string(),
        features: problem_features(&prepared),
    };
    match found {
        Ok((value, choices)) => {
            prediction.status = Status::Available;
            prediction.value = value;
            // Predictions of the engine select no configuration.
            prediction.config = (kind == Kind::Configuration).then(|| EngineConfig {
                engine_id: engine_id::ID,
                knobs: setting(&choices),
                ranking_metric: metric.name().to_owned(),
                ..EngineConfig::default()
            });
        }
        Err(reason) => prediction.reason = reason,
    }
    Ok(prediction)
}

/// Returns the record of a graph on the device, or the reason why none can be used.
fn known(question: &Question<'_>, prepared: &Prepared) -> Result<Record, String> {
    let keys = tuned_keys(question.runtime, &prepared.graph, question.device).map_err(|error| error.to_string())?;
    let record = keys.iter().find_map(|key| tuned::read(question.runtime, key));
    let record = record.filter(|record| record.winner.is_some()).ok_or_else(|| {
        "it was not measured on this device (`rotini tune` does that), and no closed form predicts it".to_owned()
    })?;
    match record.clock {
        Clock::Predicted if record.is_extrapolated => {
            Err("its prediction is extrapolated: kernels like these were never held against hardware".to_owned())
        }
        _ => Ok(record),
    }
}

/// Returns the value of a prediction, and the configuration that was timed: the demanded one, else
/// the winner for [`Kind::Configuration`] and the usual form for [`Kind::Engine`].
fn value(record: &Record, kind: Kind, knobs: &Knobs, metric: Metric) -> Result<(f64, Choices), String> {
    let usual = Choices::usual();
    let asked = match (kind, &knobs.schedule, &record.winner) {
        (_, Some(demanded), _) => demanded.to_string(),
        (Kind::Configuration, None, Some(winner)) => winner.clone(),
        _ => usual.to_string(),
    };
    let find = |choices: &str| record.tried.iter().find(|tried| tried.choices == choices);
    let mut tried = find(&asked);
    // A candidate with the code of an earlier one was not timed itself.
    for _ in &record.tried {
        if let Some(Outcome::Same(earlier)) = tried.map(|tried| &tried.outcome) {
            tried = find(earlier);
        }
    }
    let time = tried
        .filter(|tried| tried.outcome == Outcome::Right)
        .and_then(|tried| tried.time)
        .ok_or_else(|| format!("{asked} was not measured"))?;
    let choices = Choices::parse(&asked).map_err(|error| error.to_string())?;
    let value = match metric {
        Metric::Time => time.median_us / 1e3,
        Metric::Tflops => match record.flops {
            Some(flops) if flops > 0.0 => flops / time.median_us / 1e6,
            _ => return Err("it has no operations that are counted: ask for its time".to_owned()),
        },
    };
    if value.is_finite() && value > 0.0 {
        Ok((value, choices))
    } else {
        Err(format!("{value} is no {}", metric.name()))
    }
}
