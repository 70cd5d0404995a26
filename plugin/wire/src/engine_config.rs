//! Engine configs: the engine that a host chose and the knobs that it set.

use crate::generated::engine_generated as wire;
use crate::{KnobValue, knob, verifier_options};
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, InvalidFlatbuffer, Vector, WIPOffset};
use thiserror::Error;

/// Maximum number of tables: the config, and a setting and a value for each of at most 1024 knobs.
const MAX_TABLES: usize = 1 + 2 * 1024;

/// A host's choice of an engine and its settings.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EngineConfig {
    /// The engine.
    pub engine_id: i64,
    /// The values of the knobs that were set, by id. Other knobs have the defaults that the
    /// engine's details state.
    pub knobs: Vec<(String, KnobValue)>,
    /// The ids of knobs that were set to a kind of value that the schema does not know: knobs of a
    /// newer version, for another engine.
    pub unreadable: Vec<String>,
    /// The metric for predictions; empty for hipDNN's default.
    pub ranking_metric: String,
}

/// The reason why bytes could not be decoded to an engine config.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EngineConfigError {
    /// The verifier refuses the bytes.
    #[error("the bytes are not an engine config")]
    NotAnEngineConfig(#[source] InvalidFlatbuffer),
    /// A setting without the id of its knob.
    #[error("setting {position} does not say which knob it is for")]
    UnnamedKnob {
        /// The setting's position.
        position: usize,
    },
    /// A candidate's knob with an unreadable value: it would select another configuration.
    #[error("the value of knob {knob} cannot be read")]
    UnreadableKnob {
        /// The knob's id.
        knob: String,
    },
}

/// Reads an engine config.
///
/// # Errors
///
/// When the bytes are no engine config, or a setting is incomplete; see [`EngineConfigError`].
pub fn decode(bytes: &[u8]) -> Result<EngineConfig, EngineConfigError> {
    let root = flatbuffers::root_with_opts::<wire::EngineConfig<'_>>(&verifier_options(MAX_TABLES), bytes)
        .map_err(EngineConfigError::NotAnEngineConfig)?;
    read(&root)
}

/// Reads an engine config that is part of another table.
pub(crate) fn read(root: &wire::EngineConfig<'_>) -> Result<EngineConfig, EngineConfigError> {
    let mut config = EngineConfig {
        engine_id: root.engine_id(),
        ranking_metric: root.ranking_metric().unwrap_or_default().to_owned(),
        ..EngineConfig::default()
    };
    (config.knobs, config.unreadable) = read_settings(root.knobs())?;
    Ok(config)
}

/// Knobs with their values, and the ids of knobs with unreadable values.
type Settings = (Vec<(String, KnobValue)>, Vec<String>);

/// Reads knob settings.
pub(crate) fn read_settings(
    settings: Option<Vector<'_, ForwardsUOffset<wire::KnobSetting<'_>>>>,
) -> Result<Settings, EngineConfigError> {
    let mut read = Settings::default();
    let (knobs, unreadable) = (&mut read.0, &mut read.1);
    for (position, setting) in settings.unwrap_or_default().iter().enumerate() {
        let id = setting
            .knob_id()
            .ok_or(EngineConfigError::UnnamedKnob { position })?
            .to_owned();
        let value = knob::read!(
            setting,
            value_type,
            value_as_int_value,
            value_as_float_value,
            value_as_string_value
        );
        match value {
            Ok(value) => knobs.push((id, value)),
            Err(_) => unreadable.push(id),
        }
    }
    Ok(read)
}

/// Writes an engine config as a hipDNN host would, for tests and tools. An unreadable knob is
/// written without a value.
#[must_use]
pub fn encode(config: &EngineConfig) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let root = write(config, &mut builder);
    builder.finish_minimal(root);
    builder.finished_data().to_vec()
}

/// Appends an engine config.
pub(crate) fn write<'buffer>(
    config: &EngineConfig,
    builder: &mut FlatBufferBuilder<'buffer>,
) -> WIPOffset<wire::EngineConfig<'buffer>> {
    let values = config.knobs.iter().map(|(id, value)| (id, Some(value)));
    let settings: Vec<_> = values
        .chain(config.unreadable.iter().map(|id| (id, None)))
        .map(|(id, value)| write_setting(id, value, builder))
        .collect();
    let metric = (!config.ranking_metric.is_empty()).then(|| builder.create_string(&config.ranking_metric));
    let args = wire::EngineConfigArgs {
        engine_id: config.engine_id,
        knobs: Some(builder.create_vector(&settings)),
        ranking_metric: metric,
    };
    wire::EngineConfig::create(builder, &args)
}

/// Appends the setting of a knob; without a value it is unreadable.
pub(crate) fn write_setting<'buffer>(
    id: &str,
    value: Option<&KnobValue>,
    builder: &mut FlatBufferBuilder<'buffer>,
) -> WIPOffset<wire::KnobSetting<'buffer>> {
    let value = value.map(|value| knob::write(value, builder));
    let args = wire::KnobSettingArgs {
        knob_id: Some(builder.create_string(id)),
        value_type: value.map_or(wire::KnobValue::NONE, |(kind, _)| kind),
        value: value.map(|(_, value)| value),
    };
    wire::KnobSetting::create(builder, &args)
}
