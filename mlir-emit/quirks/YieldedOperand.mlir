// An operation that turns out late to yield one of its operands: the kernel that does nothing but copy is rejected.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<6x4x1xi32>, %arg1: tensor<6x1x1xi32>) -> (tensor<6x1x1xi32>, tensor<6x1x1xi32>) {
  %c-2147483648_i32 = arith.constant -2147483648 : i32
  %0 = tensor.empty() : tensor<6x1xi32>
  %1 = linalg.fill ins(%c-2147483648_i32 : i32) outs(%0 : tensor<6x1xi32>) -> tensor<6x1xi32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<6x4x1xi32>) outs(%1 : tensor<6x1xi32>) {
  ^bb0(%in: i32, %out: i32):
    %10 = arith.maxsi %out, %in : i32
    linalg.yield %10 : i32
  } -> tensor<6x1xi32>
  %3 = tensor.empty() : tensor<6x1x1xi32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<6x1xi32>) outs(%3 : tensor<6x1x1xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<6x1x1xi32>
  %5 = tensor.empty() : tensor<6x1x1xi32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<6x1x1xi32>) outs(%5 : tensor<6x1x1xi32>) {
  ^bb0(%in: i32, %out: i32):
    %c1_i32 = arith.constant 1 : i32
    %10 = arith.muli %c1_i32, %in : i32
    linalg.yield %10 : i32
  } -> tensor<6x1x1xi32>
  %7 = "iree_tensor_ext.compute_barrier.start"(%6) : (tensor<6x1x1xi32>) -> tensor<6x1x1xi32>
  %8 = tensor.empty() : tensor<6x1x1xi32>
  %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4, %7, %arg1 : tensor<6x1x1xi32>, tensor<6x1x1xi32>, tensor<6x1x1xi32>) outs(%8 : tensor<6x1x1xi32>) {
  ^bb0(%in: i32, %in_0: i32, %in_1: i32, %out: i32):
    %c0_i32 = arith.constant 0 : i32
    %10 = arith.cmpi ne, %in_1, %c0_i32 : i32
    %11 = arith.select %10, %in, %in_0 : i32
    linalg.yield %11 : i32
  } -> tensor<6x1x1xi32>
  return %4, %9 : tensor<6x1x1xi32>, tensor<6x1x1xi32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<6x4x1xi32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<6x1x1xi32>
    %r:2 = func.call @compute(%i0, %i1) : (tensor<6x4x1xi32>, tensor<6x1x1xi32>) -> (tensor<6x1x1xi32>, tensor<6x1x1xi32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<6x1x1xi32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<6x1x1xi32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<6x1x1xi32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<6x1x1xi32> from %workspace : !hal.buffer
    %b:2 = hal.tensor.barrier join(%t0, %t1 : tensor<6x1x1xi32>, tensor<6x1x1xi32>) => %signal : !hal.fence
    util.return
  }
}
