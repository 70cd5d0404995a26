// What is added to a sum of products becomes what the sum starts from, if all its products are one step: it is rounded with each of them, and what cancelled exactly does not.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<4x6x2xf32>, %arg1: tensor<4x2x9xf32>) -> tensor<4x6x9xf32> {
  %0 = tensor.empty() : tensor<4x9x2xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<4x2x9xf32>) outs(%0 : tensor<4x9x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x9x2xf32>
  %2 = "iree_tensor_ext.compute_barrier.start"(%1) : (tensor<4x9x2xf32>) -> tensor<4x9x2xf32>
  %cst = arith.constant 0.000000e+00 : f32
  %3 = tensor.empty() : tensor<4x6x9xf32>
  %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<4x6x9xf32>) -> tensor<4x6x9xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %2 : tensor<4x6x2xf32>, tensor<4x9x2xf32>) outs(%4 : tensor<4x6x9xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %10 = arith.mulf %in, %in_0 : f32
    %11 = arith.addf %out, %10 : f32
    linalg.yield %11 : f32
  } -> tensor<4x6x9xf32>
  %6 = tensor.empty() : tensor<4x6x9xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<4x6x9xf32>) outs(%6 : tensor<4x6x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_0 = arith.constant 4.000000e+00 : f32
    %cst_1 = arith.constant 6.400000e+01 : f32
    %10 = math.absf %in : f32
    %11 = arith.cmpf olt, %10, %cst_1 : f32
    %12 = arith.select %11, %10, %cst_1 : f32
    %13 = arith.addf %12, %cst_0 : f32
    %14 = arith.subf %12, %cst_0 : f32
    %15 = arith.divf %14, %13 : f32
    %cst_2 = arith.constant 2.11829847E-5 : f32
    %cst_3 = arith.constant -1.73108231E-6 : f32
    %16 = math.fma %cst_2, %15, %cst_3 : f32
    %cst_4 = arith.constant -2.15573775E-4 : f32
    %17 = math.fma %16, %15, %cst_4 : f32
    %cst_5 = arith.constant 1.3365339E-4 : f32
    %18 = math.fma %17, %15, %cst_5 : f32
    %cst_6 = arith.constant 1.622040e-03 : f32
    %19 = math.fma %18, %15, %cst_6 : f32
    %cst_7 = arith.constant -0.00347995455 : f32
    %20 = math.fma %19, %15, %cst_7 : f32
    %cst_8 = arith.constant -0.00753771699 : f32
    %21 = math.fma %20, %15, %cst_8 : f32
    %cst_9 = arith.constant 0.0603966489 : f32
    %22 = math.fma %21, %15, %cst_9 : f32
    %cst_10 = arith.constant -0.186522156 : f32
    %23 = math.fma %22, %15, %cst_10 : f32
    %cst_11 = arith.constant 0.387137383 : f32
    %24 = math.fma %23, %15, %cst_11 : f32
    %cst_12 = arith.constant -0.607896625 : f32
    %25 = math.fma %24, %15, %cst_12 : f32
    %cst_13 = arith.constant 0.755285144 : f32
    %26 = math.fma %25, %15, %cst_13 : f32
    %27 = arith.divf %26, %13 : f32
    %28 = arith.mulf %in, %in : f32
    %29 = arith.negf %28 : f32
    %30 = math.fma %in, %in, %29 : f32
    %cst_14 = arith.constant -5.000000e-01 : f32
    %31 = arith.mulf %cst_14, %28 : f32
    %32 = math.exp %31 : f32
    %cst_15 = arith.constant 5.000000e-01 : f32
    %33 = arith.mulf %cst_15, %30 : f32
    %34 = arith.mulf %32, %33 : f32
    %35 = arith.subf %32, %34 : f32
    %cst_16 = arith.constant 0.000000e+00 : f32
    %36 = arith.cmpf oeq, %32, %cst_16 : f32
    %37 = arith.select %36, %32, %35 : f32
    %38 = arith.mulf %37, %27 : f32
    %cst_17 = arith.constant 1.000000e+00 : f32
    %39 = arith.subf %cst_17, %38 : f32
    %cst_18 = arith.constant 0.000000e+00 : f32
    %40 = arith.cmpf ogt, %in, %cst_18 : f32
    %41 = arith.select %40, %39, %38 : f32
    %42 = arith.mulf %in, %41 : f32
    linalg.yield %42 : f32
  } -> tensor<4x6x9xf32>
  %8 = tensor.empty() : tensor<4x6x9xf32>
  %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5, %7 : tensor<4x6x9xf32>, tensor<4x6x9xf32>) outs(%8 : tensor<4x6x9xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %10 = arith.addf %in, %in_0 : f32
    linalg.yield %10 : f32
  } -> tensor<4x6x9xf32>
  return %9 : tensor<4x6x9xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<4x6x2xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<4x2x9xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<4x6x2xf32>, tensor<4x2x9xf32>) -> (tensor<4x6x9xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<4x6x9xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<4x6x9xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<4x6x9xf32>) => %signal : !hal.fence
    util.return
  }
}
