// A reduction over loops that read no window is vectorised into invalid IR if what is found is the same in all iterations.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<2x4x1x1xf32>) -> tensor<2x4x1x1xf32> {
  %0 = tensor.empty() : tensor<3x3xf32>
  %cst = arith.constant 0.000000e+00 : f32
  %1 = tensor.empty() : tensor<2x4x1x1xf32>
  %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<2x4x1x1xf32>) -> tensor<2x4x1x1xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%0 : tensor<3x3xf32>) outs(%2 : tensor<2x4x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %6 = linalg.index 0 : index
    %7 = linalg.index 1 : index
    %8 = linalg.index 2 : index
    %9 = linalg.index 3 : index
    %10 = linalg.index 4 : index
    %11 = linalg.index 5 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %12 = arith.muli %8, %c1 : index
    %c1_0 = arith.constant 1 : index
    %13 = arith.subi %12, %c1_0 : index
    %14 = arith.addi %13, %10 : index
    %c0_1 = arith.constant 0 : index
    %15 = arith.cmpi ule, %14, %c0_1 : index
    %16 = arith.select %15, %14, %c0 : index
    %17 = arith.cmpi eq, %10, %c0 : index
    %c1_2 = arith.constant 1 : index
    %18 = arith.muli %9, %c1_2 : index
    %c1_3 = arith.constant 1 : index
    %19 = arith.subi %18, %c1_3 : index
    %20 = arith.addi %19, %11 : index
    %c0_4 = arith.constant 0 : index
    %21 = arith.cmpi ule, %20, %c0_4 : index
    %22 = arith.select %21, %20, %c0 : index
    %23 = arith.cmpi eq, %11, %c0 : index
    %extracted = tensor.extract %arg0[%6, %7, %16, %22] : tensor<2x4x1x1xf32>
    %c0_5 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %24 = arith.muli %c0_5, %c3 : index
    %25 = arith.addi %24, %10 : index
    %c3_6 = arith.constant 3 : index
    %26 = arith.muli %25, %c3_6 : index
    %27 = arith.addi %26, %11 : index
    %28 = arith.andi %15, %21 : i1
    %29 = arith.andi %17, %23 : i1
    %30 = arith.index_cast %27 : index to i32
    %cst_7 = arith.constant 0.000000e+00 : f32
    %31 = arith.select %28, %extracted, %cst_7 : f32
    %32 = arith.addf %out, %31 : f32
    linalg.yield %32 : f32
  } -> tensor<2x4x1x1xf32>
  %4 = tensor.empty() : tensor<2x4x1x1xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<2x4x1x1xf32>) outs(%4 : tensor<2x4x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %6 = linalg.index 0 : index
    %7 = linalg.index 1 : index
    %8 = linalg.index 2 : index
    %9 = linalg.index 3 : index
    %c1 = arith.constant 1 : index
    %10 = arith.muli %8, %c1 : index
    %c1_0 = arith.constant 1 : index
    %11 = arith.subi %10, %c1_0 : index
    %c1_1 = arith.constant 1 : index
    %12 = arith.muli %9, %c1_1 : index
    %c1_2 = arith.constant 1 : index
    %13 = arith.subi %12, %c1_2 : index
    %c1_3 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %14 = arith.addi %11, %c3 : index
    %c1_4 = arith.constant 1 : index
    %15 = arith.minsi %14, %c1_4 : index
    %c0 = arith.constant 0 : index
    %16 = arith.maxsi %11, %c0 : index
    %17 = arith.subi %15, %16 : index
    %c0_5 = arith.constant 0 : index
    %18 = arith.maxsi %17, %c0_5 : index
    %19 = arith.muli %c1_3, %18 : index
    %c3_6 = arith.constant 3 : index
    %20 = arith.addi %13, %c3_6 : index
    %c1_7 = arith.constant 1 : index
    %21 = arith.minsi %20, %c1_7 : index
    %c0_8 = arith.constant 0 : index
    %22 = arith.maxsi %13, %c0_8 : index
    %23 = arith.subi %21, %22 : index
    %c0_9 = arith.constant 0 : index
    %24 = arith.maxsi %23, %c0_9 : index
    %25 = arith.muli %19, %24 : index
    %c1_10 = arith.constant 1 : index
    %26 = arith.maxsi %25, %c1_10 : index
    %27 = arith.index_cast %26 : index to i64
    %28 = arith.sitofp %27 : i64 to f32
    %29 = arith.divf %in, %28 : f32
    linalg.yield %29 : f32
  } -> tensor<2x4x1x1xf32>
  return %5 : tensor<2x4x1x1xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x4x1x1xf32>
    %r = func.call @compute(%i0) : (tensor<2x4x1x1xf32>) -> (tensor<2x4x1x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x4x1x1xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x4x1x1xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x4x1x1xf32>) => %signal : !hal.fence
    util.return
  }
}
