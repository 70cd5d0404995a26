// bf16 that is made and read in one dispatch is left in f32.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host
module @rotini {
func.func private @custom_1(%arg0: tensor<4x10xbf16>) -> tensor<4x10xbf16> {
  %0 = tensor.empty() : tensor<4x10xbf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x10xbf16>) outs(%0 : tensor<4x10xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %2 = arith.extf %in : bf16 to f32
    %cst = arith.constant 5.000000e-01 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 0.707106769 : f32
    %3 = arith.mulf %2, %cst_1 : f32
    %4 = math.erf %3 : f32
    %5 = arith.addf %4, %cst_0 : f32
    %6 = arith.mulf %2, %cst : f32
    %7 = arith.mulf %6, %5 : f32
    %8 = arith.truncf %7 : f32 to bf16
    linalg.yield %8 : bf16
  } -> tensor<4x10xbf16>
  return %1 : tensor<4x10xbf16>
}
func.func private @compute(%arg0: tensor<4x10xf32>, %arg1: tensor<1x10xf32>) -> tensor<4x10xf32> {
  %collapsed = tensor.collapse_shape %arg1 [[0, 1]] : tensor<1x10xf32> into tensor<10xf32>
  %0 = tensor.empty() : tensor<4x10xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0, %collapsed : tensor<4x10xf32>, tensor<10xf32>) outs(%0 : tensor<4x10xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %7 = arith.addf %in, %in_0 : f32
    linalg.yield %7 : f32
  } -> tensor<4x10xf32>
  %2 = tensor.empty() : tensor<4x10xbf16>
  %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x10xf32>) outs(%2 : tensor<4x10xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %7 = arith.truncf %in : f32 to bf16
    linalg.yield %7 : bf16
  } -> tensor<4x10xbf16>
  %4 = call @custom_1(%3) : (tensor<4x10xbf16>) -> tensor<4x10xbf16>
  %5 = tensor.empty() : tensor<4x10xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4, %arg0 : tensor<4x10xbf16>, tensor<4x10xf32>) outs(%5 : tensor<4x10xf32>) {
  ^bb0(%in: bf16, %in_0: f32, %out: f32):
    %7 = arith.extf %in : bf16 to f32
    %8 = arith.mulf %7, %in_0 : f32
    linalg.yield %8 : f32
  } -> tensor<4x10xf32>
  return %6 : tensor<4x10xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<4x10xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x10xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<4x10xf32>, tensor<1x10xf32>) -> (tensor<4x10xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<4x10xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<4x10xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<4x10xf32>) => %signal : !hal.fence
    util.return
  }
}
