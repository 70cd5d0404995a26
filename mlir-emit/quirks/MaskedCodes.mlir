// Instruction selection does not end where a byte is loaded under a mask and its bits are shifted to those of a float, or its magnitude is taken: FP8, or the magnitudes of int8, in a reduction that is spread beyond the end of its rows.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<7x56xi8>) -> tensor<7x1xf32> {
  %cst = arith.constant 0xFF800000 : f32
  %0 = tensor.empty() : tensor<7xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<7xf32>) -> tensor<7xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<7x56xi8>) outs(%1 : tensor<7xf32>) attrs =  {compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{workgroup = [1, 0], partial_reduction = [0, 64], thread = [1, 1], lane_basis = [[1, 64], [0, 1]], subgroup_basis = [[1, 1], [0, 1]]}>, translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [64, 1, 1] subgroup_size = 64, {gpu_pipeline_options = #iree_gpu.pipeline_options<no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = false>}>>} {
  ^bb0(%in: i8, %out: f32):
    %6 = arith.extui %in : i8 to i32
    %c127_i32 = arith.constant 127 : i32
    %7 = arith.andi %6, %c127_i32 : i32
    %c20_i32 = arith.constant 20 : i32
    %8 = arith.shli %7, %c20_i32 : i32
    %c1006632960_i32 = arith.constant 1006632960 : i32
    %9 = arith.addi %8, %c1006632960_i32 : i32
    %10 = arith.sitofp %7 : i32 to f32
    %cst_0 = arith.constant 0.001953125 : f32
    %11 = arith.mulf %10, %cst_0 : f32
    %12 = arith.bitcast %11 : f32 to i32
    %c8_i32 = arith.constant 8 : i32
    %13 = arith.cmpi slt, %7, %c8_i32 : i32
    %14 = arith.select %13, %12, %9 : i32
    %c126_i32 = arith.constant 126 : i32
    %15 = arith.cmpi sgt, %7, %c126_i32 : i32
    %c2143289344_i32 = arith.constant 2143289344 : i32
    %16 = arith.select %15, %c2143289344_i32, %14 : i32
    %c128_i32 = arith.constant 128 : i32
    %17 = arith.andi %6, %c128_i32 : i32
    %c24_i32 = arith.constant 24 : i32
    %18 = arith.shli %17, %c24_i32 : i32
    %19 = arith.ori %16, %18 : i32
    %20 = arith.bitcast %19 : i32 to f32
    %21 = arith.maxnumf %out, %20 : f32
    linalg.yield %21 : f32
  } -> tensor<7xf32>
  %3 = "iree_tensor_ext.compute_barrier.start"(%2) : (tensor<7xf32>) -> tensor<7xf32>
  %4 = tensor.empty() : tensor<7x1xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<7xf32>) outs(%4 : tensor<7x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<7x1xf32>
  return %5 : tensor<7x1xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<7x56xi8>
    %r = func.call @compute(%i0) : (tensor<7x56xi8>) -> (tensor<7x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<7x1xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<7x1xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<7x1xf32>) => %signal : !hal.fence
    util.return
  }
}
