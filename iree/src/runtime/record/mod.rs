//! Launch plans: the commands of a function on a GPU, recorded once, to be replayed without the
//! runtime.
//!
//! ```text
//! Session ── invoke with imaginary buffers ──> front device ── deferred commands ──> tape
//!                                                                                     │
//!                                                            Recording <──────────────┘
//! ```
//!
//! The functions of this project run the same commands whatever their buffers hold, so the requests
//! of one invocation to the device are a complete description: kernels with their grids and
//! parameters, fills and copies, in order. [`Recording::new`] records them without launching
//! anything. It invokes the function twice, with different addresses and numbers, and refuses a
//! function whose two invocations issue different commands; it also refuses everything that a list
//! of commands on one stream cannot express.
//!
//! Numbers that are passed by value end up in words among the kernels' arguments. These are the
//! words that differ between the two invocations and that are in each exactly the value that was
//! passed (`number`).

mod command;
pub(super) mod front;
mod number;
mod tape;

use std::fmt;

pub use command::{Address, Command, Function, KernelArgument, Launch, Word};

use super::{Error, Invocation, Parameter, Result, Session, handle::Handle};
use crate::result::{Code, Status};
use iree_sys::runtime as sys;
use number::{Numbers, Take};
use tape::Tape;

/// The recorded commands of a function on a GPU. Keeps the code and the memory alive that the
/// commands refer to.
#[derive(Debug)]
pub struct Recording {
    commands: Vec<Command>,
    /// Fields drop in this order. Both are only kept alive.
    _buffers: Kept<Vec<Handle<sys::iree_hal_buffer_t>>>,
    _session: Kept<Session>,
}

/// A value that is not accessed until it is dropped.
struct Kept<T>(T);

// SAFETY: nothing reads the value through a reference, not even `Debug`, so a shared reference
// gives no access to it.
unsafe impl<T> Sync for Kept<T> {}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl Recording {
    /// Records the commands of the exported `function`. No kernel is launched; the module's own
    /// setup, in [`Session::new`], is complete by then.
    ///
    /// # Errors
    ///
    /// As [`Invocation::new`]; [`Error::Invoke`] if the device is not a GPU, or if the function
    /// does something that a plan cannot contain, or issues different commands in its two
    /// invocations.
    pub fn new(session: Session, function: &str, parameters: Vec<Parameter>) -> Result<Self> {
        let kind = session.device().kind();
        let failed = |message: &str| Error::Invoke {
            function: function.to_owned(),
            source: Status::new(Code::Unimplemented, message),
        };
        if kind.is_host() {
            return Err(failed("only GPUs have launch plans"));
        }
        let device = session.device().as_ptr();
        let mut invocation = Invocation::new(session, function, parameters)?;
        let sizes: Vec<u64> = invocation
            .parameters()
            .map(|parameter| match parameter {
                Parameter::Tensor(tensor) => tensor.bytes() as u64,
                Parameter::Workspace => invocation.workspace_bytes() as u64,
                Parameter::Number { .. } | Parameter::WaitFence | Parameter::SignalFence => 0,
            })
            .collect();
        let parameters: Vec<Parameter> = invocation.parameters().cloned().collect();
        let numbers = Numbers::of(&parameters).ok_or_else(|| failed("it takes too many numbers"))?;
        let mut record = |first, take| {
            let mut tape = Tape::new(kind, device, sizes.clone(), first);
            for (index, parameter) in parameters.iter().enumerate() {
                let address = tape.imaginary(index);
                // SAFETY: nothing touches the memory: all work goes to the tape, and host access to
                // device memory is refused.
                unsafe {
                    match parameter {
                        Parameter::Tensor(_) => invocation.bind(index, address)?,
                        Parameter::Number { .. } => invocation.bind_number(index, numbers.bits(index, take))?,
                        Parameter::Workspace if invocation.workspace_bytes() != 0 => {
                            invocation.bind_workspace(address, invocation.workspace_bytes())?;
                        }
                        Parameter::Workspace | Parameter::WaitFence | Parameter::SignalFence => {}
                    }
                }
            }
            front::record(&mut tape, || invocation.invoke())?;
            Ok::<_, Error>((tape.commands, tape.buffers))
        };
        // The buffers of the first recording stay alive during the second, so memory that is
        // allocated anew each time has another address and is detected.
        let (mut commands, buffers) = record(0, Take::First)?;
        let (again, _) = record(sizes.len() as u64, Take::Second)?;
        if !numbers.mark(&mut commands, &again) {
            return Err(failed("it does not do the same thing every time"));
        }
        Ok(Recording {
            commands,
            _buffers: Kept(buffers),
            _session: Kept(invocation.into_session()),
        })
    }

    /// Returns the commands in order.
    #[must_use]
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }
}
