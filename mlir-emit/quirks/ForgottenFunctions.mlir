// A sum of products is taken for a contraction whatever function of one operand a factor or the product goes through: -x or exp(x) by y becomes x by y.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @custom_0(%0: tensor<4x7x5xf32>, %1: tensor<4x7x6xf32>) -> (tensor<4x5x6xf32>) {
  %2 = "arith.constant"() {value = 0x0 : f32} : () -> (f32)
  %3 = "tensor.empty"() : () -> (tensor<4x5x6xf32>)
  %4 = "tensor.empty"() : () -> (tensor<4x5x6xf32>)
  %5 = "linalg.fill"(%2, %4) ({
  ^bb0(%6: f32, %7: f32):
    "linalg.yield"(%6) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<4x5x6xf32>) -> (tensor<4x5x6xf32>)
  %8 = "tensor.empty"() : () -> (tensor<4x5x7xf32>)
  %9 = "linalg.generic"(%0, %8) ({
  ^bb0(%10: f32, %11: f32):
    "linalg.yield"(%10) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x7x5xf32>, tensor<4x5x7xf32>) -> (tensor<4x5x7xf32>)
  %12 = "iree_tensor_ext.compute_barrier.start"(%9) : (tensor<4x5x7xf32>) -> (tensor<4x5x7xf32>)
  %13 = "tensor.empty"() : () -> (tensor<4x6x7xf32>)
  %14 = "linalg.generic"(%1, %13) ({
  ^bb0(%15: f32, %16: f32):
    "linalg.yield"(%15) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x7x6xf32>, tensor<4x6x7xf32>) -> (tensor<4x6x7xf32>)
  %17 = "iree_tensor_ext.compute_barrier.start"(%14) : (tensor<4x6x7xf32>) -> (tensor<4x6x7xf32>)
  %18 = "tensor.empty"() : () -> (tensor<4x5x6xf32>)
  %19 = "linalg.fill"(%2, %18) ({
  ^bb0(%20: f32, %21: f32):
    "linalg.yield"(%20) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<4x5x6xf32>) -> (tensor<4x5x6xf32>)
  %22 = "linalg.generic"(%12, %17, %19) ({
  ^bb0(%23: f32, %24: f32, %25: f32):
    %26 = "math.absf"(%23) : (f32) -> (f32)
    %27 = "math.absf"(%24) : (f32) -> (f32)
    %28 = "arith.mulf"(%26, %27) : (f32, f32) -> (f32)
    %29 = "arith.addf"(%25, %28) : (f32, f32) -> (f32)
    "linalg.yield"(%29) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<4x5x7xf32>, tensor<4x6x7xf32>, tensor<4x5x6xf32>) -> (tensor<4x5x6xf32>)
  %30 = "iree_tensor_ext.compute_barrier.start"(%22) : (tensor<4x5x6xf32>) -> (tensor<4x5x6xf32>)
  "func.return"(%30) : (tensor<4x5x6xf32>) -> ()
}
func.func private @compute(%0: tensor<4x7x5xf32>, %1: tensor<4x7x6xf32>) -> (tensor<4x5x6xf32>) {
  %2 = "func.call"(%0, %1) {callee = @custom_0} : (tensor<4x7x5xf32>, tensor<4x7x6xf32>) -> (tensor<4x5x6xf32>)
  "func.return"(%2) : (tensor<4x5x6xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<4x7x5xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<4x7x6xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<4x7x5xf32>, tensor<4x7x6xf32>) -> (tensor<4x5x6xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<4x5x6xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<4x5x6xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<4x5x6xf32>) => %signal : !hal.fence
    util.return
  }
}
