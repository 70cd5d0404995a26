//! libreference_engine.so: the reference engine, which evaluates graphs with `rotini-reference`.
//! [`rotini_engine_kit::reference`] documents the memory that it works in.

use rotini_engine_kit::reference::{Plan, Reference};
use rotini_engine_kit::{Buffers, Engine, Execution, Graph, export_engine};
use std::ffi::{CStr, c_void};

/// The reference engine.
pub struct Plain(Reference);

impl Engine for Plain {
    const PLUGIN: &'static CStr = c"reference";
    const VERSION: &'static CStr = c"0.1.0";
    const NAME: &'static CStr = c"REFERENCE_ENGINE";

    fn new() -> Result<Self, String> {
        Reference::new().map(Plain)
    }

    fn applicable(&self, graph: &Graph) -> Result<(), String> {
        self.0.applicable(graph)
    }

    fn context(&self, graph: &Graph) -> Result<Box<dyn Execution>, String> {
        Ok(Box::new(Evaluation(self.0.plan(graph))))
    }
}

struct Evaluation(Plan);

impl Execution for Evaluation {
    unsafe fn execute(&self, buffers: Buffers<'_>, _: *mut c_void, stream: *mut c_void) -> Result<(), String> {
        // SAFETY: by this function's contract.
        unsafe { self.0.execute(buffers, stream, |_| ()) }
    }
}

export_engine!(Plain);
