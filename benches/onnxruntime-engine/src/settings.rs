//! The location of ONNX Runtime, and the resources that it may use.

use ort::environment::Environment;
use std::sync::OnceLock;

/// The settings in the environment.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) environment: &'static Environment,
    pub(crate) threads: usize,
    pub(crate) spin: bool,
    /// Whether weights are constant and part of the model.
    pub(crate) has_constants: bool,
}

impl Settings {
    /// Loads ONNX Runtime, once per process.
    ///
    /// # Errors
    ///
    /// Fails if the library cannot be loaded, or if a setting is invalid.
    pub(crate) fn of_environment() -> Result<Self, String> {
        const LIBRARY: &str = "ROTINI_ONNXRUNTIME";
        const THREADS: &str = "ONNXRUNTIME_ENGINE_THREADS";
        static ENVIRONMENT: OnceLock<Result<Environment, String>> = OnceLock::new();
        let environment = ENVIRONMENT.get_or_init(|| {
            let path =
                std::env::var_os(LIBRARY).ok_or_else(|| format!("{LIBRARY} does not say where ONNX Runtime is"))?;
            let failed = |error: String| format!("{LIBRARY}={}: {error}", path.display());
            let builder = ort::init_from(&path).map_err(|error| failed(error.to_string()))?;
            let builder = builder.with_name("rotini").with_telemetry(false);
            builder.build().map_err(|error| failed(error.to_string()))
        });
        let threads = match std::env::var(THREADS) {
            Ok(text) => text.parse().ok().filter(|&threads| threads > 0),
            Err(_) => std::thread::available_parallelism().ok().map(usize::from),
        };
        Ok(Settings {
            environment: environment.as_ref().map_err(String::clone)?,
            threads: threads.ok_or_else(|| format!("{THREADS} is no number of threads"))?,
            spin: switch("ONNXRUNTIME_ENGINE_SPIN")?,
            has_constants: switch("ONNXRUNTIME_ENGINE_CONSTANTS")?,
        })
    }
}

/// Reads a variable that must be 0 or 1; 0 if it is not set.
fn switch(name: &str) -> Result<bool, String> {
    match std::env::var(name).as_deref() {
        Ok("1") => Ok(true),
        Ok("0") | Err(_) => Ok(false),
        Ok(other) => Err(format!("{name}={other} is neither 0 nor 1")),
    }
}
