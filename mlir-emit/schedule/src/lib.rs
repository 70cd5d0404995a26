//! Schedules of kernels on AMD GPUs: which schedules exist, and which is estimated to be the
//! fastest.
//!
//! Nothing here is measured. An estimate is a closed form over products, bytes and launches. It
//! takes microseconds, and it only decides between forms that were executed strictly on the
//! emulated MI300 with correct results. The decisions were checked against the predictions of
//! `rotini-time`, which shares no code with the estimates.
//!
//! | Module | Owns |
//! |---|---|
//! | [`attention`] | the rows and keys of a workgroup of attention |
//! | [`gemm`] | matrix products that rotini writes as kernels |
//! | [`known`] | schedules that were found by trying, `schedules/*.toml` |
//! | [`machine`] | the data of the GPUs |
//! | [`rows`] | fused row reductions, and elementwise rows with operands in common |

pub mod attention;
pub mod gemm;
pub mod known;
pub mod machine;
pub mod rows;

pub use machine::Machine;
