//! How operations become kernels on AMD GPUs: what there is to choose from, and which choice is estimated to be the fastest.
//!
//! Nothing here is measured. An estimate is a closed form over products, bytes and launches. It takes microseconds, and it only decides
//! between forms that were executed strictly on the emulated MI300 and gave right results. What it decides was held against the
//! predictions of `rotini-time`, which shares nothing with it.
//!
//! | Module | Owns |
//! |---|---|
//! | [`attention`] | rows and keys of attention's workgroups |
//! | [`machine`] | what is known of the GPUs |
//! | [`phases`] | gradients of convolutions with steps, phase by phase |
//! | [`schedule`] | a schedule as a value, and as IREE's words |
//! | [`mod@split`] | sums over several workgroups |
//! | [`tiles`] | tiles of workgroups, subgroups and matrix instructions |
//! | [`repack`] | operands that are copied so that what is summed over lies innermost |

pub mod attention;
pub mod machine;
pub mod phases;
pub mod repack;
pub mod schedule;
pub mod split;
pub mod tiles;

pub use machine::Machine;
pub use schedule::Schedule;
pub use split::{Product, split};
pub use tiles::{Half, Tiles};
