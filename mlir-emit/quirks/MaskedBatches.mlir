// The last step of a matrix core is filled up by masks; the mask over an axis that is not the innermost is lost if the innermost is cut off too, and the next matrix of the batch is read.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<3x7x5xi8>, %1: tensor<3x7x3xf16>) -> (tensor<3x3x5xf16>) {
  %2 = "tensor.empty"() : () -> (tensor<3x7x5xf16>)
  %3 = "linalg.generic"(%0, %2) ({
  ^bb0(%4: i8, %5: f16):
    %6 = "arith.sitofp"(%4) : (i8) -> (f16)
    "linalg.yield"(%6) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3x7x5xi8>, tensor<3x7x5xf16>) -> (tensor<3x7x5xf16>)
  %7 = "iree_tensor_ext.compute_barrier.start"(%3) : (tensor<3x7x5xf16>) -> (tensor<3x7x5xf16>)
  %8 = "tensor.empty"() : () -> (tensor<3x7x5xf32>)
  %9 = "linalg.generic"(%7, %8) ({
  ^bb0(%10: f16, %11: f32):
    %12 = "arith.extf"(%10) : (f16) -> (f32)
    "linalg.yield"(%12) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3x7x5xf16>, tensor<3x7x5xf32>) -> (tensor<3x7x5xf32>)
  %13 = "iree_tensor_ext.compute_barrier.start"(%9) : (tensor<3x7x5xf32>) -> (tensor<3x7x5xf32>)
  %14 = "tensor.empty"() : () -> (tensor<3x7x3xf32>)
  %15 = "linalg.generic"(%1, %14) ({
  ^bb0(%16: f16, %17: f32):
    %18 = "arith.extf"(%16) : (f16) -> (f32)
    "linalg.yield"(%18) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3x7x3xf16>, tensor<3x7x3xf32>) -> (tensor<3x7x3xf32>)
  %19 = "iree_tensor_ext.compute_barrier.start"(%15) : (tensor<3x7x3xf32>) -> (tensor<3x7x3xf32>)
  %20 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %21 = "tensor.empty"() : () -> (tensor<3x3x5xf32>)
  %22 = "linalg.fill"(%20, %21) ({
  ^bb0(%23: f32, %24: f32):
    "linalg.yield"(%23) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<3x3x5xf32>) -> (tensor<3x3x5xf32>)
  %25 = "linalg.generic"(%13, %19, %22) ({
  ^bb0(%26: f32, %27: f32, %28: f32):
    %29 = "arith.mulf"(%26, %27) : (f32, f32) -> (f32)
    %30 = "arith.addf"(%28, %29) : (f32, f32) -> (f32)
    "linalg.yield"(%30) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<3x7x5xf32>, tensor<3x7x3xf32>, tensor<3x3x5xf32>) -> (tensor<3x3x5xf32>)
  %31 = "tensor.empty"() : () -> (tensor<3x3x5xf16>)
  %32 = "linalg.generic"(%25, %31) ({
  ^bb0(%33: f32, %34: f16):
    %35 = "arith.truncf"(%33) : (f32) -> (f16)
    "linalg.yield"(%35) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3x3x5xf32>, tensor<3x3x5xf16>) -> (tensor<3x3x5xf16>)
  "func.return"(%32) : (tensor<3x3x5xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<3x7x5xi8>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<3x7x3xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<3x7x5xi8>, tensor<3x7x3xf16>) -> (tensor<3x3x5xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<3x3x5xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<3x3x5xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<3x3x5xf16>) => %signal : !hal.fence
    util.return
  }
}
