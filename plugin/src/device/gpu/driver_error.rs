//! Errors of driver libraries.

use thiserror::Error;

/// A failed call of a driver library.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{function} failed: {name} ({text})")]
pub struct DriverError {
    /// Name of the function that failed.
    pub function: &'static str,
    /// The vendor's name of the error code, such as `hipErrorInvalidValue`.
    pub name: String,
    /// The vendor's description of the error code.
    pub text: String,
    /// Whether memory ran out.
    pub out_of_memory: bool,
}
