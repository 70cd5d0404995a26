//! Programs: loaded code with its plan, and what is checked before the plan is replayed.

use super::Shared;
use super::driver::Driver;
use super::plan::Plan;
use crate::device::{Buffers, Executable, ExecuteError, Stream, parameters};
use crate::error::Error;
use iree_sys::runtime::{Executable as Module, Recording, Session};
use rotini_cache::Key;
use rotini_emit::{ENTRY_POINT, GPU_ALIGNMENT, Signature};
use rotini_graph::SlotRole;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;

/// Code that is loaded on a GPU.
pub(super) struct Program {
    plan: Plan,
    arguments: Box<[ArgumentMemory]>,
    workspace_bytes: usize,
    /// Bytes that the program takes, roughly.
    pub(super) code_bytes: usize,
    /// Keeps alive what the plan refers to.
    _recording: Recording,
}

/// What has to be known of an argument to check its pointer.
struct ArgumentMemory {
    /// None for a scalar.
    bytes: usize,
    role: SlotRole,
}

impl Program {
    /// Loads code and records what it launches.
    ///
    /// # Errors
    ///
    /// What the GPU refuses, or what cannot be recorded.
    ///
    /// # Safety
    ///
    /// As [`Device::load`](crate::device::Device::load).
    pub(super) unsafe fn load<D: Driver>(gpu: &Shared<D>, code: &[u8], signature: &Signature) -> Result<Self, Error> {
        let _entered = gpu.driver.enter_to_load(gpu.ordinal)?;
        // SAFETY: passed on to the caller.
        let module = unsafe { Module::load(&gpu.instance, Arc::from(code)) }
            .map_err(Error::runtime("the compiled graph cannot be loaded"))?;
        let wrong = || Error::runtime("the compiled graph's signature is wrong");
        let workspace_bytes = module.workspace_bytes(ENTRY_POINT).map_err(wrong())?;
        let parameters = parameters(signature).map_err(wrong())?;
        let session =
            Session::new(&gpu.device, &module).map_err(Error::runtime("the GPU refuses the compiled graph"))?;
        let recording = Recording::new(session, ENTRY_POINT, parameters)
            .map_err(Error::runtime("the compiled graph's launches cannot be recorded"))?;
        let plan = Plan::new(recording.commands(), signature)
            .map_err(|reason| Error::BadCode(format!("its launches cannot be replayed: {reason}")))?;
        let arguments = signature
            .arguments
            .iter()
            .map(|argument| {
                let bytes = match argument.role {
                    SlotRole::Scalar => 0,
                    SlotRole::Input | SlotRole::Output => argument.byte_length()?,
                };
                Some(ArgumentMemory {
                    bytes: usize::try_from(bytes).ok()?,
                    role: argument.role,
                })
            })
            .collect::<Option<_>>()
            .ok_or_else(|| Error::BadCode("an argument has no size".to_owned()))?;
        tracing::info!(launches = plan.launches(), "loaded on GPU {}", gpu.ordinal);
        Ok(Program {
            plan,
            arguments,
            workspace_bytes,
            code_bytes: code.len(),
            _recording: recording,
        })
    }

    /// Checks the caller's memory. Nothing is copied through memory of our own here, so what the kernels cannot work on in place is an
    /// error: pointers that are less aligned than hipDNN promises, and an output over anything else. Kernels are compiled for buffers
    /// that are apart: they may write an output before they have read all of an input.
    fn check(&self, buffers: &Buffers<'_>) -> Result<(), ExecuteError> {
        let pointers = buffers.pointers;
        if pointers.len() != self.arguments.len() {
            return Err(ExecuteError::Null(pointers.len().min(self.arguments.len())));
        }
        for (index, (argument, pointer)) in self.arguments.iter().zip(pointers).enumerate() {
            if argument.role == SlotRole::Scalar {
                continue;
            }
            if pointer.is_null() {
                return Err(ExecuteError::Null(index));
            }
            if !pointer.addr().is_multiple_of(GPU_ALIGNMENT) {
                return Err(ExecuteError::Misaligned(index, GPU_ALIGNMENT));
            }
        }
        for (index, (argument, &pointer)) in self.arguments.iter().zip(pointers).enumerate() {
            if argument.role != SlotRole::Output {
                continue;
            }
            let written = range(pointer, argument.bytes);
            for (other, (partner, &pointer)) in self.arguments.iter().zip(pointers).enumerate() {
                // Two outputs meet once.
                if (other < index || partner.role != SlotRole::Output)
                    && overlap(&written, &range(pointer, partner.bytes))
                {
                    return Err(ExecuteError::Overlap(other, index));
                }
            }
        }
        if self.workspace_bytes > 0 {
            if buffers.workspace.is_null() {
                return Err(ExecuteError::MissingWorkspace(self.workspace_bytes as u64));
            }
            if !buffers.workspace.addr().is_multiple_of(GPU_ALIGNMENT) {
                return Err(ExecuteError::MisalignedWorkspace(GPU_ALIGNMENT));
            }
            let workspace = range(buffers.workspace, self.workspace_bytes);
            for (index, (argument, &pointer)) in self.arguments.iter().zip(pointers).enumerate() {
                if overlap(&workspace, &range(pointer, argument.bytes)) {
                    return Err(ExecuteError::WorkspaceOverlap(index));
                }
            }
        }
        Ok(())
    }
}

fn range(pointer: *mut c_void, bytes: usize) -> Range<usize> {
    pointer.addr()..pointer.addr().saturating_add(bytes)
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// A program in use: every context of its graph on its GPU has it.
pub(super) struct Loaded<D: Driver> {
    gpu: Arc<Shared<D>>,
    key: Key,
    /// Taken out in `drop`, and nowhere else.
    program: ManuallyDrop<Box<Program>>,
}

impl<D: Driver> Loaded<D> {
    pub(super) fn new(gpu: Arc<Shared<D>>, key: Key, program: Box<Program>) -> Self {
        Loaded {
            gpu,
            key,
            program: ManuallyDrop::new(program),
        }
    }
}

impl<D: Driver> Drop for Loaded<D> {
    fn drop(&mut self) {
        // SAFETY: nobody can use the field after this.
        let program = unsafe { ManuallyDrop::take(&mut self.program) };
        self.gpu.retire(self.key, program);
    }
}

impl<D: Driver> Executable for Loaded<D> {
    fn workspace_bytes(&self) -> u64 {
        self.program.workspace_bytes as u64
    }

    unsafe fn execute(&self, stream: Stream, buffers: &Buffers<'_>) -> Result<(), ExecuteError> {
        let (gpu, program) = (&*self.gpu, &self.program);
        if stream.ordinal != gpu.ordinal {
            return Err(ExecuteError::OtherGpu {
                code: gpu.ordinal,
                stream: stream.ordinal,
            });
        }
        program.check(buffers)?;
        let _current = gpu.driver.enter_for(stream)?;
        // SAFETY: the program keeps its recording alive, and is itself kept until the GPU has finished with it; the pointers are as many
        // as it has arguments, and valid by this function's contract; the stream is on this GPU.
        unsafe { program.plan.replay(&*gpu.driver, stream.pointer, buffers)? };
        Ok(())
    }
}
