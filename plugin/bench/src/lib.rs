//! Engines of hipDNN side by side: measured, judged and reported.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`results`] | what a run found, as it is written to JSON and read back |

pub mod results;
