//! Predictions of the speed of an engine or of one of its configurations.

use crate::answer_options;
use crate::engine_config::{self, EngineConfig, EngineConfigError};
use crate::generated::engine_generated as wire;
use flatbuffers::{FlatBufferBuilder, InvalidFlatbuffer};
use thiserror::Error;

/// Maximum number of tables: the prediction, the config, and a setting and a value for each of at
/// most 1024 knobs.
const MAX_TABLES: usize = 2 + 2 * 1024;

/// The subject of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ordinary execution by the engine.
    Engine,
    /// The configuration that is expected to be the fastest.
    Configuration,
}

/// The availability of a prediction's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No prediction exists.
    Unavailable,
    /// A prediction exists.
    Available,
    /// A prediction exists but is not credible.
    Invalid,
}

/// A prediction of speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The engine.
    pub engine_id: i64,
    /// The subject.
    pub kind: Kind,
    /// The availability of the value.
    pub status: Status,
    /// The predicted value in the units of the metric, if `status` is `Available`.
    pub value: f64,
    /// The requested metric.
    pub metric: String,
    /// The reason why no value is available.
    pub reason: String,
    /// The complete configuration that the prediction is for.
    pub config: Option<EngineConfig>,
    /// The origin of the value, as a JSON object.
    pub binding: String,
    /// Features of the graph and the device, as a JSON object.
    pub features: String,
}

/// The reason why bytes could not be decoded to a prediction.
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
    /// The prediction's configuration cannot be read.
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
/// When the bytes are not a prediction; see [`PredictionError`].
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
