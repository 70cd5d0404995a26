// A sum of products is taken for a contraction, which is invalid if an operand is repeated along a reduced axis.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host
module @rotini {
func.func private @compute(%arg0: tensor<2x1x4xf32>, %arg1: tensor<2x1x2x4xf32>, %arg2: tensor<1x1x1x1xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<1xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1xf32>) -> tensor<1xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%arg1 : tensor<2x1x2x4xf32>) outs(%1 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %38 = arith.addf %out, %in : f32
    linalg.yield %38 : f32
  } -> tensor<1xf32>
  %3 = tensor.empty() : tensor<1xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%2 : tensor<1xf32>) outs(%3 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 1.600000e+01 : f32
    %38 = arith.divf %in, %cst_8 : f32
    linalg.yield %38 : f32
  } -> tensor<1xf32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %5 = tensor.empty() : tensor<1xf32>
  %6 = linalg.fill ins(%cst_0 : f32) outs(%5 : tensor<1xf32>) -> tensor<1xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0)>, affine_map<(d0, d1, d2, d3) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%arg1, %4 : tensor<2x1x2x4xf32>, tensor<1xf32>) outs(%6 : tensor<1xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %38 = arith.subf %in, %in_8 : f32
    %39 = arith.mulf %38, %38 : f32
    %40 = arith.addf %out, %39 : f32
    linalg.yield %40 : f32
  } -> tensor<1xf32>
  %8 = tensor.empty() : tensor<1xf32>
  %9 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%7 : tensor<1xf32>) outs(%8 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 1.600000e+01 : f32
    %38 = arith.divf %in, %cst_8 : f32
    linalg.yield %38 : f32
  } -> tensor<1xf32>
  %10 = tensor.empty() : tensor<1xf32>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%9 : tensor<1xf32>) outs(%10 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 9.99999974E-6 : f32
    %38 = arith.addf %in, %cst_8 : f32
    %cst_9 = arith.constant 1.000000e+00 : f32
    %39 = math.sqrt %38 : f32
    %40 = arith.divf %cst_9, %39 : f32
    linalg.yield %40 : f32
  } -> tensor<1xf32>
  %collapsed = tensor.collapse_shape %arg2 [[0, 1, 2, 3]] : tensor<1x1x1x1xf32> into tensor<1xf32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %12 = tensor.empty() : tensor<f32>
  %13 = linalg.fill ins(%cst_1 : f32) outs(%12 : tensor<f32>) -> tensor<f32>
  %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> ()>], iterator_types = ["reduction", "reduction", "reduction", "reduction"]} ins(%arg0, %arg1, %collapsed, %11, %4 : tensor<2x1x4xf32>, tensor<2x1x2x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) outs(%13 : tensor<f32>) {
  ^bb0(%in: f32, %in_8: f32, %in_9: f32, %in_10: f32, %in_11: f32, %out: f32):
    %38 = arith.mulf %in, %in_9 : f32
    %39 = arith.subf %in_8, %in_11 : f32
    %40 = arith.mulf %39, %in_10 : f32
    %41 = arith.mulf %in, %40 : f32
    %42 = arith.addf %out, %41 : f32
    linalg.yield %42 : f32
  } -> tensor<f32>
  %15 = tensor.empty() : tensor<2x1x2x4xf32>
  %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x1x4xf32>) outs(%15 : tensor<2x1x2x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x1x2x4xf32>
  %cst_2 = arith.constant 0.000000e+00 : f32
  %17 = tensor.empty() : tensor<f32>
  %18 = linalg.fill ins(%cst_2 : f32) outs(%17 : tensor<f32>) -> tensor<f32>
  %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> ()>], iterator_types = ["reduction", "reduction", "reduction", "reduction"]} ins(%16 : tensor<2x1x2x4xf32>) outs(%18 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %38 = arith.addf %out, %in : f32
    linalg.yield %38 : f32
  } -> tensor<f32>
  %collapsed_3 = tensor.collapse_shape %arg2 [[0, 1, 2, 3]] : tensor<1x1x1x1xf32> into tensor<1xf32>
  %cst_4 = arith.constant 0.000000e+00 : f32
  %20 = tensor.empty() : tensor<1xf32>
  %21 = linalg.fill ins(%cst_4 : f32) outs(%20 : tensor<1xf32>) -> tensor<1xf32>
  %22 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0)>, affine_map<(d0, d1, d2, d3) -> (d0)>, affine_map<(d0, d1, d2, d3) -> (d0)>, affine_map<(d0, d1, d2, d3) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%arg0, %arg1, %collapsed_3, %11, %4 : tensor<2x1x4xf32>, tensor<2x1x2x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) outs(%21 : tensor<1xf32>) {
  ^bb0(%in: f32, %in_8: f32, %in_9: f32, %in_10: f32, %in_11: f32, %out: f32):
    %38 = arith.mulf %in, %in_9 : f32
    %39 = arith.subf %in_8, %in_11 : f32
    %40 = arith.mulf %39, %in_10 : f32
    %41 = arith.mulf %38, %40 : f32
    %42 = arith.addf %out, %41 : f32
    linalg.yield %42 : f32
  } -> tensor<1xf32>
  %23 = tensor.empty() : tensor<1xf32>
  %24 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%22 : tensor<1xf32>) outs(%23 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 1.600000e+01 : f32
    %38 = arith.divf %in, %cst_8 : f32
    linalg.yield %38 : f32
  } -> tensor<1xf32>
  %25 = tensor.empty() : tensor<2x1x2x4xf32>
  %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x1x4xf32>) outs(%25 : tensor<2x1x2x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x1x2x4xf32>
  %collapsed_5 = tensor.collapse_shape %arg2 [[0, 1, 2, 3]] : tensor<1x1x1x1xf32> into tensor<1xf32>
  %cst_6 = arith.constant 0.000000e+00 : f32
  %27 = tensor.empty() : tensor<1xf32>
  %28 = linalg.fill ins(%cst_6 : f32) outs(%27 : tensor<1xf32>) -> tensor<1xf32>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0)>, affine_map<(d0, d1, d2, d3) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%26, %collapsed_5 : tensor<2x1x2x4xf32>, tensor<1xf32>) outs(%28 : tensor<1xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %38 = arith.mulf %in, %in_8 : f32
    %39 = arith.addf %out, %38 : f32
    linalg.yield %39 : f32
  } -> tensor<1xf32>
  %30 = tensor.empty() : tensor<1xf32>
  %31 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%29 : tensor<1xf32>) outs(%30 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 1.600000e+01 : f32
    %38 = arith.divf %in, %cst_8 : f32
    linalg.yield %38 : f32
  } -> tensor<1xf32>
  %collapsed_7 = tensor.collapse_shape %arg2 [[0, 1, 2, 3]] : tensor<1x1x1x1xf32> into tensor<1xf32>
  %32 = tensor.empty() : tensor<2x1x2x4xf32>
  %33 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %arg1, %collapsed_7, %11, %4, %24, %31 : tensor<2x1x4xf32>, tensor<2x1x2x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) outs(%32 : tensor<2x1x2x4xf32>) {
  ^bb0(%in: f32, %in_8: f32, %in_9: f32, %in_10: f32, %in_11: f32, %in_12: f32, %in_13: f32, %out: f32):
    %38 = arith.mulf %in, %in_9 : f32
    %39 = arith.subf %in_8, %in_11 : f32
    %40 = arith.mulf %39, %in_10 : f32
    %41 = arith.subf %38, %in_13 : f32
    %42 = arith.mulf %40, %in_12 : f32
    %43 = arith.subf %41, %42 : f32
    %44 = arith.mulf %in_10, %43 : f32
    linalg.yield %44 : f32
  } -> tensor<2x1x2x4xf32>
  %34 = tensor.empty() : tensor<1x1x1x1xf32>
  %35 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> ()>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<f32>) outs(%34 : tensor<1x1x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x1x1xf32>
  %36 = tensor.empty() : tensor<1x1x1x1xf32>
  %37 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> ()>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<f32>) outs(%36 : tensor<1x1x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x1x1xf32>
  return %33, %35, %37 : tensor<2x1x2x4xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x1x4xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<2x1x2x4xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x1x1x1xf32>
    %r:3 = func.call @compute(%i0, %i1, %i2) : (tensor<2x1x4xf32>, tensor<2x1x2x4xf32>, tensor<1x1x1x1xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<2x1x2x4xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x1x2x4xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x1x1x1xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x1x1x1xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x1x1x1xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x1x1x1xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<2x1x2x4xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) => %signal : !hal.fence
    util.return
  }
}
