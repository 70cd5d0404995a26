// A batched matmul of 6 or 10 rows and an even batch recurses without end on padded tiles; one that is no whole number of tiles and is stored with its batches innermost becomes a scatter that nothing lowers.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<12x20x8xf16>, %1: tensor<12x8x24xf16>) -> (tensor<20x24x12xf16>) {
  %2 = "tensor.empty"() : () -> (tensor<12x24x8xf16>)
  %3 = "linalg.generic"(%1, %2) ({
  ^bb0(%4: f16, %5: f16):
    "linalg.yield"(%4) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<12x8x24xf16>, tensor<12x24x8xf16>) -> (tensor<12x24x8xf16>)
  %6 = "iree_tensor_ext.compute_barrier.start"(%3) : (tensor<12x24x8xf16>) -> (tensor<12x24x8xf16>)
  %7 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %8 = "tensor.empty"() : () -> (tensor<20x24x12xf32>)
  %9 = "linalg.fill"(%7, %8) ({
  ^bb0(%10: f32, %11: f32):
    "linalg.yield"(%10) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<20x24x12xf32>) -> (tensor<20x24x12xf32>)
  %12 = "linalg.generic"(%0, %6, %9) ({
  ^bb0(%13: f16, %14: f16, %15: f32):
    %16 = "arith.extf"(%13) : (f16) -> (f32)
    %17 = "arith.extf"(%14) : (f16) -> (f32)
    %18 = "arith.mulf"(%16, %17) : (f32, f32) -> (f32)
    %19 = "arith.addf"(%15, %18) : (f32, f32) -> (f32)
    "linalg.yield"(%19) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<12x20x8xf16>, tensor<12x24x8xf16>, tensor<20x24x12xf32>) -> (tensor<20x24x12xf32>)
  %20 = "tensor.empty"() : () -> (tensor<20x24x12xf16>)
  %21 = "linalg.generic"(%12, %20) ({
  ^bb0(%22: f32, %23: f16):
    %24 = "arith.truncf"(%22) : (f32) -> (f16)
    "linalg.yield"(%24) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<20x24x12xf32>, tensor<20x24x12xf16>) -> (tensor<20x24x12xf16>)
  "func.return"(%21) : (tensor<20x24x12xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<12x20x8xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<12x8x24xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<12x20x8xf16>, tensor<12x8x24xf16>) -> (tensor<20x24x12xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<20x24x12xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<20x24x12xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<20x24x12xf16>) => %signal : !hal.fence
    util.return
  }
}
