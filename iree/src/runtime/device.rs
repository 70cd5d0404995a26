//! Instances and devices.

use rustix::thread::CpuSet;
use std::{ptr, sync::Arc, thread, time::Duration};

use super::{
    DeviceKind, Error, Result,
    handle::{Handle, view},
    record::front,
};
use crate::result::{Status, check};
use iree_sys::runtime as sys;

/// The VM's type registry and the I/O threads that devices share. Clones share it.
#[derive(Clone, Debug)]
pub struct Instance(Arc<InstanceInner>);

#[derive(Debug)]
struct InstanceInner {
    vm: Handle<sys::iree_vm_instance_t>,
    proactors: Handle<sys::iree_async_proactor_pool_t>,
}

// SAFETY: `iree_vm_instance_t` locks its type table, and the pool locks its entries; both are made
// to be shared.
unsafe impl Sync for InstanceInner {}

impl Instance {
    /// Creates an instance. No threads start before a device needs them.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] if memory is exhausted.
    pub fn new() -> Result<Self> {
        // SAFETY: each `create` stores one owned reference on success.
        let inner = unsafe {
            let vm = Handle::create(|out| {
                sys::iree_vm_instance_create(
                    sys::IREE_VM_TYPE_CAPACITY_DEFAULT as usize,
                    sys::iree_allocator_system(),
                    out,
                )
            })
            .map_err(Error::Setup)?;
            check(sys::iree_hal_module_register_all_types(vm.as_ptr())).map_err(Error::Setup)?;
            // One pool entry that serves every NUMA node: nothing here does file or network I/O.
            let proactors = Handle::create(|out| {
                sys::iree_async_proactor_pool_create(
                    1,
                    ptr::null(),
                    sys::iree_async_proactor_pool_options_default(),
                    sys::iree_allocator_system(),
                    out,
                )
            })
            .map_err(Error::Setup)?;
            InstanceInner { vm, proactors }
        };
        Ok(Self(Arc::new(inner)))
    }

    pub(super) fn vm(&self) -> *mut sys::iree_vm_instance_t {
        self.0.vm.as_ptr()
    }

    fn create_params(&self) -> sys::iree_hal_device_create_params_t {
        sys::iree_hal_device_create_params_t {
            // The device retains the pool.
            proactor_pool: self.0.proactors.as_ptr(),
            // SAFETY: returns a structure by value.
            ..unsafe { sys::iree_hal_device_create_params_default() }
        }
    }
}

/// Settings of a local-task device.
#[derive(Clone, Copy, Debug)]
pub struct TaskOptions {
    /// Number of worker threads, at least 1. The default follows the process's affinity mask and
    /// CPU quota.
    pub workers: usize,
    /// Time that an idle worker spins before it sleeps. The default is zero: on a busy machine,
    /// every microsecond of spinning was seen to add two to a blocking invocation.
    pub spin: Duration,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            workers: thread::available_parallelism().map_or(1, usize::from),
            spin: Duration::ZERO,
        }
    }
}

/// Settings of a GPU device.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// The driver's index of the device.
    pub ordinal: usize,
    /// HIP only: the driver library, by path or by a name for the system's search. `None` means
    /// `libamdhip64.so`.
    pub library: Option<String>,
}

/// A HAL device, and the VM module through which programs reach it. Clones share it.
#[derive(Clone, Debug)]
pub struct HalDevice(Arc<DeviceInner>);

#[derive(Debug)]
struct DeviceInner {
    kind: DeviceKind,
    // Fields drop in this order: the module retains the device through its group.
    module: Handle<sys::iree_vm_module_t>,
    device: Handle<sys::iree_hal_device_t>,
    instance: Instance,
}

// SAFETY: HAL devices and their allocators may be used from any thread at any time, and a VM module
// is immutable: its state lives in the context.
unsafe impl Sync for DeviceInner {}

impl HalDevice {
    /// Creates a device that executes on the invoking host thread.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if memory is exhausted.
    pub fn local_sync(instance: &Instance) -> Result<Self> {
        let kind = DeviceKind::LocalSync;
        // SAFETY: `create` stores one owned reference on success; the parameters outlive the call,
        // and the device retains the loader and the allocator.
        let device = unsafe {
            local(kind, |loaders, allocator| {
                let mut params = sys::iree_hal_sync_device_params_t::default();
                sys::iree_hal_sync_device_params_initialize(&mut params);
                let create_params = instance.create_params();
                Handle::create(|out| {
                    sys::iree_hal_sync_device_create(
                        view(kind.name()),
                        &params,
                        &create_params,
                        loaders.len(),
                        loaders.as_mut_ptr(),
                        allocator,
                        sys::iree_allocator_system(),
                        out,
                    )
                })
            })
        };
        Self::finish(instance, kind, device)
    }

    /// Creates a device that executes on its own host worker threads.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] when threads cannot be started.
    pub fn local_task(instance: &Instance, options: &TaskOptions) -> Result<Self> {
        let kind = DeviceKind::LocalTask;
        let executor = executor(options).map_err(|source| Error::Device {
            driver: kind.name(),
            source,
        })?;
        // SAFETY: as for local-sync; the device retains the executor.
        let device = unsafe {
            local(kind, |loaders, allocator| {
                let mut params = sys::iree_hal_task_device_params_t::default();
                sys::iree_hal_task_device_params_initialize(&mut params);
                let create_params = instance.create_params();
                let queue = executor.as_ptr();
                Handle::create(|out| {
                    sys::iree_hal_task_device_create(
                        view(kind.name()),
                        &params,
                        1,
                        &queue,
                        loaders.len(),
                        loaders.as_mut_ptr(),
                        allocator,
                        &create_params,
                        sys::iree_allocator_system(),
                        out,
                    )
                })
            })
        };
        Self::finish(instance, kind, device)
    }

    /// Creates a device for an AMD GPU.
    ///
    /// A device costs about 0.1 ms, three threads and 32 events: create one per GPU and share it.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] with the code `Unavailable` and the names tried if `libamdhip64.so` is
    /// missing, `NotFound` if it is too old, `FailedPrecondition` if it finds no GPU.
    pub fn hip(instance: &Instance, options: &GpuOptions) -> Result<Self> {
        let driver = hip_driver(options.library.as_deref());
        Self::from_driver(instance, DeviceKind::Hip, options.ordinal, driver)
    }

    /// Creates a device for an NVIDIA GPU.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] without a driver or a GPU.
    #[cfg(feature = "cuda")]
    pub fn cuda(instance: &Instance, options: &GpuOptions) -> Result<Self> {
        let driver = cuda_driver();
        Self::from_driver(instance, DeviceKind::Cuda, options.ordinal, driver)
    }

    fn from_driver(
        instance: &Instance,
        kind: DeviceKind,
        ordinal: usize,
        driver: Result<Handle<sys::iree_hal_driver_t>, Status>,
    ) -> Result<Self> {
        let create_params = instance.create_params();
        let device = driver.and_then(|driver| {
            // SAFETY: stores one owned reference on success; the device retains the driver.
            unsafe {
                Handle::create(|out| {
                    sys::iree_hal_driver_create_device_by_ordinal(
                        driver.as_ptr(),
                        ordinal,
                        0,
                        ptr::null(),
                        &create_params,
                        sys::iree_allocator_system(),
                        out,
                    )
                })
            }
        });
        Self::finish(instance, kind, device.and_then(front::wrap))
    }

    fn finish(
        instance: &Instance,
        kind: DeviceKind,
        device: Result<Handle<sys::iree_hal_device_t>, Status>,
    ) -> Result<Self> {
        let module = |device: &Handle<sys::iree_hal_device_t>| {
            // SAFETY: each `create` stores one owned reference on success, and each object retains
            // what it was made from.
            unsafe {
                let allocator = sys::iree_allocator_system();
                // Every group needs a separate tracker: a device registers with its tracker, which
                // would refuse a second device of the same driver as a duplicate.
                let tracker = Handle::create(|out| {
                    let options = sys::iree_async_frontier_tracker_options_default();
                    sys::iree_async_frontier_tracker_create(options, allocator, out)
                })?;
                let group = Handle::create(|out| {
                    sys::iree_hal_device_group_create_from_device(device.as_ptr(), tracker.as_ptr(), allocator, out)
                })?;
                Handle::create(|out| {
                    sys::iree_hal_module_create(
                        instance.vm(),
                        sys::iree_hal_module_device_policy_default(),
                        group.as_ptr(),
                        0,
                        sys::iree_hal_module_debug_sink_null(),
                        allocator,
                        out,
                    )
                })
            }
        };
        device
            .and_then(|device| {
                Ok(Self(Arc::new(DeviceInner {
                    kind,
                    module: module(&device)?,
                    device,
                    instance: instance.clone(),
                })))
            })
            .map_err(|source| Error::Device {
                driver: kind.name(),
                source,
            })
    }

    /// Returns the HAL driver of the device.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.0.kind
    }

    /// Returns the instance that the device was created with.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.0.instance
    }

    pub(super) fn as_ptr(&self) -> *mut sys::iree_hal_device_t {
        self.0.device.as_ptr()
    }

    pub(super) fn module(&self) -> *mut sys::iree_vm_module_t {
        self.0.module.as_ptr()
    }

    pub(super) fn allocator(&self) -> *mut sys::iree_hal_allocator_t {
        // SAFETY: the device is alive; the allocator is borrowed from it.
        unsafe { sys::iree_hal_device_allocator(self.as_ptr()) }
    }
}

type Loaders = [*mut sys::iree_hal_executable_loader_t; 1];

/// Creates the embedded-ELF loader and the heap allocator that both local devices need, and passes
/// them to `create`, whose device retains both.
fn local(
    kind: DeviceKind,
    create: impl FnOnce(&mut Loaders, *mut sys::iree_hal_allocator_t) -> Result<Handle<sys::iree_hal_device_t>, Status>,
) -> Result<Handle<sys::iree_hal_device_t>, Status> {
    // SAFETY: each `create` stores one owned reference on success; a null plugin manager means no
    // plugins.
    let (loader, heap) = unsafe {
        let allocator = sys::iree_allocator_system();
        (
            Handle::create(|out| sys::iree_hal_embedded_elf_loader_create(ptr::null_mut(), allocator, out))?,
            Handle::create(|out| sys::iree_hal_allocator_create_heap(view(kind.name()), allocator, allocator, out))?,
        )
    };
    create(&mut [loader.as_ptr()], heap.as_ptr())
}

/// Bytes of a worker's stack. IREE's default is 32 KiB, which is also the limit of its compiler on
/// the local arrays of one kernel: a kernel that uses most of that limit and spills registers would
/// write beyond the stack.
const WORKER_STACK: usize = 1 << 20;

/// Returns the CPUs that workers are pinned to, if there is one worker for each CPU of this
/// process.
///
/// Without pinning, two workers were often woken on one CPU: after a short sleep, layers of
/// ResNet-50 took 1.3 times as long on two CPUs. Workers are not pinned if the process may use
/// fewer CPUs than it sees, as in a container with a quota, or has fewer workers than CPUs.
///
/// The first CPU depends on the process id, so that work for a single worker is not on the same CPU
/// in all processes.
fn own_cpus(workers: usize) -> Option<Vec<u32>> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    let mut cpus: Vec<u32> = (0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect();
    if cpus.is_empty() || cpus.len() != workers {
        return None;
    }
    let first = usize::try_from(std::process::id()).unwrap_or(0) % cpus.len();
    cpus.rotate_left(first);
    Some(cpus)
}

/// Creates a pool of workers.
fn executor(options: &TaskOptions) -> Result<Handle<sys::iree_task_executor_t>, Status> {
    let workers = options
        .workers
        .clamp(1, sys::IREE_TASK_TOPOLOGY_MAX_GROUP_COUNT as usize);
    let mut topology = Box::<sys::iree_task_topology_t>::default();
    // SAFETY: both structures are initialised by IREE before use; the topology is only read during
    // creation, which stores one owned reference on success.
    unsafe {
        let mut executor_options = sys::iree_task_executor_options_t::default();
        sys::iree_task_executor_options_initialize(&mut executor_options);
        executor_options.worker_spin_ns = options.spin.as_nanos().try_into().unwrap_or(i64::MAX);
        executor_options.worker_stack_size = WORKER_STACK;
        sys::iree_task_topology_initialize_from_group_count(workers, &mut *topology);
        for (group, cpu) in topology.groups.iter_mut().zip(own_cpus(workers).unwrap_or_default()) {
            group.ideal_thread_affinity.set_group_any(0);
            group.ideal_thread_affinity.set_id_assigned(1);
            group.ideal_thread_affinity.set_id(cpu);
        }
        let executor = Handle::create(|out| {
            sys::iree_task_executor_create(executor_options, &*topology, sys::iree_allocator_system(), out)
        });
        sys::iree_task_topology_deinitialize(&mut *topology);
        executor
    }
}

/// Bytes per chunk in which a module's constants are uploaded, through pinned memory that each
/// device keeps.
const TRANSFER_CHUNK: usize = 64 << 10;

/// Bytes of that pinned memory, a ring; IREE's default is 128 MiB. It must be larger than one
/// chunk: IREE 3.13 takes a ring that is exactly full for an empty one, and overwrites data that
/// has not been copied yet.
const TRANSFER_BUFFER: usize = 2 * TRANSFER_CHUNK;

fn hip_driver(library: Option<&str>) -> Result<Handle<sys::iree_hal_driver_t>, Status> {
    // The prefix marks the text as a file name rather than a directory to search in; the system's
    // search still applies to a bare name.
    let library = library.map(|name| format!("file:{name}"));
    let mut paths: Vec<_> = library.iter().map(|name| view(name)).collect();
    // SAFETY: both structures are initialised by IREE before use and copied by the driver; the
    // paths are copied too, or only used during the call; creation stores one owned reference on
    // success.
    unsafe {
        let mut options = sys::iree_hal_hip_driver_options_t::default();
        sys::iree_hal_hip_driver_options_initialize(&mut options);
        options.hip_lib_search_paths = paths.as_mut_ptr();
        options.hip_lib_search_path_count = paths.len();
        let mut params = sys::iree_hal_hip_device_params_t::default();
        sys::iree_hal_hip_device_params_initialize(&mut params);
        params.command_buffer_mode = sys::IREE_HAL_HIP_COMMAND_BUFFER_MODE_STREAM;
        params.file_transfer_buffer_size = TRANSFER_BUFFER;
        params.file_transfer_chunk_size = TRANSFER_CHUNK;
        Handle::create(|out| {
            sys::iree_hal_hip_driver_create(
                view(DeviceKind::Hip.name()),
                &options,
                &params,
                sys::iree_allocator_system(),
                out,
            )
        })
    }
}

#[cfg(feature = "cuda")]
fn cuda_driver() -> Result<Handle<sys::iree_hal_driver_t>, Status> {
    // SAFETY: as for HIP.
    unsafe {
        let mut options = sys::iree_hal_cuda_driver_options_t::default();
        sys::iree_hal_cuda_driver_options_initialize(&mut options);
        let mut params = sys::iree_hal_cuda_device_params_t::default();
        sys::iree_hal_cuda_device_params_initialize(&mut params);
        Handle::create(|out| {
            sys::iree_hal_cuda_driver_create(
                view(DeviceKind::Cuda.name()),
                &options,
                &params,
                sys::iree_allocator_system(),
                out,
            )
        })
    }
}
