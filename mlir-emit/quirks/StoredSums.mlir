// Sums that are stored beside a chain of stored tensors made of them, or beside one in another order: a tile that is cut off lies in shared memory, where threads overwrite each other's.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<1x3x24xf32>, %arg1: tensor<1x24x6xf32>) -> (tensor<1x3x6xf32>, tensor<1x3x6xf32>, tensor<1x3x6xf32>) {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<1x3x6xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x3x6xf32>) -> tensor<1x3x6xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<1x3x24xf32>, tensor<1x24x6xf32>) outs(%1 : tensor<1x3x6xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %7 = arith.mulf %in, %in_0 : f32
    %8 = arith.addf %out, %7 : f32
    linalg.yield %8 : f32
  } -> tensor<1x3x6xf32>
  %3 = tensor.empty() : tensor<1x3x6xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<1x3x6xf32>) outs(%3 : tensor<1x3x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = math.absf %in : f32
    linalg.yield %7 : f32
  } -> tensor<1x3x6xf32>
  %5 = tensor.empty() : tensor<1x3x6xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<1x3x6xf32>) outs(%5 : tensor<1x3x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.negf %in : f32
    %8 = math.copysign %7, %7 : f32
    linalg.yield %8 : f32
  } -> tensor<1x3x6xf32>
  return %2, %4, %6 : tensor<1x3x6xf32>, tensor<1x3x6xf32>, tensor<1x3x6xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x3x24xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x24x6xf32>
    %r:3 = func.call @compute(%i0, %i1) : (tensor<1x3x24xf32>, tensor<1x24x6xf32>) -> (tensor<1x3x6xf32>, tensor<1x3x6xf32>, tensor<1x3x6xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<1x3x6xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x3x6xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x3x6xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x3x6xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x3x6xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x3x6xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<1x3x6xf32>, tensor<1x3x6xf32>, tensor<1x3x6xf32>) => %signal : !hal.fence
    util.return
  }
}
