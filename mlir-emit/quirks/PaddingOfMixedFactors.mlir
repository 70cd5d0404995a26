// Padding that is fused into a convolution that no matrix core computes: of i32, of u8, of f32 by bf16. Where windows lie along one axis, the input is not read at all.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<2x8x16xi32>, %1: tensor<8x8x3xi32>) -> (tensor<2x8x16xi32>) {
  %2 = "tensor.pad"(%0) ({
  ^bb0(%3: index, %4: index, %5: index):
    %6 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    "tensor.yield"(%6) : (i32) -> ()
  }) {static_low = array<i64: 0, 0, 1>, static_high = array<i64: 0, 0, 1>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x8x16xi32>) -> (tensor<2x8x18xi32>)
  %7 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %8 = "tensor.empty"() : () -> (tensor<2x8x16xi32>)
  %9 = "linalg.fill"(%7, %8) ({
  ^bb0(%10: i32, %11: i32):
    "linalg.yield"(%10) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<2x8x16xi32>) -> (tensor<2x8x16xi32>)
  %12 = "linalg.generic"(%2, %1, %9) ({
  ^bb0(%13: i32, %14: i32, %15: i32):
    %16 = "arith.muli"(%13, %14) : (i32, i32) -> (i32)
    %17 = "arith.addi"(%15, %16) : (i32, i32) -> (i32)
    "linalg.yield"(%17) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d2 * 1 + d4 * 1)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x18xi32>, tensor<8x8x3xi32>, tensor<2x8x16xi32>) -> (tensor<2x8x16xi32>)
  "func.return"(%12) : (tensor<2x8x16xi32>) -> ()
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
