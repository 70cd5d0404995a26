//! A function with its argument list, built once and invoked many times.

use std::{ffi::c_void, ptr};

use super::{Buffer, DeviceKind, Error, Result, Session, TensorType, handle::Handle, wait::wait};
use crate::result::{Status, check};
use iree_sys::runtime as sys;

/// A parameter of a function; lists of parameters are in the function's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A tensor that the function reads or writes in place (`!hal.buffer_view`).
    Tensor(TensorType),
    /// A number by value: 8 bytes are passed as an `i64`, fewer as the low bytes of an `i32` whose
    /// other bytes are 0.
    Number {
        /// Size of the number in bytes: 1, 2, 4 or 8.
        bytes: u8,
    },
    /// The workspace (`!hal.buffer`).
    Workspace,
    /// The fence to wait for before starting (`!hal.fence`). Always null here: the order of
    /// execution is up to the stream or the caller.
    WaitFence,
    /// The fence to signal when done (`!hal.fence`).
    SignalFence,
}

impl Parameter {
    /// Returns the parameter's letter in IREE's calling convention.
    const fn letter(&self) -> char {
        match self {
            Parameter::Tensor(_) | Parameter::Workspace | Parameter::WaitFence | Parameter::SignalFence => 'r',
            Parameter::Number { bytes: 8 } => 'I',
            Parameter::Number { .. } => 'i',
        }
    }
}

/// A semaphore and a value that it has to reach.
type Timepoint = (*mut sys::iree_hal_semaphore_t, u64);

/// A function of a [`Session`] and its argument list.
///
/// Pointers are bound one by one and stay bound; binding the pointer that is bound already costs
/// one comparison.
#[derive(Debug)]
pub struct Invocation {
    // Fields drop in this order: arguments before the session that they were used with.
    arguments: Handle<sys::iree_vm_list_t>,
    slots: Vec<Slot>,
    function: sys::iree_vm_function_t,
    name: String,
    workspace_bytes: usize,
    signal: Option<usize>,
    timeline: Option<Timeline>,
    session: Session,
}

// SAFETY: `function` points into the session's module, which the session keeps alive on whichever
// thread; nothing here is tied to a thread.
unsafe impl Send for Invocation {}

#[derive(Debug)]
struct Slot {
    parameter: Parameter,
    binding: Binding,
}

#[derive(Debug, PartialEq, Eq)]
enum Binding {
    /// Unbound, and a binding is required.
    Missing,
    /// The caller's memory.
    Pointer(*mut c_void),
    /// A number.
    Number(u64),
    /// A buffer, or null if null is a valid argument.
    Other,
}

/// A semaphore whose value counts the blocking invocations.
#[derive(Debug)]
struct Timeline {
    semaphore: Handle<sys::iree_hal_semaphore_t>,
    value: u64,
}

impl Invocation {
    /// Prepares calls of the exported `function`.
    ///
    /// # Errors
    ///
    /// [`Error::NoFunction`]; [`Error::Signature`] if the function's parameters differ from
    /// `parameters` or it returns something; [`Error::WorkspaceUnknown`] if a workspace is declared
    /// whose size the module does not state.
    pub fn new(session: Session, function: &str, parameters: Vec<Parameter>) -> Result<Self> {
        let name = function.to_owned();
        let function = session.module().function(&name)?;
        let convention = session.module().convention(&function);
        let expected = if parameters.is_empty() {
            "0v_v".to_owned()
        } else {
            let letters: String = parameters.iter().map(Parameter::letter).collect();
            format!("0{letters}_v")
        };
        if convention != expected {
            return Err(Error::Signature {
                function: name,
                found: convention,
                expected,
            });
        }
        let workspace_bytes = if parameters.contains(&Parameter::Workspace) {
            session.module().workspace_bytes(&name)?
        } else {
            0
        };
        let arguments = list(parameters.len()).map_err(Error::Setup)?;
        let signal = parameters
            .iter()
            .position(|parameter| *parameter == Parameter::SignalFence);
        let slots = parameters
            .into_iter()
            .map(|parameter| Slot {
                // Null is a valid argument for all references but tensors and a workspace that is
                // needed.
                binding: match parameter {
                    Parameter::Tensor(_) | Parameter::Number { .. } => Binding::Missing,
                    Parameter::Workspace if workspace_bytes != 0 => Binding::Missing,
                    Parameter::Workspace | Parameter::WaitFence | Parameter::SignalFence => Binding::Other,
                },
                parameter,
            })
            .collect();
        Ok(Self {
            arguments,
            slots,
            function,
            name,
            workspace_bytes,
            signal,
            timeline: None,
            session,
        })
    }

    /// Returns the session, and drops the arguments.
    #[must_use]
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Returns the parameters in order.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.slots.iter().map(|slot| &slot.parameter)
    }

    /// Returns the bytes of workspace that the function needs.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    /// Uses the caller's memory, in place, as the tensor parameter `index`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] when `index` is not a tensor; otherwise as [`Buffer::import`]. The
    /// previous binding stays.
    ///
    /// # Safety
    ///
    /// As [`Buffer::import`] for the bytes of the tensor type, until another pointer is bound or
    /// this value is dropped, and the work that was queued with the pointer is done. Parameters,
    /// the workspace included, may overlap only if the function writes none of them.
    pub unsafe fn bind(&mut self, index: usize, pointer: *mut c_void) -> Result<()> {
        let wrong = Error::Parameter {
            index,
            expected: "a tensor",
        };
        let Some(slot) = self.slots.get_mut(index) else {
            return Err(wrong);
        };
        let Parameter::Tensor(tensor) = &slot.parameter else {
            return Err(wrong);
        };
        // Hosts call with the same buffers again and again, and an import is two allocations.
        if slot.binding == Binding::Pointer(pointer) {
            return Ok(());
        }
        // SAFETY: this function's contract is that of the call.
        let buffer = unsafe { Buffer::import(self.session.device(), pointer, tensor.bytes())? };
        let view = tensor.view(&buffer)?;
        // SAFETY: the list takes over the reference that `view` owned.
        unsafe {
            set(
                &self.arguments,
                index,
                sys::iree_hal_buffer_view_move_ref(view.into_raw()),
            )?
        };
        slot.binding = Binding::Pointer(pointer);
        Ok(())
    }

    /// Uses `buffer` as the tensor parameter `index`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] when `index` is not a tensor; [`Error::Buffer`] when the buffer is too
    /// small for it. The previous binding stays.
    ///
    /// # Safety
    ///
    /// While the function runs, nothing else writes to the buffer, and nothing else reads it if the
    /// function writes it: no other invocation, and no [`read`](Buffer::read) or
    /// [`write`](Buffer::write).
    pub unsafe fn bind_buffer(&mut self, index: usize, buffer: &Buffer) -> Result<()> {
        let wrong = Error::Parameter {
            index,
            expected: "a tensor",
        };
        let Some(slot) = self.slots.get_mut(index) else {
            return Err(wrong);
        };
        let Parameter::Tensor(tensor) = &slot.parameter else {
            return Err(wrong);
        };
        let view = tensor.view(buffer)?;
        // SAFETY: the list takes over the reference that `view` owned.
        unsafe {
            set(
                &self.arguments,
                index,
                sys::iree_hal_buffer_view_move_ref(view.into_raw()),
            )?
        };
        slot.binding = Binding::Other;
        Ok(())
    }

    /// Passes a number, given by its bits, as parameter `index`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] when `index` is not a number. The previous binding stays.
    pub fn bind_number(&mut self, index: usize, bits: u64) -> Result<()> {
        let wrong = Error::Parameter {
            index,
            expected: "a number",
        };
        let Some(slot) = self.slots.get_mut(index) else {
            return Err(wrong);
        };
        if slot.binding == Binding::Number(bits) {
            return Ok(());
        }
        // SAFETY: both functions only construct a value.
        let value = unsafe {
            match slot.parameter {
                Parameter::Number { bytes: 8 } => sys::iree_vm_value_make_i64(bits.cast_signed()),
                Parameter::Number { .. } => sys::iree_vm_value_make_i32((bits as u32).cast_signed()),
                _ => return Err(wrong),
            }
        };
        // SAFETY: the list is alive; the value is copied.
        unsafe { check(sys::iree_vm_list_set_value(self.arguments.as_ptr(), index, &value)) }.map_err(Error::Setup)?;
        slot.binding = Binding::Number(bits);
        Ok(())
    }

    /// Uses the caller's memory as the workspace. If the function needs none, the pointer is
    /// ignored, whatever it is.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] when the function has no workspace parameter,
    /// [`Error::WorkspaceTooSmall`]; otherwise as [`Buffer::import`].
    ///
    /// # Safety
    ///
    /// As [`bind`](Self::bind), for `bytes` bytes. No other invocation that may run at the same
    /// time uses the same memory.
    pub unsafe fn bind_workspace(&mut self, pointer: *mut c_void, bytes: usize) -> Result<()> {
        let Some((index, slot)) = self
            .slots
            .iter_mut()
            .enumerate()
            .find(|(_, slot)| slot.parameter == Parameter::Workspace)
        else {
            return Err(Error::Parameter {
                index: self.slots.len(),
                expected: "a workspace",
            });
        };
        if self.workspace_bytes == 0 {
            return Ok(());
        }
        if bytes < self.workspace_bytes {
            return Err(Error::WorkspaceTooSmall {
                needed: self.workspace_bytes,
                given: bytes,
            });
        }
        if slot.binding == Binding::Pointer(pointer) {
            return Ok(());
        }
        // Imports exactly the bytes that are needed, so that the rest stays the caller's.
        // SAFETY: this function's contract is that of the call.
        let buffer = unsafe { Buffer::import(self.session.device(), pointer, self.workspace_bytes)? };
        // SAFETY: the list takes over the reference that `buffer` owned.
        unsafe {
            set(
                &self.arguments,
                index,
                sys::iree_hal_buffer_move_ref(buffer.0.into_raw()),
            )?
        };
        slot.binding = Binding::Pointer(pointer);
        Ok(())
    }

    /// Invokes the function with null fences. The table in the docs of [`runtime`](super) says
    /// which work is done when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Unbound`]; [`Error::Invoke`] with IREE's report, for instance when a buffer is too
    /// small.
    pub fn invoke(&mut self) -> Result<()> {
        if let Some(index) = self.slots.iter().position(|slot| slot.binding == Binding::Missing) {
            return Err(Error::Unbound(index));
        }
        // SAFETY: context, function and list belong together and are alive; `&mut self` keeps other
        // threads out of the context. The function returns nothing (checked in `new`), so there is
        // no list of results.
        unsafe {
            check(sys::iree_vm_invoke(
                self.session.as_ptr(),
                self.function,
                sys::IREE_VM_INVOCATION_FLAG_NONE as _,
                ptr::null(),
                self.arguments.as_ptr(),
                ptr::null_mut(),
                sys::iree_allocator_system(),
            ))
        }
        .map_err(|source| self.failed(source))
    }

    /// Invokes the function and returns when its work is done, on every device.
    ///
    /// # Errors
    ///
    /// As [`invoke`](Self::invoke), and what the work itself reports; [`Error::Parameter`] when the
    /// device works in the background and the function has no signal fence.
    pub fn invoke_blocking(&mut self) -> Result<()> {
        if self.session.device().kind() == DeviceKind::LocalSync {
            return self.invoke();
        }
        let Some(index) = self.signal else {
            return Err(Error::Parameter {
                index: self.slots.len(),
                expected: "a signal fence",
            });
        };
        let result = self.signalled(index);
        if result.is_err() {
            // A failed semaphore stays failed: the next call needs a new one.
            self.timeline = None;
        }
        // The fence is removed from the list, since a fence that has been signalled must not be
        // signalled again by `invoke`.
        // SAFETY: a zeroed reference is the null reference.
        let cleared = unsafe { set(&self.arguments, index, sys::iree_vm_ref_t::default()) };
        result.and(cleared)
    }

    /// Invokes with a fence at `index` and waits for it.
    fn signalled(&mut self, index: usize) -> Result<()> {
        let (fence, (semaphore, value)) = self.next_timepoint().map_err(|source| self.failed(source))?;
        // SAFETY: the fence is alive; the new reference is moved into the list.
        unsafe { set(&self.arguments, index, sys::iree_hal_fence_retain_ref(fence.as_ptr()))? };
        self.invoke()?;
        // SAFETY: the fence keeps the semaphore.
        unsafe { wait(semaphore, value) }.map_err(|source| self.failed(source))
    }

    /// Returns a fence at the next value of this invocation's semaphore, and that semaphore and
    /// value.
    fn next_timepoint(&mut self) -> Result<(Handle<sys::iree_hal_fence_t>, Timepoint), Status> {
        let timeline = match self.timeline.take() {
            Some(timeline) => timeline,
            None => Timeline {
                // SAFETY: the device is alive; on success one owned reference is stored.
                semaphore: unsafe {
                    Handle::create(|out| {
                        sys::iree_hal_semaphore_create(self.session.device().as_ptr(), u64::MAX, 0, 0, out)
                    })?
                },
                value: 0,
            },
        };
        let timeline = self.timeline.insert(timeline);
        // Does not wrap: at one increment per nanosecond it would take centuries.
        timeline.value = timeline.value.wrapping_add(1);
        let timepoint = (timeline.semaphore.as_ptr(), timeline.value);
        // SAFETY: the semaphore is alive, the fence retains it; on success one owned reference is
        // stored.
        let fence = unsafe {
            Handle::create(|out| {
                sys::iree_hal_fence_create_at(timepoint.0, timepoint.1, sys::iree_allocator_system(), out)
            })?
        };
        Ok((fence, timepoint))
    }

    fn failed(&self, source: Status) -> Error {
        Error::Invoke {
            function: self.name.clone(),
            source,
        }
    }
}

/// Creates a list of `length` null references.
fn list(length: usize) -> Result<Handle<sys::iree_vm_list_t>, Status> {
    // SAFETY: on success one owned reference is stored; the list is alive when it is resized.
    unsafe {
        let list = Handle::create(|out| {
            sys::iree_vm_list_create(
                sys::iree_vm_make_undefined_type_def(),
                length,
                sys::iree_allocator_system(),
                out,
            )
        })?;
        check(sys::iree_vm_list_resize(list.as_ptr(), length))?;
        Ok(list)
    }
}

/// Moves `reference` into the list.
///
/// # Safety
///
/// `reference` is null or owns a reference. If the call fails, which it can only for an index out
/// of range, that reference is leaked.
unsafe fn set(list: &Handle<sys::iree_vm_list_t>, index: usize, mut reference: sys::iree_vm_ref_t) -> Result<()> {
    // SAFETY: the list is alive; the reference is moved.
    unsafe { check(sys::iree_vm_list_set_ref_move(list.as_ptr(), index, &mut reference)) }.map_err(Error::Setup)
}
