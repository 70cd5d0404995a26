// The compiler's attention has no matrix instructions for heads that are no power of two of 16 or more, and some do not compile.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<1x2x7x8xf32>, %arg1: tensor<1x2x1x8xf32>, %arg2: tensor<1x2x1x8xf32>) -> tensor<1x2x7x8xf32> {
  %cst = arith.constant 0.693147182 : f32
  %cst_0 = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<1x2x7x8xf32>
  %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<1x2x7x8xf32>) -> tensor<1x2x7x8xf32>
  %cst_1 = arith.constant -3.40282347E+38 : f32
  %2 = tensor.empty() : tensor<1x2x7xf32>
  %3 = linalg.fill ins(%cst_1 : f32) outs(%2 : tensor<1x2x7xf32>) -> tensor<1x2x7xf32>
  %cst_2 = arith.constant 0.000000e+00 : f32
  %4 = tensor.empty() : tensor<1x2x7xf32>
  %5 = linalg.fill ins(%cst_2 : f32) outs(%4 : tensor<1x2x7xf32>) -> tensor<1x2x7xf32>
  %6:3 = "iree_linalg_ext.online_attention"(%arg0, %arg1, %arg2, %cst, %1, %3, %5) ({
  ^bb0(%arg3: f32):
    %cst_3 = arith.constant 0.360673755 : f32
    %11 = arith.mulf %arg3, %cst_3 : f32
    "iree_linalg_ext.yield"(%11) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4, d5) -> ()>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2)>]} : (tensor<1x2x7x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, f32, tensor<1x2x7x8xf32>, tensor<1x2x7xf32>, tensor<1x2x7xf32>) -> (tensor<1x2x7x8xf32>, tensor<1x2x7xf32>, tensor<1x2x7xf32>)
  %7 = tensor.empty() : tensor<1x2x7xf32>
  %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6#1 : tensor<1x2x7xf32>) outs(%7 : tensor<1x2x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_3 = arith.constant 0.693147182 : f32
    %11 = arith.mulf %cst_3, %in : f32
    linalg.yield %11 : f32
  } -> tensor<1x2x7xf32>
  %9 = tensor.empty() : tensor<1x2x7x8xf32>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6#0, %6#2 : tensor<1x2x7x8xf32>, tensor<1x2x7xf32>) outs(%9 : tensor<1x2x7x8xf32>) {
  ^bb0(%in: f32, %in_3: f32, %out: f32):
    %cst_4 = arith.constant 0.000000e+00 : f32
    %11 = arith.cmpf oeq, %in_3, %cst_4 : f32
    %cst_5 = arith.constant 0.000000e+00 : f32
    %12 = arith.divf %in, %in_3 : f32
    %13 = arith.select %11, %cst_5, %12 : f32
    linalg.yield %13 : f32
  } -> tensor<1x2x7x8xf32>
  return %10 : tensor<1x2x7x8xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x2x7x8xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x2x1x8xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x2x1x8xf32>
    %r = func.call @compute(%i0, %i1, %i2) : (tensor<1x2x7x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>) -> (tensor<1x2x7x8xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x2x7x8xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x2x7x8xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x2x7x8xf32>) => %signal : !hal.fence
    util.return
  }
}
