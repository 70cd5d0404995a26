// A reduction that starts from a tensor sums up in its memory, which may be the caller's.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @custom_0(%arg0: tensor<8x24xf32>, %arg1: tensor<8x1xf32>) -> tensor<8x1xf32> {
  %cst = arith.constant 0x7FC00000 : f32
  %extracted_slice = tensor.extract_slice %arg1[0, 0] [8, 1] [1, 1] : tensor<8x1xf32> to tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<8x24xf32>) outs(%extracted_slice : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.maxnumf %out, %in : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  %expanded = tensor.expand_shape %0 [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  return %expanded : tensor<8x1xf32>
}
func.func private @compute(%arg0: tensor<8x24xf32>, %arg1: tensor<8x1xf32>) -> tensor<8x1xf32> {
  %0 = call @custom_0(%arg0, %arg1) : (tensor<8x24xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  return %0 : tensor<8x1xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<8x24xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<8x1xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<8x24xf32>, tensor<8x1xf32>) -> (tensor<8x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<8x1xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<8x1xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<8x1xf32>) => %signal : !hal.fence
    util.return
  }
}
