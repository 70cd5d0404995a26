//! MLIR with all its dialects: parses and verifies a module.

use crate::reason::Reason;
use crate::shell;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::Module;
use melior::ir::operation::OperationLike as _;
use melior::utility::register_all_dialects;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of text after which the context is recreated: it keeps every type and attribute that it
/// has seen.
const MOST_BYTES: usize = 64 << 20;

/// An MLIR context, used by one thread for many modules.
pub(crate) struct Verifier {
    context: Context,
    /// MLIR's diagnostics for the current module: places and messages.
    said: Rc<RefCell<Vec<(String, String)>>>,
    /// Bytes of text that the context has parsed.
    bytes: usize,
}

impl Verifier {
    /// Creates a context with all dialects of MLIR; IREE's are unregistered.
    pub(crate) fn new() -> Self {
        let registry = DialectRegistry::new();
        register_all_dialects(&registry);
        // Each of this program's threads has a context, so MLIR's own threads would compete with
        // them.
        let context = Context::new_with_registry(&registry, false);
        context.load_all_available_dialects();
        context.set_allow_unregistered_dialects(true);
        let said = Rc::new(RefCell::new(Vec::new()));
        let listener = Rc::clone(&said);
        context.attach_diagnostic_handler(move |diagnostic| {
            let message = (diagnostic.location().to_string(), diagnostic.to_string());
            listener.borrow_mut().push(message);
            true
        });
        Verifier {
            context,
            said,
            bytes: 0,
        }
    }

    /// Verifies an emitted module.
    ///
    /// # Errors
    ///
    /// MLIR's first diagnostic, or the line that [`shell`] does not know.
    pub(crate) fn verify(&mut self, module: &str) -> Result<(), Reason> {
        let text = shell::without_iree(module)?;
        if self.bytes + text.len() > MOST_BYTES {
            *self = Verifier::new();
        }
        self.bytes += text.len();
        let parsed = Module::parse(&self.context, &text);
        let is_right = parsed.is_some_and(|module| module.as_operation().verify());
        match self.said.take().into_iter().next() {
            // A warning is unexpected, so it counts too.
            Some((location, what)) => Err(Reason {
                what,
                place: place(&location, module),
            }),
            None if is_right => Ok(()),
            None => Err(Reason {
                what: "MLIR refuses it, and does not say why".to_owned(),
                place: String::new(),
            }),
        }
    }
}

/// Returns the line of a module for an MLIR location: `loc("-":12:5)` is in line 12.
fn place(location: &str, module: &str) -> String {
    let number = location
        .split(':')
        .nth(1)
        .and_then(|number| number.parse::<usize>().ok());
    let line = number.and_then(|number| module.lines().nth(number.checked_sub(1)?));
    match (number, line) {
        (Some(number), Some(line)) => format!("line {number}: {}", line.trim()),
        _ => location.to_owned(),
    }
}
