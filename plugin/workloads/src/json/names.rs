//! The names and numbers of the schema's enums.
//!
//! hipDNN writes members of the enums for which it has a table of names as names, in upper or lower
//! case, and others as numbers.

use super::fields::{Field, Fields, Made, shown};
use rotini_graph::{
    AttentionImplementation, ConvMode, DataType, DiagonalAlignment, MoeMode, NormPhase, PaddingMode, PointwiseMode,
    ReductionMode, ResampleMode,
};
use serde_json::Value;

/// An enum of the schema.
trait Named: Copy + 'static {
    /// Alternative names in upper case, each with the schema's name.
    const OTHERS: &'static [(&'static str, &'static str)] = &[];

    /// Returns the number, name and value of each member.
    fn members() -> impl Iterator<Item = (i64, &'static str, Self)>;
}

/// Returns the member with a value's name or number; `Ok(None)` if the value means "not set".
fn find<E: Named>(fields: &Fields<'_>, name: &str, value: &Value) -> Made<Option<E>> {
    let found = match value {
        Value::String(text) => {
            let text = text.to_ascii_uppercase();
            let other = E::OTHERS.iter().find(|(other, _)| *other == text);
            let text = other.map_or(text, |(_, name)| (*name).to_owned());
            // `MAX_OP` is called `MAX` in some of hipDNN's tables.
            E::members().find(|(_, name, _)| *name == text || name.strip_suffix("_OP") == Some(text.as_str()))
        }
        _ => {
            let number = value.as_i64();
            E::members().find(|(of, ..)| Some(*of) == number)
        }
    };
    let is_unset = match value {
        Value::String(text) => ["UNSET", "NOT_SET"]
            .iter()
            .any(|unset| text.eq_ignore_ascii_case(unset)),
        _ => value.as_i64() == Some(0),
    };
    match found {
        Some((.., member)) => Ok(Some(member)),
        None if is_unset => Ok(None),
        None => Err(fields.error(format!("{name} is {}, which is not known", shown(value)))),
    }
}

impl<E: Named> Field for E {
    fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
        let found = match fields.take(name) {
            // The schema's default is number 0.
            None => E::members()
                .find(|(number, ..)| *number == 0)
                .map(|(.., member)| member),
            Some(value) => find(fields, name, &value)?,
        };
        found.ok_or_else(|| fields.missing(name))
    }
}

impl Field for Option<DataType> {
    fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
        match fields.take(name) {
            None => Ok(None),
            Some(value) => find(fields, name, &value),
        }
    }
}

impl Named for PointwiseMode {
    fn members() -> impl Iterator<Item = (i64, &'static str, Self)> {
        PointwiseMode::ALL
            .iter()
            .map(|mode| (i64::from(mode.wire_value()), mode.name(), *mode))
    }
}

/// Names of types in files of hipDNN that differ from its table (`json/Common.hpp`): its golden
/// data has "float16".
const OTHER_TYPES: &[(&str, &str)] = &[
    ("FLOAT16", "HALF"),
    ("FLOAT32", "FLOAT"),
    ("FLOAT64", "DOUBLE"),
    ("BOOL", "BOOLEAN"),
];

macro_rules! named {
    ($($ty:ident $(($others:ident))? { $($number:literal $name:literal $member:ident),* $(,)? })*) => {$(
        impl Named for $ty {
            $(const OTHERS: &'static [(&'static str, &'static str)] = $others;)?

            fn members() -> impl Iterator<Item = (i64, &'static str, Self)> {
                [$(($number, $name, $ty::$member)),*].into_iter()
            }
        }
    )*};
}

named! {
    DataType (OTHER_TYPES) {
        1 "FLOAT" F32, 2 "HALF" F16, 3 "BFLOAT16" Bf16, 4 "DOUBLE" F64, 5 "UINT8" U8, 6 "INT32" I32, 7 "INT8" I8,
        8 "FP8_E4M3" F8E4M3, 9 "FP8_E5M2" F8E5M2, 10 "FP8_E8M0" F8E8M0, 11 "FP4_E2M1" F4E2M1, 12 "FP6_E2M3" F6E2M3,
        13 "FP6_E3M2" F6E3M2, 14 "INT4" I4, 15 "INT64" I64, 16 "BOOLEAN" Bool, 17 "FP8_E4M3_FNUZ" F8E4M3Fnuz,
        18 "FP8_E5M2_FNUZ" F8E5M2Fnuz,
    }
    ConvMode { 1 "CONVOLUTION" Convolution, 2 "CROSS_CORRELATION" CrossCorrelation }
    NormPhase { 1 "INFERENCE" Inference, 2 "TRAINING" Training }
    ReductionMode {
        1 "ADD" Add, 2 "MUL" Mul, 3 "MIN_OP" Min, 4 "MAX_OP" Max, 5 "AMAX" Amax, 6 "AVG" Avg, 7 "NORM1" Norm1,
        8 "NORM2" Norm2, 9 "MUL_NO_ZEROS" MulNoZeros,
    }
    ResampleMode {
        1 "MAXPOOL" Maxpool, 2 "AVGPOOL_EXCLUDE_PADDING" AvgpoolExcludePadding,
        3 "AVGPOOL_INCLUDE_PADDING" AvgpoolIncludePadding,
    }
    PaddingMode { 0 "NOT_SET" NotSet, 1 "NEG_INF_PAD" NegInf, 2 "ZERO_PAD" Zero }
    DiagonalAlignment { 0 "TOP_LEFT" TopLeft, 1 "BOTTOM_RIGHT" BottomRight }
    AttentionImplementation { 0 "AUTO" Auto, 1 "COMPOSITE" Composite, 2 "UNIFIED" Unified }
    MoeMode { 0 "NONE" None, 1 "GATHER" Gather, 2 "SCATTER" Scatter }
}
