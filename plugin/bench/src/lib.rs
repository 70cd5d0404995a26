//! Engines of hipDNN side by side: measured, judged and reported.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`results`] | what a run found, as it is written to JSON and read back |
//! | [`verdict`] | what a run says about each engine, in counts, ratios and sentences |
//! | [`rate`] | operations and bytes per second, and the share of what the device can do |
//! | [`format`](mod@format) | quantities as people read them |
//! | [`page`](mod@page) | the page in HTML |
//! | [`csv`](mod@csv) | the file for spreadsheets and scripts |
//! | [`compare`](mod@compare) | what differs between two runs |

pub mod compare;
pub mod csv;
pub mod format;
pub mod page;
pub mod rate;
pub mod results;
pub mod verdict;
