// Unsigned bytes are multiplied as signed ones.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<32x64xi8>, %1: tensor<64x48xi8>) -> (tensor<32x48xi32>) {
  %2 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %3 = "tensor.empty"() : () -> (tensor<32x48xi32>)
  %4 = "linalg.fill"(%2, %3) ({
  ^bb0(%5: i32, %6: i32):
    "linalg.yield"(%5) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<32x48xi32>) -> (tensor<32x48xi32>)
  %7 = "linalg.generic"(%0, %1, %4) ({
  ^bb0(%8: i8, %9: i8, %10: i32):
    %11 = "arith.extui"(%8) : (i8) -> (i32)
    %12 = "arith.extui"(%9) : (i8) -> (i32)
    %13 = "arith.muli"(%11, %12) : (i32, i32) -> (i32)
    %14 = "arith.addi"(%10, %13) : (i32, i32) -> (i32)
    "linalg.yield"(%14) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<32x64xi8>, tensor<64x48xi8>, tensor<32x48xi32>) -> (tensor<32x48xi32>)
  "func.return"(%7) : (tensor<32x48xi32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<32x64xi8>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<64x48xi8>
    %r = func.call @compute(%i0, %i1) : (tensor<32x64xi8>, tensor<64x48xi8>) -> (tensor<32x48xi32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<32x48xi32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<32x48xi32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<32x48xi32>) => %signal : !hal.fence
    util.return
  }
}
