// Where all elements turn out to be the same and are summed, too few are.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x3x4x1x3xf32>) -> (tensor<1x3x1x1x1xf32>) {
  %1 = "tensor.empty"() : () -> (tensor<1x3x4x1x3xf32>)
  %2 = "linalg.generic"(%0, %1) ({
  ^bb0(%3: f32, %4: f32):
    %5 = "arith.constant"() {value = 5.0e-1 : f32} : () -> (f32)
    %6 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %7 = "arith.cmpf"(%3, %6) {predicate = 13 : i64} : (f32, f32) -> (i1)
    %8 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %9 = "arith.cmpf"(%5, %8) {predicate = 13 : i64} : (f32, f32) -> (i1)
    %10 = "arith.ori"(%7, %9) : (i1, i1) -> (i1)
    %11 = "arith.uitofp"(%10) : (i1) -> (f32)
    "linalg.yield"(%11) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x3x4x1x3xf32>, tensor<1x3x4x1x3xf32>) -> (tensor<1x3x4x1x3xf32>)
  %12 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %13 = "tensor.empty"() : () -> (tensor<1x3x1xf32>)
  %14 = "linalg.fill"(%12, %13) ({
  ^bb0(%15: f32, %16: f32):
    "linalg.yield"(%15) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x3x1xf32>) -> (tensor<1x3x1xf32>)
  %17 = "linalg.generic"(%2, %14) ({
  ^bb0(%18: f32, %19: f32):
    %20 = "arith.addf"(%19, %18) : (f32, f32) -> (f32)
    "linalg.yield"(%20) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x3x4x1x3xf32>, tensor<1x3x1xf32>) -> (tensor<1x3x1xf32>)
  %21 = "tensor.empty"() : () -> (tensor<1x3x1x1x1xf32>)
  %22 = "linalg.generic"(%17, %21) ({
  ^bb0(%23: f32, %24: f32):
    "linalg.yield"(%23) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x3x1xf32>, tensor<1x3x1x1x1xf32>) -> (tensor<1x3x1x1x1xf32>)
  "func.return"(%22) : (tensor<1x3x1x1x1xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x3x4x1x3xf32>
    %r = func.call @compute(%i0) : (tensor<1x3x4x1x3xf32>) -> (tensor<1x3x1x1x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x3x1x1x1xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x3x1x1x1xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x3x1x1x1xf32>) => %signal : !hal.fence
    util.return
  }
}
