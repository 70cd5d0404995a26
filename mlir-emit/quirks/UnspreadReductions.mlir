// A reduction whose innermost loop is no whole number of subgroups is one thread's work; several of them in one dispatch are unrolled until the compiler has no end: layernorm of 4 x 300.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<4x1000xf16>, %arg1: tensor<1x1000xf32>, %arg2: tensor<1x1000xf32>) -> (tensor<4x1000xf16>, tensor<4x1xf32>, tensor<4x1xf32>) {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x1000xf16>) outs(%1 : tensor<4xf32>) {
  ^bb0(%in: f16, %out: f32):
    %20 = arith.extf %in : f16 to f32
    %21 = arith.addf %out, %20 : f32
    linalg.yield %21 : f32
  } -> tensor<4xf32>
  %3 = tensor.empty() : tensor<4xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%2 : tensor<4xf32>) outs(%3 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_2 = arith.constant 1.000000e+03 : f32
    %20 = arith.divf %in, %cst_2 : f32
    linalg.yield %20 : f32
  } -> tensor<4xf32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %5 = tensor.empty() : tensor<4xf32>
  %6 = linalg.fill ins(%cst_0 : f32) outs(%5 : tensor<4xf32>) -> tensor<4xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%arg0, %4 : tensor<4x1000xf16>, tensor<4xf32>) outs(%6 : tensor<4xf32>) {
  ^bb0(%in: f16, %in_2: f32, %out: f32):
    %20 = arith.extf %in : f16 to f32
    %21 = arith.subf %20, %in_2 : f32
    %22 = arith.mulf %21, %21 : f32
    %23 = math.copysign %22, %22 : f32
    %24 = arith.addf %out, %23 : f32
    linalg.yield %24 : f32
  } -> tensor<4xf32>
  %8 = tensor.empty() : tensor<4xf32>
  %9 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%7 : tensor<4xf32>) outs(%8 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_2 = arith.constant 1.000000e+03 : f32
    %20 = arith.divf %in, %cst_2 : f32
    linalg.yield %20 : f32
  } -> tensor<4xf32>
  %10 = tensor.empty() : tensor<4xf32>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%9 : tensor<4xf32>) outs(%10 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_2 = arith.constant 9.99999974E-6 : f32
    %20 = arith.addf %in, %cst_2 : f32
    %cst_3 = arith.constant 1.000000e+00 : f32
    %21 = math.sqrt %20 : f32
    %22 = arith.divf %cst_3, %21 : f32
    linalg.yield %22 : f32
  } -> tensor<4xf32>
  %collapsed = tensor.collapse_shape %arg1 [[0, 1]] : tensor<1x1000xf32> into tensor<1000xf32>
  %collapsed_1 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<1x1000xf32> into tensor<1000xf32>
  %12 = tensor.empty() : tensor<4x1000xf32>
  %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0, %11, %collapsed, %collapsed_1, %4 : tensor<4x1000xf16>, tensor<4xf32>, tensor<1000xf32>, tensor<1000xf32>, tensor<4xf32>) outs(%12 : tensor<4x1000xf32>) {
  ^bb0(%in: f16, %in_2: f32, %in_3: f32, %in_4: f32, %in_5: f32, %out: f32):
    %20 = arith.extf %in : f16 to f32
    %21 = arith.subf %20, %in_5 : f32
    %22 = arith.mulf %21, %in_2 : f32
    %23 = arith.mulf %in_3, %22 : f32
    %24 = arith.addf %23, %in_4 : f32
    linalg.yield %24 : f32
  } -> tensor<4x1000xf32>
  %14 = tensor.empty() : tensor<4x1xf32>
  %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<4xf32>) outs(%14 : tensor<4x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x1xf32>
  %16 = tensor.empty() : tensor<4x1xf32>
  %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<4xf32>) outs(%16 : tensor<4x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x1xf32>
  %18 = tensor.empty() : tensor<4x1000xf16>
  %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<4x1000xf32>) outs(%18 : tensor<4x1000xf16>) {
  ^bb0(%in: f32, %out: f16):
    %20 = arith.truncf %in : f32 to f16
    linalg.yield %20 : f16
  } -> tensor<4x1000xf16>
  return %19, %15, %17 : tensor<4x1000xf16>, tensor<4x1xf32>, tensor<4x1xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<4x1000xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x1000xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x1000xf32>
    %r:3 = func.call @compute(%i0, %i1, %i2) : (tensor<4x1000xf16>, tensor<1x1000xf32>, tensor<1x1000xf32>) -> (tensor<4x1000xf16>, tensor<4x1xf32>, tensor<4x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<4x1000xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<4x1000xf16> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<4x1xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<4x1xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<4x1xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<4x1xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<4x1000xf16>, tensor<4x1xf32>, tensor<4x1xf32>) => %signal : !hal.fence
    util.return
  }
}
