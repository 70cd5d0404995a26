//! A GPU as a host of the plugin uses it: memory, streams, events and captured graphs, through
//! HIP's library or CUDA's.
//!
//! The two APIs have the same functions under other names, and what is used here has the same
//! arguments: one table serves both. Objects own what they hold and give it back when they are
//! dropped. Every call first makes its device the current one of the calling thread.

mod api;
mod device;
mod driver;

pub use api::{Api, GpuError};
pub use device::{Allocation, Event, Gpu, Graph, Stream};
pub use driver::Driver;
