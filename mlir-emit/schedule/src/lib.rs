//! How operations become kernels on AMD GPUs: what there is to choose from, and which choice is
//! estimated to be the fastest.
//!
//! Nothing here is measured. An estimate is a closed form over products, bytes and launches. It
//! takes microseconds, and it only decides between forms that were executed strictly on the
//! emulated MI300 and gave right results. What it decides was held against the predictions of
//! `rotini-time`, which shares nothing with it.
//!
//! | Module | Owns |
//! |---|---|
//! | [`attention`] | rows and keys of attention's workgroups |
//! | [`gemm`] | products that rotini writes as kernels |
//! | [`known`] | schedules that were found by trying, `schedules/*.toml` |
//! | [`machine`] | what is known of the GPUs |
//! | [`rows`] | fused row reductions, as in a normalization, and elementwise rows with operands in common |

pub mod attention;
pub mod gemm;
pub mod known;
pub mod machine;
pub mod rows;

pub use machine::Machine;
