//! Handles, and queries about an engine and a graph.

use super::base::{self, log};
use super::call::{Bytes, Failure, Result, bytes, call, give, given, place, take_back};
use crate::engine::{Engine, id};
use rotini_graph::Graph;
use rotini_wire::engine_details::{self, EngineDetails};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An engine, and the stream of its executions.
pub struct Handle<E> {
    pub(super) engine: E,
    stream: AtomicPtr<c_void>,
}

impl<E: Engine> Handle<E> {
    pub(super) fn stream(&self) -> *mut c_void {
        self.stream.load(Ordering::Acquire)
    }

    /// Decodes a graph, and checks that the engine runs it.
    pub(super) fn graph(&self, bytes: &[u8]) -> Result<Graph> {
        let graph = rotini_wire::decode(bytes).map_err(|error| Failure::bad_parameter(error.to_string()))?;
        self.engine.applicable(&graph).map_err(Failure::not_applicable)?;
        Ok(graph)
    }

    /// Returns the reason why the engine does not run a graph, if it does not.
    fn refusal(&self, bytes: &[u8]) -> Option<String> {
        match rotini_wire::decode(bytes) {
            Ok(graph) => {
                let reason = self.engine.applicable(&graph).err()?;
                Some(format!("declined graph '{}': {reason}", graph.name))
            }
            Err(error) => Some(format!("declined a graph that cannot be read: {error}")),
        }
    }
}

/// Creates a handle.
pub unsafe fn create<E: Engine>(handle: *mut *mut Handle<E>) -> i32 {
    call(|| {
        let place = place(handle, "place for the handle")?;
        let handle = Handle {
            engine: E::new().map_err(Failure::internal)?,
            stream: AtomicPtr::default(),
        };
        // SAFETY: not null; the rest by the module's contract.
        unsafe { place.write(Box::into_raw(Box::new(handle))) };
        Ok(())
    })
}

/// Destroys a handle.
pub unsafe fn destroy<E: Engine>(handle: *mut Handle<E>) -> i32 {
    call(|| {
        let handle = place(handle, "handle")?;
        // SAFETY: `create` made the pointer from a box; it is destroyed once, by the module's
        // contract.
        drop(unsafe { Box::from_raw(handle) });
        Ok(())
    })
}

/// Sets the stream of later executions.
pub unsafe fn set_stream<E: Engine>(handle: *const Handle<E>, stream: *mut c_void) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        unsafe { given(handle, "handle") }?
            .stream
            .store(stream, Ordering::Release);
        Ok(())
    })
}

/// Returns the engine's id if the engine runs a graph. A graph that it does not run or cannot read
/// is not an error, because an error would end the host's search for an engine.
pub unsafe fn applicable<E: Engine>(
    handle: *const Handle<E>,
    graph: *const Bytes,
    ids: *mut i64,
    max: u32,
    count: *mut u32,
) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        let (handle, graph) = unsafe { (given(handle, "handle")?, bytes(graph, "graph")?) };
        let count = place(count, "place for the count")?;
        let refusal = catch_unwind(AssertUnwindSafe(|| handle.refusal(graph)))
            .unwrap_or_else(|_| Some("declined a graph: panicked over it".to_owned()));
        let mut found = 0;
        match refusal {
            Some(refusal) => log(base::INFO, &refusal),
            None if max > 0 => {
                // SAFETY: not null; the rest by the module's contract.
                unsafe { place(ids, "places for ids")?.write(id(E::NAME)) };
                found = 1;
            }
            None => {}
        }
        // SAFETY: as above.
        unsafe { count.write(found) };
        Ok(())
    })
}

/// Returns the details of the engine.
pub unsafe fn details<E: Engine>(
    handle: *const Handle<E>,
    engine: i64,
    graph: *const Bytes,
    details: *mut Bytes,
) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        unsafe {
            given(handle, "handle")?;
            given(graph, "graph")?;
        }
        let place = place(details, "place for the details")?;
        expect::<E>(engine)?;
        let details = engine_details::encode(&EngineDetails {
            engine_id: engine,
            name: E::NAME.to_string_lossy().into_owned(),
            knobs: Vec::new(),
            behavior_notes: E::NOTES.to_vec(),
            candidate_page: None,
        });
        // SAFETY: not null; the rest by the module's contract.
        unsafe { give(place, details) };
        Ok(())
    })
}

/// Frees the details of an engine.
pub unsafe fn destroy_details<E: Engine>(handle: *const Handle<E>, details: *mut Bytes) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        unsafe {
            given(handle, "handle")?;
            take_back(details, "engine details")
        }
    })
}

/// Fails for the id of another engine.
pub(super) fn expect<E: Engine>(engine: i64) -> Result<()> {
    if engine == id(E::NAME) {
        Ok(())
    } else {
        Err(Failure::invalid_value(format!("there is no engine {engine:#x}")))
    }
}
