// The last step of a matrix core is filled up by masks; the mask over an axis that is not the innermost is lost if the innermost is cut off too, and the next matrix of the batch is read.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<3x7x5xi8>, %arg1: tensor<3x7x3xf16>) -> tensor<3x3x5xf16> {
  %0 = tensor.empty() : tensor<3x7x5xf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<3x7x5xi8>) outs(%0 : tensor<3x7x5xf16>) {
  ^bb0(%in: i8, %out: f16):
    %14 = arith.sitofp %in : i8 to f16
    linalg.yield %14 : f16
  } -> tensor<3x7x5xf16>
  %2 = "iree_tensor_ext.compute_barrier.start"(%1) : (tensor<3x7x5xf16>) -> tensor<3x7x5xf16>
  %3 = tensor.empty() : tensor<3x7x5xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<3x7x5xf16>) outs(%3 : tensor<3x7x5xf32>) {
  ^bb0(%in: f16, %out: f32):
    %14 = arith.extf %in : f16 to f32
    linalg.yield %14 : f32
  } -> tensor<3x7x5xf32>
  %5 = "iree_tensor_ext.compute_barrier.start"(%4) : (tensor<3x7x5xf32>) -> tensor<3x7x5xf32>
  %6 = tensor.empty() : tensor<3x7x3xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<3x7x3xf16>) outs(%6 : tensor<3x7x3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %14 = arith.extf %in : f16 to f32
    linalg.yield %14 : f32
  } -> tensor<3x7x3xf32>
  %8 = "iree_tensor_ext.compute_barrier.start"(%7) : (tensor<3x7x3xf32>) -> tensor<3x7x3xf32>
  %cst = arith.constant 0.000000e+00 : f32
  %9 = tensor.empty() : tensor<3x3x5xf32>
  %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<3x3x5xf32>) -> tensor<3x3x5xf32>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%5, %8 : tensor<3x7x5xf32>, tensor<3x7x3xf32>) outs(%10 : tensor<3x3x5xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %14 = arith.mulf %in, %in_0 : f32
    %15 = arith.addf %out, %14 : f32
    linalg.yield %15 : f32
  } -> tensor<3x3x5xf32>
  %12 = tensor.empty() : tensor<3x3x5xf16>
  %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<3x3x5xf32>) outs(%12 : tensor<3x3x5xf16>) {
  ^bb0(%in: f32, %out: f16):
    %14 = arith.truncf %in : f32 to f16
    linalg.yield %14 : f16
  } -> tensor<3x3x5xf16>
  return %13 : tensor<3x3x5xf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<3x7x5xi8>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<3x7x3xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<3x7x5xi8>, tensor<3x7x3xf16>) -> (tensor<3x3x5xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<3x3x5xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<3x3x5xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<3x3x5xf16>) => %signal : !hal.fence
    util.return
  }
}
