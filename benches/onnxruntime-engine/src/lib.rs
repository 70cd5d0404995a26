//! libonnxruntime_engine.so: executes graphs on the CPU through ONNX Runtime, for comparison with
//! rotini.
//!
//! | Module | What it owns |
//! |---|---|
//! | `network` | a graph of ONNX's operations, before ONNX Runtime sees it |
//! | `translate` | from hipDNN's graph to that, or the reason why not; one module for each family of operations |
//! | `build` | from that to a session of ONNX Runtime's |
//! | `session` | what executes it, on the caller's buffers |
//! | `weights` | weights that are part of the model, if the settings say so |
//! | `settings` | the environment |
//!
//! What makes the comparison fair, and where its limits are:
//!
//! - Executions read and write the caller's buffers. Nothing is copied but what ONNX Runtime itself
//!   copies.
//! - Weights are given at each execution, as hipDNN's interface has it. So ONNX Runtime cannot pack
//!   them beforehand, and neither can rotini. `ONNXRUNTIME_ENGINE_CONSTANTS=1` is the promise that
//!   they stay as they are: then they are part of the model, as they are where ONNX Runtime is used
//!   otherwise. The first execution builds that model.
//! - A tensor in another memory order than that of its dims passes through a `Transpose`, which
//!   ONNX Runtime's optimizer moves, merges or removes. It has no convolution in f32 on NHWC on the
//!   CPU.
//! - Tensors of 16 bits are converted to f32 and back, which is what ONNX Runtime does with such
//!   models on x86.
//! - Threads do not spin after a run, since engines that take turns would be slowed by that.
//!   `ONNXRUNTIME_ENGINE_SPIN=1` lets them.
//!
//! | Variable | Default | Meaning |
//! |---|---|---|
//! | `ROTINI_ONNXRUNTIME` | none | ONNX Runtime's library; `scripts/setup` installs it and says where |
//! | `ONNXRUNTIME_ENGINE_THREADS` | the cores that this process may use | threads of one execution |
//! | `ONNXRUNTIME_ENGINE_CONSTANTS` | 0 | whether filters, second factors of products, scales and biases stay as they are |
//! | `ONNXRUNTIME_ENGINE_SPIN` | 0 | whether threads spin between operations and after a run |

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

/// ONNX Runtime.
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
