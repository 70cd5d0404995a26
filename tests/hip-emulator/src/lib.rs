#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | Module | Owns |
//! |---|---|
//! | `api` | the exported functions, by subject |
//! | `calls` | what each of them passes through: counters, injected failures, trace, guard |
//! | `config`, `runtime` | the set-up; the devices, the memory, and the calling thread's device and streams |
//! | `device`, `memory` | the emulated GPUs; all memory and what is poisoned |
//! | `stream`, `work` | streams, events and what a capture notes at them; commands |
//! | `scheduler`, `execute` | when which command runs; carrying it out |
//! | `capture`, `graph` | stream capture; graphs and their launch |
//! | `module`, `code`, `kernels` | modules and functions; what code objects say; executing kernels through rotini-gfx |
//! | `handle`, `status`, `sys` | opaque pointers; names of errors; HIP's types and prototypes |

mod api;
mod calls;
mod capture;
mod code;
mod config;
mod device;
mod execute;
mod graph;
mod handle;
mod kernels;
mod memory;
mod module;
mod runtime;
mod scheduler;
mod status;
mod stream;
mod sys;
mod work;
