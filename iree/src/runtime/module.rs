//! Loaded modules and their state on a device.

use std::{borrow::Cow, ffi::c_void, ptr, slice, sync::Arc};

use super::{
    Error, HalDevice, Instance, Result,
    handle::{Handle, view},
    record::front,
};
use crate::result::{Code, check};
use iree_sys::runtime as sys;

/// The reflection attribute in which a function states its workspace size in bytes.
const WORKSPACE: &str = "iree.abi.transients.size.constant";

/// A verified vmfb. Clones share it.
#[derive(Clone, Debug)]
pub struct Module(Arc<ModuleInner>);

#[derive(Debug)]
struct ModuleInner {
    module: Handle<sys::iree_vm_module_t>,
    instance: Instance,
}

// SAFETY: a bytecode module is immutable after its creation.
unsafe impl Sync for ModuleInner {}

impl Module {
    /// Loads a vmfb.
    ///
    /// The bytes are kept, not copied, until the last user of the module is gone; they need no
    /// alignment.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] when the structure is corrupt or the version does not fit. The structure is
    /// verified, so arbitrary bytes are refused, not executed.
    ///
    /// # Safety
    ///
    /// The vmfb was made by the compiler. Verification covers the container and the bytecode, not
    /// the machine code in it, which runs with all rights of this process: a crafted vmfb can do
    /// anything the process can.
    pub unsafe fn load(instance: &Instance, vmfb: Arc<[u8]>) -> Result<Self> {
        let contents = sys::iree_const_byte_span_t {
            data: vmfb.as_ptr(),
            data_length: vmfb.len(),
        };
        let owner = Box::into_raw(Box::new(vmfb));
        let allocator = sys::iree_allocator_t {
            self_: owner.cast(),
            ctl: Some(release_archive),
        };
        // SAFETY: on success one owned reference is stored, and the module calls `release_archive`
        // once with `owner` when it is destroyed. On failure it never does, so the box is taken
        // back here.
        let module = unsafe {
            Handle::create(|out| {
                sys::iree_vm_bytecode_module_create(
                    instance.vm(),
                    sys::IREE_VM_BYTECODE_MODULE_FLAG_NONE as _,
                    contents,
                    allocator,
                    sys::iree_allocator_system(),
                    out,
                )
            })
            .map_err(|status| {
                drop(Box::from_raw(owner));
                Error::Load(status)
            })?
        };
        Ok(Self(Arc::new(ModuleInner {
            module,
            instance: instance.clone(),
        })))
    }

    /// Returns the reflection attribute `key` of an exported function; `None` if the function has
    /// no such attribute.
    ///
    /// # Errors
    ///
    /// [`Error::NoFunction`].
    pub fn attribute(&self, function: &str, key: &str) -> Result<Option<Cow<'_, str>>> {
        let function = self.function(function)?;
        // SAFETY: the function belongs to the module, which is alive; the text lives in the module.
        let value = unsafe { text(sys::iree_vm_function_lookup_attr_by_name(&function, view(key))) };
        Ok((!value.is_empty()).then_some(value))
    }

    /// Returns the bytes of workspace that `function` needs, as computed by the compiler; 0 for a
    /// single dispatch.
    ///
    /// # Errors
    ///
    /// [`Error::NoFunction`]; [`Error::WorkspaceUnknown`] when the function was not written with a
    /// workspace (`hal.tensor.transients`), or its size depends on the arguments.
    pub fn workspace_bytes(&self, function: &str) -> Result<usize> {
        let unknown = |reason: String| Error::WorkspaceUnknown {
            function: function.to_owned(),
            reason,
        };
        let value = self
            .attribute(function, WORKSPACE)?
            .ok_or_else(|| unknown(format!("no attribute `{WORKSPACE}`")))?;
        value.parse().map_err(|error| unknown(format!("`{value}`: {error}")))
    }

    pub(super) fn function(&self, name: &str) -> Result<sys::iree_vm_function_t> {
        let mut function = sys::iree_vm_function_t::default();
        // SAFETY: the module is alive; `function` is written on success and refers to the module
        // without retaining it.
        let status = unsafe {
            check(sys::iree_vm_module_lookup_function_by_name(
                self.0.module.as_ptr(),
                sys::IREE_VM_FUNCTION_LINKAGE_EXPORT as _,
                view(name),
                &mut function,
            ))
        };
        match status {
            Ok(()) => Ok(function),
            Err(status) if status.code() == Code::NotFound => Err(Error::NoFunction(name.to_owned())),
            Err(status) => Err(Error::Load(status)),
        }
    }

    /// Returns the calling convention of `function`: `0`, one letter per parameter, `_`, one letter
    /// per result.
    pub(super) fn convention(&self, function: &sys::iree_vm_function_t) -> String {
        // SAFETY: the function belongs to the module, which is alive; the text lives in the module
        // and is copied.
        unsafe { text(sys::iree_vm_function_signature(function).calling_convention).into_owned() }
    }
}

/// IREE's allocator callback for a module's bytes; a free is the only command that it receives.
unsafe extern "C" fn release_archive(
    owner: *mut c_void,
    command: sys::iree_allocator_command_t,
    _params: *const c_void,
    _pointer: *mut *mut c_void,
) -> sys::iree_status_t {
    if command == sys::IREE_ALLOCATOR_COMMAND_FREE {
        // SAFETY: `owner` is the box that `Module::load` handed over, and the module frees its
        // bytes exactly once.
        drop(unsafe { Box::from_raw(owner.cast::<Arc<[u8]>>()) });
        return ptr::null_mut();
    }
    // A status without a message is the bare code.
    sys::IREE_STATUS_UNIMPLEMENTED as usize as sys::iree_status_t
}

/// Returns text in memory that belongs to IREE.
///
/// # Safety
///
/// The view is valid for `'a`.
unsafe fn text<'a>(view: sys::iree_string_view_t) -> Cow<'a, str> {
    if view.data.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: not null, and valid by this function's contract.
    String::from_utf8_lossy(unsafe { slice::from_raw_parts(view.data.cast(), view.size) })
}

/// A module's state on one device: its code, loaded onto the device, and its globals.
///
/// Creating a session runs the module's initialiser, which loads the code and its constants. A
/// session is used by one thread at a time; threads that run the same module concurrently need one
/// session each.
#[derive(Debug)]
pub struct Session {
    // Fields drop in this order; each context retains its modules anyway.
    context: Handle<sys::iree_vm_context_t>,
    device: HalDevice,
    module: Module,
}

impl Session {
    /// Loads `module` onto `device`, and waits until its constants are uploaded.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignInstance`] when the two were made with different instances;
    /// [`Error::Session`] when the module was compiled for another device or its code cannot be
    /// loaded.
    pub fn new(device: &HalDevice, module: &Module) -> Result<Self> {
        if device.instance().vm() != module.0.instance.vm() {
            return Err(Error::ForeignInstance);
        }
        let mut modules = [device.module(), module.0.module.as_ptr()];
        // SAFETY: all objects are alive, the context retains them; on success one owned reference
        // is stored.
        let create = || unsafe {
            Handle::create(|out| {
                sys::iree_vm_context_create_with_modules(
                    device.instance().vm(),
                    sys::IREE_VM_CONTEXT_FLAG_NONE as _,
                    modules.len(),
                    modules.as_mut_ptr(),
                    sys::iree_allocator_system(),
                    out,
                )
            })
        };
        // On a GPU the initialiser queues the upload of constants on a stream that no caller can
        // wait for, so `setup` waits.
        let context = front::setup(create).map_err(|source| Error::Session {
            device: device.kind().name(),
            source,
        })?;
        Ok(Self {
            context,
            device: device.clone(),
            module: module.clone(),
        })
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &HalDevice {
        &self.device
    }

    /// Returns the module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    pub(super) fn as_ptr(&self) -> *mut sys::iree_vm_context_t {
        self.context.as_ptr()
    }
}
