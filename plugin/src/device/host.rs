//! Host memory: IREE's CPU drivers on the caller's own pointers.
//!
//! Small graphs run on the calling thread (local-sync). Graphs with enough work run on a pool of as
//! many threads as the process may use (local-task). Pointers are used in place. Compiled code
//! relies on 64-byte alignment, which hipDNN does not guarantee: a buffer with less alignment is
//! copied through the plugin's own memory, and so is an output that overlaps an input.

use super::retired::Retired;
use super::{Buffers, Device, Executable, ExecuteError, Stream, Work, parameters, tensor_type};
use crate::config::Config;
use crate::error::Error;
use crossbeam_queue::ArrayQueue;
use rotini_cache::{CompiledFor, Key};
use rotini_emit::{Argument, ENTRY_POINT, Signature, Target};
use rotini_graph::SlotRole;
use rotini_iree::runtime::{
    Buffer, HOST_ALIGNMENT, HalDevice, Instance, Invocation, Module, Parameter, Session, TaskOptions, TensorType,
};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Number of operations from which on the thread pool is used: below, waking threads costs more
/// than they save. Measured: handing work to the pool costs 20 to 55 µs, in which one core does a
/// few million operations.
const POOL_OPERATIONS: u64 = 4_000_000;

/// Maximum number of programs that stay loaded after their last context: the graphs of one or two
/// models, at some tens of KiB each.
const MAX_RETIRED: usize = 256;

/// The CPU and its memory.
pub struct Host {
    instance: Instance,
    sync: HalDevice,
    /// The thread pool. Started on first use: most processes only ask for applicability.
    pool: OnceLock<Option<HalDevice>>,
    compiled_for: CompiledFor<Target>,
    /// Maximum bytes of workspace that an execution takes from the plugin's own memory.
    own_workspace: usize,
    retired: Arc<Mutex<Retired<Arc<HostExecutable>>>>,
}

impl Host {
    /// Sets up the CPU that this process runs on.
    ///
    /// # Errors
    ///
    /// If the runtime cannot be set up, or if the settings ask for code that needs features that
    /// this CPU lacks.
    pub fn new(config: &Config, instance: &Instance) -> Result<Self, Error> {
        if let Target::X86(level) = config.cpu
            && !level.is_here()
        {
            return Err(Error::NoDevice(format!(
                "ROTINI_CPU={}: this CPU has not all that code for it needs",
                level.name()
            )));
        }
        let sync = HalDevice::local_sync(instance).map_err(Error::runtime("the CPU device cannot be created"))?;
        Ok(Host {
            instance: instance.clone(),
            sync,
            pool: OnceLock::new(),
            compiled_for: CompiledFor {
                target: config.cpu.clone(),
                features: match config.cpu {
                    Target::Cpu => cpu_features(),
                    // Code for a level depends on nothing but the level.
                    _ => String::new(),
                },
            },
            own_workspace: usize::try_from(config.own_workspace).unwrap_or(usize::MAX),
            retired: Arc::new(Mutex::new(Retired::new(MAX_RETIRED))),
        })
    }

    /// Returns the thread pool, if this process may use more than one core.
    fn pool(&self) -> Option<&HalDevice> {
        self.pool
            .get_or_init(|| {
                let options = TaskOptions::default();
                if options.workers < 2 {
                    return None;
                }
                HalDevice::local_task(&self.instance, &options)
                    .inspect_err(|error| {
                        tracing::warn!(%error, "no pool of threads: large graphs run on the calling thread");
                    })
                    .ok()
            })
            .as_ref()
    }
}

impl Device for Host {
    fn compiled_for(&self) -> &CompiledFor<Target> {
        &self.compiled_for
    }

    fn describe(&self) -> String {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        format!("CPU, {threads} thread{}", if threads == 1 { "" } else { "s" })
    }

    fn measured_on(&self) -> String {
        self.describe()
    }

    fn can_be_captured(&self) -> bool {
        false
    }

    unsafe fn load(
        &self,
        key: &Key,
        code: &[u8],
        signature: &Signature,
        work: Work,
    ) -> Result<Arc<dyn Executable>, Error> {
        let retired = lock(&self.retired).take(key);
        let executable = match retired {
            Some(executable) => executable,
            None => {
                // SAFETY: the code was made by the compiler, by this function's contract.
                let module = unsafe { Module::load(&self.instance, Arc::from(code)) }
                    .map_err(Error::runtime("the compiled graph cannot be loaded"))?;
                let large = work.operations >= POOL_OPERATIONS;
                let device = large.then(|| self.pool()).flatten().unwrap_or(&self.sync).clone();
                Arc::new(HostExecutable::new(device, module, signature, self.own_workspace)?)
            }
        };
        Ok(Arc::new(Loaded {
            executable,
            key: *key,
            code_bytes: code.len(),
            retired: Arc::clone(&self.retired),
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the processor's model and features, to which the compiler resolves the target `host`.
fn cpu_features() -> String {
    features_of(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

/// Returns the lines of `/proc/cpuinfo` that distinguish the code of one processor from that of
/// another. Without any, the result is unique to this process, so that code is not shared.
fn features_of(info: &str) -> String {
    // The names of x86-64, then those of Arm.
    let names = [
        "cpu family\t",
        "model\t",
        "flags\t",
        "CPU implementer\t",
        "CPU part\t",
        "Features\t",
    ];
    let lines: Vec<&str> = names
        .iter()
        .filter_map(|name| info.lines().find(|line| line.starts_with(name)))
        .collect();
    if lines.is_empty() {
        tracing::warn!(
            "/proc/cpuinfo does not tell what processor this is: compiled code is not kept for other processes"
        );
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        return format!(
            "{}; process {} at {since:?}",
            std::env::consts::ARCH,
            std::process::id()
        );
    }
    format!("{}; {}", std::env::consts::ARCH, lines.join("; "))
}

/// Code in use. When its last context is gone, it is retired.
struct Loaded {
    executable: Arc<HostExecutable>,
    key: Key,
    code_bytes: usize,
    retired: Arc<Mutex<Retired<Arc<HostExecutable>>>>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.executable.shrink();
        let batch = {
            let mut retired = lock(&self.retired);
            retired.push(self.key, self.code_bytes, Arc::clone(&self.executable));
            retired.excess()
        };
        // Dropped outside the lock, so that other threads can load and retire code meanwhile.
        drop(batch);
    }
}

impl Executable for Loaded {
    fn workspace_bytes(&self) -> u64 {
        self.executable.workspace_bytes as u64
    }

    unsafe fn execute(&self, _stream: Stream, buffers: &Buffers<'_>) -> Result<(), ExecuteError> {
        // SAFETY: by this function's contract.
        unsafe { self.executable.execute(buffers) }
    }
}

/// Code that is loaded for the CPU, with the resources to execute it.
struct HostExecutable {
    device: HalDevice,
    module: Module,
    arguments: Vec<(Argument, TensorType)>,
    parameters: Vec<Parameter>,
    workspace_bytes: usize,
    /// Maximum bytes of workspace that an execution takes from the plugin's own memory.
    own_workspace: usize,
    /// Lanes that no thread uses at the moment. A thread that finds none creates one.
    lanes: ArrayQueue<Lane>,
}

/// Maximum number of idle lanes that are kept for reuse; further threads create new ones.
const MAX_IDLE_LANES: usize = 64;

/// The state with which one thread executes: the function with its argument list, and the buffers
/// that were bound last.
struct Lane {
    invocation: Invocation,
    /// The pointers that were bound last; empty if none are bound.
    bound: Vec<*mut c_void>,
    /// Buffers for arguments that cannot be used in place.
    staging: Vec<Option<Buffer>>,
    /// Workspace for executions without a caller's workspace, or with one of too little alignment.
    workspace: Option<Aligned>,
}

// SAFETY: the pointers are only compared, except in `execute`, whose caller keeps them valid.
unsafe impl Send for Lane {}

impl HostExecutable {
    fn new(device: HalDevice, module: Module, signature: &Signature, own_workspace: usize) -> Result<Self, Error> {
        let failed = || Error::runtime("the compiled graph's signature is wrong");
        let arguments = signature
            .arguments
            .iter()
            .map(|argument| Ok((argument.clone(), tensor_type(argument)?)))
            .collect::<Result<Vec<_>, rotini_iree::runtime::Error>>()
            .map_err(failed())?;
        let workspace_bytes = module.workspace_bytes(ENTRY_POINT).map_err(failed())?;
        let parameters = parameters(signature).map_err(failed())?;
        let lanes = ArrayQueue::new(MAX_IDLE_LANES);
        let executable = HostExecutable {
            device,
            module,
            arguments,
            parameters,
            workspace_bytes,
            own_workspace,
            lanes,
        };
        // Created here, so that code that cannot be executed is refused when it is loaded.
        let lane = executable.new_lane().map_err(failed())?;
        drop(executable.lanes.push(lane));
        Ok(executable)
    }

    fn new_lane(&self) -> Result<Lane, rotini_iree::runtime::Error> {
        let session = Session::new(&self.device, &self.module)?;
        let count = self.arguments.len();
        Ok(Lane {
            invocation: Invocation::new(session, ENTRY_POINT, self.parameters.clone())?,
            bound: Vec::new(),
            staging: (0..count).map(|_| None).collect(),
            workspace: None,
        })
    }

    /// Frees what is only needed while there is a context: lanes with memory of the plugin, and all
    /// but one of the others.
    fn shrink(&self) {
        let mut kept = None;
        while let Some(lane) = self.lanes.pop() {
            if lane.staging.iter().all(Option::is_none) && lane.workspace.is_none() {
                kept = Some(lane);
            }
        }
        if let Some(lane) = kept {
            drop(self.lanes.push(lane));
        }
    }

    /// # Safety
    ///
    /// As [`Executable::execute`].
    unsafe fn execute(&self, buffers: &Buffers<'_>) -> Result<(), ExecuteError> {
        let mut lane = match self.lanes.pop() {
            Some(lane) => lane,
            None => self.new_lane()?,
        };
        // SAFETY: by this function's contract.
        let result = unsafe { self.run(&mut lane, buffers) };
        if result.is_ok() {
            // If the queue is full, there are more idle lanes than are worth keeping.
            drop(self.lanes.push(lane));
        }
        result
    }

    /// Binds the caller's pointers: in place, or through a staging buffer.
    ///
    /// # Safety
    ///
    /// As [`Executable::execute`].
    unsafe fn bind(&self, lane: &mut Lane, pointers: &[*mut c_void]) -> Result<(), ExecuteError> {
        let range = |index: usize| {
            let start = pointers.get(index).map_or(0, |pointer| pointer.addr());
            let bytes = self.arguments.get(index).map_or(0, |(_, tensor)| tensor.bytes());
            start..start.saturating_add(bytes)
        };
        let overlap = |a: usize, b: usize| range(a).start < range(b).end && range(b).start < range(a).end;
        // A failure below leaves nothing marked as bound.
        lane.bound.clear();
        for (index, (argument, tensor)) in self.arguments.iter().enumerate() {
            if argument.role == SlotRole::Scalar {
                continue;
            }
            let pointer = pointers.get(index).copied().unwrap_or(std::ptr::null_mut());
            if pointer.is_null() {
                return Err(ExecuteError::Null(index));
            }
            let mut in_place = pointer.addr().is_multiple_of(HOST_ALIGNMENT);
            if argument.role == SlotRole::Output {
                for (other, (partner, _)) in self.arguments.iter().enumerate() {
                    if other != index && partner.role != SlotRole::Scalar && overlap(index, other) {
                        if partner.role == SlotRole::Output {
                            return Err(ExecuteError::Overlap(index.min(other), index.max(other)));
                        }
                        in_place = false;
                    }
                }
            }
            let Some(staging) = lane.staging.get_mut(index) else {
                continue;
            };
            if in_place {
                *staging = None;
                // SAFETY: the pointer is valid by this function's contract, and an output that is
                // bound in place overlaps no other argument.
                unsafe { lane.invocation.bind(index, pointer)? };
            } else {
                let buffer = match staging.take() {
                    Some(buffer) => buffer,
                    None => Buffer::allocate(&self.device, tensor.bytes())?,
                };
                // SAFETY: the buffer belongs to this argument of the lane, and only one thread uses
                // a lane while it executes.
                unsafe { lane.invocation.bind_buffer(index, &buffer)? };
                *staging = Some(buffer);
            }
        }
        lane.bound.extend_from_slice(pointers);
        Ok(())
    }

    /// Binds the caller's workspace. Binds the plugin's own memory instead if the workspace has too
    /// little alignment, or if it is null and little is needed.
    ///
    /// # Safety
    ///
    /// As [`Executable::execute`].
    unsafe fn bind_workspace(&self, lane: &mut Lane, buffers: &Buffers<'_>) -> Result<(), ExecuteError> {
        let (bytes, workspace) = (self.workspace_bytes, buffers.workspace);
        if bytes == 0 {
            return Ok(());
        }
        if workspace.is_null() {
            if bytes > self.own_workspace {
                return Err(ExecuteError::MissingWorkspace(bytes as u64));
            }
        } else {
            let start = workspace.addr();
            let overlaps = |(pointer, (_, tensor)): &(&*mut c_void, &(Argument, TensorType))| {
                pointer.addr() < start.saturating_add(bytes) && start < pointer.addr().saturating_add(tensor.bytes())
            };
            let tensors = buffers.pointers.iter().zip(&self.arguments);
            // Pointers of scalars are null here, so they overlap nothing.
            if let Some(index) = tensors.map(|tensor| overlaps(&tensor)).position(|overlaps| overlaps) {
                return Err(ExecuteError::WorkspaceOverlap(index));
            }
        }
        let pointer = if !workspace.is_null() && workspace.addr().is_multiple_of(HOST_ALIGNMENT) {
            workspace
        } else {
            let own = match lane.workspace.take() {
                Some(own) => own,
                None => Aligned::new(bytes).ok_or(ExecuteError::NoMemory(bytes))?,
            };
            lane.workspace.insert(own).pointer()
        };
        // SAFETY: the memory is valid for `bytes` bytes: the caller's by this function's contract,
        // the lane's by its allocation.
        unsafe { lane.invocation.bind_workspace(pointer, bytes)? };
        Ok(())
    }

    /// # Safety
    ///
    /// As [`Executable::execute`].
    unsafe fn run(&self, lane: &mut Lane, buffers: &Buffers<'_>) -> Result<(), ExecuteError> {
        if lane.bound != buffers.pointers {
            // SAFETY: by this function's contract.
            unsafe { self.bind(lane, buffers.pointers)? };
        }
        // SAFETY: by this function's contract.
        unsafe { self.bind_workspace(lane, buffers)? };
        let scalars = self.arguments.iter().enumerate();
        let scalars = scalars.filter(|(_, (argument, _))| argument.role == SlotRole::Scalar);
        for ((index, _), &bits) in scalars.zip(buffers.scalars) {
            lane.invocation.bind_number(index, bits)?;
        }
        for ((argument, tensor), (staging, &pointer)) in
            self.arguments.iter().zip(lane.staging.iter().zip(buffers.pointers))
        {
            // An output with gaps is copied in too, so that its gaps are written back unchanged.
            if let Some(staging) = staging
                && (argument.role == SlotRole::Input || !argument.packed)
            {
                // SAFETY: the caller's memory is valid for the argument's bytes by this function's
                // contract. The staging buffer belongs to the lane, whose work has not begun.
                unsafe {
                    let bytes = std::slice::from_raw_parts(pointer.cast::<u8>(), tensor.bytes());
                    staging.write(0, bytes)?;
                }
            }
        }
        lane.invocation.invoke_blocking()?;
        for ((argument, tensor), (staging, &pointer)) in
            self.arguments.iter().zip(lane.staging.iter().zip(buffers.pointers))
        {
            if let Some(staging) = staging
                && argument.role == SlotRole::Output
            {
                // SAFETY: as above. Nothing else reads or writes an output during the call, and the
                // lane's work is done.
                unsafe {
                    let bytes = std::slice::from_raw_parts_mut(pointer.cast::<u8>(), tensor.bytes());
                    staging.read(0, bytes)?;
                }
            }
        }
        Ok(())
    }
}

/// Host memory with the alignment that compiled code requires.
struct Aligned {
    chunks: Vec<Chunk>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk(#[expect(dead_code, reason = "only its size and alignment matter")] [u8; HOST_ALIGNMENT]);

impl Aligned {
    /// Allocates at least `bytes` bytes; `None` if there is not enough memory.
    fn new(bytes: usize) -> Option<Self> {
        let (count, mut chunks) = (bytes.div_ceil(HOST_ALIGNMENT), Vec::new());
        chunks.try_reserve_exact(count).ok()?;
        chunks.resize(count, Chunk([0; HOST_ALIGNMENT]));
        Some(Aligned { chunks })
    }

    fn pointer(&mut self) -> *mut c_void {
        self.chunks.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_told_apart() {
        let zen = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: EPYC\nflags\t\t: fpu avx2\ncpu MHz\t: 2400\n";
        let newer = zen.replace("avx2", "avx2 avx512f");
        let arm = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        let all = [zen, &newer, arm].map(features_of);
        assert!(
            all[0].ends_with("; cpu family\t: 25; model\t\t: 17; flags\t\t: fpu avx2"),
            "{}",
            all[0]
        );
        assert!(all[0] != all[1] && all[2].contains("0xd0c") && all[2].contains("asimd"));
        assert_eq!(features_of(&zen.replace("2400", "3100")), all[0]);
        assert_ne!(features_of(""), features_of(""), "unknown processors are taken for one");
    }
}
