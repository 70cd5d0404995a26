//! Knobs: what an engine config may ask for besides the engine. hipDNN's documentation of knobs has
//! those that no engine need know be ignored with a warning.

use crate::engine_id;
use crate::error::Error;
use crate::told::Told;
use rotini_wire::KnobValue;
use rotini_wire::engine_details::{Knob, KnobConstraint};

/// The most workspace that an execution may need, in bytes.
const WORKSPACE_LIMIT: &str = "global.workspace_size_limit";
/// Whether to measure which kernels are fastest. There is one set of kernels for a graph here.
const BENCHMARKING: &str = "global.benchmarking";

/// What a config asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// The most workspace that an execution may need, in bytes.
    pub workspace_limit: u64,
}

impl Knobs {
    /// Reads an engine config of this engine. Other knobs have no effect, which is logged once.
    ///
    /// # Errors
    ///
    /// [`Error::EngineConfig`] if the bytes are none, [`Error::UnknownEngine`] if they are another
    /// engine's, and [`Error::InvalidArgument`] if a knob is set to what it cannot be.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        static IGNORED: Told = Told::new();
        let config =
            rotini_wire::engine_config::decode(bytes).map_err(|error| Error::EngineConfig(error.to_string()))?;
        if config.engine_id != engine_id::ID {
            return Err(Error::UnknownEngine(config.engine_id));
        }
        let mut knobs = Knobs {
            workspace_limit: u64::MAX,
        };
        let readable = config.knobs.iter().map(|(name, value)| (name, Some(value)));
        for (name, value) in readable.chain(config.unreadable.iter().map(|name| (name, None))) {
            match (name.as_str(), value) {
                (WORKSPACE_LIMIT, Some(KnobValue::Integer(bytes))) if *bytes >= 0 => {
                    knobs.workspace_limit = bytes.unsigned_abs();
                }
                (WORKSPACE_LIMIT, _) => {
                    return Err(Error::InvalidArgument(format!(
                        "{WORKSPACE_LIMIT} is {value:?}, and no number of bytes"
                    )));
                }
                (BENCHMARKING, Some(KnobValue::Integer(0))) => {}
                (name, _) if IGNORED.is_news(name.as_bytes()) => {
                    tracing::warn!("the knob {name} has no effect: it is none of rotini's");
                }
                _ => {}
            }
        }
        Ok(knobs)
    }

    /// The knobs that the engine's details offer.
    #[must_use]
    pub fn offered() -> Vec<Knob> {
        vec![Knob {
            id: WORKSPACE_LIMIT.to_owned(),
            description: "The most workspace that an execution may need, in bytes; a graph that needs more is refused."
                .to_owned(),
            default: KnobValue::Integer(i64::MAX),
            constraint: Some(KnobConstraint::Integer {
                min: 0,
                max: i64::MAX,
                step: 1,
                valid_values: Vec::new(),
            }),
            deprecated: false,
        }]
    }

    /// Refuses what needs more workspace than it may have.
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
