// A dilated convolution with several filters for each group of one channel: wrong code of its implicit GEMM.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<7x3x4x4xf32>, %1: tensor<8x1x3x2xf32>) -> (tensor<3x8x2x2xf32>) {
  %2 = "tensor.empty"() : () -> (tensor<3x4x4x7xf32>)
  %3 = "linalg.generic"(%0, %2) ({
  ^bb0(%4: f32, %5: f32):
    "linalg.yield"(%4) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d3, d0, d2, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<7x3x4x4xf32>, tensor<3x4x4x7xf32>) -> (tensor<3x4x4x7xf32>)
  %6 = "iree_tensor_ext.compute_barrier.start"(%3) : (tensor<3x4x4x7xf32>) -> (tensor<3x4x4x7xf32>)
  %7 = "tensor.expand_shape"(%6) {reassociation = [[0 : i64], [1 : i64, 2 : i64], [3 : i64], [4 : i64]], static_output_shape = array<i64: 3, 4, 1, 4, 7>} : (tensor<3x4x4x7xf32>) -> (tensor<3x4x1x4x7xf32>)
  %8 = "tensor.pad"(%7) ({
  ^bb0(%9: index, %10: index, %11: index, %12: index, %13: index):
    %14 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    "tensor.yield"(%14) : (f32) -> ()
  }) {static_low = array<i64: 0, 0, 0, 1, 0>, static_high = array<i64: 0, 0, 0, 1, 0>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<3x4x1x4x7xf32>) -> (tensor<3x4x1x6x7xf32>)
  %15 = "tensor.expand_shape"(%1) {reassociation = [[0 : i64, 1 : i64], [2 : i64], [3 : i64], [4 : i64]], static_output_shape = array<i64: 4, 2, 1, 3, 2>} : (tensor<8x1x3x2xf32>) -> (tensor<4x2x1x3x2xf32>)
  %16 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %17 = "tensor.empty"() : () -> (tensor<3x4x2x2x2xf32>)
  %18 = "linalg.fill"(%16, %17) ({
  ^bb0(%19: f32, %20: f32):
    "linalg.yield"(%19) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<3x4x2x2x2xf32>) -> (tensor<3x4x2x2x2xf32>)
  %21 = "linalg.generic"(%8, %15, %18) ({
  ^bb0(%22: f32, %23: f32, %24: f32):
    %25 = "arith.mulf"(%22, %23) : (f32, f32) -> (f32)
    %26 = "arith.addf"(%24, %25) : (f32, f32) -> (f32)
    "linalg.yield"(%26) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 * 3 + d6 * 1, d4 * 4 + d7 * 2)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<3x4x1x6x7xf32>, tensor<4x2x1x3x2xf32>, tensor<3x4x2x2x2xf32>) -> (tensor<3x4x2x2x2xf32>)
  %27 = "tensor.collapse_shape"(%21) {reassociation = [[0 : i64], [1 : i64, 2 : i64], [3 : i64], [4 : i64]]} : (tensor<3x4x2x2x2xf32>) -> (tensor<3x8x2x2xf32>)
  "func.return"(%27) : (tensor<3x8x2x2xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<7x3x4x4xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<8x1x3x2xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<7x3x4x4xf32>, tensor<8x1x3x2xf32>) -> (tensor<3x8x2x2xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<3x8x2x2xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<3x8x2x2xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<3x8x2x2xf32>) => %signal : !hal.fence
    util.return
  }
}
