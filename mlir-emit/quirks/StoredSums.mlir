// Sums that are stored beside a chain of stored tensors made of them, or beside one in another order: a tile that is cut off lies in shared memory, where threads overwrite each other's.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x3x24xf32>, %1: tensor<1x24x6xf32>) -> (tensor<1x3x6xf32>, tensor<1x3x6xf32>, tensor<1x3x6xf32>) {
  %2 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %3 = "tensor.empty"() : () -> (tensor<1x3x6xf32>)
  %4 = "linalg.fill"(%2, %3) ({
  ^bb0(%5: f32, %6: f32):
    "linalg.yield"(%5) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x3x6xf32>) -> (tensor<1x3x6xf32>)
  %7 = "linalg.generic"(%0, %1, %4) ({
  ^bb0(%8: f32, %9: f32, %10: f32):
    %11 = "arith.mulf"(%8, %9) : (f32, f32) -> (f32)
    %12 = "arith.addf"(%10, %11) : (f32, f32) -> (f32)
    "linalg.yield"(%12) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x3x24xf32>, tensor<1x24x6xf32>, tensor<1x3x6xf32>) -> (tensor<1x3x6xf32>)
  %13 = "tensor.empty"() : () -> (tensor<1x3x6xf32>)
  %14 = "linalg.generic"(%7, %13) ({
  ^bb0(%15: f32, %16: f32):
    %17 = "math.absf"(%15) : (f32) -> (f32)
    "linalg.yield"(%17) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x3x6xf32>, tensor<1x3x6xf32>) -> (tensor<1x3x6xf32>)
  %18 = "tensor.empty"() : () -> (tensor<1x3x6xf32>)
  %19 = "linalg.generic"(%14, %18) ({
  ^bb0(%20: f32, %21: f32):
    %22 = "arith.negf"(%20) : (f32) -> (f32)
    %23 = "math.copysign"(%22, %22) : (f32, f32) -> (f32)
    "linalg.yield"(%23) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x3x6xf32>, tensor<1x3x6xf32>) -> (tensor<1x3x6xf32>)
  "func.return"(%7, %14, %19) : (tensor<1x3x6xf32>, tensor<1x3x6xf32>, tensor<1x3x6xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x3x24xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x24x6xf32>
    %r:3 = func.call @compute(%i0, %i1) : (tensor<1x3x24xf32>, tensor<1x24x6xf32>) -> (tensor<1x3x6xf32>, tensor<1x3x6xf32>, tensor<1x3x6xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<1x3x6xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x3x6xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x3x6xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x3x6xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x3x6xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x3x6xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<1x3x6xf32>, tensor<1x3x6xf32>, tensor<1x3x6xf32>) => %signal : !hal.fence
    util.return
  }
}
