// Padding that is fused into a convolution with a loop of one step is forgotten: the input is read as if it were not moved.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<2x6x4x5xf32>, %1: tensor<6x6x1x1xf32>) -> (tensor<2x6x5x8xf32>) {
  %2 = "tensor.pad"(%0) ({
  ^bb0(%3: index, %4: index, %5: index, %6: index):
    %7 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    "tensor.yield"(%7) : (f32) -> ()
  }) {static_low = array<i64: 0, 0, 1, 2>, static_high = array<i64: 0, 0, 0, 1>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x6x4x5xf32>) -> (tensor<2x6x5x8xf32>)
  %8 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %9 = "tensor.empty"() : () -> (tensor<2x6x5x8xf32>)
  %10 = "linalg.fill"(%8, %9) ({
  ^bb0(%11: f32, %12: f32):
    "linalg.yield"(%11) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x6x5x8xf32>) -> (tensor<2x6x5x8xf32>)
  %13 = "linalg.generic"(%2, %1, %10) ({
  ^bb0(%14: f32, %15: f32, %16: f32):
    %17 = "arith.mulf"(%14, %15) : (f32, f32) -> (f32)
    %18 = "arith.addf"(%16, %17) : (f32, f32) -> (f32)
    "linalg.yield"(%18) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 * 1 + d5 * 1, d3 * 1 + d6 * 1)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x6x5x8xf32>, tensor<6x6x1x1xf32>, tensor<2x6x5x8xf32>) -> (tensor<2x6x5x8xf32>)
  "func.return"(%13) : (tensor<2x6x5x8xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x6x4x5xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<6x6x1x1xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<2x6x4x5xf32>, tensor<6x6x1x1xf32>) -> (tensor<2x6x5x8xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x6x5x8xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x6x5x8xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x6x5x8xf32>) => %signal : !hal.fence
    util.return
  }
}
