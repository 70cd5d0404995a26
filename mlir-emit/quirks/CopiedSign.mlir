// The code generator crashes where it copies the sign of a single f64 to an f32.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<1x7xf64>) -> tensor<1x7xf32> {
  %0 = tensor.empty() : tensor<1x7xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<1x7xf64>) outs(%0 : tensor<1x7xf32>) {
  ^bb0(%in: f64, %out: f32):
    %2 = arith.truncf %in : f64 to f32
    %3 = math.erf %2 : f32
    %cst = arith.constant 0.000000e+00 : f32
    %4 = arith.cmpf oeq, %2, %cst : f32
    %5 = arith.select %4, %2, %3 : f32
    linalg.yield %5 : f32
  } -> tensor<1x7xf32>
  return %1 : tensor<1x7xf32>
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
