// A factor of one FNUZ element, which is a byte until it is multiplied: the bitcast becomes a kernel of its own that is not bufferized.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<1x1xi8>, %arg1: tensor<1x5xi8>) -> tensor<1x5xf32> {
  %0 = tensor.bitcast %arg0 : tensor<1x1xi8> to tensor<1x1xf8E4M3FNUZ>
  %1 = tensor.bitcast %arg1 : tensor<1x5xi8> to tensor<1x5xf8E4M3FNUZ>
  %cst = arith.constant 0.000000e+00 : f32
  %2 = tensor.empty() : tensor<1x5xf32>
  %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x5xf32>) -> tensor<1x5xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0, %1 : tensor<1x1xf8E4M3FNUZ>, tensor<1x5xf8E4M3FNUZ>) outs(%3 : tensor<1x5xf32>) {
  ^bb0(%in: f8E4M3FNUZ, %in_0: f8E4M3FNUZ, %out: f32):
    %5 = arith.extf %in : f8E4M3FNUZ to f32
    %6 = arith.extf %in_0 : f8E4M3FNUZ to f32
    %7 = arith.mulf %5, %6 : f32
    %8 = arith.addf %out, %7 : f32
    linalg.yield %8 : f32
  } -> tensor<1x5xf32>
  return %4 : tensor<1x5xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x1xi8>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x5xi8>
    %r = func.call @compute(%i0, %i1) : (tensor<1x1xi8>, tensor<1x5xi8>) -> (tensor<1x5xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x5xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x5xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x5xf32>) => %signal : !hal.fence
    util.return
  }
}
