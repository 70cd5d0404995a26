//! Knobs: the settings of an engine config. An unknown knob is ignored with a warning, as hipDNN's
//! documentation of knobs demands.

use crate::engine_id;
use crate::error::Error;
use crate::told::Told;
use rotini_emit::Choices;
use rotini_wire::KnobValue;
use rotini_wire::engine_details::{Knob, KnobConstraint};

/// Knob: the maximum workspace of an execution, in bytes.
const WORKSPACE_LIMIT: &str = "global.workspace_size_limit";
/// Knob: whether creating a context measures candidates. It has no effect, because only `rotini
/// tune` measures.
const BENCHMARKING: &str = "global.benchmarking";
/// Knob: whether results must be the same bits on all devices of a kind.
const DETERMINISTIC: &str = "global.deterministic";
/// Knob: the forms of a graph's operations, by their ids.
pub const SCHEDULE: &str = "rotini.schedule";
/// Knob: whether measured choices are used.
const MEASURED: &str = "rotini.measured";

/// The knobs of one engine config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Maximum workspace of an execution, in bytes.
    pub workspace_limit: u64,
    /// The demanded choices; `None` leaves them to rotini.
    pub schedule: Option<Choices>,
    /// Whether measured choices are used if none are demanded.
    pub uses_measured: bool,
    /// The metric to predict; empty for hipDNN's default.
    pub ranking_metric: String,
}

impl Default for Knobs {
    fn default() -> Self {
        Knobs {
            workspace_limit: u64::MAX,
            schedule: None,
            uses_measured: true,
            ranking_metric: String::new(),
        }
    }
}

impl Knobs {
    /// Reads the knobs of an engine config. Knobs that rotini does not have are ignored, which is
    /// logged once.
    ///
    /// # Errors
    ///
    /// [`Error::EngineConfig`] if the bytes are no engine config, [`Error::UnknownEngine`] if it is
    /// for another engine, and [`Error::InvalidArgument`] if a knob has an invalid value.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        static IGNORED: Told = Told::new();
        let config =
            rotini_wire::engine_config::decode(bytes).map_err(|error| Error::EngineConfig(error.to_string()))?;
        if config.engine_id != engine_id::ID {
            return Err(Error::UnknownEngine(config.engine_id));
        }
        let mut knobs = Knobs {
            ranking_metric: config.ranking_metric.clone(),
            ..Knobs::default()
        };
        let mut is_deterministic = false;
        let readable = config.knobs.iter().map(|(name, value)| (name, Some(value)));
        for (name, value) in readable.chain(config.unreadable.iter().map(|name| (name, None))) {
            let refused = |kind: &str| Err(Error::InvalidArgument(format!("{name} is {value:?}, and no {kind}")));
            match (name.as_str(), value) {
                (WORKSPACE_LIMIT, Some(KnobValue::Integer(bytes))) if *bytes >= 0 => {
                    knobs.workspace_limit = bytes.unsigned_abs();
                }
                (WORKSPACE_LIMIT, _) => return refused("number of bytes"),
                (SCHEDULE, Some(KnobValue::Text(text))) => {
                    let choices = Choices::parse(text)
                        .map_err(|error| Error::InvalidArgument(format!("the knob {SCHEDULE}: {error}")))?;
                    knobs.schedule = Some(choices).filter(|choices| !choices.is_empty());
                }
                (SCHEDULE, _) => return refused("text"),
                (MEASURED, Some(KnobValue::Integer(flag @ (0 | 1)))) => knobs.uses_measured = *flag == 1,
                (MEASURED, _) => return refused("0 or 1"),
                (DETERMINISTIC, Some(KnobValue::Integer(flag @ (0 | 1)))) => is_deterministic = *flag == 1,
                (DETERMINISTIC, _) => return refused("0 or 1"),
                (BENCHMARKING, Some(KnobValue::Integer(1))) if IGNORED.is_news(name.as_bytes()) => {
                    tracing::warn!("{BENCHMARKING} has no effect: `rotini tune` measures, contexts never do");
                }
                (BENCHMARKING, Some(KnobValue::Integer(0 | 1))) => {}
                (BENCHMARKING, _) => return refused("0 or 1"),
                (name, _) if IGNORED.is_news(name.as_bytes()) => {
                    tracing::warn!("the knob {name} has no effect: it is none of rotini's");
                }
                _ => {}
            }
        }
        // Measurements on another device of the same kind may have selected other choices.
        knobs.uses_measured &= !is_deterministic;
        Ok(knobs)
    }

    /// Returns the knobs that the engine's details offer.
    #[must_use]
    pub fn offered() -> Vec<Knob> {
        let knob = |id: &str, description: &str, default, constraint| Knob {
            id: id.to_owned(),
            description: description.to_owned(),
            default,
            constraint: Some(constraint),
            deprecated: false,
        };
        let flag = || KnobConstraint::Integer {
            min: 0,
            max: 1,
            step: 1,
            valid_values: Vec::new(),
        };
        vec![
            knob(
                WORKSPACE_LIMIT,
                "The most workspace that an execution may need, in bytes: the best form of the graph that needs no more is taken.",
                KnobValue::Integer(i64::MAX),
                KnobConstraint::Integer {
                    min: 0,
                    max: i64::MAX,
                    step: 1,
                    valid_values: Vec::new(),
                },
            ),
            knob(
                DETERMINISTIC,
                "1: the same bits on all devices of a kind. No sum is ever split by atomics, so runs and streams give the same bits \
                 anyway; with 1, choices that were measured on this device are not used either.",
                KnobValue::Integer(0),
                flag(),
            ),
            knob(
                SCHEDULE,
                "The forms of the graph's operations: PLACE=CANDIDATE, with commas between several; 'iree' for IREE's own, 'usual' for \
                 what rotini predicts to be the fastest. Empty: what was measured to be the fastest, else the usual ones.",
                KnobValue::Text(String::new()),
                KnobConstraint::Text {
                    max_length: 4096,
                    valid_values: Vec::new(),
                },
            ),
            knob(
                MEASURED,
                "0: choices that `rotini tune` has measured on this device are not used.",
                KnobValue::Integer(1),
                flag(),
            ),
        ]
    }

    /// Refuses a workspace that exceeds the limit.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`].
    pub fn expect_workspace(&self, needed: u64) -> Result<(), Error> {
        if needed > self.workspace_limit {
            return Err(Error::Unsupported(format!(
                "it needs {needed} bytes of workspace, more than {WORKSPACE_LIMIT}, {}",
                self.workspace_limit
            )));
        }
        Ok(())
    }
}
