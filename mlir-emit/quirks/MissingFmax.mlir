// The larger of two widened f16 becomes a call of fmaxf on x86 without arithmetic of f16, and nothing brings that function.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host --iree-llvmcpu-target-cpu=x86-64-v3
module @rotini {
func.func private @custom_0(%0: tensor<5x9xf16>, %1: tensor<5x9xf16>) -> (tensor<5x9xf16>) {
  %2 = "tensor.empty"() : () -> (tensor<5x9xf16>)
  %3 = "linalg.generic"(%0, %1, %2) ({
  ^bb0(%4: f16, %5: f16, %6: f16):
    %7 = "arith.extf"(%4) : (f16) -> (f32)
    %8 = "arith.extf"(%5) : (f16) -> (f32)
    %9 = "arith.maxnumf"(%7, %8) : (f32, f32) -> (f32)
    %10 = "arith.truncf"(%9) : (f32) -> (f16)
    "linalg.yield"(%10) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<5x9xf16>, tensor<5x9xf16>, tensor<5x9xf16>) -> (tensor<5x9xf16>)
  "func.return"(%3) : (tensor<5x9xf16>) -> ()
}
func.func private @compute(%0: tensor<5x9xf16>, %1: tensor<5x9xf16>) -> (tensor<5x9xf16>) {
  %2 = "func.call"(%0, %1) {callee = @custom_0} : (tensor<5x9xf16>, tensor<5x9xf16>) -> (tensor<5x9xf16>)
  "func.return"(%2) : (tensor<5x9xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<5x9xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<5x9xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<5x9xf16>, tensor<5x9xf16>) -> (tensor<5x9xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<5x9xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<5x9xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<5x9xf16>) => %signal : !hal.fence
    util.return
  }
}
