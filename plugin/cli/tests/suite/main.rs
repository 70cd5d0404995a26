//! The command as users and scripts run it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

mod bench;
mod cache;
mod command;
mod compare_engines;
mod inspect;
mod replay;
mod selftest;
mod tune;
mod workloads;
