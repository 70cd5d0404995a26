// A result, channels last, with groups after an axis of extent 1, or with such an axis between two others: it is dropped, and the implicit GEMM reads x at wrong places.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x6x3x16xf16>, %1: tensor<16x3x3x8xf16>) -> (tensor<1x4x1x16xf16>) {
  %2 = "tensor.expand_shape"(%0) {reassociation = [[0 : i64], [1 : i64], [2 : i64], [3 : i64, 4 : i64]], static_output_shape = array<i64: 1, 6, 3, 2, 8>} : (tensor<1x6x3x16xf16>) -> (tensor<1x6x3x2x8xf16>)
  %3 = "tensor.expand_shape"(%1) {reassociation = [[0 : i64, 1 : i64], [2 : i64], [3 : i64], [4 : i64]], static_output_shape = array<i64: 2, 8, 3, 3, 8>} : (tensor<16x3x3x8xf16>) -> (tensor<2x8x3x3x8xf16>)
  %4 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %5 = "tensor.empty"() : () -> (tensor<1x2x4x1x8xf32>)
  %6 = "linalg.fill"(%4, %5) ({
  ^bb0(%7: f32, %8: f32):
    "linalg.yield"(%7) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x4x1x8xf32>) -> (tensor<1x2x4x1x8xf32>)
  %9 = "linalg.generic"(%2, %3, %6) ({
  ^bb0(%10: f16, %11: f16, %12: f32):
    %13 = "arith.extf"(%10) : (f16) -> (f32)
    %14 = "arith.extf"(%11) : (f16) -> (f32)
    %15 = "arith.mulf"(%13, %14) : (f32, f32) -> (f32)
    %16 = "arith.addf"(%12, %15) : (f32, f32) -> (f32)
    "linalg.yield"(%16) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d2 * 1 + d5 * 1, d3 * 1 + d6 * 1, d1, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d4, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x6x3x2x8xf16>, tensor<2x8x3x3x8xf16>, tensor<1x2x4x1x8xf32>) -> (tensor<1x2x4x1x8xf32>)
  %17 = "tensor.empty"() : () -> (tensor<1x4x1x2x8xf32>)
  %18 = "linalg.generic"(%9, %17) ({
  ^bb0(%19: f32, %20: f32):
    "linalg.yield"(%19) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x4x1x8xf32>, tensor<1x4x1x2x8xf32>) -> (tensor<1x4x1x2x8xf32>)
  %21 = "tensor.collapse_shape"(%18) {reassociation = [[0 : i64], [1 : i64], [2 : i64], [3 : i64, 4 : i64]]} : (tensor<1x4x1x2x8xf32>) -> (tensor<1x4x1x16xf32>)
  %22 = "tensor.empty"() : () -> (tensor<1x4x1x16xf16>)
  %23 = "linalg.generic"(%21, %22) ({
  ^bb0(%24: f32, %25: f16):
    %26 = "arith.truncf"(%24) : (f32) -> (f16)
    "linalg.yield"(%26) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x4x1x16xf32>, tensor<1x4x1x16xf16>) -> (tensor<1x4x1x16xf16>)
  "func.return"(%23) : (tensor<1x4x1x16xf16>) -> ()
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
