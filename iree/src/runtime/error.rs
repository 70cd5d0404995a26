//! Errors of the runtime.

use crate::result::Status;

/// A failed runtime call. IREE's own text is the `source`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A device could not be created. For HIP and CUDA the source names the driver libraries that
    /// were tried.
    #[error("cannot create a {driver} device: {source}")]
    Device {
        /// The HAL driver.
        driver: &'static str,
        /// IREE's report.
        source: Status,
    },

    /// A vmfb was refused: corrupt, or made by an incompatible compiler.
    #[error("not a loadable vmfb: {0}")]
    Load(#[source] Status),

    /// A module could not be set up on a device, for instance because it was compiled for another
    /// one.
    #[error("cannot start the module on {device}: {source}")]
    Session {
        /// The device's driver.
        device: &'static str,
        /// IREE's report.
        source: Status,
    },

    /// Device and module belong to different instances.
    #[error("the device and the module were made with different instances")]
    ForeignInstance,

    /// The module does not export the function.
    #[error("the module exports no function `{0}`")]
    NoFunction(String),

    /// The function does not have the parameters that the caller expects.
    #[error("function `{function}` has the signature `{found}`, not `{expected}`")]
    Signature {
        /// The function.
        function: String,
        /// Its calling convention: `0`, a letter per parameter, `_`, a letter per result; `r` is a
        /// reference, `v` nothing.
        found: String,
        /// The convention that the declared parameters need.
        expected: String,
    },

    /// The attribute in which the module states its workspace size cannot be read.
    #[error("function `{function}` does not state its workspace size: {reason}")]
    WorkspaceUnknown {
        /// The function.
        function: String,
        /// What is missing or malformed.
        reason: String,
    },

    /// The caller's workspace is too small. The module itself would not notice.
    #[error("the workspace has {given} bytes, {needed} are needed")]
    WorkspaceTooSmall {
        /// Bytes that the module needs.
        needed: usize,
        /// Bytes that the caller gave.
        given: usize,
    },

    /// A host pointer cannot be used in place: copy through aligned memory.
    #[error("host pointer {address:#x} is not aligned to {required} bytes")]
    Misaligned {
        /// The pointer.
        address: usize,
        /// The alignment that is needed, [`HOST_ALIGNMENT`](super::HOST_ALIGNMENT).
        required: usize,
    },

    /// A null pointer for memory that has bytes.
    #[error("null pointer for {0} bytes")]
    Null(usize),

    /// A tensor's size in bytes does not fit into `usize`, or an extent is negative.
    #[error("a tensor of shape {0:?} has no size")]
    Shape(Vec<i64>),

    /// The parameter does not exist or is of another kind.
    #[error("parameter {index} is not {expected}")]
    Parameter {
        /// The index that was asked for.
        index: usize,
        /// The kind of parameter that was expected.
        expected: &'static str,
    },

    /// A parameter is still unbound at invocation.
    #[error("parameter {0} was never bound")]
    Unbound(usize),

    /// Memory could not be imported, allocated, read or written.
    #[error("{what}: {source}")]
    Buffer {
        /// The operation.
        what: &'static str,
        /// IREE's report.
        source: Status,
    },

    /// The invocation failed.
    #[error("function `{function}` failed: {source}")]
    Invoke {
        /// The function.
        function: String,
        /// IREE's report.
        source: Status,
    },

    /// The runtime could not be set up.
    #[error("cannot set up IREE's runtime: {0}")]
    Setup(#[source] Status),
}
