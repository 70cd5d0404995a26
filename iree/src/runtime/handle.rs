//! Owned references to IREE's reference-counted objects.

use std::ptr::{self, NonNull};

use crate::result::{Code, Status, check};
use iree_sys::runtime as sys;

/// The release function of a kind of object.
pub(crate) trait Release {
    /// # Safety
    ///
    /// The caller owns one reference to `this` and gives it up.
    unsafe fn release(this: *mut Self);
}

macro_rules! release {
    ($($object:ident => $function:ident),+ $(,)?) => {$(
        impl Release for sys::$object {
            unsafe fn release(this: *mut Self) {
                // SAFETY: the trait's contract is that of the call.
                unsafe { sys::$function(this) }
            }
        }
    )+};
}

release! {
    iree_async_frontier_tracker_t => iree_async_frontier_tracker_release,
    iree_async_proactor_pool_t => iree_async_proactor_pool_release,
    iree_hal_allocator_t => iree_hal_allocator_release,
    iree_hal_buffer_t => iree_hal_buffer_release,
    iree_hal_buffer_view_t => iree_hal_buffer_view_release,
    iree_hal_device_group_t => iree_hal_device_group_release,
    iree_hal_device_t => iree_hal_device_release,
    iree_hal_driver_t => iree_hal_driver_release,
    iree_hal_executable_loader_t => iree_hal_executable_loader_release,
    iree_hal_fence_t => iree_hal_fence_release,
    iree_hal_semaphore_t => iree_hal_semaphore_release,
    iree_task_executor_t => iree_task_executor_release,
    iree_vm_context_t => iree_vm_context_release,
    iree_vm_instance_t => iree_vm_instance_release,
    iree_vm_list_t => iree_vm_list_release,
    iree_vm_module_t => iree_vm_module_release,
}

/// One owned reference.
#[derive(Debug)]
pub(crate) struct Handle<T: Release>(NonNull<T>);

impl<T: Release> Handle<T> {
    /// Takes the reference that `create` stores through its argument.
    ///
    /// # Safety
    ///
    /// If the returned status is OK, `create` has stored one owned reference or left the argument
    /// alone; otherwise it has stored nothing that needs a release. The status has not been
    /// consumed.
    pub(crate) unsafe fn create(create: impl FnOnce(*mut *mut T) -> sys::iree_status_t) -> Result<Self, Status> {
        let mut object = ptr::null_mut();
        let status = create(&mut object);
        // SAFETY: not consumed before, by this function's contract.
        unsafe { check(status)? };
        NonNull::new(object)
            .map(Self)
            .ok_or_else(|| Status::new(Code::Internal, "a successful call returned no object"))
    }

    /// Takes a new reference to `object`; returns `None` for null.
    ///
    /// # Safety
    ///
    /// `object` is null or alive, and `retain` is the function of its kind that adds a reference.
    pub(crate) unsafe fn retain(object: *mut T, retain: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        let object = NonNull::new(object)?;
        // SAFETY: alive by this function's contract.
        unsafe { retain(object.as_ptr()) };
        Some(Self(object))
    }

    /// Returns the pointer, which `self` still owns.
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// Returns the pointer, and transfers its reference to the caller.
    pub(crate) fn into_raw(self) -> *mut T {
        let pointer = self.0.as_ptr();
        std::mem::forget(self);
        pointer
    }
}

// SAFETY: IREE counts the references of all these objects atomically, so a reference may be moved
// to another thread and released there. Whether several threads may use an object at once is
// decided by the types that hold the handle.
unsafe impl<T: Release> Send for Handle<T> {}

impl<T: Release> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: `self` owns one reference and is gone after this.
        unsafe { T::release(self.0.as_ptr()) }
    }
}

/// Returns an `iree_string_view_t` of `text`, valid as long as `text` is.
pub(crate) fn view(text: &str) -> sys::iree_string_view_t {
    sys::iree_string_view_t {
        data: text.as_ptr().cast(),
        size: text.len(),
    }
}
