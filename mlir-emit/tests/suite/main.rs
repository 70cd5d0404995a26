//! Tests of the emitter without a compiler: modules, plans, choices, bounds.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod choices;
mod fingerprint;
mod lowered;
mod operations;
mod schedules;
mod snapshots;
mod unread;
mod workspace;
