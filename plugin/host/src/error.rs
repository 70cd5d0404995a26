//! What a plugin answered that is not what was asked for.

use std::path::PathBuf;
use thiserror::Error;

/// What the plugin answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The library cannot be loaded, or lacks a symbol.
    #[error("cannot load {path}: {source}")]
    Load {
        /// The library.
        path: PathBuf,
        /// The loader's words.
        source: libloading::Error,
    },
    /// A call did not succeed.
    #[error("{function} answered {status}: {text}")]
    Status {
        /// The function.
        function: &'static str,
        /// Its status.
        status: i32,
        /// The plugin's text of the error.
        text: String,
    },
    /// The plugin lacks an optional function.
    #[error("the plugin has no {function}")]
    Missing {
        /// The function.
        function: &'static str,
    },
    /// A call succeeded and broke the protocol.
    #[error("{function} succeeded, but {what}")]
    Protocol {
        /// The function.
        function: &'static str,
        /// What was wrong.
        what: String,
    },
}
