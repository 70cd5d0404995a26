// Products of FNUZ codes with two to four rows or columns, whose sums are no multiple of four: code reads shared memory beyond the workgroup's.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<7x2xi8>, %1: tensor<7x132xi8>) -> (tensor<2x132xf32>) {
  %2 = "tensor.bitcast"(%0) : (tensor<7x2xi8>) -> (tensor<7x2xf8E4M3FNUZ>)
  %3 = "tensor.bitcast"(%1) : (tensor<7x132xi8>) -> (tensor<7x132xf8E4M3FNUZ>)
  %4 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %5 = "tensor.empty"() : () -> (tensor<2x132xf32>)
  %6 = "linalg.fill"(%4, %5) ({
  ^bb0(%7: f32, %8: f32):
    "linalg.yield"(%7) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x132xf32>) -> (tensor<2x132xf32>)
  %9 = "linalg.generic"(%2, %3, %6) ({
  ^bb0(%10: f8E4M3FNUZ, %11: f8E4M3FNUZ, %12: f32):
    %13 = "arith.extf"(%10) : (f8E4M3FNUZ) -> (f32)
    %14 = "arith.extf"(%11) : (f8E4M3FNUZ) -> (f32)
    %15 = "arith.mulf"(%13, %14) : (f32, f32) -> (f32)
    %16 = "arith.addf"(%12, %15) : (f32, f32) -> (f32)
    "linalg.yield"(%16) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<7x2xf8E4M3FNUZ>, tensor<7x132xf8E4M3FNUZ>, tensor<2x132xf32>) -> (tensor<2x132xf32>)
  "func.return"(%9) : (tensor<2x132xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<7x2xi8>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<7x132xi8>
    %r = func.call @compute(%i0, %i1) : (tensor<7x2xi8>, tensor<7x132xi8>) -> (tensor<2x132xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<2x132xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x132xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<2x132xf32>) => %signal : !hal.fence
    util.return
  }
}
