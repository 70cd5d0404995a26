//! Reads each operation by the schema's list of its fields.

use super::fields::{Field, Fields, Made};
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, BlockScaleDequantize,
    BlockScaleQuantize, ConvDgrad, ConvFprop, ConvGeometry, ConvWgrad, CustomOp, Layernorm, LayernormBackward, Matmul,
    MoeGroupedMatmul, MoeGroupedMatmulBwd, Op, Pointwise, Reduction, ResampleBwd, ResampleFwd, RmsNorm,
    RmsNormBackward, Sdpa, SdpaBackward,
};

/// Generates `read` from [the schema's list](rotini_wire::operations).
macro_rules! reader {
    ($($op:ident = $table:ident, $args:ident, $accessor:ident {
        $($field:ident: $name:ident),* $(,)?
    } $(+ $geometry:ident)?)*) => {
        /// Reads the operation whose table has this name, taking its fields.
        pub(super) fn read(table: &str, fields: &mut Fields<'_>) -> Made<Op> {
            $(if table == stringify!($table) {
                let op = $op {
                    $($field: Field::read(fields, stringify!($name))?,)*
                    $($geometry: geometry(fields)?,)?
                };
                return Ok(Op::$op(op.into()));
            })*
            Err(fields.error("the type is not known"))
        }
    };
}

rotini_wire::operations!(reader);

/// Reads the fields that the convolutions share.
fn geometry(fields: &mut Fields<'_>) -> Made<ConvGeometry> {
    Ok(ConvGeometry {
        pre_padding: Field::read(fields, "pre_padding")?,
        post_padding: Field::read(fields, "post_padding")?,
        stride: Field::read(fields, "stride")?,
        dilation: Field::read(fields, "dilation")?,
        mode: Field::read(fields, "conv_mode")?,
    })
}
