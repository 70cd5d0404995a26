// Where all elements turn out to be the same and are summed, too few are.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<1x3x4x1x3xf32>) -> tensor<1x3x1x1x1xf32> {
  %0 = tensor.empty() : tensor<1x3x4x1x3xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x3x4x1x3xf32>) outs(%0 : tensor<1x3x4x1x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_0 = arith.constant 5.000000e-01 : f32
    %cst_1 = arith.constant 0.000000e+00 : f32
    %7 = arith.cmpf une, %in, %cst_1 : f32
    %cst_2 = arith.constant 0.000000e+00 : f32
    %8 = arith.cmpf une, %cst_0, %cst_2 : f32
    %9 = arith.ori %7, %8 : i1
    %10 = arith.uitofp %9 : i1 to f32
    linalg.yield %10 : f32
  } -> tensor<1x3x4x1x3xf32>
  %cst = arith.constant 0.000000e+00 : f32
  %2 = tensor.empty() : tensor<1x3x1xf32>
  %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x3x1xf32>) -> tensor<1x3x1xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%1 : tensor<1x3x4x1x3xf32>) outs(%3 : tensor<1x3x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.addf %out, %in : f32
    linalg.yield %7 : f32
  } -> tensor<1x3x1xf32>
  %5 = tensor.empty() : tensor<1x3x1x1x1xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<1x3x1xf32>) outs(%5 : tensor<1x3x1x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x3x1x1x1xf32>
  return %6 : tensor<1x3x1x1x1xf32>
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
