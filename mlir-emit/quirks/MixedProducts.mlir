// A sum of products of floats of two types, neither of which is the compute type, becomes an invalid contraction.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<5x1x3xf16>, %arg1: tensor<5x1x3xf16>, %arg2: tensor<1x1x3xbf16>) -> (tensor<5x1x3xf16>, tensor<1x1x3xf16>, tensor<1x1x3xf16>) {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<5x1xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<5x1xf32>) -> tensor<5x1xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg1 : tensor<5x1x3xf16>) outs(%1 : tensor<5x1xf32>) {
  ^bb0(%in: f16, %out: f32):
    %40 = arith.extf %in : f16 to f32
    %41 = arith.addf %out, %40 : f32
    linalg.yield %41 : f32
  } -> tensor<5x1xf32>
  %3 = tensor.empty() : tensor<5x1xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<5x1xf32>) outs(%3 : tensor<5x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 3.000000e+00 : f32
    %40 = arith.divf %in, %cst_8 : f32
    linalg.yield %40 : f32
  } -> tensor<5x1xf32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %5 = tensor.empty() : tensor<5x1xf32>
  %6 = linalg.fill ins(%cst_0 : f32) outs(%5 : tensor<5x1xf32>) -> tensor<5x1xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg1, %4 : tensor<5x1x3xf16>, tensor<5x1xf32>) outs(%6 : tensor<5x1xf32>) {
  ^bb0(%in: f16, %in_8: f32, %out: f32):
    %40 = arith.extf %in : f16 to f32
    %41 = arith.subf %40, %in_8 : f32
    %42 = arith.mulf %41, %41 : f32
    %43 = math.copysign %42, %42 : f32
    %44 = arith.addf %out, %43 : f32
    linalg.yield %44 : f32
  } -> tensor<5x1xf32>
  %8 = tensor.empty() : tensor<5x1xf32>
  %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<5x1xf32>) outs(%8 : tensor<5x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 3.000000e+00 : f32
    %40 = arith.divf %in, %cst_8 : f32
    linalg.yield %40 : f32
  } -> tensor<5x1xf32>
  %10 = tensor.empty() : tensor<5x1xf32>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<5x1xf32>) outs(%10 : tensor<5x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 9.99999974E-6 : f32
    %40 = arith.addf %in, %cst_8 : f32
    %cst_9 = arith.constant 1.000000e+00 : f32
    %41 = math.sqrt %40 : f32
    %42 = arith.divf %cst_9, %41 : f32
    linalg.yield %42 : f32
  } -> tensor<5x1xf32>
  %collapsed = tensor.collapse_shape %arg2 [[0, 1], [2]] : tensor<1x1x3xbf16> into tensor<1x3xbf16>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %12 = tensor.empty() : tensor<3xf32>
  %13 = linalg.fill ins(%cst_1 : f32) outs(%12 : tensor<3xf32>) -> tensor<3xf32>
  %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%arg0, %arg1, %collapsed, %11, %4 : tensor<5x1x3xf16>, tensor<5x1x3xf16>, tensor<1x3xbf16>, tensor<5x1xf32>, tensor<5x1xf32>) outs(%13 : tensor<3xf32>) {
  ^bb0(%in: f16, %in_8: f16, %in_9: bf16, %in_10: f32, %in_11: f32, %out: f32):
    %40 = arith.extf %in : f16 to f32
    %41 = arith.extf %in_8 : f16 to f32
    %42 = arith.extf %in_9 : bf16 to f32
    %43 = arith.mulf %40, %42 : f32
    %44 = arith.subf %41, %in_11 : f32
    %45 = arith.mulf %44, %in_10 : f32
    %46 = arith.mulf %40, %45 : f32
    %47 = arith.addf %out, %46 : f32
    linalg.yield %47 : f32
  } -> tensor<3xf32>
  %cst_2 = arith.constant 0.000000e+00 : f32
  %15 = tensor.empty() : tensor<3xf32>
  %16 = linalg.fill ins(%cst_2 : f32) outs(%15 : tensor<3xf32>) -> tensor<3xf32>
  %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%arg0 : tensor<5x1x3xf16>) outs(%16 : tensor<3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %40 = arith.extf %in : f16 to f32
    %41 = arith.addf %out, %40 : f32
    linalg.yield %41 : f32
  } -> tensor<3xf32>
  %collapsed_3 = tensor.collapse_shape %arg2 [[0, 1], [2]] : tensor<1x1x3xbf16> into tensor<1x3xbf16>
  %cst_4 = arith.constant 0.000000e+00 : f32
  %18 = tensor.empty() : tensor<5x1xf32>
  %19 = linalg.fill ins(%cst_4 : f32) outs(%18 : tensor<5x1xf32>) -> tensor<5x1xf32>
  %20 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1, %collapsed_3, %11, %4 : tensor<5x1x3xf16>, tensor<5x1x3xf16>, tensor<1x3xbf16>, tensor<5x1xf32>, tensor<5x1xf32>) outs(%19 : tensor<5x1xf32>) {
  ^bb0(%in: f16, %in_8: f16, %in_9: bf16, %in_10: f32, %in_11: f32, %out: f32):
    %40 = arith.extf %in : f16 to f32
    %41 = arith.extf %in_8 : f16 to f32
    %42 = arith.extf %in_9 : bf16 to f32
    %43 = arith.mulf %40, %42 : f32
    %44 = arith.subf %41, %in_11 : f32
    %45 = arith.mulf %44, %in_10 : f32
    %46 = arith.mulf %43, %45 : f32
    %47 = math.copysign %46, %46 : f32
    %48 = arith.addf %out, %47 : f32
    linalg.yield %48 : f32
  } -> tensor<5x1xf32>
  %21 = tensor.empty() : tensor<5x1xf32>
  %22 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%20 : tensor<5x1xf32>) outs(%21 : tensor<5x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 3.000000e+00 : f32
    %40 = arith.divf %in, %cst_8 : f32
    linalg.yield %40 : f32
  } -> tensor<5x1xf32>
  %collapsed_5 = tensor.collapse_shape %arg2 [[0, 1], [2]] : tensor<1x1x3xbf16> into tensor<1x3xbf16>
  %cst_6 = arith.constant 0.000000e+00 : f32
  %23 = tensor.empty() : tensor<5x1xf32>
  %24 = linalg.fill ins(%cst_6 : f32) outs(%23 : tensor<5x1xf32>) -> tensor<5x1xf32>
  %25 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %collapsed_5 : tensor<5x1x3xf16>, tensor<1x3xbf16>) outs(%24 : tensor<5x1xf32>) {
  ^bb0(%in: f16, %in_8: bf16, %out: f32):
    %40 = arith.extf %in : f16 to f32
    %41 = arith.extf %in_8 : bf16 to f32
    %42 = arith.mulf %40, %41 : f32
    %43 = arith.addf %out, %42 : f32
    linalg.yield %43 : f32
  } -> tensor<5x1xf32>
  %26 = tensor.empty() : tensor<5x1xf32>
  %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%25 : tensor<5x1xf32>) outs(%26 : tensor<5x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_8 = arith.constant 3.000000e+00 : f32
    %40 = arith.divf %in, %cst_8 : f32
    linalg.yield %40 : f32
  } -> tensor<5x1xf32>
  %collapsed_7 = tensor.collapse_shape %arg2 [[0, 1], [2]] : tensor<1x1x3xbf16> into tensor<1x3xbf16>
  %28 = tensor.empty() : tensor<5x1x3xf32>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg1, %collapsed_7, %11, %4, %22, %27 : tensor<5x1x3xf16>, tensor<5x1x3xf16>, tensor<1x3xbf16>, tensor<5x1xf32>, tensor<5x1xf32>, tensor<5x1xf32>, tensor<5x1xf32>) outs(%28 : tensor<5x1x3xf32>) {
  ^bb0(%in: f16, %in_8: f16, %in_9: bf16, %in_10: f32, %in_11: f32, %in_12: f32, %in_13: f32, %out: f32):
    %40 = arith.extf %in : f16 to f32
    %41 = arith.extf %in_8 : f16 to f32
    %42 = arith.extf %in_9 : bf16 to f32
    %43 = arith.mulf %40, %42 : f32
    %44 = arith.subf %41, %in_11 : f32
    %45 = arith.mulf %44, %in_10 : f32
    %46 = arith.subf %43, %in_13 : f32
    %47 = arith.mulf %45, %in_12 : f32
    %48 = arith.subf %46, %47 : f32
    %49 = arith.mulf %in_10, %48 : f32
    linalg.yield %49 : f32
  } -> tensor<5x1x3xf32>
  %30 = tensor.empty() : tensor<1x1x3xf32>
  %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14 : tensor<3xf32>) outs(%30 : tensor<1x1x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x3xf32>
  %32 = tensor.empty() : tensor<1x1x3xf32>
  %33 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<3xf32>) outs(%32 : tensor<1x1x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x3xf32>
  %34 = tensor.empty() : tensor<5x1x3xf16>
  %35 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%29 : tensor<5x1x3xf32>) outs(%34 : tensor<5x1x3xf16>) {
  ^bb0(%in: f32, %out: f16):
    %40 = arith.truncf %in : f32 to f16
    linalg.yield %40 : f16
  } -> tensor<5x1x3xf16>
  %36 = tensor.empty() : tensor<1x1x3xf16>
  %37 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%31 : tensor<1x1x3xf32>) outs(%36 : tensor<1x1x3xf16>) {
  ^bb0(%in: f32, %out: f16):
    %40 = arith.truncf %in : f32 to f16
    linalg.yield %40 : f16
  } -> tensor<1x1x3xf16>
  %38 = tensor.empty() : tensor<1x1x3xf16>
  %39 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%33 : tensor<1x1x3xf32>) outs(%38 : tensor<1x1x3xf16>) {
  ^bb0(%in: f32, %out: f16):
    %40 = arith.truncf %in : f32 to f16
    linalg.yield %40 : f16
  } -> tensor<1x1x3xf16>
  return %35, %37, %39 : tensor<5x1x3xf16>, tensor<1x1x3xf16>, tensor<1x1x3xf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<5x1x3xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<5x1x3xf16>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x1x3xbf16>
    %r:3 = func.call @compute(%i0, %i1, %i2) : (tensor<5x1x3xf16>, tensor<5x1x3xf16>, tensor<1x1x3xbf16>) -> (tensor<5x1x3xf16>, tensor<1x1x3xf16>, tensor<1x1x3xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<5x1x3xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<5x1x3xf16> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x1x3xf16> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x1x3xf16> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x1x3xf16> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x1x3xf16> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<5x1x3xf16>, tensor<1x1x3xf16>, tensor<1x1x3xf16>) => %signal : !hal.fence
    util.return
  }
}
