// A grouped convolution whose result has its groups after its positions, with few filters in a group: the registers of a matrix instruction of several blocks (16x16x4, 4 blocks) are taken for rows.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<2x8x8x32xf16>, %arg1: tensor<32x3x3x8xf16>) -> tensor<2x8x8x32xf16> {
  %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [2, 8, 8, 4, 8] : tensor<2x8x8x32xf16> into tensor<2x8x8x4x8xf16>
  %padded = tensor.pad %expanded low[0, 1, 1, 0, 0] high[0, 1, 1, 0, 0] {
  ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index):
    %cst_1 = arith.constant 0.000000e+00 : f16
    tensor.yield %cst_1 : f16
  } : tensor<2x8x8x4x8xf16> to tensor<2x10x10x4x8xf16>
  %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [4, 8, 3, 3, 8] : tensor<32x3x3x8xf16> into tensor<4x8x3x3x8xf16>
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<2x8x8x4x8xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x8x8x4x8xf32>) -> tensor<2x8x8x4x8xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1 + d5, d2 + d6, d3, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d3, d4, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %expanded_0 : tensor<2x10x10x4x8xf16>, tensor<4x8x3x3x8xf16>) outs(%1 : tensor<2x8x8x4x8xf32>) {
  ^bb0(%in: f16, %in_1: f16, %out: f32):
    %5 = arith.extf %in : f16 to f32
    %6 = arith.extf %in_1 : f16 to f32
    %7 = arith.mulf %5, %6 : f32
    %8 = arith.addf %out, %7 : f32
    linalg.yield %8 : f32
  } -> tensor<2x8x8x4x8xf32>
  %collapsed = tensor.collapse_shape %2 [[0], [1], [2], [3, 4]] : tensor<2x8x8x4x8xf32> into tensor<2x8x8x32xf32>
  %3 = tensor.empty() : tensor<2x8x8x32xf16>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<2x8x8x32xf32>) outs(%3 : tensor<2x8x8x32xf16>) {
  ^bb0(%in: f32, %out: f16):
    %5 = arith.truncf %in : f32 to f16
    linalg.yield %5 : f16
  } -> tensor<2x8x8x32xf16>
  return %4 : tensor<2x8x8x32xf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x8x8x32xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<32x3x3x8xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<2x8x8x32xf16>, tensor<32x3x3x8xf16>) -> (tensor<2x8x8x32xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x8x8x32xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x8x8x32xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x8x8x32xf16>) => %signal : !hal.fence
    util.return
  }
}
