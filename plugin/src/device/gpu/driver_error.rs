//! What a driver library says of a call that failed.

use thiserror::Error;

/// A failed call into a driver library, with the vendor's name for what happened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{function} failed: {name} ({text})")]
pub struct DriverError {
    /// The function.
    pub function: &'static str,
    /// The vendor's name of the code: `hipErrorInvalidValue`.
    pub name: String,
    /// The vendor's text.
    pub text: String,
    /// Whether memory ran out.
    pub out_of_memory: bool,
}
