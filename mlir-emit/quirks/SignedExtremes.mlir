// The least or greatest of integers whose sign is known (of U8, magnitudes, x - x) is taken without a sign in some lanes, and lanes beyond the end have the neutral element of that: -1 is the least of nothing, 0 the greatest.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<2x5x2x2x1xi8>) -> (tensor<1x1x1x1x1xi32>) {
  %1 = "tensor.collapse_shape"(%0) {reassociation = [[0 : i64], [1 : i64], [2 : i64], [3 : i64, 4 : i64]]} : (tensor<2x5x2x2x1xi8>) -> (tensor<2x5x2x2xi8>)
  %2 = "tensor.collapse_shape"(%1) {reassociation = [[0 : i64, 1 : i64, 2 : i64, 3 : i64]]} : (tensor<2x5x2x2xi8>) -> (tensor<40xi8>)
  %3 = "iree_tensor_ext.compute_barrier.start"(%2) : (tensor<40xi8>) -> (tensor<40xi8>)
  %4 = "arith.constant"() {value = 2147483647 : i32} : () -> (i32)
  %5 = "tensor.empty"() : () -> (tensor<i32>)
  %6 = "linalg.fill"(%4, %5) ({
  ^bb0(%7: i32, %8: i32):
    "linalg.yield"(%7) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<i32>) -> (tensor<i32>)
  %9 = "linalg.generic"(%3, %6) ({
  ^bb0(%10: i8, %11: i32):
    %12 = "arith.extui"(%10) : (i8) -> (i32)
    %13 = "arith.minsi"(%11, %12) : (i32, i32) -> (i32)
    "linalg.yield"(%13) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = [#linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>, compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{workgroup = [0], partial_reduction = [64], thread = [1], lane_basis = [[64], [0]], subgroup_basis = [[1], [0]]}>, translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [64, 1, 1] subgroup_size = 64, {gpu_pipeline_options = #iree_gpu.pipeline_options<no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = false>}>>} : (tensor<40xi8>, tensor<i32>) -> (tensor<i32>)
  %14 = "iree_tensor_ext.compute_barrier.start"(%9) : (tensor<i32>) -> (tensor<i32>)
  %15 = "tensor.empty"() : () -> (tensor<1x1x1x1x1xi32>)
  %16 = "linalg.generic"(%14, %15) ({
  ^bb0(%17: i32, %18: i32):
    "linalg.yield"(%17) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<i32>, tensor<1x1x1x1x1xi32>) -> (tensor<1x1x1x1x1xi32>)
  "func.return"(%16) : (tensor<1x1x1x1x1xi32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x5x2x2x1xi8>
    %r = func.call @compute(%i0) : (tensor<2x5x2x2x1xi8>) -> (tensor<1x1x1x1x1xi32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x1x1x1x1xi32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x1x1x1x1xi32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x1x1x1x1xi32>) => %signal : !hal.fence
    util.return
  }
}
