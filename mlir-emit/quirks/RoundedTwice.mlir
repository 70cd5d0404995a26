// An f64 is rounded to 16 bits through f32: twice, and what is subnormal in f16 becomes 0.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<51xi32>) -> (tensor<51xbf16>) {
  %1 = "tensor.empty"() : () -> (tensor<51xi32>)
  %2 = "linalg.generic"(%0, %1) ({
  ^bb0(%3: i32, %4: i32):
    "linalg.yield"(%3) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<51xi32>, tensor<51xi32>) -> (tensor<51xi32>)
  %5 = "tensor.empty"() : () -> (tensor<51xbf16>)
  %6 = "linalg.generic"(%2, %5) ({
  ^bb0(%7: i32, %8: bf16):
    %9 = "arith.sitofp"(%7) : (i32) -> (f64)
    %10 = "arith.truncf"(%9) : (f64) -> (bf16)
    "linalg.yield"(%10) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<51xi32>, tensor<51xbf16>) -> (tensor<51xbf16>)
  "func.return"(%6) : (tensor<51xbf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<51xi32>
    %r = func.call @compute(%i0) : (tensor<51xi32>) -> (tensor<51xbf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<51xbf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<51xbf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<51xbf16>) => %signal : !hal.fence
    util.return
  }
}
