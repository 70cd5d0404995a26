// A product of both FNUZ types is rejected where a matrix ends within a tile.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<1x33xi8>, %arg1: tensor<9x33xi8>) -> tensor<1x9xbf16> {
  %0 = tensor.bitcast %arg0 : tensor<1x33xi8> to tensor<1x33xf8E4M3FNUZ>
  %1 = tensor.bitcast %arg1 : tensor<9x33xi8> to tensor<9x33xf8E5M2FNUZ>
  %cst = arith.constant 0.000000e+00 : f32
  %2 = tensor.empty() : tensor<1x9xf32>
  %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x9xf32>) -> tensor<1x9xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0, %1 : tensor<1x33xf8E4M3FNUZ>, tensor<9x33xf8E5M2FNUZ>) outs(%3 : tensor<1x9xf32>) {
  ^bb0(%in: f8E4M3FNUZ, %in_0: f8E5M2FNUZ, %out: f32):
    %7 = arith.extf %in : f8E4M3FNUZ to f32
    %8 = arith.extf %in_0 : f8E5M2FNUZ to f32
    %9 = arith.mulf %7, %8 : f32
    %10 = arith.addf %out, %9 : f32
    linalg.yield %10 : f32
  } -> tensor<1x9xf32>
  %5 = tensor.empty() : tensor<1x9xbf16>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<1x9xf32>) outs(%5 : tensor<1x9xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %7 = arith.truncf %in : f32 to bf16
    linalg.yield %7 : bf16
  } -> tensor<1x9xbf16>
  return %6 : tensor<1x9xbf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x33xi8>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<9x33xi8>
    %r = func.call @compute(%i0, %i1) : (tensor<1x33xi8>, tensor<9x33xi8>) -> (tensor<1x9xbf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x9xbf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x9xbf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x9xbf16>) => %signal : !hal.fence
    util.return
  }
}
