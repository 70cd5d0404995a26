// What reads an operand in another order than the result's and yields a constant is taken for a transposition, and copies the operand.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<2x1x5x6xi32>) -> tensor<2x6x1x5xi32> {
  %0 = tensor.empty() : tensor<2x6x1x5xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %arg0 : tensor<2x1x5x6xi32>, tensor<2x1x5x6xi32>) outs(%0 : tensor<2x6x1x5xi32>) {
  ^bb0(%in: i32, %in_0: i32, %out: i32):
    %2 = arith.extsi %in : i32 to i64
    %3 = arith.extsi %in_0 : i32 to i64
    %4 = arith.subi %2, %3 : i64
    %c-2147483648_i64 = arith.constant -2147483648 : i64
    %c2147483647_i64 = arith.constant 2147483647 : i64
    %5 = arith.maxsi %4, %c-2147483648_i64 : i64
    %6 = arith.minsi %5, %c2147483647_i64 : i64
    %7 = arith.trunci %6 : i64 to i32
    linalg.yield %7 : i32
  } -> tensor<2x6x1x5xi32>
  return %1 : tensor<2x6x1x5xi32>
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
