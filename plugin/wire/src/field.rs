//! Conversion of each kind of field between the IR and the wire, in both directions.

use crate::error::DecodeError;
use crate::generated::graph_generated as wire;
use flatbuffers::{FlatBufferBuilder, Vector, WIPOffset};
use rotini_graph::{
    AttentionImplementation, ConvMode, DataType, DiagonalAlignment, Graph, GraphError, MoeMode, NormPhase, PaddingMode,
    PointwiseMode, ReductionMode, ResampleMode, TensorId,
};
use std::collections::HashMap;

/// The node whose fields are read, for lookups and messages.
pub(crate) struct Place<'a> {
    /// The id of the tensor with each uid.
    pub(crate) uids: &'a HashMap<i64, TensorId>,
    /// The node's label.
    pub(crate) name: &'a str,
    /// The node's position.
    pub(crate) position: usize,
    /// The node's operation, as the schema calls it.
    pub(crate) operation: &'static str,
}

impl Place<'_> {
    /// Names the node in messages, as [`Graph::node_label`] does.
    pub(crate) fn label(&self) -> String {
        if self.name.is_empty() {
            format!("node {} ({})", self.position, self.operation)
        } else {
            format!("node '{}' ({})", self.name, self.operation)
        }
    }

    pub(crate) fn unset(&self, what: &'static str) -> DecodeError {
        DecodeError::Unset {
            place: self.label(),
            what,
        }
    }

    pub(crate) fn unknown(&self, what: &'static str, value: impl Into<i64>) -> DecodeError {
        DecodeError::Unknown {
            place: self.label(),
            what,
            value: value.into(),
        }
    }

    fn tensor(&self, field: &'static str, uid: i64) -> Result<TensorId, DecodeError> {
        self.uids.get(&uid).copied().ok_or_else(|| {
            DecodeError::Graph(GraphError::UnknownUid {
                node: self.label(),
                field,
                uid,
            })
        })
    }
}

/// The buffer under construction, and the graph that is encoded to it.
pub(crate) struct Writer<'graph, 'buffer> {
    pub(crate) builder: FlatBufferBuilder<'buffer>,
    pub(crate) graph: &'graph Graph,
}

impl Writer<'_, '_> {
    /// Returns the uid of a tensor. An id outside the graph becomes a uid far from usual ones, so
    /// that decoding reports an unknown uid.
    pub(crate) fn uid(&self, id: TensorId) -> i64 {
        self.graph
            .tensor(id)
            .map_or(i64::MIN.saturating_add(i64::from(id.0)), |tensor| tensor.uid)
    }
}

/// A field of an operation: the IR's type, with the types that the generated code reads and writes
/// for it.
pub(crate) trait Field: Sized {
    /// The type that the generated accessor returns.
    type Read<'buffer>;
    /// The type that the generated table's arguments take.
    type Written<'buffer>;

    fn read(read: Self::Read<'_>, field: &'static str, place: &Place<'_>) -> Result<Self, DecodeError>;
    fn write<'buffer>(&self, writer: &mut Writer<'_, 'buffer>) -> Self::Written<'buffer>;
}

/// Implements [`Field`] for types that are the same in the IR and on the wire.
macro_rules! same {
    ($($ty:ty),*) => {$(
        impl Field for $ty {
            type Read<'buffer> = $ty;
            type Written<'buffer> = $ty;

            fn read(read: $ty, _: &'static str, _: &Place<'_>) -> Result<Self, DecodeError> {
                Ok(read)
            }
            fn write(&self, _: &mut Writer<'_, '_>) -> $ty {
                *self
            }
        }
    )*};
}

same!(bool, i32, i64, Option<bool>, Option<f32>, Option<i32>, Option<i64>);

/// Implements [`Field`] for lists of numbers; an absent list reads as an empty one.
macro_rules! list {
    ($($ty:ty),*) => {$(
        impl Field for Vec<$ty> {
            type Read<'buffer> = Option<Vector<'buffer, $ty>>;
            type Written<'buffer> = Option<WIPOffset<Vector<'buffer, $ty>>>;

            fn read(read: Self::Read<'_>, _: &'static str, _: &Place<'_>) -> Result<Self, DecodeError> {
                Ok(read.map(|list| list.iter().collect()).unwrap_or_default())
            }
            fn write<'buffer>(&self, writer: &mut Writer<'_, 'buffer>) -> Self::Written<'buffer> {
                Some(writer.builder.create_vector(self))
            }
        }
    )*};
}

list!(i32, i64, u8);

impl Field for String {
    type Read<'buffer> = Option<&'buffer str>;
    type Written<'buffer> = Option<WIPOffset<&'buffer str>>;

    fn read(read: Option<&str>, _: &'static str, _: &Place<'_>) -> Result<Self, DecodeError> {
        Ok(read.unwrap_or_default().to_owned())
    }
    fn write<'buffer>(&self, writer: &mut Writer<'_, 'buffer>) -> Self::Written<'buffer> {
        Some(writer.builder.create_string(self))
    }
}

impl Field for TensorId {
    type Read<'buffer> = i64;
    type Written<'buffer> = i64;

    fn read(uid: i64, field: &'static str, place: &Place<'_>) -> Result<Self, DecodeError> {
        place.tensor(field, uid)
    }
    fn write(&self, writer: &mut Writer<'_, '_>) -> i64 {
        writer.uid(*self)
    }
}

impl Field for Option<TensorId> {
    type Read<'buffer> = Option<i64>;
    type Written<'buffer> = Option<i64>;

    fn read(uid: Option<i64>, field: &'static str, place: &Place<'_>) -> Result<Self, DecodeError> {
        uid.map(|uid| place.tensor(field, uid)).transpose()
    }
    fn write(&self, writer: &mut Writer<'_, '_>) -> Option<i64> {
        self.map(|id| writer.uid(id))
    }
}

impl Field for Vec<TensorId> {
    type Read<'buffer> = Option<Vector<'buffer, i64>>;
    type Written<'buffer> = Option<WIPOffset<Vector<'buffer, i64>>>;

    fn read(uids: Self::Read<'_>, field: &'static str, place: &Place<'_>) -> Result<Self, DecodeError> {
        let uids = uids.into_iter().flat_map(|uids| uids.iter());
        uids.map(|uid| place.tensor(field, uid)).collect()
    }
    fn write<'buffer>(&self, writer: &mut Writer<'_, 'buffer>) -> Self::Written<'buffer> {
        let uids: Vec<i64> = self.iter().map(|id| writer.uid(*id)).collect();
        Some(writer.builder.create_vector(&uids))
    }
}

impl Field for PointwiseMode {
    type Read<'buffer> = i8;
    type Written<'buffer> = i8;

    fn read(read: i8, field: &'static str, place: &Place<'_>) -> Result<Self, DecodeError> {
        match PointwiseMode::from_wire_value(read) {
            Some(mode) => Ok(mode),
            None if read == 0 => Err(place.unset(field)),
            None => Err(place.unknown(field, read)),
        }
    }
    fn write(&self, _: &mut Writer<'_, '_>) -> i8 {
        self.wire_value()
    }
}

/// An enum of the schema.
pub trait SchemaEnum: Copy + 'static {
    /// Returns the number and the schema's name of each member that the IR has.
    fn members() -> impl Iterator<Item = (i64, &'static str, Self)>;
}

impl SchemaEnum for PointwiseMode {
    fn members() -> impl Iterator<Item = (i64, &'static str, Self)> {
        let modes = PointwiseMode::ALL.iter();
        modes.map(|mode| (mode.wire_value().into(), mode.name(), *mode))
    }
}

/// An enum whose members the IR and the schema name differently.
pub(crate) trait WireEnum: Copy {
    type Wire: Copy;

    /// Returns the IR's member for the schema's, if the IR has it.
    fn from_wire(wire: Self::Wire) -> Option<Self>;
    fn to_wire(self) -> Self::Wire;
    /// Returns the number on the wire. 0 means "not set" if the IR has no member for it.
    fn number(wire: Self::Wire) -> i64;
}

macro_rules! enums {
    ($($name:ident = $wire:ident { $($member:ident = $wire_member:ident),* $(,)? })*) => {$(
        impl SchemaEnum for $name {
            fn members() -> impl Iterator<Item = (i64, &'static str, Self)> {
                [$((wire::$wire::$wire_member.0.into(), stringify!($wire_member), $name::$member)),*].into_iter()
            }
        }

        impl WireEnum for $name {
            type Wire = wire::$wire;

            fn from_wire(wire: wire::$wire) -> Option<Self> {
                match wire { $(wire::$wire::$wire_member => Some($name::$member),)* _ => None }
            }
            fn to_wire(self) -> wire::$wire {
                match self { $($name::$member => wire::$wire::$wire_member,)* }
            }
            fn number(wire: wire::$wire) -> i64 {
                i64::from(wire.0)
            }
        }
    )*};
}

enums! {
    DataType = DataType {
        F32 = FLOAT, F16 = HALF, Bf16 = BFLOAT16, F64 = DOUBLE, U8 = UINT8, I32 = INT32, I8 = INT8, F8E4M3 = FP8_E4M3,
        F8E5M2 = FP8_E5M2, F8E8M0 = FP8_E8M0, F4E2M1 = FP4_E2M1, F6E2M3 = FP6_E2M3, F6E3M2 = FP6_E3M2, I4 = INT4,
        I64 = INT64, Bool = BOOLEAN, F8E4M3Fnuz = FP8_E4M3_FNUZ, F8E5M2Fnuz = FP8_E5M2_FNUZ,
    }
    ConvMode = ConvMode { Convolution = CONVOLUTION, CrossCorrelation = CROSS_CORRELATION }
    NormPhase = NormFwdPhase { Inference = INFERENCE, Training = TRAINING }
    ReductionMode = ReductionMode {
        Add = ADD, Mul = MUL, Min = MIN_OP, Max = MAX_OP, Amax = AMAX, Avg = AVG, Norm1 = NORM1, Norm2 = NORM2,
        MulNoZeros = MUL_NO_ZEROS,
    }
    ResampleMode = ResampleMode {
        Maxpool = MAXPOOL, AvgpoolExcludePadding = AVGPOOL_EXCLUDE_PADDING,
        AvgpoolIncludePadding = AVGPOOL_INCLUDE_PADDING,
    }
    PaddingMode = PaddingMode { NotSet = PADDING_NOT_SET, NegInf = NEG_INF_PAD, Zero = ZERO_PAD }
    DiagonalAlignment = DiagonalAlignment { TopLeft = TOP_LEFT, BottomRight = BOTTOM_RIGHT }
    AttentionImplementation = AttentionImplementation { Auto = AUTO, Composite = COMPOSITE, Unified = UNIFIED }
    MoeMode = MoeGroupedMatmulMode { None = NONE, Gather = GATHER, Scatter = SCATTER }
}

impl<E: WireEnum> Field for E {
    type Read<'buffer> = E::Wire;
    type Written<'buffer> = E::Wire;

    fn read(read: E::Wire, field: &'static str, place: &Place<'_>) -> Result<Self, DecodeError> {
        match (E::from_wire(read), E::number(read)) {
            (Some(member), _) => Ok(member),
            (None, 0) => Err(place.unset(field)),
            (None, number) => Err(place.unknown(field, number)),
        }
    }
    fn write(&self, _: &mut Writer<'_, '_>) -> E::Wire {
        self.to_wire()
    }
}

impl Field for Option<DataType> {
    type Read<'buffer> = wire::DataType;
    type Written<'buffer> = wire::DataType;

    fn read(read: wire::DataType, field: &'static str, place: &Place<'_>) -> Result<Self, DecodeError> {
        match read {
            wire::DataType::UNSET => Ok(None),
            set => DataType::read(set, field, place).map(Some),
        }
    }
    fn write(&self, _: &mut Writer<'_, '_>) -> wire::DataType {
        self.map_or(wire::DataType::UNSET, DataType::to_wire)
    }
}
