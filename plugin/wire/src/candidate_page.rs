//! Pages of the configurations that an engine has for a graph on a device.

use crate::KnobValue;
use crate::engine_config::{EngineConfigError, read_settings, write_setting};
use crate::generated::engine_generated as wire;
use flatbuffers::{FlatBufferBuilder, WIPOffset};

/// Maximum number of candidates on a page.
pub const MAX_CANDIDATES: u64 = 10_000;
/// Maximum number of tables: the page, and for each candidate its table and a setting and a value
/// for four knobs.
pub(crate) const MAX_TABLES: usize = 1 + 10_000 * 9;

/// A configuration of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The id, unique among the candidates of the graph.
    pub id: String,
    /// The knob values that select this candidate and no other.
    pub knobs: Vec<(String, KnobValue)>,
    /// Features of the candidate, as a JSON object.
    pub features: String,
}

/// A page of candidates.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CandidatePage {
    /// An identifier of the graph.
    pub graph_id: String,
    /// An identifier of the device.
    pub device_id: String,
    /// The device's architecture.
    pub device_arch: String,
    /// Features of the graph, as a JSON object.
    pub problem_features: String,
    /// Features of the device, as a JSON object.
    pub device_features: String,
    /// Number of candidates on all pages.
    pub total: u64,
    /// Index of the page's first candidate among all candidates.
    pub offset: u64,
    /// The candidates of this page.
    pub candidates: Vec<Candidate>,
    /// The engine's name.
    pub engine_name: String,
}

/// Appends a page.
pub(crate) fn write<'buffer>(
    page: &CandidatePage,
    builder: &mut FlatBufferBuilder<'buffer>,
) -> WIPOffset<wire::EngineCandidatePage<'buffer>> {
    let mut candidates = Vec::new();
    for candidate in &page.candidates {
        let settings: Vec<_> = candidate
            .knobs
            .iter()
            .map(|(id, value)| write_setting(id, Some(value), builder))
            .collect();
        let args = wire::EngineCandidateArgs {
            id: Some(builder.create_string(&candidate.id)),
            knob_settings: Some(builder.create_vector(&settings)),
            kernel_features: Some(builder.create_string(&candidate.features)),
        };
        candidates.push(wire::EngineCandidate::create(builder, &args));
    }
    let args = wire::EngineCandidatePageArgs {
        graph_id: Some(builder.create_string(&page.graph_id)),
        device_id: Some(builder.create_string(&page.device_id)),
        device_arch: Some(builder.create_string(&page.device_arch)),
        problem_features: Some(builder.create_string(&page.problem_features)),
        device_features: Some(builder.create_string(&page.device_features)),
        total_count: page.total,
        offset: page.offset,
        candidates: Some(builder.create_vector(&candidates)),
        engine_name: Some(builder.create_string(&page.engine_name)),
        engine_descriptor_id: None,
    };
    wire::EngineCandidatePage::create(builder, &args)
}

/// Reads a page.
pub(crate) fn read(page: &wire::EngineCandidatePage<'_>) -> Result<CandidatePage, EngineConfigError> {
    let candidate = |candidate: wire::EngineCandidate<'_>| {
        let (knobs, unreadable) = read_settings(candidate.knob_settings())?;
        if let Some(knob) = unreadable.into_iter().next() {
            return Err(EngineConfigError::UnreadableKnob { knob });
        }
        Ok(Candidate {
            id: candidate.id().to_owned(),
            knobs,
            features: candidate.kernel_features().to_owned(),
        })
    };
    Ok(CandidatePage {
        graph_id: page.graph_id().to_owned(),
        device_id: page.device_id().to_owned(),
        device_arch: page.device_arch().to_owned(),
        problem_features: page.problem_features().to_owned(),
        device_features: page.device_features().to_owned(),
        total: page.total_count(),
        offset: page.offset(),
        candidates: page
            .candidates()
            .unwrap_or_default()
            .iter()
            .map(candidate)
            .collect::<Result<_, EngineConfigError>>()?,
        engine_name: page.engine_name().unwrap_or_default().to_owned(),
    })
}
