// An f64 is rounded to 16 bits through f32: twice, and what is subnormal in f16 becomes 0.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host
module @rotini {
func.func private @compute(%0: tensor<151xf64>) -> (tensor<151xf16>) {
  %1 = "tensor.empty"() : () -> (tensor<151xf64>)
  %2 = "linalg.generic"(%0, %1) ({
  ^bb0(%3: f64, %4: f64):
    "linalg.yield"(%3) : (f64) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<151xf64>, tensor<151xf64>) -> (tensor<151xf64>)
  %5 = "tensor.empty"() : () -> (tensor<151xf16>)
  %6 = "linalg.generic"(%2, %5) ({
  ^bb0(%7: f64, %8: f16):
    %9 = "arith.truncf"(%7) : (f64) -> (f16)
    "linalg.yield"(%9) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<151xf64>, tensor<151xf16>) -> (tensor<151xf16>)
  "func.return"(%6) : (tensor<151xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<151xf64>
    %r = func.call @compute(%i0) : (tensor<151xf64>) -> (tensor<151xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<151xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<151xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<151xf16>) => %signal : !hal.fence
    util.return
  }
}
