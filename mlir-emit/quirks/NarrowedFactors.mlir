// Factors of f64 that are multiplied in a narrower type: the matrix core of f64 is chosen, whose sums are f64 too.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<48x4xf64>, %arg1: tensor<4x16xf64>) -> tensor<48x16xf32> {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<48x16xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<48x16xf32>) -> tensor<48x16xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<48x4xf64>, tensor<4x16xf64>) outs(%1 : tensor<48x16xf32>) {
  ^bb0(%in: f64, %in_0: f64, %out: f32):
    %3 = arith.truncf %in : f64 to f32
    %4 = arith.truncf %in_0 : f64 to f32
    %5 = arith.mulf %3, %4 : f32
    %6 = arith.addf %out, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<48x16xf32>
  return %2 : tensor<48x16xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<48x4xf64>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<4x16xf64>
    %r = func.call @compute(%i0, %i1) : (tensor<48x4xf64>, tensor<4x16xf64>) -> (tensor<48x16xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<48x16xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<48x16xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<48x16xf32>) => %signal : !hal.fence
    util.return
  }
}
