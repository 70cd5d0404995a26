//! Why a module is refused.

/// Why a module is refused.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    /// What is wrong, in MLIR's words.
    pub(crate) what: String,
    /// The line of the module: its number and its text.
    pub(crate) place: String,
}
