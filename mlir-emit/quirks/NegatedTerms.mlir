// A sum of -x becomes one that subtracts x from what it has, and the compiler knows no neutral element of that.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<100x64xf32>) -> tensor<100x1xf32> {
  %0 = tensor.empty() : tensor<100x64xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<100x64xf32>) outs(%0 : tensor<100x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.negf %in : f32
    linalg.yield %7 : f32
  } -> tensor<100x64xf32>
  %cst = arith.constant 0.000000e+00 : f32
  %2 = tensor.empty() : tensor<100xf32>
  %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<100xf32>) -> tensor<100xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<100x64xf32>) outs(%3 : tensor<100xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.addf %out, %in : f32
    linalg.yield %7 : f32
  } -> tensor<100xf32>
  %5 = tensor.empty() : tensor<100x1xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<100xf32>) outs(%5 : tensor<100x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<100x1xf32>
  return %6 : tensor<100x1xf32>
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
