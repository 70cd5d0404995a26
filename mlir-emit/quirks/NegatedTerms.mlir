// A sum of -x becomes one that subtracts x from what it has, and the compiler knows no neutral element of that.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<100x64xf32>) -> (tensor<100x1xf32>) {
  %1 = "tensor.empty"() : () -> (tensor<100x64xf32>)
  %2 = "linalg.generic"(%0, %1) ({
  ^bb0(%3: f32, %4: f32):
    %5 = "arith.negf"(%3) : (f32) -> (f32)
    "linalg.yield"(%5) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<100x64xf32>, tensor<100x64xf32>) -> (tensor<100x64xf32>)
  %6 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %7 = "tensor.empty"() : () -> (tensor<100xf32>)
  %8 = "linalg.fill"(%6, %7) ({
  ^bb0(%9: f32, %10: f32):
    "linalg.yield"(%9) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<100xf32>) -> (tensor<100xf32>)
  %11 = "linalg.generic"(%2, %8) ({
  ^bb0(%12: f32, %13: f32):
    %14 = "arith.addf"(%13, %12) : (f32, f32) -> (f32)
    "linalg.yield"(%14) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<100x64xf32>, tensor<100xf32>) -> (tensor<100xf32>)
  %15 = "tensor.empty"() : () -> (tensor<100x1xf32>)
  %16 = "linalg.generic"(%11, %15) ({
  ^bb0(%17: f32, %18: f32):
    "linalg.yield"(%17) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<100xf32>, tensor<100x1xf32>) -> (tensor<100x1xf32>)
  "func.return"(%16) : (tensor<100x1xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<100x64xf32>
    %r = func.call @compute(%i0) : (tensor<100x64xf32>) -> (tensor<100x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<100x1xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<100x1xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<100x1xf32>) => %signal : !hal.fence
    util.return
  }
}
