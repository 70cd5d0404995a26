// A batched matmul of 6 or 10 rows and an even batch recurses without end on padded tiles; one that is no whole number of tiles and is stored with its batches innermost becomes a scatter that nothing lowers.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<12x20x8xf16>, %arg1: tensor<12x8x24xf16>) -> tensor<20x24x12xf16> {
  %0 = tensor.empty() : tensor<12x24x8xf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<12x8x24xf16>) outs(%0 : tensor<12x24x8xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<12x24x8xf16>
  %2 = "iree_tensor_ext.compute_barrier.start"(%1) : (tensor<12x24x8xf16>) -> tensor<12x24x8xf16>
  %cst = arith.constant 0.000000e+00 : f32
  %3 = tensor.empty() : tensor<20x24x12xf32>
  %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<20x24x12xf32>) -> tensor<20x24x12xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %2 : tensor<12x20x8xf16>, tensor<12x24x8xf16>) outs(%4 : tensor<20x24x12xf32>) {
  ^bb0(%in: f16, %in_0: f16, %out: f32):
    %8 = arith.extf %in : f16 to f32
    %9 = arith.extf %in_0 : f16 to f32
    %10 = arith.mulf %8, %9 : f32
    %11 = arith.addf %out, %10 : f32
    linalg.yield %11 : f32
  } -> tensor<20x24x12xf32>
  %6 = tensor.empty() : tensor<20x24x12xf16>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<20x24x12xf32>) outs(%6 : tensor<20x24x12xf16>) {
  ^bb0(%in: f32, %out: f16):
    %8 = arith.truncf %in : f32 to f16
    linalg.yield %8 : f16
  } -> tensor<20x24x12xf16>
  return %7 : tensor<20x24x12xf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<12x20x8xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<12x8x24xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<12x20x8xf16>, tensor<12x8x24xf16>) -> (tensor<20x24x12xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<20x24x12xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<20x24x12xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<20x24x12xf16>) => %signal : !hal.fence
    util.return
  }
}
