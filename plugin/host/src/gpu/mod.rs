//! A GPU as a host of the plugin uses it: memory, streams, events and captured graphs, through
//! HIP's or CUDA's library.
//!
//! The two APIs have the same functions under different names, and the functions used here take the
//! same arguments, so one table serves both. Each object owns its resource of the API and releases
//! it on drop. Every call first makes its device the current one of the calling thread.

mod api;
mod device;
mod driver;

pub use api::{Api, GpuError};
pub use device::{Allocation, Event, Gpu, Graph, Stream};
pub use driver::Driver;
