//! The plugin from a host's view: the exports and dependencies of the library, the answers of its
//! functions, and its lifetime in a host written in C.
//!
//! | Module | Assertion |
//! |---|---|
//! | `library` | exported symbols and dependencies of the shared library |
//! | `answers` | statuses and texts for valid and invalid graphs, engines and configs |
//! | `candidates` | configurations of a graph, and their measured speed |
//! | `execution` | buffers in every state that a host may pass, contexts on many threads |
//! | `scalars` | values that are read when an execution begins |
//! | `logging` | logging callbacks that throw, panic or call the plugin |
//! | `newer` | graphs of a newer hipDNN: unsupported; graphs that no version allows: invalid |
//! | `overrides` | executions with other shapes than declared |
//! | `unknown` | values of newer versions, in every enumeration of a graph |
//! | `c_host` | the same ABI from C, with AddressSanitizer and under valgrind |

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod answers;
mod c_host;
mod candidates;
mod execution;
mod library;
mod logging;
mod newer;
mod overrides;
mod scalars;
mod unknown;

use rotini_graph::{Graph, SlotRole, TensorId};
use rotini_host::{DeviceBuffer, Handle, HostError, Plugin};
use rotini_tests::harness::{self, Memory};
use rotini_tests::plugin;
use std::collections::BTreeMap;

/// Returns the plugin, a handle on the CPU, and the engine's id.
fn cpu() -> (Plugin, Handle, i64) {
    harness::cpu_only().unwrap();
    // SAFETY: the file is the plugin that this workspace builds.
    let plugin = unsafe { Plugin::load(plugin::path().unwrap()) }.unwrap();
    let engine = plugin.engine_ids().unwrap()[0];
    let handle = plugin.handle().unwrap();
    (plugin, handle, engine)
}

/// Asserts that a call failed with a status and a text that contains a word.
#[track_caller]
fn assert_fails<T>(result: Result<T, HostError>, expected: i32, word: &str) {
    match result {
        Ok(_) => panic!("the call succeeded"),
        Err(HostError::Status { function, status, text }) => {
            assert_eq!(status, expected, "{function}: {text}");
            assert!(text.contains(word), "{function} says {text:?}, nothing of {word:?}");
        }
        Err(other) => panic!("{other}"),
    }
}

/// Returns the tensors of a graph in memory: uid, tensor, and whether the graph reads or writes it.
fn buffers(graph: &Graph) -> Vec<(i64, TensorId, SlotRole)> {
    let (normal, bindings) = graph.normalise();
    let roles = normal.slots().map(|(_, _, role)| role);
    let of = |uid: i64| graph.tensors.iter().position(|tensor| tensor.uid == uid).unwrap();
    let id = |uid: i64| TensorId(u32::try_from(of(uid)).unwrap());
    bindings
        .uids
        .iter()
        .zip(roles)
        .map(|(&uid, role)| (uid, id(uid), role))
        .collect()
}

/// Returns the variant pack of all memories.
fn pack(memories: &mut BTreeMap<i64, Memory>) -> Vec<DeviceBuffer> {
    memories
        .iter_mut()
        .map(|(&uid, memory)| DeviceBuffer {
            uid,
            ptr: memory.pointer().cast(),
        })
        .collect()
}
