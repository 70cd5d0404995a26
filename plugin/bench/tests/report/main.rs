//! The outputs of a run: the page, the CSV file and the comparison with an earlier run.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says why"
)]

mod browser;
mod compare;
mod csv;
mod generated;
mod page;
