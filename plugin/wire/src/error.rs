//! Errors of decoding the bytes of a graph.

use flatbuffers::InvalidFlatbuffer;
use rotini_graph::{DataType, GraphError};
use thiserror::Error;

/// The reason why bytes could not be decoded to a graph.
///
/// Some graphs are malformed, others only newer or larger than what rotini supports:
/// [`is_malformed`](DecodeError::is_malformed) tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The verifier refuses the bytes.
    #[error("the bytes are not a hipDNN graph")]
    NotAGraph(#[source] InvalidFlatbuffer),
    /// A node has a kind without attributes or attributes without a kind. In hipDNN's first
    /// generation the attributes union had a field id lower by one, so its graphs look like this;
    /// so do damaged ones.
    #[error(
        "a node's attributes are not where they belong: the graph is damaged, or of a hipDNN that is too old, whose nodes have no compute \
         type. The oldest that works has rocm-libraries#2323, \"Add compute type to node\", of the end of 2025"
    )]
    FirstGeneration(#[source] InvalidFlatbuffer),
    /// The buffer has more tables, deeper tables or more bytes than any real graph.
    #[error("the graph is beyond the limits of what is read")]
    TooLarge(#[source] InvalidFlatbuffer),
    /// An enum value or a union member that the schema does not know: the graph is from a newer
    /// version of hipDNN.
    #[error("{place}: {what} {value} is not known")]
    Unknown {
        /// The tensor or node.
        place: String,
        /// The name of the field or union that has the value.
        what: &'static str,
        /// The value on the wire.
        value: i64,
    },
    /// A required field is not set.
    #[error("{place}: {what} is not set")]
    Unset {
        /// The tensor or node.
        place: String,
        /// The name of the field.
        what: &'static str,
    },
    /// A tensor states that it holds a value, but the value is not in the buffer.
    #[error("{tensor}: its value is not in the buffer")]
    MissingValue {
        /// The tensor.
        tensor: String,
    },
    /// A virtual tensor holds a value, or is marked to receive one at execution.
    #[error("{tensor} is virtual and holds a value")]
    VirtualValue {
        /// The tensor.
        tensor: String,
    },
    /// A value stored in a form that cannot be read as an element of the tensor's type.
    #[error("{tensor}: a value stored as {stored} cannot be read as {dtype}")]
    ValueForm {
        /// The tensor.
        tensor: String,
        /// The union member that holds the value.
        stored: &'static str,
        /// The tensor's type.
        dtype: DataType,
    },
    /// The bytes are a graph, but the graph is not valid.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl DecodeError {
    /// Returns true if the graph is wrong, false if it only exceeds what rotini supports.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        match self {
            // A field that is required today may get a default in a later version.
            DecodeError::FirstGeneration(_)
            | DecodeError::TooLarge(_)
            | DecodeError::Unknown { .. }
            | DecodeError::Unset { .. }
            | DecodeError::ValueForm { .. } => false,
            DecodeError::NotAGraph(_) | DecodeError::MissingValue { .. } | DecodeError::VirtualValue { .. } => true,
            DecodeError::Graph(error) => error.is_malformed(),
        }
    }
}

impl From<InvalidFlatbuffer> for DecodeError {
    fn from(error: InvalidFlatbuffer) -> Self {
        match error {
            InvalidFlatbuffer::TooManyTables
            | InvalidFlatbuffer::ApparentSizeTooLarge
            | InvalidFlatbuffer::DepthLimitReached => DecodeError::TooLarge(error),
            // The verifier reports the union's kind or its value; only nodes have a union of this
            // name.
            InvalidFlatbuffer::InconsistentUnion {
                ref field,
                ref field_type,
                ..
            } if field == "attributes" || field_type == "attributes" => DecodeError::FirstGeneration(error),
            _ => DecodeError::NotAGraph(error),
        }
    }
}
