// The transpose of an operand is folded into the convolution that reads it, as wrong addresses: an NCHW view of NHWC data in the implicit GEMM. On the CPU the convolution then runs tens of times slower.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<2x6x3x16xf16>, %1: tensor<16x3x3x8xf16>) -> (tensor<2x4x1x16xf16>) {
  %2 = "tensor.empty"() : () -> (tensor<2x16x6x3xf16>)
  %3 = "linalg.generic"(%0, %2) ({
  ^bb0(%4: f16, %5: f16):
    "linalg.yield"(%4) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x6x3x16xf16>, tensor<2x16x6x3xf16>) -> (tensor<2x16x6x3xf16>)
  %6 = "tensor.empty"() : () -> (tensor<16x8x3x3xf16>)
  %7 = "linalg.generic"(%1, %6) ({
  ^bb0(%8: f16, %9: f16):
    "linalg.yield"(%8) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<16x3x3x8xf16>, tensor<16x8x3x3xf16>) -> (tensor<16x8x3x3xf16>)
  %10 = "tensor.expand_shape"(%3) {reassociation = [[0 : i64], [1 : i64, 2 : i64], [3 : i64], [4 : i64]], static_output_shape = array<i64: 2, 2, 8, 6, 3>} : (tensor<2x16x6x3xf16>) -> (tensor<2x2x8x6x3xf16>)
  %11 = "tensor.expand_shape"(%7) {reassociation = [[0 : i64, 1 : i64], [2 : i64], [3 : i64], [4 : i64]], static_output_shape = array<i64: 2, 8, 8, 3, 3>} : (tensor<16x8x3x3xf16>) -> (tensor<2x8x8x3x3xf16>)
  %12 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %13 = "tensor.empty"() : () -> (tensor<2x2x8x4x1xf32>)
  %14 = "linalg.fill"(%12, %13) ({
  ^bb0(%15: f32, %16: f32):
    "linalg.yield"(%15) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x2x8x4x1xf32>) -> (tensor<2x2x8x4x1xf32>)
  %17 = "linalg.generic"(%10, %11, %14) ({
  ^bb0(%18: f16, %19: f16, %20: f32):
    %21 = "arith.extf"(%18) : (f16) -> (f32)
    %22 = "arith.extf"(%19) : (f16) -> (f32)
    %23 = "arith.mulf"(%21, %22) : (f32, f32) -> (f32)
    %24 = "arith.addf"(%20, %23) : (f32, f32) -> (f32)
    "linalg.yield"(%24) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 * 1 + d6 * 1, d4 * 1 + d7 * 1)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x2x8x6x3xf16>, tensor<2x8x8x3x3xf16>, tensor<2x2x8x4x1xf32>) -> (tensor<2x2x8x4x1xf32>)
  %25 = "tensor.collapse_shape"(%17) {reassociation = [[0 : i64], [1 : i64, 2 : i64], [3 : i64], [4 : i64]]} : (tensor<2x2x8x4x1xf32>) -> (tensor<2x16x4x1xf32>)
  %26 = "tensor.empty"() : () -> (tensor<2x4x1x16xf16>)
  %27 = "linalg.generic"(%25, %26) ({
  ^bb0(%28: f32, %29: f16):
    %30 = "arith.truncf"(%28) : (f32) -> (f16)
    "linalg.yield"(%30) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16x4x1xf32>, tensor<2x4x1x16xf16>) -> (tensor<2x4x1x16xf16>)
  "func.return"(%27) : (tensor<2x4x1x16xf16>) -> ()
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
