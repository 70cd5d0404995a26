// Instruction selection does not end where a byte is loaded under a mask and its bits are shifted to those of a float, or its magnitude is taken: FP8, or the magnitudes of int8, in a reduction that is spread beyond the end of its rows.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<7x56xi8>) -> (tensor<7x1xf32>) {
  %1 = "arith.constant"() {value = 0xFF800000 : f32} : () -> (f32)
  %2 = "tensor.empty"() : () -> (tensor<7xf32>)
  %3 = "linalg.fill"(%1, %2) ({
  ^bb0(%4: f32, %5: f32):
    "linalg.yield"(%4) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<7xf32>) -> (tensor<7xf32>)
  %6 = "linalg.generic"(%0, %3) ({
  ^bb0(%7: i8, %8: f32):
    %9 = "arith.extui"(%7) : (i8) -> (i32)
    %10 = "arith.constant"() {value = 127 : i32} : () -> (i32)
    %11 = "arith.andi"(%9, %10) : (i32, i32) -> (i32)
    %12 = "arith.constant"() {value = 20 : i32} : () -> (i32)
    %13 = "arith.shli"(%11, %12) : (i32, i32) -> (i32)
    %14 = "arith.constant"() {value = 1006632960 : i32} : () -> (i32)
    %15 = "arith.addi"(%13, %14) : (i32, i32) -> (i32)
    %16 = "arith.sitofp"(%11) : (i32) -> (f32)
    %17 = "arith.constant"() {value = 1.953125e-3 : f32} : () -> (f32)
    %18 = "arith.mulf"(%16, %17) : (f32, f32) -> (f32)
    %19 = "arith.bitcast"(%18) : (f32) -> (i32)
    %20 = "arith.constant"() {value = 8 : i32} : () -> (i32)
    %21 = "arith.cmpi"(%11, %20) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %22 = "arith.select"(%21, %19, %15) : (i1, i32, i32) -> (i32)
    %23 = "arith.constant"() {value = 126 : i32} : () -> (i32)
    %24 = "arith.cmpi"(%11, %23) {predicate = 4 : i64} : (i32, i32) -> (i1)
    %25 = "arith.constant"() {value = 2143289344 : i32} : () -> (i32)
    %26 = "arith.select"(%24, %25, %22) : (i1, i32, i32) -> (i32)
    %27 = "arith.constant"() {value = 128 : i32} : () -> (i32)
    %28 = "arith.andi"(%9, %27) : (i32, i32) -> (i32)
    %29 = "arith.constant"() {value = 24 : i32} : () -> (i32)
    %30 = "arith.shli"(%28, %29) : (i32, i32) -> (i32)
    %31 = "arith.ori"(%26, %30) : (i32, i32) -> (i32)
    %32 = "arith.bitcast"(%31) : (i32) -> (f32)
    %33 = "arith.maxnumf"(%8, %32) : (f32, f32) -> (f32)
    "linalg.yield"(%33) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>, compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{workgroup = [1, 0], partial_reduction = [0, 64], thread = [1, 1], lane_basis = [[1, 64], [0, 1]], subgroup_basis = [[1, 1], [0, 1]]}>, translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [64, 1, 1] subgroup_size = 64, {gpu_pipeline_options = #iree_gpu.pipeline_options<no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = false>}>>} : (tensor<7x56xi8>, tensor<7xf32>) -> (tensor<7xf32>)
  %34 = "iree_tensor_ext.compute_barrier.start"(%6) : (tensor<7xf32>) -> (tensor<7xf32>)
  %35 = "tensor.empty"() : () -> (tensor<7x1xf32>)
  %36 = "linalg.generic"(%34, %35) ({
  ^bb0(%37: f32, %38: f32):
    "linalg.yield"(%37) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<7xf32>, tensor<7x1xf32>) -> (tensor<7x1xf32>)
  "func.return"(%36) : (tensor<7x1xf32>) -> ()
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
