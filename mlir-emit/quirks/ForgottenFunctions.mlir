// A sum of products is taken for a contraction whatever function of one operand a factor or the product goes through: -x or exp(x) by y becomes x by y.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @custom_0(%arg0: tensor<4x7x5xf32>, %arg1: tensor<4x7x6xf32>) -> tensor<4x5x6xf32> {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<4x5x6xf32>
  %1 = tensor.empty() : tensor<4x5x6xf32>
  %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %3 = tensor.empty() : tensor<4x5x7xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<4x7x5xf32>) outs(%3 : tensor<4x5x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x5x7xf32>
  %5 = "iree_tensor_ext.compute_barrier.start"(%4) : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %6 = tensor.empty() : tensor<4x6x7xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<4x7x6xf32>) outs(%6 : tensor<4x6x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x6x7xf32>
  %8 = "iree_tensor_ext.compute_barrier.start"(%7) : (tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %9 = tensor.empty() : tensor<4x5x6xf32>
  %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%5, %8 : tensor<4x5x7xf32>, tensor<4x6x7xf32>) outs(%10 : tensor<4x5x6xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %13 = math.absf %in : f32
    %14 = math.absf %in_0 : f32
    %15 = arith.mulf %13, %14 : f32
    %16 = arith.addf %out, %15 : f32
    linalg.yield %16 : f32
  } -> tensor<4x5x6xf32>
  %12 = "iree_tensor_ext.compute_barrier.start"(%11) : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  return %12 : tensor<4x5x6xf32>
}
func.func private @compute(%arg0: tensor<4x7x5xf32>, %arg1: tensor<4x7x6xf32>) -> tensor<4x5x6xf32> {
  %0 = call @custom_0(%arg0, %arg1) : (tensor<4x7x5xf32>, tensor<4x7x6xf32>) -> tensor<4x5x6xf32>
  return %0 : tensor<4x5x6xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<4x7x5xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<4x7x6xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<4x7x5xf32>, tensor<4x7x6xf32>) -> (tensor<4x5x6xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<4x5x6xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<4x5x6xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<4x5x6xf32>) => %signal : !hal.fence
    util.return
  }
}
