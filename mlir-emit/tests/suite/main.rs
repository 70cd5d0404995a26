//! Tests of the emitter without a compiler: what graphs are lowered to, and what is said of it.

mod choices;
mod fingerprint;
mod lowered;
mod operations;
mod schedules;
mod snapshots;
mod unread;
mod workspace;
