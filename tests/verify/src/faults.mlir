module @rotini {
  hal.executable.source private @rotini_0 {
    hal.executable.export public @kernel ordinal(0) layout(#hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>) count(%device: !hal.device) -> (index, index, index) {
      %x = arith.constant 3 : index
      %one = arith.constant 1 : index
      hal.return %x, %one, %one : index, index, index
    }
    builtin.module {
      func.func @kernel() attributes {translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<BaseLowering> workgroup_size = [64, 1, 1] subgroup_size = 64>} {
        %zero = arith.constant 0 : index
        %0 = gpu.thread_id x
        %1 = hal.interface.workgroup.id[0] : index
        %2 = hal.interface.binding.subspan layout(#hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>) binding(0) alignment(64) offset(%zero) flags(ReadOnly) : memref<24xf16>
        %3 = hal.interface.binding.subspan layout(#hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>) binding(1) alignment(64) offset(%zero) : memref<24xf32>
        %4 = "vector.load"(%2, %0) : (memref<24xf16>, index) -> (vector<4xf16>)
        %5 = "arith.constant"() {value = dense<0.0e0> : vector<4xf32>} : () -> (vector<4xf32>)
        %6 = "amdgpu.mfma"(%4, %4, %5) {m = 16 : i32, n = 16 : i32, k = 16 : i32, blocks = 1 : i32, cbsz = 0 : i32, abid = 0 : i32, blgp = #rocdl.mfma_perm_b<none>} : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> (vector<4xf32>)
        "rocdl.sched.barrier"() {mask = #rocdl.sched_group_mask<none>} : () -> ()
        %7 = "arith.cmpi"(%0, %1) {predicate = 6 : i64} : (index, index) -> (i1)
        %8 = "scf.if"(%7) ({
          "scf.yield"(%6) : (vector<4xf32>) -> ()
        }, {
          "scf.yield"(%5) : (vector<4xf32>) -> ()
        }) : (i1) -> (vector<4xf32>)
        "vector.store"(%8, %3, %1) : (vector<4xf32>, memref<24xf32>, index) -> ()
        "func.return"() : () -> ()
      }
    }
  }
func.func private @compute(%0: tensor<4x6xf16>) -> (tensor<4xf32>, tensor<4x6xf32>) {
  %1 = "flow.dispatch"(%0) {entry_points = [@rotini_0::@kernel], operandSegmentSizes = array<i32: 0, 1, 0, 0>} : (tensor<4x6xf16>) -> (tensor<4x6xf32>)
  %2 = "iree_tensor_ext.compute_barrier.start"(%1) : (tensor<4x6xf32>) -> (tensor<4x6xf32>)
  %3 = "flow.dispatch.region"() ({
    %4 = "tensor.empty"() : () -> (tensor<4xf32>)
    %9, %10 = "iree_linalg_ext.online_attention"(%2, %4) ({
    ^bb0(%11: f32):
      "iree_linalg_ext.yield"(%11) : (f32) -> ()
    }) {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>]} : (tensor<4x6xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %5 = "linalg.generic"(%2, %9) ({
    ^bb0(%6: f32, %7: f32):
      %8 = "arith.addf"(%7, %6) : (f32, f32) -> (f32)
      "linalg.yield"(%8) : (f32) -> ()
    }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x6xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    "flow.return"(%5) : (tensor<4xf32>) -> ()
  }, {}) {operandSegmentSizes = array<i32: 0, 0>} : () -> (tensor<4xf32>)
  "func.return"(%3, %1) : (tensor<4xf32>, tensor<4x6xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<4x6xf16>
    %r:2 = func.call @compute(%i0) : (tensor<4x6xf16>) -> (tensor<4xf32>, tensor<4x6xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<4xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<4xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<4x6xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<4x6xf32> from %workspace : !hal.buffer
    %b:2 = hal.tensor.barrier join(%t0, %t1 : tensor<4xf32>, tensor<4x6xf32>) => %signal : !hal.fence
    util.return
  }
}
