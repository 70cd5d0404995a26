//! libonnxruntime_engine.so: executes graphs on the CPU through ONNX Runtime, for comparison with
//! rotini.
//!
//! | Module | Contents |
//! |---|---|
//! | `network` | a graph of ONNX operations, independent of ONNX Runtime |
//! | `translate` | from hipDNN's graph to a network, one module per family of operations |
//! | `build` | from a network to a session of ONNX Runtime |
//! | `session` | execution on the caller's buffers |
//! | `weights` | weights that are part of the model, if configured |
//! | `settings` | the settings in the environment |
//!
//! The comparison's fairness and its limits:
//!
//! - Executions read and write the caller's buffers. Nothing is copied except by ONNX Runtime
//!   itself.
//! - Weights are passed to each execution, as in hipDNN's interface. So ONNX Runtime cannot pack
//!   them in advance, and neither can rotini. `ONNXRUNTIME_ENGINE_CONSTANTS=1` promises that they
//!   do not change: then they are part of the model, as in other uses of ONNX Runtime. The first
//!   execution builds that model.
//! - A tensor whose memory order differs from the order of its dims passes through a `Transpose`,
//!   which ONNX Runtime's optimizer moves, merges or removes. ONNX Runtime has no f32 convolution
//!   on NHWC for CPUs.
//! - Tensors of 16 bits are converted to f32 and back, as ONNX Runtime does with such models on
//!   x86.
//! - Threads do not spin after a run, because that would slow down engines that take turns.
//!   `ONNXRUNTIME_ENGINE_SPIN=1` enables spinning.
//!
//! | Variable | Default | Meaning |
//! |---|---|---|
//! | `ROTINI_ONNXRUNTIME` | none | ONNX Runtime's library |
//! | `ONNXRUNTIME_ENGINE_THREADS` | cores of this process | threads of one execution |
//! | `ONNXRUNTIME_ENGINE_CONSTANTS` | 0 | whether weights never change, see below |
//! | `ONNXRUNTIME_ENGINE_SPIN` | 0 | whether threads spin between operations and after a run |
//!
//! `scripts/setup` installs ONNX Runtime and prints the path of its library. By default the engine
//! uses all cores that this process may use. Weights are filters, second operands of matrix
//! products, scales and biases.

mod build;
mod network;
mod session;
mod settings;
mod translate;
mod weights;

use rotini_engine_kit::{BehaviorNote, Engine, Execution, Graph, export_engine};
use session::Session;
use settings::Settings;
use std::ffi::CStr;

/// An engine that runs graphs with ONNX Runtime.
pub struct OnnxRuntime(Settings);

impl Engine for OnnxRuntime {
    const PLUGIN: &'static CStr = c"onnxruntime";
    const VERSION: &'static CStr = c"0.1.0";
    const NAME: &'static CStr = c"ONNXRUNTIME_ENGINE";
    const NOTES: &'static [BehaviorNote] = &[BehaviorNote::RuntimeCompilation, BehaviorNote::ExternalLibrary];

    fn new() -> Result<Self, String> {
        Settings::of_environment().map(OnnxRuntime)
    }

    fn applicable(&self, graph: &Graph) -> Result<(), String> {
        translate::translate(graph).map(drop)
    }

    fn context(&self, graph: &Graph) -> Result<Box<dyn Execution>, String> {
        let network = translate::translate(graph)?;
        Ok(Box::new(Session::new(network, self.0)?))
    }
}

export_engine!(OnnxRuntime);
