// bf16 is selected in f32, and on the way back what is no number changes.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host
module @rotini {
func.func private @compute(%0: tensor<3x5xbf16>, %1: tensor<45xbf16>) -> (tensor<45xbf16>) {
  %2 = "tensor.empty"() : () -> (tensor<3x5xf32>)
  %3 = "linalg.generic"(%0, %2) ({
  ^bb0(%4: bf16, %5: f32):
    %6 = "arith.extf"(%4) : (bf16) -> (f32)
    %7 = "math.erf"(%6) : (f32) -> (f32)
    %8 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %9 = "arith.cmpf"(%6, %8) {predicate = 1 : i64} : (f32, f32) -> (i1)
    %10 = "arith.select"(%9, %6, %7) : (i1, f32, f32) -> (f32)
    "linalg.yield"(%10) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3x5xbf16>, tensor<3x5xf32>) -> (tensor<3x5xf32>)
  %11 = "tensor.empty"() : () -> (tensor<3x5xbf16>)
  %12 = "linalg.generic"(%3, %11) ({
  ^bb0(%13: f32, %14: bf16):
    %15 = "arith.truncf"(%13) : (f32) -> (bf16)
    "linalg.yield"(%15) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3x5xf32>, tensor<3x5xbf16>) -> (tensor<3x5xbf16>)
  %16 = "tensor.empty"() : () -> (tensor<45xbf16>)
  %17 = "linalg.generic"(%1, %16) ({
  ^bb0(%18: bf16, %19: bf16):
    %20 = "arith.constant"() {value = 0 : index} : () -> (index)
    %21 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %22 = "arith.constant"() {value = true} : () -> (i1)
    %23 = "arith.constant"() {value = 16 : index} : () -> (index)
    %24 = "arith.divui"(%21, %23) : (index, index) -> (index)
    %25 = "arith.remui"(%21, %23) : (index, index) -> (index)
    %26 = "arith.constant"() {value = 2 : index} : () -> (index)
    %27 = "arith.cmpi"(%24, %26) {predicate = 7 : i64} : (index, index) -> (i1)
    %28 = "arith.andi"(%22, %27) : (i1, i1) -> (i1)
    %29 = "arith.minui"(%24, %26) : (index, index) -> (index)
    %30 = "arith.constant"() {value = 3 : index} : () -> (index)
    %31 = "arith.divui"(%25, %30) : (index, index) -> (index)
    %32 = "arith.remui"(%25, %30) : (index, index) -> (index)
    %33 = "arith.constant"() {value = 4 : index} : () -> (index)
    %34 = "arith.cmpi"(%31, %33) {predicate = 7 : i64} : (index, index) -> (i1)
    %35 = "arith.andi"(%28, %34) : (i1, i1) -> (i1)
    %36 = "arith.minui"(%31, %33) : (index, index) -> (index)
    %37 = "arith.cmpi"(%32, %20) {predicate = 7 : i64} : (index, index) -> (i1)
    %38 = "arith.andi"(%35, %37) : (i1, i1) -> (i1)
    %39 = "tensor.extract"(%12, %29, %36) : (tensor<3x5xbf16>, index, index) -> (bf16)
    %40 = "arith.select"(%38, %39, %18) : (i1, bf16, bf16) -> (bf16)
    "linalg.yield"(%40) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<45xbf16>, tensor<45xbf16>) -> (tensor<45xbf16>)
  "func.return"(%17) : (tensor<45xbf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<3x5xbf16>
    %old0 = hal.tensor.import wait(%wait) => %out0 : !hal.buffer_view -> tensor<45xbf16>
    %r = func.call @compute(%i0, %old0) : (tensor<3x5xbf16>, tensor<45xbf16>) -> (tensor<45xbf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<45xbf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<45xbf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<45xbf16>) => %signal : !hal.fence
    util.return
  }
}
