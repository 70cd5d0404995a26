#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | Module | Owns |
//! |---|---|
//! | `api` | the exported functions, by subject |
//! | `calls` | the wrapper of each: counters, injected failures, trace, panic guard |
//! | `config` | the configuration |
//! | `runtime` | the devices, the memory, and the calling thread's device and streams |
//! | `device`, `memory` | the emulated GPUs; all memory and its poison |
//! | `stream`, `work` | streams, events and their part in a capture; commands |
//! | `scheduler`, `execute` | the order of commands; their execution |
//! | `capture`, `graph` | stream capture; graphs and their launch |
//! | `module`, `code` | modules and functions; the metadata of code objects |
//! | `kernels` | execution of kernels through rotini-gfx |
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
