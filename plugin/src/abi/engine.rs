//! The functions of an engine plugin for the engine, its handles and the graphs that it supports
//! (`EnginePluginApi.h`). Those for contexts are in [`super::context`].

use super::given::{destroy, give, take_back};
use super::guard::{caught, guard, own, place, reference};
use super::types::Bytes;
use crate::engine_id;
use crate::error::Error;
use crate::handle::Handle;
use crate::knobs::Knobs;
use crate::pipeline;
use crate::told;
use rotini_wire::engine_details::{self, BehaviorNote, EngineDetails};
use std::ffi::{c_char, c_void};

/// Returns the engines' ids: writes at most `max` of them, and their total number to `count`.
///
/// # Safety
///
/// `ids` is null or valid for `max` writes, `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetAllEngineIds(ids: *mut i64, max: u32, count: *mut u32) -> i32 {
    guard("hipdnnEnginePluginGetAllEngineIds", || {
        // SAFETY: by this function's contract.
        let count = unsafe { place(count, "count") }?;
        if max > 0 {
            // SAFETY: by this function's contract, `ids` is null or valid for at least one write.
            unsafe { place(ids, "engine ids") }?.write(engine_id::ID);
        }
        count.write(1);
        Ok(())
    })
}

/// Returns the engine's name.
///
/// # Safety
///
/// `name` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetEngineName(engine_id: i64, name: *mut *const c_char) -> i32 {
    guard("hipdnnEnginePluginGetEngineName", || {
        // SAFETY: by this function's contract.
        let name = unsafe { place(name, "name") }?;
        if engine_id != engine_id::ID {
            // The documented answer for another plugin's id.
            return Err(Error::ForeignEngine(engine_id));
        }
        name.write(engine_id::NAME_C.as_ptr());
        Ok(())
    })
}

/// Creates a handle.
///
/// # Safety
///
/// `handle` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginCreate(handle: *mut *mut Handle) -> i32 {
    guard("hipdnnEnginePluginCreate", || {
        // SAFETY: by this function's contract.
        let place = unsafe { place(handle, "handle") }?;
        place.write(Box::into_raw(Box::new(Handle::new()?)));
        Ok(())
    })
}

/// Destroys a handle.
///
/// # Safety
///
/// `handle` is null or was created by this plugin, is not used any more and not destroyed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginDestroy(handle: *mut Handle) -> i32 {
    guard("hipdnnEnginePluginDestroy", || {
        // SAFETY: the handle came from `Box::into_raw` in `Create`, and this function's contract
        // says that it is destroyed once.
        unsafe { destroy(handle, "handle") }
    })
}

/// Sets the stream of the handle's later executions.
///
/// # Safety
///
/// `handle` is null or a live handle of this plugin; the stream lives while work is sent to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginSetStream(handle: *const Handle, stream: *mut c_void) -> i32 {
    guard("hipdnnEnginePluginSetStream", || {
        // SAFETY: by this function's contract.
        unsafe { own(handle, "handle") }?.set_stream(stream)
    })
}

/// Returns the engines that can run a graph: this one, or none. A graph that cannot be read or run
/// yields no engine and no error, whatever the reason, because an error would end the search in all
/// other plugins too. This includes a panic in rotini, and a handle from before a `fork`.
///
/// # Safety
///
/// `handle` and `graph` are null or valid; `ids` is null or valid for `max` writes, `count` is null
/// or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetApplicableEngineIds(
    handle: *const Handle,
    graph: *const Bytes,
    ids: *mut i64,
    max: u32,
    count: *mut u32,
) -> i32 {
    guard("hipdnnEnginePluginGetApplicableEngineIds", || {
        // SAFETY: by this function's contract.
        let (handle, graph, count, ids) = unsafe {
            reference(handle, "handle")?;
            (
                own(handle, "handle"),
                reference(graph, "graph")?.as_slice(),
                place(count, "count")?,
                if max > 0 { Some(place(ids, "engine ids")?) } else { None },
            )
        };
        let checked = caught("hipdnnEnginePluginGetApplicableEngineIds", || {
            let handle = handle?;
            pipeline::applicable(handle.runtime(), graph, handle.device()?.compiled_for())
        });
        if let Err(reason) = checked {
            told::declined(graph, &reason);
            count.write(0);
            return Ok(());
        }
        // The only id fits if `max` is not zero.
        if let Some(ids) = &ids {
            ids.write(engine_id::ID);
        }
        count.write(u32::from(ids.is_some()));
        Ok(())
    })
}

/// Returns the engine's details, as bytes that `DestroyEngineDetails` frees.
///
/// # Safety
///
/// `handle` and `graph` are null or valid, `details` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetEngineDetails(
    handle: *const Handle,
    engine_id: i64,
    graph: *const Bytes,
    details: *mut Bytes,
) -> i32 {
    guard("hipdnnEnginePluginGetEngineDetails", || {
        // SAFETY: by this function's contract.
        let (handle, details) = unsafe {
            let handle = own(handle, "handle")?;
            reference(graph, "graph")?;
            (handle, place(details, "engine details")?)
        };
        engine_id::expect(engine_id)?;
        let mut behavior_notes = vec![BehaviorNote::RuntimeCompilation, BehaviorNote::PlanSerialization];
        if handle.device().is_ok_and(|device| device.can_be_captured()) {
            behavior_notes.push(BehaviorNote::GraphCapture);
        }
        let bytes = engine_details::encode(&EngineDetails {
            engine_id,
            name: engine_id::NAME.to_owned(),
            knobs: Knobs::offered(),
            behavior_notes,
            candidate_page: None,
        });
        give(&details, bytes);
        Ok(())
    })
}

/// Frees the bytes of `GetEngineDetails`, and zeroes the caller's struct.
///
/// # Safety
///
/// `handle` is null or valid; `details` is null or what `GetEngineDetails` wrote, unchanged, or
/// zeroed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginDestroyEngineDetails(handle: *const Handle, details: *mut Bytes) -> i32 {
    guard("hipdnnEnginePluginDestroyEngineDetails", || {
        // SAFETY: by this function's contract.
        unsafe {
            reference(handle, "handle")?;
            take_back(details, "engine details")
        }
    })
}
