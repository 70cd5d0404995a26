//! Logging: passes events of `tracing` to the host's callback.
//!
//! The callback may do anything, such as throw or call the plugin. So the messages of an exported
//! function are held back until it holds no lock any more. They are then delivered through a C++
//! function that lets no exception pass (`callback.cpp`). Messages of calls that the callback
//! itself makes are dropped, because they would recurse without end.

use super::types::LogSeverity;
use crate::config;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char, c_int};
use std::fmt::Write as _;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

/// The host's function (`hipdnnCallback_t`).
pub type Callback = unsafe extern "C" fn(severity: i32, message: *const c_char);

/// The callback's address; 0 if there is none.
static CALLBACK: AtomicUsize = AtomicUsize::new(0);
/// The lowest severity that is passed on.
static LEVEL: AtomicI32 = AtomicI32::new(LogSeverity::Warn as i32);
/// Whether a callback has thrown, which is logged once.
static THREW: AtomicBool = AtomicBool::new(false);
static INSTALL: Once = Once::new();

unsafe extern "C" {
    /// Calls the callback and returns whether it threw. Catches C++ exceptions and other languages'
    /// panics, which are lost then.
    fn rotini_tell(callback: Callback, severity: c_int, message: *const c_char) -> c_int;
}

/// A message that is still to be delivered.
struct Message {
    severity: LogSeverity,
    text: CString,
}

/// A buffer of held-back messages, used by one thread at a time.
type Held = RefCell<Vec<Message>>;

// Without destructors: one on a host thread would keep the library mapped after it is closed.
thread_local! {
    /// The buffer of this thread's messages, or null. It is in a frame of [`held`] further up this
    /// thread's stack, or on the stack of a thread that waits for this one.
    static HELD: Cell<*const Held> = const { Cell::new(std::ptr::null()) };
    /// Whether this thread is inside the callback.
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Holds back the messages of `body`, and delivers them when it has ended and holds no lock any
/// more.
pub(super) fn held<T>(body: impl FnOnce() -> T) -> T {
    let messages = Held::default();
    let result = Lent(&raw const messages).during(body);
    for message in messages.into_inner() {
        tell(message.severity, &message.text);
    }
    result
}

/// A thread's message buffer, lent to another thread that works for it while it waits.
pub(crate) struct Lent(*const Held);

// SAFETY: the lender waits while the other thread uses the buffer, by the contract of
// `of_this_thread`.
unsafe impl Send for Lent {}

impl Lent {
    /// Returns the calling thread's buffer.
    ///
    /// # Safety
    ///
    /// The calling thread waits until the thread that gets the buffer has finished with it.
    pub(crate) unsafe fn of_this_thread() -> Self {
        Lent(HELD.get())
    }

    /// Runs `body`, and holds back its messages in the buffer.
    pub(crate) fn during<T>(self, body: impl FnOnce() -> T) -> T {
        /// Restores the thread's previous buffer, even if the body panics.
        struct Before(*const Held);

        impl Drop for Before {
            fn drop(&mut self) {
                HELD.set(self.0);
            }
        }
        let _before = Before(HELD.replace(self.0));
        body()
    }
}

/// Calls the host's callback.
fn tell(severity: LogSeverity, message: &CString) {
    let address = CALLBACK.load(Ordering::Acquire);
    if address == 0 || IS_TELLING.replace(true) {
        return;
    }
    // SAFETY: the address was that of a callback when it was stored, and the host keeps the
    // callback valid while the library is loaded.
    let callback = unsafe { std::mem::transmute::<usize, Callback>(address) };
    // SAFETY: the message lives until the call returns, as the header requires. Nothing unwinds out
    // of the call.
    let threw = unsafe { rotini_tell(callback, severity as c_int, message.as_ptr()) } != 0;
    IS_TELLING.set(false);
    if threw && !THREW.swap(true, Ordering::Relaxed) {
        tracing::warn!("the logging callback has thrown, which it must not; messages are lost where it does");
    }
}

/// Sets the host's callback; `None` turns logging off.
pub(super) fn set_callback(callback: Option<Callback>) {
    INSTALL.call_once(|| {
        if let Some(level) = config::log_level() {
            LEVEL.store(level as i32, Ordering::Relaxed);
        }
        // A program that links rotini as a library may already have a subscriber, which is kept.
        let _ = tracing::subscriber::set_global_default(HostSubscriber);
    });
    CALLBACK.store(callback.map_or(0, |callback| callback as usize), Ordering::Release);
}

/// Sets the lowest severity that is passed on. `ROTINI_LOG` takes precedence.
pub(super) fn set_level(level: LogSeverity) {
    if config::log_level().is_none() {
        LEVEL.store(level as i32, Ordering::Relaxed);
    }
}

/// Returns the severity with this name, as spelled in `ROTINI_LOG` and hipDNN's own variable.
#[must_use]
pub fn level_by_name(name: &str) -> Option<LogSeverity> {
    Some(match name {
        "info" => LogSeverity::Info,
        "warn" => LogSeverity::Warn,
        "error" => LogSeverity::Error,
        "fatal" => LogSeverity::Fatal,
        "off" => LogSeverity::Off,
        _ => return None,
    })
}

const fn severity(level: Level) -> LogSeverity {
    match level {
        Level::ERROR => LogSeverity::Error,
        Level::WARN => LogSeverity::Warn,
        _ => LogSeverity::Info,
    }
}

/// A subscriber that passes events to the host and ignores spans.
struct HostSubscriber;

impl Subscriber for HostSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // hipDNN has no severity below info.
        *metadata.level() <= Level::INFO
            && severity(*metadata.level()) as i32 >= LEVEL.load(Ordering::Relaxed)
            && CALLBACK.load(Ordering::Relaxed) != 0
            && !IS_TELLING.get()
    }

    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // The level may change at any time, so `enabled` is asked for each event.
        tracing::subscriber::Interest::sometimes()
    }

    fn event(&self, event: &Event<'_>) {
        if CALLBACK.load(Ordering::Relaxed) == 0 || IS_TELLING.get() {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let mut bytes = format!("rotini: {}{}", text.message, text.fields).into_bytes();
        bytes.retain(|&byte| byte != 0);
        let Ok(text) = CString::new(bytes) else { return };
        let severity = severity(*event.metadata().level());
        // SAFETY: null, or a buffer in a frame of `held` that has not ended: on this thread, or on
        // one that waits for this thread.
        match unsafe { HELD.get().as_ref() } {
            Some(held) => held.borrow_mut().push(Message { severity, text }),
            None => tell(severity, &text),
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// An event's text: its message, then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_error(&mut self, field: &Field, mut error: &(dyn std::error::Error + 'static)) {
        // Writing to a string cannot fail.
        let _ = write!(self.fields, " {}={error}", field.name());
        while let Some(source) = error.source() {
            let _ = write!(self.fields, ": {source}");
            error = source;
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
