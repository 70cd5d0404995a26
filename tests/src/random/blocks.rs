//! Block scales, and custom operations.

use super::choices::Choices;
use super::draft::{Draft, dims, is_bounded, small};
use crate::range::Range;
use rotini_graph::{BlockScaleDequantize, BlockScaleQuantize, CustomOp, DataType};
use rotini_reference::Profile;

/// Narrow element types.
const ELEMENTS: [DataType; 4] = [DataType::F8E4M3, DataType::F8E5M2, DataType::F4E2M1, DataType::I8];

pub(super) fn dequantize(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let rank = choices.pick(&[2, 3, 4]);
    let x_dims = dims(choices, rank);
    let dtype = choices.pick(&ELEMENTS);
    let x = draft.input(choices, &x_dims, dtype, Profile::Normal);
    let trailing = choices.between(1, i64::try_from(rank).ok()?);
    let block_size: Vec<i32> = (0..trailing).map(|_| choices.pick(&[1, 2, 4])).collect();
    let leading = rank - block_size.len();
    let scale_dims: Vec<i64> = (0..rank)
        .map(|axis| match axis.checked_sub(leading) {
            Some(axis_of_block) => (x_dims[axis] - 1) / i64::from(block_size[axis_of_block]) + 1,
            None => x_dims[axis],
        })
        .collect();
    let scale_type = choices.pick(&[DataType::F8E8M0, DataType::F32, DataType::F8E4M3]);
    let scale = draft.input(choices, &scale_dims, scale_type, Profile::SmallIntegers);
    let y = draft.float_result(choices, &x_dims, is_bounded(x.range.times(scale.range))?);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        BlockScaleDequantize {
            x: x.id,
            scale: scale.id,
            y,
            block_size,
            is_negative_scale: false,
        },
    )
}

pub(super) fn quantize(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = draft.first(
        choices,
        Profile::Normal,
        |known| known.dtype.is_float(),
        |choices| {
            let rank = choices.pick(&[2, 3, 4]);
            dims(choices, rank)
        },
    );
    let axis = choices.below(x.dims.len());
    let block_size = choices.pick(&[2, 4, 8]);
    let mut scale_dims = x.dims.clone();
    scale_dims[axis] = (scale_dims[axis] - 1) / i64::from(block_size) + 1;
    let y = draft.result(choices, &x.dims, DataType::F8E4M3, Range::around(448.0), false);
    let range = Range::new(0.0, x.range.magnitude());
    let scale = draft.result(choices, &scale_dims, DataType::F8E8M0, range, false);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        BlockScaleQuantize {
            x: x.id,
            y,
            scale,
            block_size,
            axis: i64::try_from(axis).ok(),
            transpose: false,
        },
    )
}

/// A custom operation with an unknown id.
pub(super) fn custom(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let extents = dims(choices, 2);
    let x = draft.first(choices, Profile::Normal, |_| true, |_| extents);
    let y = draft.float_result(choices, &small(x.dims.clone())?, x.range);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        CustomOp {
            inputs: vec![x.id],
            outputs: vec![y],
            custom_op_id: choices.pick(&["nobody.op", "rotini.unknown"]).to_owned(),
            data: Vec::new(),
        },
    )
}
