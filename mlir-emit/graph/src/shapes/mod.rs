//! Rules for the shapes and attributes of each operation, one module per family.
//!
//! [`Graph::validate`](crate::Graph::validate) applies them once to every node. They are the rules
//! of hipDNN's front end and reference implementations. Whether an engine supports a valid graph is
//! not decided here.

mod attention;
mod block_scale;
mod conv;
mod matmul;
mod moe;
mod norm;
mod reduction;
mod resample;
