// The only entry of a list of one tile is read on the host while the graph runs.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<1x1x3xf16>, %arg1: tensor<4x3x5xf16>, %arg2: tensor<4x1x1xi32>) -> tensor<1x1x5xf16> {
  %collapsed = tensor.collapse_shape %arg2 [[0, 1, 2]] : tensor<4x1x1xi32> into tensor<4xi32>
  %c0_i32 = arith.constant 0 : i32
  %0 = tensor.empty() : tensor<4xi32>
  %1 = linalg.fill ins(%c0_i32 : i32) outs(%0 : tensor<4xi32>) -> tensor<4xi32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%collapsed : tensor<4xi32>) outs(%1 : tensor<4xi32>) {
  ^bb0(%in: i32, %out: i32):
    %30 = linalg.index 0 : index
    %31 = linalg.index 1 : index
    %c1_i32 = arith.constant 1 : i32
    %32 = arith.minsi %in, %c1_i32 : i32
    %33 = arith.cmpi ule, %31, %30 : index
    %c0_i32_3 = arith.constant 0 : i32
    %34 = arith.select %33, %32, %c0_i32_3 : i32
    %35 = arith.maxsi %out, %34 : i32
    linalg.yield %35 : i32
  } -> tensor<4xi32>
  %c0_i32_0 = arith.constant 0 : i32
  %3 = tensor.empty() : tensor<4xi32>
  %4 = linalg.fill ins(%c0_i32_0 : i32) outs(%3 : tensor<4xi32>) -> tensor<4xi32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%2 : tensor<4xi32>) outs(%4 : tensor<4xi32>) {
  ^bb0(%in: i32, %out: i32):
    %30 = linalg.index 0 : index
    %31 = linalg.index 1 : index
    %c1 = arith.constant 1 : index
    %32 = arith.addi %31, %c1 : index
    %c3 = arith.constant 3 : index
    %33 = arith.minui %32, %c3 : index
    %extracted = tensor.extract %2[%33] : tensor<4xi32>
    %34 = arith.subi %extracted, %in : i32
    %c15_i32 = arith.constant 15 : i32
    %35 = arith.addi %34, %c15_i32 : i32
    %c16_i32 = arith.constant 16 : i32
    %36 = arith.divui %35, %c16_i32 : i32
    %37 = arith.cmpi ule, %32, %30 : index
    %c0_i32_3 = arith.constant 0 : i32
    %38 = arith.select %37, %36, %c0_i32_3 : i32
    %39 = arith.addi %out, %38 : i32
    linalg.yield %39 : i32
  } -> tensor<4xi32>
  %c0_i32_1 = arith.constant 0 : i32
  %6 = tensor.empty() : tensor<1xi32>
  %7 = linalg.fill ins(%c0_i32_1 : i32) outs(%6 : tensor<1xi32>) -> tensor<1xi32>
  %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%5 : tensor<4xi32>) outs(%7 : tensor<1xi32>) {
  ^bb0(%in: i32, %out: i32):
    %30 = linalg.index 0 : index
    %31 = linalg.index 1 : index
    %32 = arith.index_cast %30 : index to i32
    %33 = arith.cmpi sle, %in, %32 : i32
    %34 = arith.extui %33 : i1 to i32
    %35 = arith.addi %out, %34 : i32
    linalg.yield %35 : i32
  } -> tensor<1xi32>
  %9 = tensor.empty() : tensor<1x16xi32>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%9 : tensor<1x16xi32>) {
  ^bb0(%out: i32):
    %30 = linalg.index 0 : index
    %31 = linalg.index 1 : index
    %extracted = tensor.extract %8[%30] : tensor<1xi32>
    %c1_i32 = arith.constant 1 : i32
    %32 = arith.maxsi %extracted, %c1_i32 : i32
    %c1_i32_3 = arith.constant 1 : i32
    %33 = arith.subi %32, %c1_i32_3 : i32
    %34 = arith.index_cast %33 : i32 to index
    %extracted_4 = tensor.extract %5[%34] : tensor<4xi32>
    %35 = arith.index_cast %30 : index to i32
    %36 = arith.subi %35, %extracted_4 : i32
    %c16_i32 = arith.constant 16 : i32
    %37 = arith.muli %36, %c16_i32 : i32
    %38 = arith.index_cast %31 : index to i32
    %39 = arith.addi %37, %38 : i32
    %extracted_5 = tensor.extract %2[%34] : tensor<4xi32>
    %40 = arith.addi %extracted_5, %39 : i32
    %c1_i32_6 = arith.constant 1 : i32
    %c3 = arith.constant 3 : index
    %41 = arith.cmpi ule, %c3, %34 : index
    %c1 = arith.constant 1 : index
    %42 = arith.addi %34, %c1 : index
    %43 = arith.minui %42, %c3 : index
    %extracted_7 = tensor.extract %2[%43] : tensor<4xi32>
    %44 = arith.select %41, %c1_i32_6, %extracted_7 : i32
    %45 = arith.cmpi slt, %40, %44 : i32
    %c-1_i32 = arith.constant -1 : i32
    %46 = arith.select %45, %40, %c-1_i32 : i32
    linalg.yield %46 : i32
  } -> tensor<1x16xi32>
  %11 = tensor.empty() : tensor<1x16x3xf16>
  %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<1x16xi32>) outs(%11 : tensor<1x16x3xf16>) {
  ^bb0(%in: i32, %out: f16):
    %c0_i32_3 = arith.constant 0 : i32
    %30 = arith.cmpi sge, %in, %c0_i32_3 : i32
    %c0_i32_4 = arith.constant 0 : i32
    %31 = arith.select %30, %in, %c0_i32_4 : i32
    %32 = arith.index_cast %31 : i32 to index
    %c0 = arith.constant 0 : index
    %33 = linalg.index 2 : index
    %extracted = tensor.extract %arg0[%c0, %32, %33] : tensor<1x1x3xf16>
    %cst_5 = arith.constant 0.000000e+00 : f16
    %34 = arith.select %30, %extracted, %cst_5 : f16
    linalg.yield %34 : f16
  } -> tensor<1x16x3xf16>
  %13 = "iree_tensor_ext.compute_barrier.start"(%12) : (tensor<1x16x3xf16>) -> tensor<1x16x3xf16>
  %14 = tensor.empty() : tensor<1xi32>
  %15 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%14 : tensor<1xi32>) {
  ^bb0(%out: i32):
    %30 = linalg.index 0 : index
    %extracted = tensor.extract %8[%30] : tensor<1xi32>
    %c1_i32 = arith.constant 1 : i32
    %31 = arith.maxsi %extracted, %c1_i32 : i32
    %c1_i32_3 = arith.constant 1 : i32
    %32 = arith.subi %31, %c1_i32_3 : i32
    %33 = arith.index_cast %32 : i32 to index
    %c4 = arith.constant 4 : index
    %34 = arith.remui %33, %c4 : index
    %35 = arith.index_cast %34 : index to i32
    linalg.yield %35 : i32
  } -> tensor<1xi32>
  %16 = tensor.empty() : tensor<1x3x5xf16>
  %17 = "iree_linalg_ext.gather"(%arg1, %15, %16) {dimension_map = array<i64: 0>} : (tensor<4x3x5xf16>, tensor<1xi32>, tensor<1x3x5xf16>) -> tensor<1x3x5xf16>
  %cst = arith.constant 0.000000e+00 : f32
  %18 = tensor.empty() : tensor<1x16x5xf32>
  %19 = linalg.fill ins(%cst : f32) outs(%18 : tensor<1x16x5xf32>) -> tensor<1x16x5xf32>
  %20 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%13, %17 : tensor<1x16x3xf16>, tensor<1x3x5xf16>) outs(%19 : tensor<1x16x5xf32>) {
  ^bb0(%in: f16, %in_3: f16, %out: f32):
    %30 = arith.extf %in : f16 to f32
    %31 = arith.extf %in_3 : f16 to f32
    %32 = arith.mulf %30, %31 : f32
    %33 = arith.addf %out, %32 : f32
    linalg.yield %33 : f32
  } -> tensor<1x16x5xf32>
  %c0_i32_2 = arith.constant 0 : i32
  %21 = tensor.empty() : tensor<1xi32>
  %22 = linalg.fill ins(%c0_i32_2 : i32) outs(%21 : tensor<1xi32>) -> tensor<1xi32>
  %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%2 : tensor<4xi32>) outs(%22 : tensor<1xi32>) {
  ^bb0(%in: i32, %out: i32):
    %30 = linalg.index 0 : index
    %31 = linalg.index 1 : index
    %32 = arith.index_cast %30 : index to i32
    %33 = arith.cmpi sle, %in, %32 : i32
    %34 = arith.extui %33 : i1 to i32
    %35 = arith.addi %out, %34 : i32
    linalg.yield %35 : i32
  } -> tensor<1xi32>
  %24 = tensor.empty() : tensor<1xi32>
  %25 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%24 : tensor<1xi32>) {
  ^bb0(%out: i32):
    %30 = linalg.index 0 : index
    %c0_i32_3 = arith.constant 0 : i32
    %31 = arith.index_cast %30 : index to i32
    %32 = arith.maxsi %31, %c0_i32_3 : i32
    %33 = arith.index_cast %32 : i32 to index
    %extracted = tensor.extract %23[%33] : tensor<1xi32>
    %c1_i32 = arith.constant 1 : i32
    %34 = arith.subi %extracted, %c1_i32 : i32
    %35 = arith.minsi %31, %34 : i32
    %36 = arith.cmpi slt, %35, %c0_i32_3 : i32
    %37 = arith.maxsi %34, %c0_i32_3 : i32
    %38 = arith.index_cast %37 : i32 to index
    %extracted_4 = tensor.extract %2[%38] : tensor<4xi32>
    %39 = arith.subi %32, %extracted_4 : i32
    %extracted_5 = tensor.extract %5[%38] : tensor<4xi32>
    %c16_i32 = arith.constant 16 : i32
    %40 = arith.muli %extracted_5, %c16_i32 : i32
    %c-1_i32 = arith.constant -1 : i32
    %41 = arith.addi %40, %39 : i32
    %42 = arith.select %36, %c-1_i32, %41 : i32
    linalg.yield %42 : i32
  } -> tensor<1xi32>
  %26 = tensor.empty() : tensor<1x1x5xf32>
  %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25 : tensor<1xi32>) outs(%26 : tensor<1x1x5xf32>) {
  ^bb0(%in: i32, %out: f32):
    %c0_i32_3 = arith.constant 0 : i32
    %30 = arith.cmpi sge, %in, %c0_i32_3 : i32
    %c0_i32_4 = arith.constant 0 : i32
    %31 = arith.select %30, %in, %c0_i32_4 : i32
    %32 = arith.index_cast %31 : i32 to index
    %c16 = arith.constant 16 : index
    %33 = arith.divui %32, %c16 : index
    %34 = arith.remui %32, %c16 : index
    %35 = linalg.index 2 : index
    %extracted = tensor.extract %20[%33, %34, %35] : tensor<1x16x5xf32>
    %cst_5 = arith.constant 0.000000e+00 : f32
    %36 = arith.select %30, %extracted, %cst_5 : f32
    linalg.yield %36 : f32
  } -> tensor<1x1x5xf32>
  %28 = tensor.empty() : tensor<1x1x5xf16>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%27 : tensor<1x1x5xf32>) outs(%28 : tensor<1x1x5xf16>) {
  ^bb0(%in: f32, %out: f16):
    %30 = arith.truncf %in : f32 to f16
    linalg.yield %30 : f16
  } -> tensor<1x1x5xf16>
  return %29 : tensor<1x1x5xf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x1x3xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<4x3x5xf16>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<4x1x1xi32>
    %r = func.call @compute(%i0, %i1, %i2) : (tensor<1x1x3xf16>, tensor<4x3x5xf16>, tensor<4x1x1xi32>) -> (tensor<1x1x5xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x1x5xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x1x5xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x1x5xf16>) => %signal : !hal.fence
    util.return
  }
}
