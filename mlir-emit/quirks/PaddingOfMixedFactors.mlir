// Padding that is fused into a convolution that no matrix core computes: of i32, of u8, of f32 by bf16. Where windows lie along one axis, the input is not read at all.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<2x8x16xi32>, %arg1: tensor<8x8x3xi32>) -> tensor<2x8x16xi32> {
  %padded = tensor.pad %arg0 low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%arg2: index, %arg3: index, %arg4: index):
    %c0_i32_0 = arith.constant 0 : i32
    tensor.yield %c0_i32_0 : i32
  } : tensor<2x8x16xi32> to tensor<2x8x18xi32>
  %c0_i32 = arith.constant 0 : i32
  %0 = tensor.empty() : tensor<2x8x16xi32>
  %1 = linalg.fill ins(%c0_i32 : i32) outs(%0 : tensor<2x8x16xi32>) -> tensor<2x8x16xi32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d2 + d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%padded, %arg1 : tensor<2x8x18xi32>, tensor<8x8x3xi32>) outs(%1 : tensor<2x8x16xi32>) {
  ^bb0(%in: i32, %in_0: i32, %out: i32):
    %3 = arith.muli %in, %in_0 : i32
    %4 = arith.addi %out, %3 : i32
    linalg.yield %4 : i32
  } -> tensor<2x8x16xi32>
  return %2 : tensor<2x8x16xi32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x8x16xi32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<8x8x3xi32>
    %r = func.call @compute(%i0, %i1) : (tensor<2x8x16xi32>, tensor<8x8x3xi32>) -> (tensor<2x8x16xi32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x8x16xi32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x8x16xi32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x8x16xi32>) => %signal : !hal.fence
    util.return
  }
}
