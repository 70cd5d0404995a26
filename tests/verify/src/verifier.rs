//! MLIR with all its dialects: it parses a module, and verifies it.

use crate::reason::Reason;
use crate::shell;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::Module;
use melior::ir::operation::OperationLike as _;
use melior::utility::register_all_dialects;
use std::cell::RefCell;
use std::rc::Rc;

/// A context keeps each type and attribute that it has met. After this much text it is made anew.
const MOST_BYTES: usize = 64 << 20;

/// A context of MLIR, which serves one thread for many modules.
pub(crate) struct Verifier {
    context: Context,
    /// What MLIR has said about the module at hand: places and messages.
    said: Rc<RefCell<Vec<(String, String)>>>,
    /// The text that the context has met.
    bytes: usize,
}

impl Verifier {
    /// Returns a context with all dialects of MLIR, in which IREE's are unregistered.
    pub(crate) fn new() -> Self {
        let registry = DialectRegistry::new();
        register_all_dialects(&registry);
        // Each of our threads has a context: threads of MLIR's would be in their way.
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

    /// Verifies a module that was emitted.
    ///
    /// # Errors
    ///
    /// The first thing that MLIR has against it, or the line that [`shell`] does not know.
    pub(crate) fn verify(&mut self, module: &str) -> Result<(), Reason> {
        let text = shell::without_iree(module)?;
        if self.bytes + text.len() > MOST_BYTES {
            *self = Verifier::new();
        }
        self.bytes += text.len();
        let parsed = Module::parse(&self.context, &text);
        let is_right = parsed.is_some_and(|module| module.as_operation().verify());
        match self.said.take().into_iter().next() {
            // A warning would be a surprise, too.
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

/// Returns the line of a module that a location of MLIR is in: `loc("-":12:5)` is in line 12.
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
