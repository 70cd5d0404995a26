//! hipDNN's side of the plugin ABI: loads a plugin's shared library as a host does and drives it,
//! for the `rotini` command, tests and benches.
//!
//! It shares no code with the plugin: types and symbols are declared here again, from the header's
//! facts, so that a mistake on one side does not cancel itself on the other.

mod error;
pub mod gpu;
mod handle;
mod plugin;
mod symbols;

pub use error::HostError;
pub use handle::{Context, Handle, ShapeOverride};
pub use plugin::Plugin;
pub use symbols::{DeviceBuffer, LogCallback};

/// The bytes of an engine config that sets no knobs.
#[must_use]
pub fn engine_config(engine: i64) -> Vec<u8> {
    engine_config_with(engine, &[])
}

/// The bytes of an engine config that sets these knobs to texts.
#[must_use]
pub fn engine_config_with(engine: i64, knobs: &[(String, String)]) -> Vec<u8> {
    let knobs = knobs
        .iter()
        .map(|(name, text)| (name.clone(), rotini_wire::KnobValue::Text(text.clone())));
    rotini_wire::engine_config::encode(&rotini_wire::engine_config::EngineConfig {
        engine_id: engine,
        knobs: knobs.collect(),
        ..rotini_wire::engine_config::EngineConfig::default()
    })
}
