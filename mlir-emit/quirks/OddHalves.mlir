// Products of f16 that threads sum 5 or 7 at a time, where there are few rows or columns, do not compile.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<72x7xf16>, %1: tensor<7x2xf16>) -> (tensor<72x2xf16>) {
  %2 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %3 = "tensor.empty"() : () -> (tensor<72x2xf32>)
  %4 = "linalg.fill"(%2, %3) ({
  ^bb0(%5: f32, %6: f32):
    "linalg.yield"(%5) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<72x2xf32>) -> (tensor<72x2xf32>)
  %7 = "linalg.generic"(%0, %1, %4) ({
  ^bb0(%8: f16, %9: f16, %10: f32):
    %11 = "arith.extf"(%8) : (f16) -> (f32)
    %12 = "arith.extf"(%9) : (f16) -> (f32)
    %13 = "arith.mulf"(%11, %12) : (f32, f32) -> (f32)
    %14 = "arith.addf"(%10, %13) : (f32, f32) -> (f32)
    "linalg.yield"(%14) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<72x7xf16>, tensor<7x2xf16>, tensor<72x2xf32>) -> (tensor<72x2xf32>)
  %15 = "tensor.empty"() : () -> (tensor<72x2xf16>)
  %16 = "linalg.generic"(%7, %15) ({
  ^bb0(%17: f32, %18: f16):
    %19 = "arith.truncf"(%17) : (f32) -> (f16)
    "linalg.yield"(%19) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<72x2xf32>, tensor<72x2xf16>) -> (tensor<72x2xf16>)
  "func.return"(%16) : (tensor<72x2xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<72x7xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<7x2xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<72x7xf16>, tensor<7x2xf16>) -> (tensor<72x2xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<72x2xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<72x2xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<72x2xf16>) => %signal : !hal.fence
    util.return
  }
}
