//! From `tracing` to the host's logging callback.

use super::types::LogSeverity;
use crate::config;
use std::ffi::{CString, c_char};
use std::fmt::Write as _;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

/// The host's function (`hipdnnCallback_t`).
pub type Callback = unsafe extern "C" fn(severity: i32, message: *const c_char);

/// The callback's address; 0 is none.
static CALLBACK: AtomicUsize = AtomicUsize::new(0);
/// The least severity that is passed on.
static LEVEL: AtomicI32 = AtomicI32::new(LogSeverity::Warn as i32);
static INSTALL: Once = Once::new();

/// Sets the host's callback; `None` silences.
pub(super) fn set_callback(callback: Option<Callback>) {
    INSTALL.call_once(|| {
        if let Some(level) = config::log_level() {
            LEVEL.store(level as i32, Ordering::Relaxed);
        }
        // A program that links rotini as a library may have a subscriber of its own; it stays.
        let _ = tracing::subscriber::set_global_default(HostSubscriber);
    });
    CALLBACK.store(callback.map_or(0, |callback| callback as usize), Ordering::Release);
}

/// Sets the least severity that is passed on. `ROTINI_LOG` has the last word.
pub(super) fn set_level(level: LogSeverity) {
    if config::log_level().is_none() {
        LEVEL.store(level as i32, Ordering::Relaxed);
    }
}

/// The severity of a name as `ROTINI_LOG` and hipDNN's own variable spell it.
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

/// Passes events on; spans mean nothing to the host.
struct HostSubscriber;

impl Subscriber for HostSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // hipDNN has nothing below info.
        *metadata.level() <= Level::INFO
            && severity(*metadata.level()) as i32 >= LEVEL.load(Ordering::Relaxed)
            && CALLBACK.load(Ordering::Relaxed) != 0
    }

    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // The level changes at any time: ask for each event.
        tracing::subscriber::Interest::sometimes()
    }

    fn event(&self, event: &Event<'_>) {
        let address = CALLBACK.load(Ordering::Acquire);
        if address == 0 {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let mut bytes = format!("rotini: {}{}", text.message, text.fields).into_bytes();
        bytes.retain(|&byte| byte != 0);
        let Ok(message) = CString::new(bytes) else { return };
        // SAFETY: the address was a callback's when it was stored, and the host keeps it callable while the library is loaded.
        let callback = unsafe { std::mem::transmute::<usize, Callback>(address) };
        // SAFETY: the message lives until the call returns, which is what the header asks for.
        unsafe { callback(severity(*event.metadata().level()) as i32, message.as_ptr()) };
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
