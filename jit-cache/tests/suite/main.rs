//! The cache as its users see it. One program, so that it is linked once.

#![expect(clippy::expect_used, reason = "a test says no by panicking")]

mod common;
mod disk;
mod kill;
mod single_flight;
