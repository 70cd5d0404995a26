// The code generator crashes where it copies the sign of a single f64 to an f32.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x7xf64>) -> (tensor<1x7xf32>) {
  %1 = "tensor.empty"() : () -> (tensor<1x7xf32>)
  %2 = "linalg.generic"(%0, %1) ({
  ^bb0(%3: f64, %4: f32):
    %5 = "arith.truncf"(%3) : (f64) -> (f32)
    %6 = "math.erf"(%5) : (f32) -> (f32)
    %7 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %8 = "arith.cmpf"(%5, %7) {predicate = 1 : i64} : (f32, f32) -> (i1)
    %9 = "arith.select"(%8, %5, %6) : (i1, f32, f32) -> (f32)
    "linalg.yield"(%9) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x7xf64>, tensor<1x7xf32>) -> (tensor<1x7xf32>)
  "func.return"(%2) : (tensor<1x7xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x7xf64>
    %r = func.call @compute(%i0) : (tensor<1x7xf64>) -> (tensor<1x7xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x7xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x7xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x7xf32>) => %signal : !hal.fence
    util.return
  }
}
