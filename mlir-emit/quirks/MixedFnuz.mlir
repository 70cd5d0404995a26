// A product of both FNUZ types is rejected where a matrix ends within a tile.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x33xi8>, %1: tensor<9x33xi8>) -> (tensor<1x9xbf16>) {
  %2 = "tensor.empty"() : () -> (tensor<1x33xf32>)
  %3 = "linalg.generic"(%0, %2) ({
  ^bb0(%4: i8, %5: f32):
    %6 = "arith.extui"(%4) : (i8) -> (i32)
    %7 = "arith.constant"() {value = 127 : i32} : () -> (i32)
    %8 = "arith.andi"(%6, %7) : (i32, i32) -> (i32)
    %9 = "arith.constant"() {value = 20 : i32} : () -> (i32)
    %10 = "arith.shli"(%8, %9) : (i32, i32) -> (i32)
    %11 = "arith.constant"() {value = 998244352 : i32} : () -> (i32)
    %12 = "arith.addi"(%10, %11) : (i32, i32) -> (i32)
    %13 = "arith.sitofp"(%8) : (i32) -> (f32)
    %14 = "arith.constant"() {value = 9.765625e-4 : f32} : () -> (f32)
    %15 = "arith.mulf"(%13, %14) : (f32, f32) -> (f32)
    %16 = "arith.bitcast"(%15) : (f32) -> (i32)
    %17 = "arith.constant"() {value = 8 : i32} : () -> (i32)
    %18 = "arith.cmpi"(%8, %17) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %19 = "arith.select"(%18, %16, %12) : (i1, i32, i32) -> (i32)
    %20 = "arith.constant"() {value = 128 : i32} : () -> (i32)
    %21 = "arith.cmpi"(%6, %20) {predicate = 0 : i64} : (i32, i32) -> (i1)
    %22 = "arith.constant"() {value = 2143289344 : i32} : () -> (i32)
    %23 = "arith.select"(%21, %22, %19) : (i1, i32, i32) -> (i32)
    %24 = "arith.constant"() {value = 128 : i32} : () -> (i32)
    %25 = "arith.andi"(%6, %24) : (i32, i32) -> (i32)
    %26 = "arith.constant"() {value = 24 : i32} : () -> (i32)
    %27 = "arith.shli"(%25, %26) : (i32, i32) -> (i32)
    %28 = "arith.ori"(%23, %27) : (i32, i32) -> (i32)
    %29 = "arith.bitcast"(%28) : (i32) -> (f32)
    "linalg.yield"(%29) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x33xi8>, tensor<1x33xf32>) -> (tensor<1x33xf32>)
  %30 = "iree_tensor_ext.compute_barrier.start"(%3) : (tensor<1x33xf32>) -> (tensor<1x33xf32>)
  %31 = "tensor.empty"() : () -> (tensor<9x33xf32>)
  %32 = "linalg.generic"(%1, %31) ({
  ^bb0(%33: i8, %34: f32):
    %35 = "arith.extui"(%33) : (i8) -> (i32)
    %36 = "arith.constant"() {value = 127 : i32} : () -> (i32)
    %37 = "arith.andi"(%35, %36) : (i32, i32) -> (i32)
    %38 = "arith.constant"() {value = 21 : i32} : () -> (i32)
    %39 = "arith.shli"(%37, %38) : (i32, i32) -> (i32)
    %40 = "arith.constant"() {value = 931135488 : i32} : () -> (i32)
    %41 = "arith.addi"(%39, %40) : (i32, i32) -> (i32)
    %42 = "arith.sitofp"(%37) : (i32) -> (f32)
    %43 = "arith.constant"() {value = 7.62939453125e-6 : f32} : () -> (f32)
    %44 = "arith.mulf"(%42, %43) : (f32, f32) -> (f32)
    %45 = "arith.bitcast"(%44) : (f32) -> (i32)
    %46 = "arith.constant"() {value = 4 : i32} : () -> (i32)
    %47 = "arith.cmpi"(%37, %46) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %48 = "arith.select"(%47, %45, %41) : (i1, i32, i32) -> (i32)
    %49 = "arith.constant"() {value = 128 : i32} : () -> (i32)
    %50 = "arith.cmpi"(%35, %49) {predicate = 0 : i64} : (i32, i32) -> (i1)
    %51 = "arith.constant"() {value = 2143289344 : i32} : () -> (i32)
    %52 = "arith.select"(%50, %51, %48) : (i1, i32, i32) -> (i32)
    %53 = "arith.constant"() {value = 128 : i32} : () -> (i32)
    %54 = "arith.andi"(%35, %53) : (i32, i32) -> (i32)
    %55 = "arith.constant"() {value = 24 : i32} : () -> (i32)
    %56 = "arith.shli"(%54, %55) : (i32, i32) -> (i32)
    %57 = "arith.ori"(%52, %56) : (i32, i32) -> (i32)
    %58 = "arith.bitcast"(%57) : (i32) -> (f32)
    "linalg.yield"(%58) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<9x33xi8>, tensor<9x33xf32>) -> (tensor<9x33xf32>)
  %59 = "iree_tensor_ext.compute_barrier.start"(%32) : (tensor<9x33xf32>) -> (tensor<9x33xf32>)
  %60 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %61 = "tensor.empty"() : () -> (tensor<1x9xf32>)
  %62 = "linalg.fill"(%60, %61) ({
  ^bb0(%63: f32, %64: f32):
    "linalg.yield"(%63) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x9xf32>) -> (tensor<1x9xf32>)
  %65 = "linalg.generic"(%30, %59, %62) ({
  ^bb0(%66: f32, %67: f32, %68: f32):
    %69 = "arith.mulf"(%66, %67) : (f32, f32) -> (f32)
    %70 = "arith.addf"(%68, %69) : (f32, f32) -> (f32)
    "linalg.yield"(%70) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x33xf32>, tensor<9x33xf32>, tensor<1x9xf32>) -> (tensor<1x9xf32>)
  %71 = "tensor.empty"() : () -> (tensor<1x9xbf16>)
  %72 = "linalg.generic"(%65, %71) ({
  ^bb0(%73: f32, %74: bf16):
    %75 = "arith.truncf"(%73) : (f32) -> (bf16)
    "linalg.yield"(%75) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x9xf32>, tensor<1x9xbf16>) -> (tensor<1x9xbf16>)
  "func.return"(%72) : (tensor<1x9xbf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x33xi8>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<9x33xi8>
    %r = func.call @compute(%i0, %i1) : (tensor<1x33xi8>, tensor<9x33xi8>) -> (tensor<1x9xbf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x9xbf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x9xbf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x9xbf16>) => %signal : !hal.fence
    util.return
  }
}
