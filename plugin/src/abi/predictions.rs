//! The functions of an engine plugin for its configurations and their speed: engine API 1.5.0
//! (`EnginePluginApi.h`). `DestroyEngineDetails` frees the bytes that they return.

use super::given::give;
use super::guard::{guard, own, place, reference};
use super::types::Bytes;
use crate::candidates::{self, Question};
use crate::error::Error;
use crate::handle::Handle;
use crate::knobs::Knobs;
use rotini_wire::prediction::Kind;
use rotini_wire::{engine_details, prediction};

/// Returns a page of the configurations of a graph, in a stable order: at most `limit` of those
/// that the config's knobs allow, starting at `offset`. Nothing is compiled.
///
/// # Safety
///
/// `handle`, `config` and `graph` are null or valid, `details` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginEnumerateCandidates(
    handle: *const Handle,
    config: *const Bytes,
    graph: *const Bytes,
    offset: u64,
    limit: u64,
    details: *mut Bytes,
) -> i32 {
    guard("hipdnnEnginePluginEnumerateCandidates", || {
        // SAFETY: by this function's contract.
        let (handle, config, graph, details) = unsafe {
            (
                own(handle, "handle")?,
                reference(config, "engine config")?.as_slice(),
                reference(graph, "graph")?.as_slice(),
                place(details, "engine details")?,
            )
        };
        let device = handle.device()?;
        let question = Question {
            runtime: handle.runtime(),
            device: device.as_ref(),
            graph,
            knobs: &Knobs::read(config)?,
        };
        give(
            &details,
            engine_details::encode(&candidates::page(&question, offset, limit)?),
        );
        Ok(())
    })
}

/// Returns the predicted speed of the engine or of its best configuration, as far as it is known.
/// Nothing is compiled, measured or executed.
///
/// # Safety
///
/// `handle`, `config` and `graph` are null or valid, `prediction` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetPrediction(
    handle: *const Handle,
    config: *const Bytes,
    graph: *const Bytes,
    kind: i32,
    evaluate: i32,
    prediction: *mut Bytes,
) -> i32 {
    guard("hipdnnEnginePluginGetPrediction", || {
        // SAFETY: by this function's contract.
        let (handle, config, graph, place) = unsafe {
            (
                own(handle, "handle")?,
                reference(config, "engine config")?.as_slice(),
                reference(graph, "graph")?.as_slice(),
                place(prediction, "prediction")?,
            )
        };
        let kind = match kind {
            0 => Kind::Engine,
            1 => Kind::Configuration,
            other => return Err(Error::InvalidArgument(format!("{other} is no kind of prediction"))),
        };
        let evaluate = match evaluate {
            0 => false,
            1 => true,
            other => return Err(Error::InvalidArgument(format!("evaluate is {other}, and not 0 or 1"))),
        };
        let device = handle.device()?;
        let question = Question {
            runtime: handle.runtime(),
            device: device.as_ref(),
            graph,
            knobs: &Knobs::read(config)?,
        };
        give(
            &place,
            prediction::encode(&candidates::predict(&question, kind, evaluate)?),
        );
        Ok(())
    })
}
