//! Recorded code: loaded code with its launch plan, and the checks that precede a replay.

use super::Shared;
use super::driver::Driver;
use super::launch_plan::LaunchPlan;
use super::memory::{Block, Captured, Owner};
use crate::device::{Buffers, Executable, ExecuteError, Stream, parameters};
use crate::error::Error;
use rotini_cache::Key;
use rotini_emit::{ENTRY_POINT, GPU_ALIGNMENT, Signature};
use rotini_graph::SlotRole;
use rotini_iree::runtime::{Module, Recording, Session};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Code that is loaded on a GPU.
pub(super) struct RecordedCode {
    plan: LaunchPlan,
    arguments: Box<[ArgumentMemory]>,
    workspace_bytes: usize,
    /// Approximate size of the loaded code, in bytes.
    pub(super) code_bytes: usize,
    /// Keeps alive the objects that the plan refers to.
    _recording: Recording,
}

/// The properties of an argument that are needed to check its pointer.
struct ArgumentMemory {
    /// Span in bytes; 0 for a scalar.
    bytes: usize,
    role: SlotRole,
    /// Whether the elements fill the span. If not, the gaps between them must stay unchanged.
    packed: bool,
}

/// The parts of an execution that need the plugin's own memory.
struct Needs {
    workspace: bool,
    /// Outputs that overlap inputs. They are written to the plugin's own memory, and copied to the
    /// caller's when nothing reads the inputs any more: a kernel may write an output before it, or
    /// another of its threads, has read all of an input.
    outputs: SmallVec<[usize; 2]>,
}

impl RecordedCode {
    /// Loads code and records its launches.
    ///
    /// # Errors
    ///
    /// If the GPU refuses the code, or its launches cannot be recorded.
    ///
    /// # Safety
    ///
    /// As [`Device::load`](crate::device::Device::load).
    pub(super) unsafe fn load<D: Driver>(gpu: &Shared<D>, code: &[u8], signature: &Signature) -> Result<Self, Error> {
        let _entered = gpu.driver.enter_to_load(gpu.ordinal)?;
        // SAFETY: by this function's contract.
        let module = unsafe { Module::load(&gpu.instance, Arc::from(code)) }
            .map_err(Error::runtime("the compiled graph cannot be loaded"))?;
        let wrong = || Error::runtime("the compiled graph's signature is wrong");
        let workspace_bytes = module.workspace_bytes(ENTRY_POINT).map_err(wrong())?;
        let parameters = parameters(signature).map_err(wrong())?;
        let session =
            Session::new(&gpu.device, &module).map_err(Error::runtime("the GPU refuses the compiled graph"))?;
        let recording = Recording::new(session, ENTRY_POINT, parameters)
            .map_err(Error::runtime("the compiled graph's launches cannot be recorded"))?;
        let plan = LaunchPlan::new(recording.commands(), signature)
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
                    packed: argument.packed,
                })
            })
            .collect::<Option<_>>()
            .ok_or_else(|| Error::BadCode("an argument has no size".to_owned()))?;
        tracing::info!(launches = plan.launches(), "loaded on GPU {}", gpu.ordinal);
        Ok(RecordedCode {
            plan,
            arguments,
            workspace_bytes,
            code_bytes: code.len(),
            _recording: recording,
        })
    }

    /// Checks the caller's memory. It is an error if a pointer has less alignment than hipDNN
    /// promises, or if an output overlaps another output or the workspace.
    fn check(&self, buffers: &Buffers<'_>, own_workspace: usize) -> Result<Needs, ExecuteError> {
        let pointers = buffers.pointers;
        let mut needs = Needs {
            workspace: false,
            outputs: SmallVec::new(),
        };
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
            let mut is_over_input = false;
            for (other, (partner, &pointer)) in self.arguments.iter().zip(pointers).enumerate() {
                if other == index || !overlap(&written, &range(pointer, partner.bytes)) {
                    continue;
                }
                if partner.role == SlotRole::Output {
                    return Err(ExecuteError::Overlap(index.min(other), index.max(other)));
                }
                is_over_input = true;
            }
            if is_over_input {
                needs.outputs.push(index);
            }
        }
        if self.workspace_bytes > 0 {
            if buffers.workspace.is_null() {
                if self.workspace_bytes > own_workspace {
                    return Err(ExecuteError::MissingWorkspace(self.workspace_bytes as u64));
                }
                needs.workspace = true;
                return Ok(needs);
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
        Ok(needs)
    }
}

fn range(pointer: *mut c_void, bytes: usize) -> Range<usize> {
    pointer.addr()..pointer.addr().saturating_add(bytes)
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Number of workspaces that are remembered as accessible to the GPU. Beyond that, the driver is
/// asked again, which costs little.
const REMEMBERED: usize = 8;

/// Code with the memory of its captured executions.
pub(super) struct Unit<D: Driver> {
    pub(super) code: Box<RecordedCode>,
    pub(super) captured: Captured<D>,
}

/// Code in use, shared by every context of its graph on its GPU.
pub(super) struct Loaded<D: Driver> {
    gpu: Arc<Shared<D>>,
    key: Key,
    /// The code, which only `drop` takes out.
    unit: ManuallyDrop<Unit<D>>,
    /// Addresses of workspaces that the GPU can access.
    workspaces: [AtomicUsize; REMEMBERED],
    /// Number of addresses stored so far; selects the next slot.
    next: AtomicUsize,
}

impl<D: Driver> Loaded<D> {
    pub(super) fn new(gpu: Arc<Shared<D>>, key: Key, unit: Unit<D>) -> Self {
        Loaded {
            gpu,
            key,
            unit: ManuallyDrop::new(unit),
            workspaces: [const { AtomicUsize::new(0) }; REMEMBERED],
            next: AtomicUsize::new(0),
        }
    }

    /// Checks whether the GPU can access the caller's workspace: a kernel that is given host memory
    /// ends the process. The check is meant for hosts that always pass the wrong kind of memory. It
    /// asks the driver once per address, so it misses an address whose memory changes later.
    fn check_workspace(&self, workspace: *mut c_void) -> Result<(), ExecuteError> {
        let address = workspace.addr();
        if workspace.is_null()
            || self.unit.code.workspace_bytes == 0
            || self.workspaces.iter().any(|own| own.load(Ordering::Relaxed) == address)
        {
            return Ok(());
        }
        if !self.gpu.driver.reaches(self.gpu.ordinal, workspace)? {
            return Err(ExecuteError::HostWorkspace);
        }
        let place = self.next.fetch_add(1, Ordering::Relaxed) % REMEMBERED;
        if let Some(place) = self.workspaces.get(place) {
            place.store(address, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Executes with the workspace, or some outputs, in the plugin's own memory.
    ///
    /// # Safety
    ///
    /// As [`Executable::execute`]. The buffers were checked.
    unsafe fn execute_in_own(
        &self,
        stream: *mut c_void,
        buffers: &Buffers<'_>,
        needs: &Needs,
    ) -> Result<(), ExecuteError> {
        let (gpu, Unit { code, captured }) = (&*self.gpu, &*self.unit);
        let capture = gpu.driver.capture(stream)?;
        let mut blocks: SmallVec<[Block<D>; 3]> = SmallVec::new();
        let mut index = 0;
        let mut memory = |bytes: usize| match capture {
            Some(capture) => {
                let owner = Owner {
                    capture,
                    stream: stream.addr(),
                    index,
                };
                index += 1;
                captured.pointer(&gpu.idle.pool, &gpu.driver, gpu.ordinal, owner, bytes)
            }
            None => {
                let block = gpu.idle.pool.take(&gpu.driver, gpu.ordinal, stream, bytes)?;
                // Wait before anything else may fail: the block's event is recorded again below,
                // which replaces the recording that must be waited for.
                if let Err(error) = block.wait(stream) {
                    gpu.idle.pool.put(block);
                    return Err(error);
                }
                let pointer = block.pointer();
                blocks.push(block);
                Ok(pointer)
            }
        };
        let mut work = || {
            let mut pointers: SmallVec<[*mut c_void; 16]> = SmallVec::from_slice(buffers.pointers);
            let workspace = if needs.workspace {
                memory(code.workspace_bytes)?
            } else {
                buffers.workspace
            };
            for &output in &needs.outputs {
                if let (Some(pointer), Some(argument)) = (pointers.get_mut(output), code.arguments.get(output)) {
                    *pointer = memory(argument.bytes)?;
                }
            }
            Ok::<_, ExecuteError>((pointers, workspace))
        };
        let given = work();
        let result = given.and_then(|(pointers, workspace)| {
            let copied = || {
                let all = needs.outputs.iter().filter_map(|&output| {
                    let argument = code.arguments.get(output)?;
                    let (theirs, own) = (buffers.pointers.get(output)?, pointers.get(output)?);
                    Some((argument, theirs.addr() as u64, own.addr() as u64))
                });
                all.filter(|(argument, ..)| argument.bytes > 0)
            };
            // SAFETY: the plugin's memory is as large as the arguments and overlaps nothing of the
            // caller's. The rest holds by this function's contract.
            unsafe {
                for (argument, theirs, own) in copied().filter(|(argument, ..)| !argument.packed) {
                    gpu.driver.copy(theirs, own, argument.bytes, stream)?;
                }
                let own = Buffers {
                    pointers: &pointers,
                    scalars: buffers.scalars,
                    workspace,
                };
                code.plan.replay(&*gpu.driver, stream, &own)?;
                for (argument, theirs, own) in copied() {
                    gpu.driver.copy(own, theirs, argument.bytes, stream)?;
                }
            }
            Ok(())
        });
        // Marked after a failure too, because some of the work may have been enqueued.
        for mut block in blocks {
            match block.mark(stream) {
                Ok(()) => gpu.idle.pool.put(block),
                Err(error) => {
                    tracing::info!("memory is kept until the code is unloaded: {error}");
                    captured.keep(block);
                }
            }
        }
        result
    }
}

impl<D: Driver> Drop for Loaded<D> {
    fn drop(&mut self) {
        // SAFETY: the field is not used after this.
        let unit = unsafe { ManuallyDrop::take(&mut self.unit) };
        let captured = unit.captured.disowned();
        self.gpu.retire(self.key, Unit { captured, ..unit });
    }
}

impl<D: Driver> Executable for Loaded<D> {
    fn workspace_bytes(&self) -> u64 {
        self.unit.code.workspace_bytes as u64
    }

    fn is_captured(&self, stream: Stream) -> bool {
        let driver = &*self.gpu.driver;
        let capture = driver
            .enter_for(stream)
            .and_then(|_current| driver.capture(stream.pointer));
        !matches!(capture, Ok(None))
    }

    unsafe fn execute(&self, stream: Stream, buffers: &Buffers<'_>) -> Result<(), ExecuteError> {
        let (gpu, code) = (&*self.gpu, &self.unit.code);
        if stream.ordinal != gpu.ordinal {
            return Err(ExecuteError::OtherGpu {
                code: gpu.ordinal,
                stream: stream.ordinal,
            });
        }
        let needs = code.check(buffers, gpu.own_workspace)?;
        self.check_workspace(buffers.workspace)?;
        let _current = gpu.driver.enter_for(stream)?;
        // SAFETY: the code keeps its recording alive, and is itself kept until the GPU has finished
        // with it. There are as many pointers as arguments, and they are valid by this function's
        // contract. The stream is on this GPU.
        unsafe {
            if needs.workspace || !needs.outputs.is_empty() {
                self.execute_in_own(stream.pointer, buffers, &needs)
            } else {
                Ok(code.plan.replay(&*gpu.driver, stream.pointer, buffers)?)
            }
        }
    }
}
