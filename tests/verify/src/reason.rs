//! The reason why a module is refused.

/// The reason why a module is refused.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    /// MLIR's message.
    pub(crate) what: String,
    /// Number and text of the line in the module.
    pub(crate) place: String,
}
