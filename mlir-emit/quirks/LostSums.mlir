// Where loops of a reduction do not become one, the innermost may be given to more subgroups than are added up, and parts of the sum are left out: 64 x 28 on gfx942, 14 x 16 on an H200. So are all but the first of 16 subgroups where eight lanes lie along the innermost loop.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<257x2x8xf32>) -> tensor<1x2x1xf32> {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<2xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2xf32>) -> tensor<2xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d0, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%arg0 : tensor<257x2x8xf32>) outs(%1 : tensor<2xf32>) attrs =  {compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{workgroup = [1, 0, 0], partial_reduction = [0, 128, 8], thread = [1, 1, 1], lane_basis = [[1, 8, 8], [0, 1, 2]], subgroup_basis = [[1, 16, 1], [0, 1, 2]]}>, translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [1024, 1, 1] subgroup_size = 64, {gpu_pipeline_options = #iree_gpu.pipeline_options<no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = false>}>>} {
  ^bb0(%in: f32, %out: f32):
    %6 = arith.addf %out, %in : f32
    linalg.yield %6 : f32
  } -> tensor<2xf32>
  %3 = "iree_tensor_ext.compute_barrier.start"(%2) : (tensor<2xf32>) -> tensor<2xf32>
  %4 = tensor.empty() : tensor<1x2x1xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2xf32>) outs(%4 : tensor<1x2x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x2x1xf32>
  return %5 : tensor<1x2x1xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<257x2x8xf32>
    %r = func.call @compute(%i0) : (tensor<257x2x8xf32>) -> (tensor<1x2x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x2x1xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x2x1xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x2x1xf32>) => %signal : !hal.fence
    util.return
  }
}
