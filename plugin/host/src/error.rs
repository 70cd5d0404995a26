//! Errors of calls to a plugin.

use std::path::PathBuf;
use thiserror::Error;

/// The reason why a call to a plugin gave no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The library cannot be loaded, or lacks a symbol.
    #[error("cannot load {path}: {source}")]
    Load {
        /// The library.
        path: PathBuf,
        /// The loader's error.
        source: libloading::Error,
    },
    /// A call that returned an error status.
    #[error("{function} answered {status}: {text}")]
    Status {
        /// The function.
        function: &'static str,
        /// Its status.
        status: i32,
        /// The plugin's error text.
        text: String,
    },
    /// The plugin lacks an optional function.
    #[error("the plugin has no {function}")]
    Missing {
        /// The function.
        function: &'static str,
    },
    /// A call that returned success but broke the protocol.
    #[error("{function} succeeded, but {what}")]
    Protocol {
        /// The function.
        function: &'static str,
        /// The violation.
        what: String,
    },
}
