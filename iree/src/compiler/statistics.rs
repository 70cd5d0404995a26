//! The compiler's scheduling statistics, read from `--iree-scheduling-dump-statistics-format=json`.

use serde::{Deserialize, Serialize};

use super::CompileError;

/// Static counts of a whole program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Statistics {
    /// Number of kernels that an invocation launches.
    pub dispatches: u64,
    /// Number of copies between buffers; more than 0 means that a result is not computed in its
    /// destination.
    pub copies: u64,
    /// Number of buffer fills outside kernels.
    pub fills: u64,
    /// Bytes that the module allocates by itself in each invocation (`queue.alloca`). Memory from
    /// the caller's workspace does not count, so the value is 0 for a module that only uses its
    /// workspace.
    pub allocated_bytes: u64,
    /// Bytes of constants that are uploaded once per session.
    pub constant_bytes: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Report {
    stream_aggregate: Aggregate,
}

#[derive(Deserialize)]
struct Aggregate {
    global: Global,
    execution: Execution,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Global {
    constant_size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Execution {
    transient_memory_size: u64,
    fill_count: u64,
    copy_count: u64,
    dispatch_count: u64,
}

impl Statistics {
    pub(super) fn parse(json: &[u8]) -> Result<Self, CompileError> {
        let Report {
            stream_aggregate: Aggregate { global, execution },
        } = serde_json::from_slice(json).map_err(CompileError::Statistics)?;
        Ok(Self {
            dispatches: execution.dispatch_count,
            copies: execution.copy_count,
            fills: execution.fill_count,
            allocated_bytes: execution.transient_memory_size,
            constant_bytes: global.constant_size,
        })
    }
}
