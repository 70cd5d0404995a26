// arith.maximumf and arith.minimumf become an instruction that passes over NaN.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<24x33xf32>, %1: tensor<24x33xf32>) -> (tensor<24x33xf32>) {
  %2 = "tensor.empty"() : () -> (tensor<24x33xf32>)
  %3 = "linalg.generic"(%0, %1, %2) ({
  ^bb0(%4: f32, %5: f32, %6: f32):
    %7 = "arith.maximumf"(%4, %5) : (f32, f32) -> (f32)
    "linalg.yield"(%7) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<24x33xf32>, tensor<24x33xf32>, tensor<24x33xf32>) -> (tensor<24x33xf32>)
  "func.return"(%3) : (tensor<24x33xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<24x33xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<24x33xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<24x33xf32>, tensor<24x33xf32>) -> (tensor<24x33xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<24x33xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<24x33xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<24x33xf32>) => %signal : !hal.fence
    util.return
  }
}
