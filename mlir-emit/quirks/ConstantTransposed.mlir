// What reads an operand in another order than the result's and yields a constant is taken for a transposition, and copies the operand.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<2x1x5x6xi32>) -> (tensor<2x6x1x5xi32>) {
  %1 = "tensor.empty"() : () -> (tensor<2x6x1x5xi32>)
  %2 = "linalg.generic"(%0, %0, %1) ({
  ^bb0(%3: i32, %4: i32, %5: i32):
    %6 = "arith.extsi"(%3) : (i32) -> (i64)
    %7 = "arith.extsi"(%4) : (i32) -> (i64)
    %8 = "arith.subi"(%6, %7) : (i64, i64) -> (i64)
    %9 = "arith.constant"() {value = -2147483648 : i64} : () -> (i64)
    %10 = "arith.constant"() {value = 2147483647 : i64} : () -> (i64)
    %11 = "arith.maxsi"(%8, %9) : (i64, i64) -> (i64)
    %12 = "arith.minsi"(%11, %10) : (i64, i64) -> (i64)
    %13 = "arith.trunci"(%12) : (i64) -> (i32)
    "linalg.yield"(%13) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x1x5x6xi32>, tensor<2x1x5x6xi32>, tensor<2x6x1x5xi32>) -> (tensor<2x6x1x5xi32>)
  "func.return"(%2) : (tensor<2x6x1x5xi32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x1x5x6xi32>
    %r = func.call @compute(%i0) : (tensor<2x1x5x6xi32>) -> (tensor<2x6x1x5xi32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x6x1x5xi32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x6x1x5xi32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x6x1x5xi32>) => %signal : !hal.fence
    util.return
  }
}
