//! Engines of hipDNN side by side: measured, judged and reported.
//!
//! What flows through: a [`Plan`] says which graphs run on which engines; [`run`](run()) starts a
//! process for each engine, lets them take turns, and gives [`results::Results`]; the other modules
//! write those for people and machines.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`results`] | what a run found, as it is written to JSON and read back |
//! | [`verdict`] | what a run says about each engine, in counts, ratios and sentences |
//! | [`rate`] | operations and bytes per second, and the share of what the device can do |
//! | [`format`](mod@format) | quantities as people read them |
//! | [`page`](mod@page) | the page in HTML |
//! | [`csv`](mod@csv) | the file for spreadsheets and scripts |
//! | [`compare`](mod@compare) | what differs between two runs |
//! | `plan`, `run`, `job`, `runner`, `visit` | a run: its graphs, its engines, and the turns that they take |
//! | [`race`] | candidates for one graph: verified, then measured until it is clear which is the fastest |
//! | `session`, `client`, `protocol`, `server`, `execute` | the process of an engine: kept alive, asked, answering, executing, and what is said between them |
//! | `sensors` | clock and power of an AMD GPU while it works |
//! | `inputs` | inputs of executions, filled once for each graph |
//! | `gaussian` | normally distributed inputs of timed executions |
//! | `buffer`, `judge` | memory between guard zones; whether what is in it is right |
//! | `summary`, `machine`, `statistics` | what a graph costs at least, what the machine can do, and how sure a median is |

mod buffer;
mod client;
pub mod compare;
pub mod csv;
mod execute;
pub mod format;
mod gaussian;
mod inputs;
mod job;
mod judge;
mod machine;
pub mod page;
mod plan;
mod protocol;
pub mod race;
pub mod rate;
pub mod results;
mod run;
mod runner;
mod sensors;
mod server;
mod session;
mod statistics;
mod summary;
pub mod verdict;
mod visit;

pub use buffer::{Buffer, Place, pack};
pub use client::{EngineSpec, Launch, LaunchError};
pub use judge::{Judgement, Reference, judge_sharply};
pub use plan::{Observer, Plan, RunError};
pub use protocol::{Device, Values, Way, split as buffers};
pub use run::run;
pub use server::serve;
pub use session::{About, Session};
pub use summary::{Summary, summarise};
