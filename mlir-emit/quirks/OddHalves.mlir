// Products of f16 that threads sum 5 or 7 at a time, where there are few rows or columns, do not compile.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<72x7xf16>, %arg1: tensor<7x2xf16>) -> tensor<72x2xf16> {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<72x2xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<72x2xf32>) -> tensor<72x2xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<72x7xf16>, tensor<7x2xf16>) outs(%1 : tensor<72x2xf32>) {
  ^bb0(%in: f16, %in_0: f16, %out: f32):
    %5 = arith.extf %in : f16 to f32
    %6 = arith.extf %in_0 : f16 to f32
    %7 = arith.mulf %5, %6 : f32
    %8 = arith.addf %out, %7 : f32
    linalg.yield %8 : f32
  } -> tensor<72x2xf32>
  %3 = tensor.empty() : tensor<72x2xf16>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<72x2xf32>) outs(%3 : tensor<72x2xf16>) {
  ^bb0(%in: f32, %out: f16):
    %5 = arith.truncf %in : f32 to f16
    linalg.yield %5 : f16
  } -> tensor<72x2xf16>
  return %4 : tensor<72x2xf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<72x7xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<7x2xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<72x7xf16>, tensor<7x2xf16>) -> (tensor<72x2xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<72x2xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<72x2xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<72x2xf16>) => %signal : !hal.fence
    util.return
  }
}
