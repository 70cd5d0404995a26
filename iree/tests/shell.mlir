// Two matmuls in a row: the first one's result is nobody's output, so it needs a workspace.
module @two_stage {
  func.func private @compute(%a: tensor<16x24xf32>, %b: tensor<24x32xf32>, %c: tensor<32x8xf32>) -> tensor<16x8xf32> {
    %zero = arith.constant 0.0 : f32
    %e0 = tensor.empty() : tensor<16x32xf32>
    %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %m0 = linalg.matmul ins(%a, %b : tensor<16x24xf32>, tensor<24x32xf32>) outs(%f0 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %e1 = tensor.empty() : tensor<16x8xf32>
    %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x8xf32>) -> tensor<16x8xf32>
    %m1 = linalg.matmul ins(%m0, %c : tensor<16x32xf32>, tensor<32x8xf32>) outs(%f1 : tensor<16x8xf32>) -> tensor<16x8xf32>
    return %m1 : tensor<16x8xf32>
  }
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view,
                         %ws: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<16x24xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<24x32xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<32x8xf32>
    %r0 = func.call @compute(%i0, %i1, %i2) : (tensor<16x24xf32>, tensor<24x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    %a0 = hal.tensor.alias wait(%wait) => %r0 : tensor<16x8xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<16x8xf32> from %ws : !hal.buffer
    %b0 = hal.tensor.barrier join(%t0 : tensor<16x8xf32>) => %signal : !hal.fence
    util.return
  }
}
