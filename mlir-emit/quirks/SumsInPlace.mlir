// A reduction that starts from a tensor sums up in its memory, which may be the caller's.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @custom_0(%0: tensor<8x24xf32>, %1: tensor<8x1xf32>) -> (tensor<8x1xf32>) {
  %2 = "arith.constant"() {value = 0x7FC00000 : f32} : () -> (f32)
  %3 = "tensor.extract_slice"(%1) {static_offsets = array<i64: 0, 0>, static_sizes = array<i64: 8, 1>, static_strides = array<i64: 1, 1>, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<8x1xf32>) -> (tensor<8xf32>)
  %4 = "linalg.generic"(%0, %3) ({
  ^bb0(%5: f32, %6: f32):
    %7 = "arith.maxnumf"(%6, %5) : (f32, f32) -> (f32)
    "linalg.yield"(%7) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x24xf32>, tensor<8xf32>) -> (tensor<8xf32>)
  %8 = "tensor.expand_shape"(%4) {reassociation = [[0 : i64, 1 : i64]], static_output_shape = array<i64: 8, 1>} : (tensor<8xf32>) -> (tensor<8x1xf32>)
  "func.return"(%8) : (tensor<8x1xf32>) -> ()
}
func.func private @compute(%0: tensor<8x24xf32>, %1: tensor<8x1xf32>) -> (tensor<8x1xf32>) {
  %2 = "func.call"(%0, %1) {callee = @custom_0} : (tensor<8x24xf32>, tensor<8x1xf32>) -> (tensor<8x1xf32>)
  "func.return"(%2) : (tensor<8x1xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<8x24xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<8x1xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<8x24xf32>, tensor<8x1xf32>) -> (tensor<8x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<8x1xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<8x1xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<8x1xf32>) => %signal : !hal.fence
    util.return
  }
}
