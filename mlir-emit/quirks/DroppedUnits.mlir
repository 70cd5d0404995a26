// A result, channels last, with groups after an axis of extent 1, or with such an axis between two others: it is dropped, and the implicit GEMM reads x at wrong places.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<1x6x3x16xf16>, %arg1: tensor<16x3x3x8xf16>) -> tensor<1x4x1x16xf16> {
  %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [1, 6, 3, 2, 8] : tensor<1x6x3x16xf16> into tensor<1x6x3x2x8xf16>
  %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [2, 8, 3, 3, 8] : tensor<16x3x3x8xf16> into tensor<2x8x3x3x8xf16>
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<1x2x4x1x8xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x2x4x1x8xf32>) -> tensor<1x2x4x1x8xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d2 + d5, d3 + d6, d1, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d4, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%expanded, %expanded_0 : tensor<1x6x3x2x8xf16>, tensor<2x8x3x3x8xf16>) outs(%1 : tensor<1x2x4x1x8xf32>) {
  ^bb0(%in: f16, %in_1: f16, %out: f32):
    %7 = arith.extf %in : f16 to f32
    %8 = arith.extf %in_1 : f16 to f32
    %9 = arith.mulf %7, %8 : f32
    %10 = arith.addf %out, %9 : f32
    linalg.yield %10 : f32
  } -> tensor<1x2x4x1x8xf32>
  %3 = tensor.empty() : tensor<1x4x1x2x8xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x2x4x1x8xf32>) outs(%3 : tensor<1x4x1x2x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x4x1x2x8xf32>
  %collapsed = tensor.collapse_shape %4 [[0], [1], [2], [3, 4]] : tensor<1x4x1x2x8xf32> into tensor<1x4x1x16xf32>
  %5 = tensor.empty() : tensor<1x4x1x16xf16>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<1x4x1x16xf32>) outs(%5 : tensor<1x4x1x16xf16>) {
  ^bb0(%in: f32, %out: f16):
    %7 = arith.truncf %in : f32 to f16
    linalg.yield %7 : f16
  } -> tensor<1x4x1x16xf16>
  return %6 : tensor<1x4x1x16xf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x6x3x16xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<16x3x3x8xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<1x6x3x16xf16>, tensor<16x3x3x8xf16>) -> (tensor<1x4x1x16xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x4x1x16xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x4x1x16xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x4x1x16xf16>) => %signal : !hal.fence
    util.return
  }
}
