// A tensor's only row that is looked up by computed indices is no gather. So it is fused with the sums over several axes that make it, which then cannot be distributed.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<7x7x6xf32>, %arg1: tensor<1x1x7xf32>, %arg2: tensor<1x1x1xf32>, %arg3: tensor<1x1x1xi32>) -> (tensor<7x6x7xf32>, tensor<1x1x7xf32>, tensor<1x7x1xf32>) {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<7x6xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<7x6xf32>) -> tensor<7x6xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<7x7x6xf32>) outs(%1 : tensor<7x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %64 = arith.addf %out, %in : f32
    linalg.yield %64 : f32
  } -> tensor<7x6xf32>
  %3 = tensor.empty() : tensor<7x6xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<7x6xf32>) outs(%3 : tensor<7x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_13 = arith.constant 7.000000e+00 : f32
    %64 = arith.divf %in, %cst_13 : f32
    linalg.yield %64 : f32
  } -> tensor<7x6xf32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %5 = tensor.empty() : tensor<7x6xf32>
  %6 = linalg.fill ins(%cst_0 : f32) outs(%5 : tensor<7x6xf32>) -> tensor<7x6xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %4 : tensor<7x7x6xf32>, tensor<7x6xf32>) outs(%6 : tensor<7x6xf32>) {
  ^bb0(%in: f32, %in_13: f32, %out: f32):
    %64 = arith.subf %in, %in_13 : f32
    %65 = arith.mulf %64, %64 : f32
    %66 = math.copysign %65, %65 : f32
    %67 = arith.addf %out, %66 : f32
    linalg.yield %67 : f32
  } -> tensor<7x6xf32>
  %8 = tensor.empty() : tensor<7x6xf32>
  %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<7x6xf32>) outs(%8 : tensor<7x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_13 = arith.constant 7.000000e+00 : f32
    %64 = arith.divf %in, %cst_13 : f32
    linalg.yield %64 : f32
  } -> tensor<7x6xf32>
  %10 = tensor.empty() : tensor<7x6xf32>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<7x6xf32>) outs(%10 : tensor<7x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_13 = arith.constant 9.99999974E-6 : f32
    %64 = arith.addf %in, %cst_13 : f32
    %cst_14 = arith.constant 1.000000e+00 : f32
    %65 = math.sqrt %64 : f32
    %66 = arith.divf %cst_14, %65 : f32
    linalg.yield %66 : f32
  } -> tensor<7x6xf32>
  %collapsed = tensor.collapse_shape %arg1 [[0, 1, 2]] : tensor<1x1x7xf32> into tensor<7xf32>
  %12 = "iree_tensor_ext.compute_barrier.start"(%11) : (tensor<7x6xf32>) -> tensor<7x6xf32>
  %13 = "iree_tensor_ext.compute_barrier.start"(%4) : (tensor<7x6xf32>) -> tensor<7x6xf32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %14 = tensor.empty() : tensor<7xf32>
  %15 = linalg.fill ins(%cst_1 : f32) outs(%14 : tensor<7xf32>) -> tensor<7xf32>
  %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d0, d2)>, affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%arg0, %arg0, %collapsed, %12, %13 : tensor<7x7x6xf32>, tensor<7x7x6xf32>, tensor<7xf32>, tensor<7x6xf32>, tensor<7x6xf32>) outs(%15 : tensor<7xf32>) attrs =  {compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{workgroup = [1, 0, 0], partial_reduction = [0, 8, 8], thread = [1, 1, 1], lane_basis = [[1, 8, 8], [0, 1, 2]], subgroup_basis = [[1, 1, 1], [0, 1, 2]]}>, translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [64, 1, 1] subgroup_size = 64, {gpu_pipeline_options = #iree_gpu.pipeline_options<no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = false>}>>} {
  ^bb0(%in: f32, %in_13: f32, %in_14: f32, %in_15: f32, %in_16: f32, %out: f32):
    %64 = arith.mulf %in, %in_14 : f32
    %65 = arith.subf %in_13, %in_16 : f32
    %66 = arith.mulf %65, %in_15 : f32
    %67 = arith.mulf %in, %66 : f32
    %68 = math.copysign %67, %67 : f32
    %69 = arith.addf %out, %68 : f32
    linalg.yield %69 : f32
  } -> tensor<7xf32>
  %cst_2 = arith.constant 0.000000e+00 : f32
  %17 = tensor.empty() : tensor<7xf32>
  %18 = linalg.fill ins(%cst_2 : f32) outs(%17 : tensor<7xf32>) -> tensor<7xf32>
  %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d0, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%arg0 : tensor<7x7x6xf32>) outs(%18 : tensor<7xf32>) attrs =  {compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{workgroup = [1, 0, 0], partial_reduction = [0, 8, 8], thread = [1, 1, 1], lane_basis = [[1, 8, 8], [0, 1, 2]], subgroup_basis = [[1, 1, 1], [0, 1, 2]]}>, translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [64, 1, 1] subgroup_size = 64, {gpu_pipeline_options = #iree_gpu.pipeline_options<no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = false>}>>} {
  ^bb0(%in: f32, %out: f32):
    %64 = arith.addf %out, %in : f32
    linalg.yield %64 : f32
  } -> tensor<7xf32>
  %collapsed_3 = tensor.collapse_shape %arg1 [[0, 1, 2]] : tensor<1x1x7xf32> into tensor<7xf32>
  %cst_4 = arith.constant 0.000000e+00 : f32
  %20 = tensor.empty() : tensor<7x6xf32>
  %21 = linalg.fill ins(%cst_4 : f32) outs(%20 : tensor<7x6xf32>) -> tensor<7x6xf32>
  %22 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg0, %collapsed_3, %11, %4 : tensor<7x7x6xf32>, tensor<7x7x6xf32>, tensor<7xf32>, tensor<7x6xf32>, tensor<7x6xf32>) outs(%21 : tensor<7x6xf32>) {
  ^bb0(%in: f32, %in_13: f32, %in_14: f32, %in_15: f32, %in_16: f32, %out: f32):
    %64 = arith.mulf %in, %in_14 : f32
    %65 = arith.subf %in_13, %in_16 : f32
    %66 = arith.mulf %65, %in_15 : f32
    %67 = arith.mulf %64, %66 : f32
    %68 = math.copysign %67, %67 : f32
    %69 = arith.addf %out, %68 : f32
    linalg.yield %69 : f32
  } -> tensor<7x6xf32>
  %23 = tensor.empty() : tensor<7x6xf32>
  %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%22 : tensor<7x6xf32>) outs(%23 : tensor<7x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_13 = arith.constant 7.000000e+00 : f32
    %64 = arith.divf %in, %cst_13 : f32
    linalg.yield %64 : f32
  } -> tensor<7x6xf32>
  %collapsed_5 = tensor.collapse_shape %arg1 [[0, 1, 2]] : tensor<1x1x7xf32> into tensor<7xf32>
  %cst_6 = arith.constant 0.000000e+00 : f32
  %25 = tensor.empty() : tensor<7x6xf32>
  %26 = linalg.fill ins(%cst_6 : f32) outs(%25 : tensor<7x6xf32>) -> tensor<7x6xf32>
  %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %collapsed_5 : tensor<7x7x6xf32>, tensor<7xf32>) outs(%26 : tensor<7x6xf32>) {
  ^bb0(%in: f32, %in_13: f32, %out: f32):
    %64 = arith.mulf %in, %in_13 : f32
    %65 = arith.addf %out, %64 : f32
    linalg.yield %65 : f32
  } -> tensor<7x6xf32>
  %28 = tensor.empty() : tensor<7x6xf32>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%27 : tensor<7x6xf32>) outs(%28 : tensor<7x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_13 = arith.constant 7.000000e+00 : f32
    %64 = arith.divf %in, %cst_13 : f32
    linalg.yield %64 : f32
  } -> tensor<7x6xf32>
  %collapsed_7 = tensor.collapse_shape %arg1 [[0, 1, 2]] : tensor<1x1x7xf32> into tensor<7xf32>
  %30 = tensor.empty() : tensor<7x6x7xf32>
  %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg0, %collapsed_7, %11, %4, %24, %29 : tensor<7x7x6xf32>, tensor<7x7x6xf32>, tensor<7xf32>, tensor<7x6xf32>, tensor<7x6xf32>, tensor<7x6xf32>, tensor<7x6xf32>) outs(%30 : tensor<7x6x7xf32>) {
  ^bb0(%in: f32, %in_13: f32, %in_14: f32, %in_15: f32, %in_16: f32, %in_17: f32, %in_18: f32, %out: f32):
    %64 = arith.mulf %in, %in_14 : f32
    %65 = arith.subf %in_13, %in_16 : f32
    %66 = arith.mulf %65, %in_15 : f32
    %67 = arith.subf %64, %in_18 : f32
    %68 = arith.mulf %66, %in_17 : f32
    %69 = arith.subf %67, %68 : f32
    %70 = arith.mulf %in_15, %69 : f32
    linalg.yield %70 : f32
  } -> tensor<7x6x7xf32>
  %32 = tensor.empty() : tensor<1x1x7xf32>
  %33 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<7xf32>) outs(%32 : tensor<1x1x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x7xf32>
  %34 = tensor.empty() : tensor<1x1x7xf32>
  %35 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19 : tensor<7xf32>) outs(%34 : tensor<1x1x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x7xf32>
  %collapsed_8 = tensor.collapse_shape %arg3 [] : tensor<1x1x1xi32> into tensor<i32>
  %36 = tensor.empty() : tensor<1xi32>
  %37 = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%collapsed_8 : tensor<i32>) outs(%36 : tensor<1xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<1xi32>
  %c0_i32 = arith.constant 0 : i32
  %38 = tensor.empty() : tensor<1xi32>
  %39 = linalg.fill ins(%c0_i32 : i32) outs(%38 : tensor<1xi32>) -> tensor<1xi32>
  %40 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%37 : tensor<1xi32>) outs(%39 : tensor<1xi32>) {
  ^bb0(%in: i32, %out: i32):
    %64 = linalg.index 0 : index
    %65 = linalg.index 1 : index
    %c1_i32 = arith.constant 1 : i32
    %66 = arith.minsi %in, %c1_i32 : i32
    %67 = arith.cmpi ule, %65, %64 : index
    %c0_i32_13 = arith.constant 0 : i32
    %68 = arith.select %67, %66, %c0_i32_13 : i32
    %69 = arith.maxsi %out, %68 : i32
    linalg.yield %69 : i32
  } -> tensor<1xi32>
  %c0_i32_9 = arith.constant 0 : i32
  %41 = tensor.empty() : tensor<1xi32>
  %42 = linalg.fill ins(%c0_i32_9 : i32) outs(%41 : tensor<1xi32>) -> tensor<1xi32>
  %43 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%40 : tensor<1xi32>) outs(%42 : tensor<1xi32>) {
  ^bb0(%in: i32, %out: i32):
    %64 = linalg.index 0 : index
    %65 = linalg.index 1 : index
    %c1 = arith.constant 1 : index
    %66 = arith.addi %65, %c1 : index
    %c0 = arith.constant 0 : index
    %67 = arith.minui %66, %c0 : index
    %extracted = tensor.extract %40[%67] : tensor<1xi32>
    %68 = arith.subi %extracted, %in : i32
    %c15_i32 = arith.constant 15 : i32
    %69 = arith.addi %68, %c15_i32 : i32
    %c16_i32 = arith.constant 16 : i32
    %70 = arith.divui %69, %c16_i32 : i32
    %71 = arith.cmpi ule, %66, %64 : index
    %c0_i32_13 = arith.constant 0 : i32
    %72 = arith.select %71, %70, %c0_i32_13 : i32
    %73 = arith.addi %out, %72 : i32
    linalg.yield %73 : i32
  } -> tensor<1xi32>
  %c0_i32_10 = arith.constant 0 : i32
  %44 = tensor.empty() : tensor<2xi32>
  %45 = linalg.fill ins(%c0_i32_10 : i32) outs(%44 : tensor<2xi32>) -> tensor<2xi32>
  %46 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%43 : tensor<1xi32>) outs(%45 : tensor<2xi32>) {
  ^bb0(%in: i32, %out: i32):
    %64 = linalg.index 0 : index
    %65 = linalg.index 1 : index
    %66 = arith.index_cast %64 : index to i32
    %67 = arith.cmpi sle, %in, %66 : i32
    %68 = arith.extui %67 : i1 to i32
    %69 = arith.addi %out, %68 : i32
    linalg.yield %69 : i32
  } -> tensor<2xi32>
  %47 = tensor.empty() : tensor<2x16xi32>
  %48 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%47 : tensor<2x16xi32>) {
  ^bb0(%out: i32):
    %64 = linalg.index 0 : index
    %65 = linalg.index 1 : index
    %extracted = tensor.extract %46[%64] : tensor<2xi32>
    %c1_i32 = arith.constant 1 : i32
    %66 = arith.maxsi %extracted, %c1_i32 : i32
    %c1_i32_13 = arith.constant 1 : i32
    %67 = arith.subi %66, %c1_i32_13 : i32
    %68 = arith.index_cast %67 : i32 to index
    %extracted_14 = tensor.extract %43[%68] : tensor<1xi32>
    %69 = arith.index_cast %64 : index to i32
    %70 = arith.subi %69, %extracted_14 : i32
    %c16_i32 = arith.constant 16 : i32
    %71 = arith.muli %70, %c16_i32 : i32
    %72 = arith.index_cast %65 : index to i32
    %73 = arith.addi %71, %72 : i32
    %extracted_15 = tensor.extract %40[%68] : tensor<1xi32>
    %74 = arith.addi %extracted_15, %73 : i32
    %c1_i32_16 = arith.constant 1 : i32
    %c0 = arith.constant 0 : index
    %75 = arith.cmpi ule, %c0, %68 : index
    %c1 = arith.constant 1 : index
    %76 = arith.addi %68, %c1 : index
    %77 = arith.minui %76, %c0 : index
    %extracted_17 = tensor.extract %40[%77] : tensor<1xi32>
    %78 = arith.select %75, %c1_i32_16, %extracted_17 : i32
    %79 = arith.cmpi slt, %74, %78 : i32
    %c-1_i32 = arith.constant -1 : i32
    %80 = arith.select %79, %74, %c-1_i32 : i32
    linalg.yield %80 : i32
  } -> tensor<2x16xi32>
  %49 = tensor.empty() : tensor<2x16x7xf32>
  %50 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%48 : tensor<2x16xi32>) outs(%49 : tensor<2x16x7xf32>) {
  ^bb0(%in: i32, %out: f32):
    %c0_i32_13 = arith.constant 0 : i32
    %64 = arith.cmpi sge, %in, %c0_i32_13 : i32
    %c0_i32_14 = arith.constant 0 : i32
    %65 = arith.select %64, %in, %c0_i32_14 : i32
    %66 = arith.index_cast %65 : i32 to index
    %c0 = arith.constant 0 : index
    %67 = linalg.index 2 : index
    %extracted = tensor.extract %35[%c0, %66, %67] : tensor<1x1x7xf32>
    %cst_15 = arith.constant 0.000000e+00 : f32
    %68 = arith.select %64, %extracted, %cst_15 : f32
    linalg.yield %68 : f32
  } -> tensor<2x16x7xf32>
  %51 = "iree_tensor_ext.compute_barrier.start"(%50) : (tensor<2x16x7xf32>) -> tensor<2x16x7xf32>
  %52 = tensor.empty() : tensor<2x16x1xf32>
  %53 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%48 : tensor<2x16xi32>) outs(%52 : tensor<2x16x1xf32>) {
  ^bb0(%in: i32, %out: f32):
    %c0_i32_13 = arith.constant 0 : i32
    %64 = arith.cmpi sge, %in, %c0_i32_13 : i32
    %c0_i32_14 = arith.constant 0 : i32
    %65 = arith.select %64, %in, %c0_i32_14 : i32
    %66 = arith.index_cast %65 : i32 to index
    %c0 = arith.constant 0 : index
    %67 = linalg.index 2 : index
    %extracted = tensor.extract %arg2[%c0, %66, %67] : tensor<1x1x1xf32>
    %cst_15 = arith.constant 0.000000e+00 : f32
    %68 = arith.select %64, %extracted, %cst_15 : f32
    linalg.yield %68 : f32
  } -> tensor<2x16x1xf32>
  %54 = "iree_tensor_ext.compute_barrier.start"(%53) : (tensor<2x16x1xf32>) -> tensor<2x16x1xf32>
  %55 = tensor.empty() : tensor<2x7x16xf32>
  %56 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%51 : tensor<2x16x7xf32>) outs(%55 : tensor<2x7x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x7x16xf32>
  %57 = "iree_tensor_ext.compute_barrier.start"(%56) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
  %collapsed_11 = tensor.collapse_shape %54 [[0], [1, 2]] : tensor<2x16x1xf32> into tensor<2x16xf32>
  %expanded = tensor.expand_shape %collapsed_11 [[0, 1], [2]] output_shape [2, 1, 16] : tensor<2x16xf32> into tensor<2x1x16xf32>
  %cst_12 = arith.constant 0.000000e+00 : f32
  %58 = tensor.empty() : tensor<2x7x1xf32>
  %59 = linalg.fill ins(%cst_12 : f32) outs(%58 : tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
  %60 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%57, %expanded : tensor<2x7x16xf32>, tensor<2x1x16xf32>) outs(%59 : tensor<2x7x1xf32>) {
  ^bb0(%in: f32, %in_13: f32, %out: f32):
    %64 = arith.mulf %in, %in_13 : f32
    %65 = arith.addf %out, %64 : f32
    linalg.yield %65 : f32
  } -> tensor<2x7x1xf32>
  %61 = "iree_tensor_ext.compute_barrier.start"(%60) : (tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
  %62 = tensor.empty() : tensor<1x7x1xf32>
  %63 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%62 : tensor<1x7x1xf32>) {
  ^bb0(%out: f32):
    %64 = linalg.index 0 : index
    %extracted = tensor.extract %43[%64] : tensor<1xi32>
    %extracted_13 = tensor.extract %40[%64] : tensor<1xi32>
    %c1_i32 = arith.constant 1 : i32
    %c0 = arith.constant 0 : index
    %65 = arith.cmpi ule, %c0, %64 : index
    %c1 = arith.constant 1 : index
    %66 = arith.addi %64, %c1 : index
    %67 = arith.minui %66, %c0 : index
    %extracted_14 = tensor.extract %40[%67] : tensor<1xi32>
    %68 = arith.select %65, %c1_i32, %extracted_14 : i32
    %69 = arith.subi %68, %extracted_13 : i32
    %c15_i32 = arith.constant 15 : i32
    %70 = arith.addi %69, %c15_i32 : i32
    %c16_i32 = arith.constant 16 : i32
    %71 = arith.divui %70, %c16_i32 : i32
    %72 = arith.addi %extracted, %71 : i32
    %73 = arith.index_cast %extracted : i32 to index
    %74 = arith.index_cast %72 : i32 to index
    %75 = linalg.index 1 : index
    %76 = linalg.index 2 : index
    %cst_15 = arith.constant 0.000000e+00 : f32
    %c1_16 = arith.constant 1 : index
    %77 = "scf.for"(%73, %74, %c1_16, %cst_15) ({
    ^bb0(%arg4: index, %arg5: f32):
      %extracted_17 = tensor.extract %61[%arg4, %75, %76] : tensor<2x7x1xf32>
      %78 = arith.addf %arg5, %extracted_17 : f32
      "scf.yield"(%78) : (f32) -> ()
    }) : (index, index, index, f32) -> f32
    linalg.yield %77 : f32
  } -> tensor<1x7x1xf32>
  return %31, %33, %63 : tensor<7x6x7xf32>, tensor<1x1x7xf32>, tensor<1x7x1xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %in3: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<7x7x6xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x1x7xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x1x1xf32>
    %i3 = hal.tensor.import wait(%wait) => %in3 : !hal.buffer_view -> tensor<1x1x1xi32>
    %r:3 = func.call @compute(%i0, %i1, %i2, %i3) : (tensor<7x7x6xf32>, tensor<1x1x7xf32>, tensor<1x1x1xf32>, tensor<1x1x1xi32>) -> (tensor<7x6x7xf32>, tensor<1x1x7xf32>, tensor<1x7x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<7x6x7xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<7x6x7xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x1x7xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x1x7xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x7x1xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x7x1xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<7x6x7xf32>, tensor<1x1x7xf32>, tensor<1x7x1xf32>) => %signal : !hal.fence
    util.return
  }
}
