//! libfaulty_engine.so: the reference engine with a fault, to test how a host handles it.
//! `FAULTY_ENGINE` names the fault:
//!
//! | Fault | Effect |
//! |---|---|
//! | none | results are right |
//! | `no-handle` | no handle can be created |
//! | `fails-create` | creating a context returns an error |
//! | `crash-create`, `hang-create` | creating a context aborts the process, or never returns |
//! | `fails`, `crash`, `hang` | the same for an execution |
//! | `exits` | an execution ends the process with exit code 0 |
//! | `unwinds` | an execution panics, which the skeleton turns into an error |
//! | `slow` | an execution takes 20 ms longer |
//! | `wrong` | one element of the first output is wrong |
//! | `wrong-later` | the same, from the fifth execution of a context on |
//! | `fails-later` | an execution returns an error, from the fifth execution of a context on |
//! | `writes-input` | an execution changes one element of the first input |

use rotini_engine_kit::reference::{Plan, Reference};
use rotini_engine_kit::{Buffers, Engine, Execution, Graph, export_engine};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Number of executions before the faults `wrong-later` and `fails-later` begin.
const RIGHT: u32 = 4;

const SLOW: Duration = Duration::from_millis(20);

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    NoHandle,
    FailsCreate,
    CrashCreate,
    HangCreate,
    Fails,
    Crash,
    Hang,
    Exits,
    Unwinds,
    Slow,
    Wrong,
    WrongLater,
    FailsLater,
    WritesInput,
}

impl Fault {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "" | "none" => Fault::None,
            "no-handle" => Fault::NoHandle,
            "fails-create" => Fault::FailsCreate,
            "crash-create" => Fault::CrashCreate,
            "hang-create" => Fault::HangCreate,
            "fails" => Fault::Fails,
            "crash" => Fault::Crash,
            "hang" => Fault::Hang,
            "exits" => Fault::Exits,
            "unwinds" => Fault::Unwinds,
            "slow" => Fault::Slow,
            "wrong" => Fault::Wrong,
            "wrong-later" => Fault::WrongLater,
            "fails-later" => Fault::FailsLater,
            "writes-input" => Fault::WritesInput,
            _ => return None,
        })
    }
}

/// The reference engine with a fault.
pub struct Faulty {
    plain: Reference,
    fault: Fault,
}

impl Engine for Faulty {
    const PLUGIN: &'static CStr = c"faulty";
    const VERSION: &'static CStr = c"0.1.0";
    const NAME: &'static CStr = c"FAULTY_ENGINE";

    fn new() -> Result<Self, String> {
        let name = std::env::var("FAULTY_ENGINE").unwrap_or_default();
        let fault = Fault::of(&name).ok_or_else(|| format!("FAULTY_ENGINE={name} is no fault"))?;
        if fault == Fault::NoHandle {
            return Err("FAULTY_ENGINE=no-handle".to_owned());
        }
        let plain = Reference::new()?;
        Ok(Faulty { plain, fault })
    }

    fn applicable(&self, graph: &Graph) -> Result<(), String> {
        self.plain.applicable(graph)
    }

    fn context(&self, graph: &Graph) -> Result<Box<dyn Execution>, String> {
        match self.fault {
            Fault::FailsCreate => return Err("FAULTY_ENGINE=fails-create".to_owned()),
            Fault::CrashCreate => std::process::abort(),
            Fault::HangCreate => hang(),
            _ => {}
        }
        Ok(Box::new(Evaluation {
            plan: self.plain.plan(graph),
            fault: self.fault,
            executions: AtomicU32::new(0),
        }))
    }
}

struct Evaluation {
    plan: Plan,
    fault: Fault,
    executions: AtomicU32,
}

impl Execution for Evaluation {
    #[expect(clippy::panic, reason = "this is what is asked for")]
    unsafe fn execute(&self, buffers: Buffers<'_>, _: *mut c_void, stream: *mut c_void) -> Result<(), String> {
        let is_late = self.executions.fetch_add(1, Ordering::Relaxed) >= RIGHT;
        let mut spoiled = None;
        match self.fault {
            Fault::Fails => return Err("FAULTY_ENGINE=fails".to_owned()),
            Fault::FailsLater if is_late => return Err("FAULTY_ENGINE=fails-later".to_owned()),
            Fault::Crash => std::process::abort(),
            Fault::Hang => hang(),
            Fault::Exits => std::process::exit(0),
            Fault::Unwinds => panic!("FAULTY_ENGINE=unwinds"),
            Fault::Slow => std::thread::sleep(SLOW),
            Fault::Wrong => spoiled = self.plan.output(),
            Fault::WrongLater if is_late => spoiled = self.plan.output(),
            Fault::WritesInput => spoiled = self.plan.input(),
            _ => {}
        }
        // SAFETY: by this function's contract.
        unsafe {
            self.plan.execute(buffers, stream, |values| {
                if let Some(bytes) = spoiled.and_then(|uid| values.get_mut(&uid)) {
                    spoil(bytes);
                }
            })
        }
    }
}

/// Flips a high bit of one element. The byte is the highest one of an element of any type, because
/// elements have 1, 2, 4 or 8 bytes.
fn spoil(bytes: &mut [u8]) {
    let highest = bytes.len().min(8).saturating_sub(1);
    if let Some(byte) = bytes.get_mut(highest) {
        *byte ^= 0x40;
    }
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

export_engine!(Faulty);
