//! What the shapes and attributes of each operation have to be, one module for each family.
//!
//! [`Graph::validate`](crate::Graph::validate) comes here once for every node. Rules are those of
//! hipDNN's front end and reference implementations; what a graph may say but an engine cannot do
//! is not decided here.

mod attention;
mod block_scale;
mod conv;
mod matmul;
mod moe;
mod norm;
mod reduction;
mod resample;
