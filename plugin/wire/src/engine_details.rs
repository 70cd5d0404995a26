//! Engine details: an engine's description of itself.

use crate::candidate_page::{self, CandidatePage};
use crate::engine_config::EngineConfigError;
use crate::generated::engine_generated as wire;
use crate::{KnobValue, answer_options, knob};
use flatbuffers::{FlatBufferBuilder, InvalidFlatbuffer, UnionWIPOffset, WIPOffset};
use thiserror::Error;

/// Maximum number of tables: the details; a knob, a default and a constraint for each of at most
/// 1024 knobs; and a candidate page.
const MAX_TABLES: usize = 1 + 3 * 1024 + candidate_page::MAX_TABLES;

/// A property of an engine that matters to hosts. The members are in the order of the wire's
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BehaviorNote {
    /// The engine compiles when an execution context is created.
    RuntimeCompilation,
    /// The engine needs a layout other than the graph's.
    LayoutTransform,
    /// The engine's executions can be captured into a HIP graph.
    GraphCapture,
    /// The engine needs a library that hipDNN does not ship.
    ExternalLibrary,
    /// The engine can serialize execution contexts.
    PlanSerialization,
}

impl BehaviorNote {
    const ALL: [BehaviorNote; 5] = [
        BehaviorNote::RuntimeCompilation,
        BehaviorNote::LayoutTransform,
        BehaviorNote::GraphCapture,
        BehaviorNote::ExternalLibrary,
        BehaviorNote::PlanSerialization,
    ];

    const fn to_wire(self) -> wire::BehaviorNote {
        match self {
            BehaviorNote::RuntimeCompilation => wire::BehaviorNote::RUNTIME_COMPILATION,
            BehaviorNote::LayoutTransform => wire::BehaviorNote::REQUIRES_LAYOUT_TRANSFORM,
            BehaviorNote::GraphCapture => wire::BehaviorNote::SUPPORTS_GRAPH_CAPTURE,
            BehaviorNote::ExternalLibrary => wire::BehaviorNote::EXTERNAL_LIBRARY_DEPENDENCY,
            BehaviorNote::PlanSerialization => wire::BehaviorNote::SUPPORTS_EXECUTION_PLAN_SERIALIZATION,
        }
    }
}

/// The values that a knob takes. hipDNN's front end checks a user's value against the constraint.
#[derive(Clone, Debug, PartialEq)]
pub enum KnobConstraint {
    /// For integers.
    Integer {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// Distance between values, counted from `min`.
        step: i64,
        /// The only values, if not empty.
        valid_values: Vec<i64>,
    },
    /// For floating-point numbers.
    Float {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// For texts.
    Text {
        /// Maximum length in bytes.
        max_length: i32,
        /// The only values, if not empty.
        valid_values: Vec<String>,
    },
}

/// A setting that an engine offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// `plugin.category.name`; the prefix `global.` is hipDNN's.
    pub id: String,
    /// A description for users.
    pub description: String,
    /// The value if the knob is not set.
    pub default: KnobValue,
    /// The values that the knob takes; if absent, any of the default's kind.
    pub constraint: Option<KnobConstraint>,
    /// Whether hipDNN warns if the knob is set.
    pub deprecated: bool,
}

/// An engine's description of itself.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EngineDetails {
    /// The engine.
    pub engine_id: i64,
    /// The engine's name, whose hash is the id.
    pub name: String,
    /// The settings that the engine offers.
    pub knobs: Vec<Knob>,
    /// The properties that matter to hosts.
    pub behavior_notes: Vec<BehaviorNote>,
    /// A page of the engine's configurations, if it was requested.
    pub candidate_page: Option<CandidatePage>,
}

/// The reason why bytes could not be decoded to engine details.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EngineDetailsError {
    /// The verifier refuses the bytes.
    #[error("the bytes are not engine details")]
    NotEngineDetails(#[source] InvalidFlatbuffer),
    /// A candidate whose knobs cannot be read.
    #[error("a candidate's knobs cannot be read")]
    Candidate(#[from] EngineConfigError),
    /// A knob without an id.
    #[error("knob {position} has no id")]
    UnnamedKnob {
        /// The knob's position.
        position: usize,
    },
    /// A knob without a default, or a default or constraint of a kind that the schema does not
    /// know.
    #[error("the {what} of knob '{knob}' has kind {kind}, which is not known")]
    UnknownKind {
        /// The knob's id.
        knob: String,
        /// "default" or "constraint".
        what: &'static str,
        /// The kind on the wire; 0 means none.
        kind: u8,
    },
    /// A behaviour note that the schema does not know.
    #[error("behaviour note {number} is not known")]
    UnknownNote {
        /// The note on the wire.
        number: i32,
    },
}

/// Writes engine details for the host.
#[must_use]
pub fn encode(details: &EngineDetails) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let knobs: Vec<_> = details
        .knobs
        .iter()
        .map(|knob| write_knob(knob, &mut builder))
        .collect();
    let notes: Vec<_> = details.behavior_notes.iter().map(|note| note.to_wire()).collect();
    let page = details.candidate_page.as_ref();
    let candidate_page = page.map(|page| candidate_page::write(page, &mut builder));
    let args = wire::EngineDetailsArgs {
        candidate_page,
        engine_id: details.engine_id,
        knobs: Some(builder.create_vector(&knobs)),
        behavior_notes: Some(builder.create_vector(&notes)),
        name: Some(builder.create_string(&details.name)),
    };
    let root = wire::EngineDetails::create(&mut builder, &args);
    builder.finish_minimal(root);
    builder.finished_data().to_vec()
}

fn write_knob<'buffer>(knob: &Knob, builder: &mut FlatBufferBuilder<'buffer>) -> WIPOffset<wire::Knob<'buffer>> {
    let (default_value_type, default_value) = knob::write(&knob.default, builder);
    let (constraint_type, constraint) = match &knob.constraint {
        Some(constraint) => {
            let (kind, table) = write_constraint(constraint, builder);
            (kind, Some(table))
        }
        None => (wire::KnobConstraint::NONE, None),
    };
    let args = wire::KnobArgs {
        knob_id: Some(builder.create_string(&knob.id)),
        description: Some(builder.create_string(&knob.description)),
        default_value_type,
        default_value: Some(default_value),
        constraint_type,
        constraint,
        deprecated: knob.deprecated,
    };
    wire::Knob::create(builder, &args)
}

fn write_constraint(
    constraint: &KnobConstraint,
    builder: &mut FlatBufferBuilder<'_>,
) -> (wire::KnobConstraint, WIPOffset<UnionWIPOffset>) {
    match constraint {
        KnobConstraint::Integer {
            min,
            max,
            step,
            valid_values,
        } => {
            let args = wire::IntConstraintArgs {
                min_value: *min,
                max_value: *max,
                step: *step,
                valid_values: Some(builder.create_vector(valid_values)),
            };
            let table = wire::IntConstraint::create(builder, &args);
            (wire::KnobConstraint::IntConstraint, table.as_union_value())
        }
        KnobConstraint::Float { min, max } => {
            let args = wire::FloatConstraintArgs {
                min_value: *min,
                max_value: *max,
            };
            let table = wire::FloatConstraint::create(builder, &args);
            (wire::KnobConstraint::FloatConstraint, table.as_union_value())
        }
        KnobConstraint::Text {
            max_length,
            valid_values,
        } => {
            let values: Vec<_> = valid_values.iter().map(|value| builder.create_string(value)).collect();
            let args = wire::StringConstraintArgs {
                max_length: *max_length,
                valid_values: Some(builder.create_vector(&values)),
            };
            let table = wire::StringConstraint::create(builder, &args);
            (wire::KnobConstraint::StringConstraint, table.as_union_value())
        }
    }
}

/// Reads engine details, for tests and hosts.
///
/// # Errors
///
/// When the bytes are not engine details, or a knob is incomplete; see [`EngineDetailsError`].
pub fn decode(bytes: &[u8]) -> Result<EngineDetails, EngineDetailsError> {
    let root = flatbuffers::root_with_opts::<wire::EngineDetails<'_>>(&answer_options(MAX_TABLES), bytes)
        .map_err(EngineDetailsError::NotEngineDetails)?;
    let knobs = root.knobs().unwrap_or_default();
    let knobs = knobs
        .iter()
        .enumerate()
        .map(|(position, knob)| read_knob(&knob, position));
    let notes = root.behavior_notes().unwrap_or_default();
    let notes = notes.iter().map(|note| {
        let known = BehaviorNote::ALL.into_iter().find(|known| known.to_wire() == note);
        known.ok_or(EngineDetailsError::UnknownNote { number: note.0 })
    });
    Ok(EngineDetails {
        engine_id: root.engine_id(),
        name: root.name().unwrap_or_default().to_owned(),
        knobs: knobs.collect::<Result<_, _>>()?,
        behavior_notes: notes.collect::<Result<_, _>>()?,
        candidate_page: root
            .candidate_page()
            .map(|page| candidate_page::read(&page))
            .transpose()?,
    })
}

fn read_knob(knob: &wire::Knob<'_>, position: usize) -> Result<Knob, EngineDetailsError> {
    let id = knob.knob_id().ok_or(EngineDetailsError::UnnamedKnob { position })?;
    let unknown = |what, kind| EngineDetailsError::UnknownKind {
        knob: id.to_owned(),
        what,
        kind,
    };
    let default = knob::read!(
        knob,
        default_value_type,
        default_value_as_int_value,
        default_value_as_float_value,
        default_value_as_string_value
    )
    .map_err(|kind| unknown("default", kind))?;
    Ok(Knob {
        id: id.to_owned(),
        description: knob.description().unwrap_or_default().to_owned(),
        default,
        constraint: read_constraint(knob).map_err(|kind| unknown("constraint", kind))?,
        deprecated: knob.deprecated(),
    })
}

/// Returns a knob's constraint, or the number of an unknown kind of constraint as the error.
fn read_constraint(knob: &wire::Knob<'_>) -> Result<Option<KnobConstraint>, u8> {
    if let Some(constraint) = knob.constraint_as_int_constraint() {
        return Ok(Some(KnobConstraint::Integer {
            min: constraint.min_value(),
            max: constraint.max_value(),
            step: constraint.step(),
            valid_values: constraint.valid_values().unwrap_or_default().iter().collect(),
        }));
    }
    if let Some(constraint) = knob.constraint_as_float_constraint() {
        return Ok(Some(KnobConstraint::Float {
            min: constraint.min_value(),
            max: constraint.max_value(),
        }));
    }
    if let Some(constraint) = knob.constraint_as_string_constraint() {
        let values = constraint.valid_values().unwrap_or_default();
        return Ok(Some(KnobConstraint::Text {
            max_length: constraint.max_length(),
            valid_values: values.iter().map(str::to_owned).collect(),
        }));
    }
    match knob.constraint_type() {
        wire::KnobConstraint::NONE => Ok(None),
        unknown => Err(unknown.0),
    }
}
