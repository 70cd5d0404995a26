// Padding that is fused into a convolution with a loop of one step is forgotten: the input is read as if it were not moved.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<2x6x4x5xf32>, %arg1: tensor<6x6x1x1xf32>) -> tensor<2x6x5x8xf32> {
  %padded = tensor.pad %arg0 low[0, 0, 1, 2] high[0, 0, 0, 1] {
  ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index):
    %cst_0 = arith.constant 0.000000e+00 : f32
    tensor.yield %cst_0 : f32
  } : tensor<2x6x4x5xf32> to tensor<2x6x5x8xf32>
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<2x6x5x8xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 + d5, d3 + d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %arg1 : tensor<2x6x5x8xf32>, tensor<6x6x1x1xf32>) outs(%1 : tensor<2x6x5x8xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %3 = arith.mulf %in, %in_0 : f32
    %4 = arith.addf %out, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<2x6x5x8xf32>
  return %2 : tensor<2x6x5x8xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x6x4x5xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<6x6x1x1xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<2x6x4x5xf32>, tensor<6x6x1x1xf32>) -> (tensor<2x6x5x8xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x6x5x8xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x6x5x8xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x6x5x8xf32>) => %signal : !hal.fence
    util.return
  }
}
