// Instruction selection does not end where a thread selects one element: a clamped i64, or a single unsigned byte or result of a comparison, as an i64.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<2x4x5xi64>, %arg1: tensor<1x1x1xi8>, %arg2: tensor<2x4x5xi8>) -> tensor<2x4x5xi64> {
  %collapsed = tensor.collapse_shape %arg1 [] : tensor<1x1x1xi8> into tensor<i8>
  %0 = tensor.empty() : tensor<2x4x5xi64>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> ()>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %collapsed, %arg2 : tensor<2x4x5xi64>, tensor<i8>, tensor<2x4x5xi8>) outs(%0 : tensor<2x4x5xi64>) {
  ^bb0(%in: i64, %in_0: i8, %in_1: i8, %out: i64):
    %c-2147483648_i64 = arith.constant -2147483648 : i64
    %c2147483647_i64 = arith.constant 2147483647 : i64
    %2 = arith.maxsi %in, %c-2147483648_i64 : i64
    %3 = arith.minsi %2, %c2147483647_i64 : i64
    %4 = arith.trunci %3 : i64 to i32
    %5 = arith.extui %in_0 : i8 to i32
    %6 = arith.extsi %in_1 : i8 to i32
    %c0_i32 = arith.constant 0 : i32
    %7 = arith.cmpi ne, %6, %c0_i32 : i32
    %8 = arith.select %7, %4, %5 : i32
    %9 = arith.extsi %8 : i32 to i64
    linalg.yield %9 : i64
  } -> tensor<2x4x5xi64>
  return %1 : tensor<2x4x5xi64>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x4x5xi64>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x1x1xi8>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<2x4x5xi8>
    %r = func.call @compute(%i0, %i1, %i2) : (tensor<2x4x5xi64>, tensor<1x1x1xi8>, tensor<2x4x5xi8>) -> (tensor<2x4x5xi64>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x4x5xi64> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x4x5xi64> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x4x5xi64>) => %signal : !hal.fence
    util.return
  }
}
