//! Legal forms: replacements for code that the compiler gets wrong. Each defect is a quirk
//! ([`crate::quirks`]), and only this module asks which quirks are avoided.
//!
//! The lowering says what it wants, such as `at.negated(x)` or `quirks.factor_types(…)`. The
//! functions here are methods of the type that they rewrite: of the [`Emitter`](crate::ir::Emitter)
//! for values, of the [`Lowering`](crate::lowering::Lowering) for tensors of the graph, of
//! [`Quirks`](crate::quirks::Quirks) for choices of form. Each names its quirks.
//!
//! | File | Contents |
//! |---|---|
//! | `scalars` | operations on elements |
//! | `pointwise` | elements that may be constants or operands |
//! | `factors`, `sums` | contractions: their operands and their results |
//! | `reductions`, `repeated` | operands, extents and terms of reductions |
//! | `spread`, `merged` | reductions with a schedule in IREE's attributes |
//! | `convolutions`, `attention`, `gathers` | one family each |
//! | `bodies` | rewrites bodies of custom operations |
//! | `flags` | flags of the compiler |

mod attention;
pub(crate) mod bodies;
mod convolutions;
mod factors;
pub(crate) mod flags;
mod gathers;
pub(crate) mod merged;
mod pointwise;
mod reductions;
pub(crate) mod repeated;
mod scalars;
pub(crate) mod spread;
mod sums;
