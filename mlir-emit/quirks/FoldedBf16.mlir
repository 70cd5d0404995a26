// An integer that becomes f32 and then bf16 is folded to one conversion, which becomes a call of __truncsfbf2 on x86 without arithmetic of bf16, and nothing brings that function.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host --iree-llvmcpu-target-cpu=x86-64-v3
module @rotini {
func.func private @compute(%0: tensor<288xi8>) -> (tensor<6x96xbf16>) {
  %1 = "tensor.expand_shape"(%0) {reassociation = [[0 : i64, 1 : i64, 2 : i64]], static_output_shape = array<i64: 6, 48, 1>} : (tensor<288xi8>) -> (tensor<6x48x1xi8>)
  %2 = "arith.constant"() {value = 0 : i8} : () -> (i8)
  %3 = "tensor.empty"() : () -> (tensor<6x48x2xi8>)
  %4 = "linalg.fill"(%2, %3) ({
  ^bb0(%5: i8, %6: i8):
    "linalg.yield"(%5) : (i8) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i8, tensor<6x48x2xi8>) -> (tensor<6x48x2xi8>)
  %7 = "linalg.generic"(%1, %4) ({
  ^bb0(%8: i8, %9: i8):
    %10 = "arith.extui"(%8) : (i8) -> (i32)
    %11 = "arith.constant"() {value = 255 : i32} : () -> (i32)
    %12 = "arith.andi"(%10, %11) : (i32, i32) -> (i32)
    %13 = "linalg.index"() {dim = 3 : i64} : () -> (index)
    %14 = "arith.index_cast"(%13) : (index) -> (i32)
    %15 = "arith.constant"() {value = 8 : i32} : () -> (i32)
    %16 = "arith.muli"(%14, %15) : (i32, i32) -> (i32)
    %17 = "arith.shli"(%12, %16) : (i32, i32) -> (i32)
    %18 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %19 = "arith.index_cast"(%18) : (index) -> (i32)
    %20 = "arith.constant"() {value = 4 : i32} : () -> (i32)
    %21 = "arith.muli"(%19, %20) : (i32, i32) -> (i32)
    %22 = "arith.shrui"(%17, %21) : (i32, i32) -> (i32)
    %23 = "arith.constant"() {value = 15 : i32} : () -> (i32)
    %24 = "arith.andi"(%22, %23) : (i32, i32) -> (i32)
    %25 = "arith.constant"() {value = 28 : i32} : () -> (i32)
    %26 = "arith.shli"(%24, %25) : (i32, i32) -> (i32)
    %27 = "arith.constant"() {value = 28 : i32} : () -> (i32)
    %28 = "arith.shrsi"(%26, %27) : (i32, i32) -> (i32)
    %29 = "arith.trunci"(%28) : (i32) -> (i8)
    %30 = "arith.ori"(%29, %9) : (i8, i8) -> (i8)
    "linalg.yield"(%30) : (i8) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x48x1xi8>, tensor<6x48x2xi8>) -> (tensor<6x48x2xi8>)
  %31 = "tensor.collapse_shape"(%7) {reassociation = [[0 : i64], [1 : i64, 2 : i64]]} : (tensor<6x48x2xi8>) -> (tensor<6x96xi8>)
  %32 = "tensor.empty"() : () -> (tensor<6x96xf32>)
  %33 = "linalg.generic"(%31, %32) ({
  ^bb0(%34: i8, %35: f32):
    %36 = "arith.sitofp"(%34) : (i8) -> (f32)
    "linalg.yield"(%36) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x96xi8>, tensor<6x96xf32>) -> (tensor<6x96xf32>)
  %37 = "tensor.empty"() : () -> (tensor<6x96xbf16>)
  %38 = "linalg.generic"(%33, %37) ({
  ^bb0(%39: f32, %40: bf16):
    %41 = "arith.truncf"(%39) : (f32) -> (bf16)
    "linalg.yield"(%41) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x96xf32>, tensor<6x96xbf16>) -> (tensor<6x96xbf16>)
  "func.return"(%38) : (tensor<6x96xbf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<288xi8>
    %r = func.call @compute(%i0) : (tensor<288xi8>) -> (tensor<6x96xbf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<6x96xbf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<6x96xbf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<6x96xbf16>) => %signal : !hal.fence
    util.return
  }
}
