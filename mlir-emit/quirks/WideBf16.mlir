// bf16 that is made and read in one dispatch is left in f32.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host
module @rotini {
func.func private @custom_1(%0: tensor<4x10xbf16>) -> (tensor<4x10xbf16>) {
  %1 = "tensor.empty"() : () -> (tensor<4x10xbf16>)
  %2 = "linalg.generic"(%0, %1) ({
  ^bb0(%3: bf16, %4: bf16):
    %5 = "arith.extf"(%3) : (bf16) -> (f32)
    %6 = "arith.constant"() {value = 0x3F000000 : f32} : () -> (f32)
    %7 = "arith.constant"() {value = 0x3F800000 : f32} : () -> (f32)
    %8 = "arith.constant"() {value = 0x3F3504F3 : f32} : () -> (f32)
    %9 = "arith.mulf"(%5, %8) : (f32, f32) -> (f32)
    %10 = "math.erf"(%9) : (f32) -> (f32)
    %11 = "arith.addf"(%10, %7) : (f32, f32) -> (f32)
    %12 = "arith.mulf"(%5, %6) : (f32, f32) -> (f32)
    %13 = "arith.mulf"(%12, %11) : (f32, f32) -> (f32)
    %14 = "arith.truncf"(%13) : (f32) -> (bf16)
    "linalg.yield"(%14) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x10xbf16>, tensor<4x10xbf16>) -> (tensor<4x10xbf16>)
  "func.return"(%2) : (tensor<4x10xbf16>) -> ()
}
func.func private @compute(%0: tensor<4x10xf32>, %1: tensor<1x10xf32>) -> (tensor<4x10xf32>) {
  %2 = "tensor.collapse_shape"(%1) {reassociation = [[0 : i64, 1 : i64]]} : (tensor<1x10xf32>) -> (tensor<10xf32>)
  %3 = "tensor.empty"() : () -> (tensor<4x10xf32>)
  %4 = "linalg.generic"(%0, %2, %3) ({
  ^bb0(%5: f32, %6: f32, %7: f32):
    %8 = "arith.addf"(%5, %6) : (f32, f32) -> (f32)
    "linalg.yield"(%8) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<4x10xf32>, tensor<10xf32>, tensor<4x10xf32>) -> (tensor<4x10xf32>)
  %9 = "tensor.empty"() : () -> (tensor<4x10xbf16>)
  %10 = "linalg.generic"(%4, %9) ({
  ^bb0(%11: f32, %12: bf16):
    %13 = "arith.truncf"(%11) : (f32) -> (bf16)
    "linalg.yield"(%13) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x10xf32>, tensor<4x10xbf16>) -> (tensor<4x10xbf16>)
  %14 = "func.call"(%10) {callee = @custom_1} : (tensor<4x10xbf16>) -> (tensor<4x10xbf16>)
  %15 = "tensor.empty"() : () -> (tensor<4x10xf32>)
  %16 = "linalg.generic"(%14, %0, %15) ({
  ^bb0(%17: bf16, %18: f32, %19: f32):
    %20 = "arith.extf"(%17) : (bf16) -> (f32)
    %21 = "arith.mulf"(%20, %18) : (f32, f32) -> (f32)
    "linalg.yield"(%21) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<4x10xbf16>, tensor<4x10xf32>, tensor<4x10xf32>) -> (tensor<4x10xf32>)
  "func.return"(%16) : (tensor<4x10xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<4x10xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x10xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<4x10xf32>, tensor<1x10xf32>) -> (tensor<4x10xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<4x10xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<4x10xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<4x10xf32>) => %signal : !hal.fence
    util.return
  }
}
