// Instruction selection does not end where a thread selects one element: a clamped i64, or a single unsigned byte or result of a comparison, as an i64.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<2x4x5xi64>, %1: tensor<1x1x1xi8>, %2: tensor<2x4x5xi8>) -> (tensor<2x4x5xi64>) {
  %3 = "tensor.collapse_shape"(%1) {reassociation = []} : (tensor<1x1x1xi8>) -> (tensor<i8>)
  %4 = "tensor.empty"() : () -> (tensor<2x4x5xi64>)
  %5 = "linalg.generic"(%0, %3, %2, %4) ({
  ^bb0(%6: i64, %7: i8, %8: i8, %9: i64):
    %10 = "arith.constant"() {value = -2147483648 : i64} : () -> (i64)
    %11 = "arith.constant"() {value = 2147483647 : i64} : () -> (i64)
    %12 = "arith.maxsi"(%6, %10) : (i64, i64) -> (i64)
    %13 = "arith.minsi"(%12, %11) : (i64, i64) -> (i64)
    %14 = "arith.trunci"(%13) : (i64) -> (i32)
    %15 = "arith.extui"(%7) : (i8) -> (i32)
    %16 = "arith.extsi"(%8) : (i8) -> (i32)
    %17 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %18 = "arith.cmpi"(%16, %17) {predicate = 1 : i64} : (i32, i32) -> (i1)
    %19 = "arith.select"(%18, %14, %15) : (i1, i32, i32) -> (i32)
    %20 = "arith.extsi"(%19) : (i32) -> (i64)
    "linalg.yield"(%20) : (i64) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> ()>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 3, 1>} : (tensor<2x4x5xi64>, tensor<i8>, tensor<2x4x5xi8>, tensor<2x4x5xi64>) -> (tensor<2x4x5xi64>)
  "func.return"(%5) : (tensor<2x4x5xi64>) -> ()
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
