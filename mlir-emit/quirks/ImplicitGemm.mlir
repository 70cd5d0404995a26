// A grouped NCHW convolution in f32 (8 channels to 12 in 2 groups, 7x7, 3x3) recurses without end in the lowering of buffer pointers after the implicit GEMM.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x8x7x7xf32>, %1: tensor<12x4x3x3xf32>) -> (tensor<1x12x7x7xf32>) {
  %2 = "tensor.expand_shape"(%0) {reassociation = [[0 : i64], [1 : i64, 2 : i64], [3 : i64], [4 : i64]], static_output_shape = array<i64: 1, 2, 4, 7, 7>} : (tensor<1x8x7x7xf32>) -> (tensor<1x2x4x7x7xf32>)
  %3 = "tensor.pad"(%2) ({
  ^bb0(%4: index, %5: index, %6: index, %7: index, %8: index):
    %9 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    "tensor.yield"(%9) : (f32) -> ()
  }) {static_low = array<i64: 0, 0, 0, 1, 1>, static_high = array<i64: 0, 0, 0, 1, 1>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<1x2x4x7x7xf32>) -> (tensor<1x2x4x9x9xf32>)
  %10 = "tensor.expand_shape"(%1) {reassociation = [[0 : i64, 1 : i64], [2 : i64], [3 : i64], [4 : i64]], static_output_shape = array<i64: 2, 6, 4, 3, 3>} : (tensor<12x4x3x3xf32>) -> (tensor<2x6x4x3x3xf32>)
  %11 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %12 = "tensor.empty"() : () -> (tensor<1x2x6x7x7xf32>)
  %13 = "linalg.fill"(%11, %12) ({
  ^bb0(%14: f32, %15: f32):
    "linalg.yield"(%14) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x6x7x7xf32>) -> (tensor<1x2x6x7x7xf32>)
  %16 = "linalg.generic"(%3, %10, %13) ({
  ^bb0(%17: f32, %18: f32, %19: f32):
    %20 = "arith.mulf"(%17, %18) : (f32, f32) -> (f32)
    %21 = "arith.addf"(%19, %20) : (f32, f32) -> (f32)
    "linalg.yield"(%21) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 * 1 + d6 * 1, d4 * 1 + d7 * 1)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x4x9x9xf32>, tensor<2x6x4x3x3xf32>, tensor<1x2x6x7x7xf32>) -> (tensor<1x2x6x7x7xf32>)
  %22 = "tensor.collapse_shape"(%16) {reassociation = [[0 : i64], [1 : i64, 2 : i64], [3 : i64], [4 : i64]]} : (tensor<1x2x6x7x7xf32>) -> (tensor<1x12x7x7xf32>)
  "func.return"(%22) : (tensor<1x12x7x7xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x8x7x7xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<12x4x3x3xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<1x8x7x7xf32>, tensor<12x4x3x3xf32>) -> (tensor<1x12x7x7xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x12x7x7xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x12x7x7xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x12x7x7xf32>) => %signal : !hal.fence
    util.return
  }
}
