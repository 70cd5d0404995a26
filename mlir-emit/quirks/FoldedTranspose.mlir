// The transpose of an operand is folded into the convolution that reads it, as wrong addresses: an NCHW view of NHWC data in the implicit GEMM. On the CPU the convolution then runs tens of times slower.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<2x6x3x16xf16>, %arg1: tensor<16x3x3x8xf16>) -> tensor<2x4x1x16xf16> {
  %0 = tensor.empty() : tensor<2x16x6x3xf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x6x3x16xf16>) outs(%0 : tensor<2x16x6x3xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x16x6x3xf16>
  %2 = tensor.empty() : tensor<16x8x3x3xf16>
  %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<16x3x3x8xf16>) outs(%2 : tensor<16x8x3x3xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<16x8x3x3xf16>
  %expanded = tensor.expand_shape %1 [[0], [1, 2], [3], [4]] output_shape [2, 2, 8, 6, 3] : tensor<2x16x6x3xf16> into tensor<2x2x8x6x3xf16>
  %expanded_0 = tensor.expand_shape %3 [[0, 1], [2], [3], [4]] output_shape [2, 8, 8, 3, 3] : tensor<16x8x3x3xf16> into tensor<2x8x8x3x3xf16>
  %cst = arith.constant 0.000000e+00 : f32
  %4 = tensor.empty() : tensor<2x2x8x4x1xf32>
  %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<2x2x8x4x1xf32>) -> tensor<2x2x8x4x1xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 + d6, d4 + d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%expanded, %expanded_0 : tensor<2x2x8x6x3xf16>, tensor<2x8x8x3x3xf16>) outs(%5 : tensor<2x2x8x4x1xf32>) {
  ^bb0(%in: f16, %in_1: f16, %out: f32):
    %9 = arith.extf %in : f16 to f32
    %10 = arith.extf %in_1 : f16 to f32
    %11 = arith.mulf %9, %10 : f32
    %12 = arith.addf %out, %11 : f32
    linalg.yield %12 : f32
  } -> tensor<2x2x8x4x1xf32>
  %collapsed = tensor.collapse_shape %6 [[0], [1, 2], [3], [4]] : tensor<2x2x8x4x1xf32> into tensor<2x16x4x1xf32>
  %7 = tensor.empty() : tensor<2x4x1x16xf16>
  %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<2x16x4x1xf32>) outs(%7 : tensor<2x4x1x16xf16>) {
  ^bb0(%in: f32, %out: f16):
    %9 = arith.truncf %in : f32 to f16
    linalg.yield %9 : f16
  } -> tensor<2x4x1x16xf16>
  return %8 : tensor<2x4x1x16xf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x6x3x16xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<16x3x3x8xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<2x6x3x16xf16>, tensor<16x3x3x8xf16>) -> (tensor<2x4x1x16xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x4x1x16xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x4x1x16xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x4x1x16xf16>) => %signal : !hal.fence
    util.return
  }
}
