// The sums of layernorm backward of a converted f64 use what is defined after them.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<6x1x3xf64>, %arg1: tensor<1x1x3xf64>) -> (tensor<6x1x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>) {
  %0 = tensor.empty() : tensor<6x1x3xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<6x1x3xf64>) outs(%0 : tensor<6x1x3xf32>) {
  ^bb0(%in: f64, %out: f32):
    %36 = arith.truncf %in : f64 to f32
    linalg.yield %36 : f32
  } -> tensor<6x1x3xf32>
  %cst = arith.constant 0.000000e+00 : f32
  %2 = tensor.empty() : tensor<6x1xf32>
  %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<6x1xf32>) -> tensor<6x1xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<6x1x3xf64>) outs(%3 : tensor<6x1xf32>) {
  ^bb0(%in: f64, %out: f32):
    %36 = arith.truncf %in : f64 to f32
    %37 = arith.addf %out, %36 : f32
    linalg.yield %37 : f32
  } -> tensor<6x1xf32>
  %5 = tensor.empty() : tensor<6x1xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<6x1xf32>) outs(%5 : tensor<6x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 3.000000e+00 : f32
    %36 = arith.divf %in, %cst_8 : f32
    linalg.yield %36 : f32
  } -> tensor<6x1xf32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %7 = tensor.empty() : tensor<6x1xf32>
  %8 = linalg.fill ins(%cst_0 : f32) outs(%7 : tensor<6x1xf32>) -> tensor<6x1xf32>
  %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %6 : tensor<6x1x3xf64>, tensor<6x1xf32>) outs(%8 : tensor<6x1xf32>) {
  ^bb0(%in: f64, %in_8: f32, %out: f32):
    %36 = arith.truncf %in : f64 to f32
    %37 = arith.subf %36, %in_8 : f32
    %38 = arith.mulf %37, %37 : f32
    %39 = math.copysign %38, %38 : f32
    %40 = arith.addf %out, %39 : f32
    linalg.yield %40 : f32
  } -> tensor<6x1xf32>
  %10 = tensor.empty() : tensor<6x1xf32>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<6x1xf32>) outs(%10 : tensor<6x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 3.000000e+00 : f32
    %36 = arith.divf %in, %cst_8 : f32
    linalg.yield %36 : f32
  } -> tensor<6x1xf32>
  %12 = tensor.empty() : tensor<6x1xf32>
  %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<6x1xf32>) outs(%12 : tensor<6x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 9.99999974E-6 : f32
    %36 = arith.addf %in, %cst_8 : f32
    %cst_9 = arith.constant 1.000000e+00 : f32
    %37 = math.sqrt %36 : f32
    %38 = arith.divf %cst_9, %37 : f32
    linalg.yield %38 : f32
  } -> tensor<6x1xf32>
  %collapsed = tensor.collapse_shape %arg1 [[0, 1], [2]] : tensor<1x1x3xf64> into tensor<1x3xf64>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %14 = tensor.empty() : tensor<3xf32>
  %15 = linalg.fill ins(%cst_1 : f32) outs(%14 : tensor<3xf32>) -> tensor<3xf32>
  %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%1, %arg0, %collapsed, %13, %6 : tensor<6x1x3xf32>, tensor<6x1x3xf64>, tensor<1x3xf64>, tensor<6x1xf32>, tensor<6x1xf32>) outs(%15 : tensor<3xf32>) {
  ^bb0(%in: f32, %in_8: f64, %in_9: f64, %in_10: f32, %in_11: f32, %out: f32):
    %36 = arith.truncf %in_8 : f64 to f32
    %37 = arith.truncf %in_9 : f64 to f32
    %38 = arith.mulf %in, %37 : f32
    %39 = arith.subf %36, %in_11 : f32
    %40 = arith.mulf %39, %in_10 : f32
    %41 = arith.mulf %in, %40 : f32
    %42 = arith.addf %out, %41 : f32
    linalg.yield %42 : f32
  } -> tensor<3xf32>
  %cst_2 = arith.constant 0.000000e+00 : f32
  %17 = tensor.empty() : tensor<3xf32>
  %18 = linalg.fill ins(%cst_2 : f32) outs(%17 : tensor<3xf32>) -> tensor<3xf32>
  %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%1 : tensor<6x1x3xf32>) outs(%18 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %36 = arith.addf %out, %in : f32
    linalg.yield %36 : f32
  } -> tensor<3xf32>
  %collapsed_3 = tensor.collapse_shape %arg1 [[0, 1], [2]] : tensor<1x1x3xf64> into tensor<1x3xf64>
  %cst_4 = arith.constant 0.000000e+00 : f32
  %20 = tensor.empty() : tensor<6x1xf32>
  %21 = linalg.fill ins(%cst_4 : f32) outs(%20 : tensor<6x1xf32>) -> tensor<6x1xf32>
  %22 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1, %arg0, %collapsed_3, %13, %6 : tensor<6x1x3xf32>, tensor<6x1x3xf64>, tensor<1x3xf64>, tensor<6x1xf32>, tensor<6x1xf32>) outs(%21 : tensor<6x1xf32>) {
  ^bb0(%in: f32, %in_8: f64, %in_9: f64, %in_10: f32, %in_11: f32, %out: f32):
    %36 = arith.truncf %in_8 : f64 to f32
    %37 = arith.truncf %in_9 : f64 to f32
    %38 = arith.mulf %in, %37 : f32
    %39 = arith.subf %36, %in_11 : f32
    %40 = arith.mulf %39, %in_10 : f32
    %41 = arith.mulf %38, %40 : f32
    %42 = math.copysign %41, %41 : f32
    %43 = arith.addf %out, %42 : f32
    linalg.yield %43 : f32
  } -> tensor<6x1xf32>
  %23 = tensor.empty() : tensor<6x1xf32>
  %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%22 : tensor<6x1xf32>) outs(%23 : tensor<6x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 3.000000e+00 : f32
    %36 = arith.divf %in, %cst_8 : f32
    linalg.yield %36 : f32
  } -> tensor<6x1xf32>
  %collapsed_5 = tensor.collapse_shape %arg1 [[0, 1], [2]] : tensor<1x1x3xf64> into tensor<1x3xf64>
  %cst_6 = arith.constant 0.000000e+00 : f32
  %25 = tensor.empty() : tensor<6x1xf32>
  %26 = linalg.fill ins(%cst_6 : f32) outs(%25 : tensor<6x1xf32>) -> tensor<6x1xf32>
  %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1, %collapsed_5 : tensor<6x1x3xf32>, tensor<1x3xf64>) outs(%26 : tensor<6x1xf32>) {
  ^bb0(%in: f32, %in_8: f64, %out: f32):
    %36 = arith.truncf %in_8 : f64 to f32
    %37 = arith.mulf %in, %36 : f32
    %38 = arith.addf %out, %37 : f32
    linalg.yield %38 : f32
  } -> tensor<6x1xf32>
  %28 = tensor.empty() : tensor<6x1xf32>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%27 : tensor<6x1xf32>) outs(%28 : tensor<6x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 3.000000e+00 : f32
    %36 = arith.divf %in, %cst_8 : f32
    linalg.yield %36 : f32
  } -> tensor<6x1xf32>
  %collapsed_7 = tensor.collapse_shape %arg1 [[0, 1], [2]] : tensor<1x1x3xf64> into tensor<1x3xf64>
  %30 = tensor.empty() : tensor<6x1x3xf32>
  %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %arg0, %collapsed_7, %13, %6, %24, %29 : tensor<6x1x3xf32>, tensor<6x1x3xf64>, tensor<1x3xf64>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1xf32>) outs(%30 : tensor<6x1x3xf32>) {
  ^bb0(%in: f32, %in_8: f64, %in_9: f64, %in_10: f32, %in_11: f32, %in_12: f32, %in_13: f32, %out: f32):
    %36 = arith.truncf %in_8 : f64 to f32
    %37 = arith.truncf %in_9 : f64 to f32
    %38 = arith.mulf %in, %37 : f32
    %39 = arith.subf %36, %in_11 : f32
    %40 = arith.mulf %39, %in_10 : f32
    %41 = arith.subf %38, %in_13 : f32
    %42 = arith.mulf %40, %in_12 : f32
    %43 = arith.subf %41, %42 : f32
    %44 = arith.mulf %in_10, %43 : f32
    linalg.yield %44 : f32
  } -> tensor<6x1x3xf32>
  %32 = tensor.empty() : tensor<1x1x3xf32>
  %33 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<3xf32>) outs(%32 : tensor<1x1x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x3xf32>
  %34 = tensor.empty() : tensor<1x1x3xf32>
  %35 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19 : tensor<3xf32>) outs(%34 : tensor<1x1x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x3xf32>
  return %31, %33, %35 : tensor<6x1x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<6x1x3xf64>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x1x3xf64>
    %r:3 = func.call @compute(%i0, %i1) : (tensor<6x1x3xf64>, tensor<1x1x3xf64>) -> (tensor<6x1x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<6x1x3xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<6x1x3xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x1x3xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x1x3xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x1x3xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x1x3xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<6x1x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>) => %signal : !hal.fence
    util.return
  }
}
