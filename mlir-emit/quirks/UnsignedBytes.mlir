// Unsigned bytes are multiplied as signed ones.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<32x64xi8>, %arg1: tensor<64x48xi8>) -> tensor<32x48xi32> {
  %c0_i32 = arith.constant 0 : i32
  %0 = tensor.empty() : tensor<32x48xi32>
  %1 = linalg.fill ins(%c0_i32 : i32) outs(%0 : tensor<32x48xi32>) -> tensor<32x48xi32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<32x64xi8>, tensor<64x48xi8>) outs(%1 : tensor<32x48xi32>) {
  ^bb0(%in: i8, %in_0: i8, %out: i32):
    %3 = arith.extui %in : i8 to i32
    %4 = arith.extui %in_0 : i8 to i32
    %5 = arith.muli %3, %4 : i32
    %6 = arith.addi %out, %5 : i32
    linalg.yield %6 : i32
  } -> tensor<32x48xi32>
  return %2 : tensor<32x48xi32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<32x64xi8>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<64x48xi8>
    %r = func.call @compute(%i0, %i1) : (tensor<32x64xi8>, tensor<64x48xi8>) -> (tensor<32x48xi32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<32x48xi32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<32x48xi32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<32x48xi32>) => %signal : !hal.fence
    util.return
  }
}
