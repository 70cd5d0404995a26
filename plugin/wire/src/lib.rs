//! hipDNN's wire format: FlatBuffers in, [`rotini_graph::Graph`] out, and back.
//!
//! [`decode()`] is the only entry for graphs that a host passes. The verifier proves that the bytes
//! are a graph at all, each table is translated into the IR, and
//! [`Graph::validate`](rotini_graph::Graph::validate) proves the rest, so code that holds a decoded
//! graph can rely on it. [`encode()`] is the reverse, for tests and tools. [`engine_config`] is a
//! host's request to an engine, [`engine_details`] an engine's description of itself, and
//! [`candidate_page`] and [`prediction`] describe its configurations.
//!
//! The schema in `schema/` was written for rotini from the facts of the wire: field ids, types and
//! defaults. The code generated from it stays private. The cost of reading untrusted bytes is
//! bounded: see [`MAX_APPARENT_SIZE`].
//!
//! ```
//! use rotini_graph::{DataType, GraphBuilder, PointwiseMode};
//!
//! let mut builder = GraphBuilder::new("relu");
//! let x = builder.buffer("x", DataType::F32, &[2, 3]);
//! let y = builder.buffer("y", DataType::F32, &[2, 3]);
//! builder.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[x], y);
//! let graph = builder.build();
//!
//! let bytes = rotini_wire::encode(&graph);
//! assert_eq!(rotini_wire::decode(&bytes), Ok(graph));
//! assert!(rotini_wire::decode(&bytes[..40]).is_err_and(|error| error.is_malformed()));
//! ```

pub mod candidate_page;
mod decode;
mod encode;
pub mod engine_config;
pub mod engine_details;
mod error;
mod field;
mod generated;
mod knob;
mod operation;
pub mod prediction;
mod value;

pub use decode::{decode, required_api_version};
pub use encode::encode;
pub use error::DecodeError;
pub use field::SchemaEnum;
pub use knob::KnobValue;

/// Maximum size of a buffer in bytes, where shared data is counted once per reference: without this
/// limit, a small buffer whose tables share their vectors could cost any amount of memory. Real
/// graphs have kilobytes.
pub const MAX_APPARENT_SIZE: usize = 16 << 20;

/// Maximum nesting depth of tables: graph, node, attributes; or engine config, setting, value.
const MAX_DEPTH: usize = 3;

/// Returns the verifier's limits for buffers of at most `max_tables` tables.
const fn verifier_options(max_tables: usize) -> flatbuffers::VerifierOptions {
    flatbuffers::VerifierOptions {
        max_depth: MAX_DEPTH,
        ..answer_options(max_tables)
    }
}

/// Returns the verifier's limits for an engine's answers, whose tables nest deeper: details, page,
/// candidate, knob setting, value.
const fn answer_options(max_tables: usize) -> flatbuffers::VerifierOptions {
    flatbuffers::VerifierOptions {
        max_depth: 5,
        max_tables,
        max_apparent_size: MAX_APPARENT_SIZE,
        ignore_missing_null_terminator: false,
    }
}
