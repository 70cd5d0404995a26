// A grouped convolution whose result has its groups after its positions, with few filters in a group: the registers of a matrix instruction of several blocks (16x16x4, 4 blocks) are taken for rows.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<2x8x8x32xf16>, %1: tensor<32x3x3x8xf16>) -> (tensor<2x8x8x32xf16>) {
  %2 = "tensor.expand_shape"(%0) {reassociation = [[0 : i64], [1 : i64], [2 : i64], [3 : i64, 4 : i64]], static_output_shape = array<i64: 2, 8, 8, 4, 8>} : (tensor<2x8x8x32xf16>) -> (tensor<2x8x8x4x8xf16>)
  %3 = "tensor.pad"(%2) ({
  ^bb0(%4: index, %5: index, %6: index, %7: index, %8: index):
    %9 = "arith.constant"() {value = 0.0e0 : f16} : () -> (f16)
    "tensor.yield"(%9) : (f16) -> ()
  }) {static_low = array<i64: 0, 1, 1, 0, 0>, static_high = array<i64: 0, 1, 1, 0, 0>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x8x8x4x8xf16>) -> (tensor<2x10x10x4x8xf16>)
  %10 = "tensor.expand_shape"(%1) {reassociation = [[0 : i64, 1 : i64], [2 : i64], [3 : i64], [4 : i64]], static_output_shape = array<i64: 4, 8, 3, 3, 8>} : (tensor<32x3x3x8xf16>) -> (tensor<4x8x3x3x8xf16>)
  %11 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %12 = "tensor.empty"() : () -> (tensor<2x8x8x4x8xf32>)
  %13 = "linalg.fill"(%11, %12) ({
  ^bb0(%14: f32, %15: f32):
    "linalg.yield"(%14) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x8x8x4x8xf32>) -> (tensor<2x8x8x4x8xf32>)
  %16 = "linalg.generic"(%3, %10, %13) ({
  ^bb0(%17: f16, %18: f16, %19: f32):
    %20 = "arith.extf"(%17) : (f16) -> (f32)
    %21 = "arith.extf"(%18) : (f16) -> (f32)
    %22 = "arith.mulf"(%20, %21) : (f32, f32) -> (f32)
    %23 = "arith.addf"(%19, %22) : (f32, f32) -> (f32)
    "linalg.yield"(%23) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1 * 1 + d5 * 1, d2 * 1 + d6 * 1, d3, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d3, d4, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x10x10x4x8xf16>, tensor<4x8x3x3x8xf16>, tensor<2x8x8x4x8xf32>) -> (tensor<2x8x8x4x8xf32>)
  %24 = "tensor.collapse_shape"(%16) {reassociation = [[0 : i64], [1 : i64], [2 : i64], [3 : i64, 4 : i64]]} : (tensor<2x8x8x4x8xf32>) -> (tensor<2x8x8x32xf32>)
  %25 = "tensor.empty"() : () -> (tensor<2x8x8x32xf16>)
  %26 = "linalg.generic"(%24, %25) ({
  ^bb0(%27: f32, %28: f16):
    %29 = "arith.truncf"(%27) : (f32) -> (f16)
    "linalg.yield"(%29) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x8x8x32xf32>, tensor<2x8x8x32xf16>) -> (tensor<2x8x8x32xf16>)
  "func.return"(%26) : (tensor<2x8x8x32xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x8x8x32xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<32x3x3x8xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<2x8x8x32xf16>, tensor<32x3x3x8xf16>) -> (tensor<2x8x8x32xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x8x8x32xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x8x8x32xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x8x8x32xf16>) => %signal : !hal.fence
    util.return
  }
}
