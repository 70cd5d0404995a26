//! Predictions: how fast an engine, or one of its configurations, is going to be.

use crate::answer_options;
use crate::engine_config::{self, EngineConfig, EngineConfigError};
use crate::generated::engine_generated as wire;
use flatbuffers::{FlatBufferBuilder, InvalidFlatbuffer};
use thiserror::Error;

/// The prediction, the config, and a table and a value for each of its knobs.
const MAX_TABLES: usize = 2 + 2 * 1024;

/// What a prediction is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ordinary execution by the engine.
    Engine,
    /// The configuration that is expected to be the fastest.
    Configuration,
}

/// Whether there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is none.
    Unavailable,
    /// There is one.
    Available,
    /// What there is cannot be believed.
    Invalid,
}

/// A prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The engine.
    pub engine_id: i64,
    /// What it is about.
    pub kind: Kind,
    /// Whether there is one.
    pub status: Status,
    /// In the units of the metric, if there is one.
    pub value: f64,
    /// The metric that was asked for.
    pub metric: String,
    /// Why there is none.
    pub reason: String,
    /// The configuration that it is about, complete.
    pub config: Option<EngineConfig>,
    /// Where the value comes from, as a JSON object.
    pub binding: String,
    /// What is known of graph and device, as a JSON object.
    pub features: String,
}

/// Why bytes did not become a prediction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PredictionError {
    /// The verifier refuses the bytes.
    #[error("the bytes are not a prediction")]
    NotAPrediction(#[source] InvalidFlatbuffer),
    /// A kind or status that the schema does not know.
    #[error("the {what} {number} is not known")]
    Unknown {
        /// "kind" or "status".
        what: &'static str,
        /// The number on the wire.
        number: u8,
    },
    /// Its configuration cannot be read.
    #[error("its configuration cannot be read")]
    Config(#[from] EngineConfigError),
}

/// Writes a prediction for the host.
#[must_use]
pub fn encode(prediction: &Prediction) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let config = prediction.config.as_ref();
    let config = config.map(|config| engine_config::write(config, &mut builder));
    let args = wire::EnginePredictionArgs {
        engine_id: prediction.engine_id,
        kind: match prediction.kind {
            Kind::Engine => wire::PredictionKind::ENGINE,
            Kind::Configuration => wire::PredictionKind::CONFIGURATION,
        },
        status: match prediction.status {
            Status::Unavailable => wire::PredictionStatus::UNAVAILABLE,
            Status::Available => wire::PredictionStatus::AVAILABLE,
            Status::Invalid => wire::PredictionStatus::INVALID,
        },
        value: prediction.value,
        uhd_id: None,
        reason: Some(builder.create_string(&prediction.reason)),
        engine_config: config,
        binding_json: Some(builder.create_string(&prediction.binding)),
        features_json: Some(builder.create_string(&prediction.features)),
        metric: Some(builder.create_string(&prediction.metric)),
    };
    let root = wire::EnginePrediction::create(&mut builder, &args);
    builder.finish_minimal(root);
    builder.finished_data().to_vec()
}

/// Reads a prediction, for tests and hosts.
///
/// # Errors
///
/// When the bytes are no prediction; see [`PredictionError`].
pub fn decode(bytes: &[u8]) -> Result<Prediction, PredictionError> {
    let root = flatbuffers::root_with_opts::<wire::EnginePrediction<'_>>(&answer_options(MAX_TABLES), bytes)
        .map_err(PredictionError::NotAPrediction)?;
    let unknown = |what, number| PredictionError::Unknown { what, number };
    Ok(Prediction {
        engine_id: root.engine_id(),
        kind: match root.kind() {
            wire::PredictionKind::ENGINE => Kind::Engine,
            wire::PredictionKind::CONFIGURATION => Kind::Configuration,
            other => return Err(unknown("kind", other.0)),
        },
        status: match root.status() {
            wire::PredictionStatus::UNAVAILABLE => Status::Unavailable,
            wire::PredictionStatus::AVAILABLE => Status::Available,
            wire::PredictionStatus::INVALID => Status::Invalid,
            other => return Err(unknown("status", other.0)),
        },
        value: root.value(),
        metric: root.metric().unwrap_or_default().to_owned(),
        reason: root.reason().unwrap_or_default().to_owned(),
        config: root
            .engine_config()
            .map(|config| engine_config::read(&config))
            .transpose()?,
        binding: root.binding_json().unwrap_or_default().to_owned(),
        features: root.features_json().unwrap_or_default().to_owned(),
    })
}
