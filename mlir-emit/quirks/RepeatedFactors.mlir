// A sum of products is taken for a contraction, which is invalid if a factor is repeated along a reduced axis, also if the product is an operation of its own: x · w summed over rows, with one w for each row.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<8x16x24xf32>, %1: tensor<8x1x1xf32>) -> (tensor<8x1x1xf32>) {
  %2 = "tensor.collapse_shape"(%1) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<8x1x1xf32>) -> (tensor<8xf32>)
  %3 = "tensor.empty"() : () -> (tensor<8x16x24xf32>)
  %4 = "linalg.generic"(%0, %2, %3) ({
  ^bb0(%5: f32, %6: f32, %7: f32):
    %8 = "arith.mulf"(%5, %6) : (f32, f32) -> (f32)
    "linalg.yield"(%8) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16x24xf32>, tensor<8xf32>, tensor<8x16x24xf32>) -> (tensor<8x16x24xf32>)
  %9 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %10 = "tensor.empty"() : () -> (tensor<8xf32>)
  %11 = "linalg.fill"(%9, %10) ({
  ^bb0(%12: f32, %13: f32):
    "linalg.yield"(%12) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<8xf32>) -> (tensor<8xf32>)
  %14 = "linalg.generic"(%4, %11) ({
  ^bb0(%15: f32, %16: f32):
    %17 = "arith.addf"(%16, %15) : (f32, f32) -> (f32)
    "linalg.yield"(%17) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16x24xf32>, tensor<8xf32>) -> (tensor<8xf32>)
  %18 = "tensor.empty"() : () -> (tensor<8x1x1xf32>)
  %19 = "linalg.generic"(%14, %18) ({
  ^bb0(%20: f32, %21: f32):
    "linalg.yield"(%20) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8xf32>, tensor<8x1x1xf32>) -> (tensor<8x1x1xf32>)
  "func.return"(%19) : (tensor<8x1x1xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<8x16x24xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<8x1x1xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<8x16x24xf32>, tensor<8x1x1xf32>) -> (tensor<8x1x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<8x1x1xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<8x1x1xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<8x1x1xf32>) => %signal : !hal.fence
    util.return
  }
}
