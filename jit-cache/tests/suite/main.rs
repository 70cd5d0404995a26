//! Tests of the cache through its public interface, in one program, so that it is linked once.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test says no by panicking, and why it was skipped on stderr"
)]

mod admin;
mod attack;
mod common;
mod content;
mod disk;
mod failure;
mod kill;
mod mounted;
mod notes;
mod processes;
mod single_flight;
mod system;
