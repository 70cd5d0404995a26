//! hipDNN's side of the plugin ABI: loads a plugin's shared library as a host does and drives it,
//! for the `rotini` command, tests and benches.
//!
//! The crate shares no code with the plugin: types and symbols are declared a second time, from the
//! facts of hipDNN's header, so that a mistake on one side is not cancelled by the same mistake on
//! the other.

mod error;
pub mod gpu;
mod handle;
mod plugin;
mod symbols;

pub use error::HostError;
pub use handle::{Context, Handle, ShapeOverride};
pub use plugin::Plugin;
pub use symbols::{DeviceBuffer, LogCallback};

/// Returns the bytes of an engine config that sets no knobs.
#[must_use]
pub fn engine_config(engine: i64) -> Vec<u8> {
    engine_config_with(engine, &[])
}

/// Returns the bytes of an engine config that sets these knobs to text values.
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
