// The result of a reduction is packed for the epilogue of a matmul as one column of all batches; the rows of later batches are not where they are read.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host --iree-opt-data-tiling
module @rotini {
func.func private @compute(%arg0: tensor<1x2x9x8xf32>, %arg1: tensor<1x2x13x8xf32>, %arg2: tensor<1x2x13x8xf32>, %arg3: tensor<1x2x9x8xf32>, %arg4: tensor<1x2x9x8xf32>, %arg5: tensor<1x2x9x1xf32>) -> (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<1x2x9x13xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x2x9x13xf32>) -> tensor<1x2x9x13xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>) outs(%1 : tensor<1x2x9x13xf32>) {
  ^bb0(%in: f32, %in_5: f32, %out: f32):
    %32 = arith.mulf %in, %in_5 : f32
    %33 = arith.addf %out, %32 : f32
    linalg.yield %33 : f32
  } -> tensor<1x2x9x13xf32>
  %3 = tensor.empty() : tensor<1x2x9x13xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x2x9x13xf32>) outs(%3 : tensor<1x2x9x13xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_5 = arith.constant 2.500000e-01 : f32
    %32 = arith.mulf %in, %cst_5 : f32
    %cst_6 = arith.constant 0xFF800000 : f32
    %33 = linalg.index 2 : index
    %34 = arith.index_cast %33 : index to i64
    %35 = arith.sitofp %34 : i64 to f32
    %36 = linalg.index 3 : index
    %37 = arith.index_cast %36 : index to i64
    %38 = arith.sitofp %37 : i64 to f32
    %39 = arith.subf %38, %35 : f32
    %cst_7 = arith.constant 0.000000e+00 : f32
    %40 = arith.subf %39, %cst_7 : f32
    linalg.yield %32 : f32
  } -> tensor<1x2x9x13xf32>
  %collapsed = tensor.collapse_shape %arg5 [[0], [1], [2, 3]] : tensor<1x2x9x1xf32> into tensor<1x2x9xf32>
  %5 = tensor.empty() : tensor<1x2x9x13xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %collapsed : tensor<1x2x9x13xf32>, tensor<1x2x9xf32>) outs(%5 : tensor<1x2x9x13xf32>) {
  ^bb0(%in: f32, %in_5: f32, %out: f32):
    %32 = arith.subf %in, %in_5 : f32
    %33 = math.exp %32 : f32
    %cst_6 = arith.constant 0xFF800000 : f32
    %34 = arith.cmpf oeq, %in, %cst_6 : f32
    %cst_7 = arith.constant 0.000000e+00 : f32
    %35 = arith.select %34, %cst_7, %33 : f32
    linalg.yield %35 : f32
  } -> tensor<1x2x9x13xf32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %7 = tensor.empty() : tensor<1x2x9xf32>
  %8 = linalg.fill ins(%cst_0 : f32) outs(%7 : tensor<1x2x9xf32>) -> tensor<1x2x9xf32>
  %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg4, %arg3 : tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32>) outs(%8 : tensor<1x2x9xf32>) {
  ^bb0(%in: f32, %in_5: f32, %out: f32):
    %32 = arith.mulf %in, %in_5 : f32
    %33 = arith.addf %out, %32 : f32
    linalg.yield %33 : f32
  } -> tensor<1x2x9xf32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %10 = tensor.empty() : tensor<1x2x9x13xf32>
  %11 = linalg.fill ins(%cst_1 : f32) outs(%10 : tensor<1x2x9x13xf32>) -> tensor<1x2x9x13xf32>
  %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg4, %arg2 : tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>) outs(%11 : tensor<1x2x9x13xf32>) {
  ^bb0(%in: f32, %in_5: f32, %out: f32):
    %32 = arith.mulf %in, %in_5 : f32
    %33 = arith.addf %out, %32 : f32
    linalg.yield %33 : f32
  } -> tensor<1x2x9x13xf32>
  %13 = tensor.empty() : tensor<1x2x9x13xf32>
  %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %12, %9 : tensor<1x2x9x13xf32>, tensor<1x2x9x13xf32>, tensor<1x2x9xf32>) outs(%13 : tensor<1x2x9x13xf32>) {
  ^bb0(%in: f32, %in_5: f32, %in_6: f32, %out: f32):
    %32 = arith.subf %in_5, %in_6 : f32
    %33 = arith.mulf %in, %32 : f32
    linalg.yield %33 : f32
  } -> tensor<1x2x9x13xf32>
  %15 = "iree_tensor_ext.compute_barrier.start"(%14) : (tensor<1x2x9x13xf32>) -> tensor<1x2x9x13xf32>
  %16 = "iree_tensor_ext.compute_barrier.start"(%6) : (tensor<1x2x9x13xf32>) -> tensor<1x2x9x13xf32>
  %cst_2 = arith.constant 0.000000e+00 : f32
  %17 = tensor.empty() : tensor<1x2x9x8xf32>
  %18 = linalg.fill ins(%cst_2 : f32) outs(%17 : tensor<1x2x9x8xf32>) -> tensor<1x2x9x8xf32>
  %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%15, %arg1 : tensor<1x2x9x13xf32>, tensor<1x2x13x8xf32>) outs(%18 : tensor<1x2x9x8xf32>) {
  ^bb0(%in: f32, %in_5: f32, %out: f32):
    %32 = arith.mulf %in, %in_5 : f32
    %33 = arith.addf %out, %32 : f32
    linalg.yield %33 : f32
  } -> tensor<1x2x9x8xf32>
  %20 = tensor.empty() : tensor<1x2x9x8xf32>
  %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<1x2x9x8xf32>) outs(%20 : tensor<1x2x9x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_5 = arith.constant 2.500000e-01 : f32
    %32 = arith.mulf %in, %cst_5 : f32
    linalg.yield %32 : f32
  } -> tensor<1x2x9x8xf32>
  %cst_3 = arith.constant 0.000000e+00 : f32
  %22 = tensor.empty() : tensor<1x2x13x8xf32>
  %23 = linalg.fill ins(%cst_3 : f32) outs(%22 : tensor<1x2x13x8xf32>) -> tensor<1x2x13x8xf32>
  %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%15, %arg0 : tensor<1x2x9x13xf32>, tensor<1x2x9x8xf32>) outs(%23 : tensor<1x2x13x8xf32>) {
  ^bb0(%in: f32, %in_5: f32, %out: f32):
    %32 = arith.mulf %in, %in_5 : f32
    %33 = arith.addf %out, %32 : f32
    linalg.yield %33 : f32
  } -> tensor<1x2x13x8xf32>
  %25 = tensor.empty() : tensor<1x2x13x8xf32>
  %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<1x2x13x8xf32>) outs(%25 : tensor<1x2x13x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_5 = arith.constant 2.500000e-01 : f32
    %32 = arith.mulf %in, %cst_5 : f32
    linalg.yield %32 : f32
  } -> tensor<1x2x13x8xf32>
  %cst_4 = arith.constant 0.000000e+00 : f32
  %27 = tensor.empty() : tensor<1x2x13x8xf32>
  %28 = linalg.fill ins(%cst_4 : f32) outs(%27 : tensor<1x2x13x8xf32>) -> tensor<1x2x13x8xf32>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%16, %arg4 : tensor<1x2x9x13xf32>, tensor<1x2x9x8xf32>) outs(%28 : tensor<1x2x13x8xf32>) {
  ^bb0(%in: f32, %in_5: f32, %out: f32):
    %32 = arith.mulf %in, %in_5 : f32
    %33 = arith.addf %out, %32 : f32
    linalg.yield %33 : f32
  } -> tensor<1x2x13x8xf32>
  %30 = tensor.empty() : tensor<1x2x13x8xf32>
  %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29 : tensor<1x2x13x8xf32>) outs(%30 : tensor<1x2x13x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x2x13x8xf32>
  return %21, %26, %31 : tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %in3: !hal.buffer_view, %in4: !hal.buffer_view, %in5: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x2x9x8xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x2x13x8xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x2x13x8xf32>
    %i3 = hal.tensor.import wait(%wait) => %in3 : !hal.buffer_view -> tensor<1x2x9x8xf32>
    %i4 = hal.tensor.import wait(%wait) => %in4 : !hal.buffer_view -> tensor<1x2x9x8xf32>
    %i5 = hal.tensor.import wait(%wait) => %in5 : !hal.buffer_view -> tensor<1x2x9x1xf32>
    %r:3 = func.call @compute(%i0, %i1, %i2, %i3, %i4, %i5) : (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32>, tensor<1x2x9x1xf32>) -> (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<1x2x9x8xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x2x9x8xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x2x13x8xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x2x13x8xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x2x13x8xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x2x13x8xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) => %signal : !hal.fence
    util.return
  }
}
