// A sum of products of floats of two types, neither of which is the compute type, becomes an invalid contraction.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<5x1x3xf16>, %1: tensor<5x1x3xf16>, %2: tensor<1x1x3xbf16>) -> (tensor<5x1x3xf16>, tensor<1x1x3xf16>, tensor<1x1x3xf16>) {
  %3 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %4 = "tensor.empty"() : () -> (tensor<5x1xf32>)
  %5 = "linalg.fill"(%3, %4) ({
  ^bb0(%6: f32, %7: f32):
    "linalg.yield"(%6) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %8 = "linalg.generic"(%1, %5) ({
  ^bb0(%9: f16, %10: f32):
    %11 = "arith.extf"(%9) : (f16) -> (f32)
    %12 = "arith.addf"(%10, %11) : (f32, f32) -> (f32)
    "linalg.yield"(%12) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<5x1x3xf16>, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %13 = "tensor.empty"() : () -> (tensor<5x1xf32>)
  %14 = "linalg.generic"(%8, %13) ({
  ^bb0(%15: f32, %16: f32):
    %17 = "arith.constant"() {value = 3.0e0 : f32} : () -> (f32)
    %18 = "arith.divf"(%15, %17) : (f32, f32) -> (f32)
    "linalg.yield"(%18) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<5x1xf32>, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %19 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %20 = "tensor.empty"() : () -> (tensor<5x1xf32>)
  %21 = "linalg.fill"(%19, %20) ({
  ^bb0(%22: f32, %23: f32):
    "linalg.yield"(%22) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %24 = "linalg.generic"(%1, %14, %21) ({
  ^bb0(%25: f16, %26: f32, %27: f32):
    %28 = "arith.extf"(%25) : (f16) -> (f32)
    %29 = "arith.subf"(%28, %26) : (f32, f32) -> (f32)
    %30 = "arith.mulf"(%29, %29) : (f32, f32) -> (f32)
    %31 = "math.copysign"(%30, %30) : (f32, f32) -> (f32)
    %32 = "arith.addf"(%27, %31) : (f32, f32) -> (f32)
    "linalg.yield"(%32) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<5x1x3xf16>, tensor<5x1xf32>, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %33 = "tensor.empty"() : () -> (tensor<5x1xf32>)
  %34 = "linalg.generic"(%24, %33) ({
  ^bb0(%35: f32, %36: f32):
    %37 = "arith.constant"() {value = 3.0e0 : f32} : () -> (f32)
    %38 = "arith.divf"(%35, %37) : (f32, f32) -> (f32)
    "linalg.yield"(%38) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<5x1xf32>, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %39 = "tensor.empty"() : () -> (tensor<5x1xf32>)
  %40 = "linalg.generic"(%34, %39) ({
  ^bb0(%41: f32, %42: f32):
    %43 = "arith.constant"() {value = 1.0e-5 : f32} : () -> (f32)
    %44 = "arith.addf"(%41, %43) : (f32, f32) -> (f32)
    %45 = "arith.constant"() {value = 1.0e0 : f32} : () -> (f32)
    %46 = "math.sqrt"(%44) : (f32) -> (f32)
    %47 = "arith.divf"(%45, %46) : (f32, f32) -> (f32)
    "linalg.yield"(%47) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<5x1xf32>, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %48 = "tensor.collapse_shape"(%2) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<1x1x3xbf16>) -> (tensor<1x3xbf16>)
  %49 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %50 = "tensor.empty"() : () -> (tensor<3xf32>)
  %51 = "linalg.fill"(%49, %50) ({
  ^bb0(%52: f32, %53: f32):
    "linalg.yield"(%52) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<3xf32>) -> (tensor<3xf32>)
  %54 = "linalg.generic"(%0, %1, %48, %40, %14, %51) ({
  ^bb0(%55: f16, %56: f16, %57: bf16, %58: f32, %59: f32, %60: f32):
    %61 = "arith.extf"(%55) : (f16) -> (f32)
    %62 = "arith.extf"(%56) : (f16) -> (f32)
    %63 = "arith.extf"(%57) : (bf16) -> (f32)
    %64 = "arith.mulf"(%61, %63) : (f32, f32) -> (f32)
    %65 = "arith.subf"(%62, %59) : (f32, f32) -> (f32)
    %66 = "arith.mulf"(%65, %58) : (f32, f32) -> (f32)
    %67 = "arith.mulf"(%61, %66) : (f32, f32) -> (f32)
    %68 = "arith.addf"(%60, %67) : (f32, f32) -> (f32)
    "linalg.yield"(%68) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 5, 1>} : (tensor<5x1x3xf16>, tensor<5x1x3xf16>, tensor<1x3xbf16>, tensor<5x1xf32>, tensor<5x1xf32>, tensor<3xf32>) -> (tensor<3xf32>)
  %69 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %70 = "tensor.empty"() : () -> (tensor<3xf32>)
  %71 = "linalg.fill"(%69, %70) ({
  ^bb0(%72: f32, %73: f32):
    "linalg.yield"(%72) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<3xf32>) -> (tensor<3xf32>)
  %74 = "linalg.generic"(%0, %71) ({
  ^bb0(%75: f16, %76: f32):
    %77 = "arith.extf"(%75) : (f16) -> (f32)
    %78 = "arith.addf"(%76, %77) : (f32, f32) -> (f32)
    "linalg.yield"(%78) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<5x1x3xf16>, tensor<3xf32>) -> (tensor<3xf32>)
  %79 = "tensor.collapse_shape"(%2) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<1x1x3xbf16>) -> (tensor<1x3xbf16>)
  %80 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %81 = "tensor.empty"() : () -> (tensor<5x1xf32>)
  %82 = "linalg.fill"(%80, %81) ({
  ^bb0(%83: f32, %84: f32):
    "linalg.yield"(%83) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %85 = "linalg.generic"(%0, %1, %79, %40, %14, %82) ({
  ^bb0(%86: f16, %87: f16, %88: bf16, %89: f32, %90: f32, %91: f32):
    %92 = "arith.extf"(%86) : (f16) -> (f32)
    %93 = "arith.extf"(%87) : (f16) -> (f32)
    %94 = "arith.extf"(%88) : (bf16) -> (f32)
    %95 = "arith.mulf"(%92, %94) : (f32, f32) -> (f32)
    %96 = "arith.subf"(%93, %90) : (f32, f32) -> (f32)
    %97 = "arith.mulf"(%96, %89) : (f32, f32) -> (f32)
    %98 = "arith.mulf"(%95, %97) : (f32, f32) -> (f32)
    %99 = "math.copysign"(%98, %98) : (f32, f32) -> (f32)
    %100 = "arith.addf"(%91, %99) : (f32, f32) -> (f32)
    "linalg.yield"(%100) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 5, 1>} : (tensor<5x1x3xf16>, tensor<5x1x3xf16>, tensor<1x3xbf16>, tensor<5x1xf32>, tensor<5x1xf32>, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %101 = "tensor.empty"() : () -> (tensor<5x1xf32>)
  %102 = "linalg.generic"(%85, %101) ({
  ^bb0(%103: f32, %104: f32):
    %105 = "arith.constant"() {value = 3.0e0 : f32} : () -> (f32)
    %106 = "arith.divf"(%103, %105) : (f32, f32) -> (f32)
    "linalg.yield"(%106) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<5x1xf32>, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %107 = "tensor.collapse_shape"(%2) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<1x1x3xbf16>) -> (tensor<1x3xbf16>)
  %108 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %109 = "tensor.empty"() : () -> (tensor<5x1xf32>)
  %110 = "linalg.fill"(%108, %109) ({
  ^bb0(%111: f32, %112: f32):
    "linalg.yield"(%111) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %113 = "linalg.generic"(%0, %107, %110) ({
  ^bb0(%114: f16, %115: bf16, %116: f32):
    %117 = "arith.extf"(%114) : (f16) -> (f32)
    %118 = "arith.extf"(%115) : (bf16) -> (f32)
    %119 = "arith.mulf"(%117, %118) : (f32, f32) -> (f32)
    %120 = "arith.addf"(%116, %119) : (f32, f32) -> (f32)
    "linalg.yield"(%120) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<5x1x3xf16>, tensor<1x3xbf16>, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %121 = "tensor.empty"() : () -> (tensor<5x1xf32>)
  %122 = "linalg.generic"(%113, %121) ({
  ^bb0(%123: f32, %124: f32):
    %125 = "arith.constant"() {value = 3.0e0 : f32} : () -> (f32)
    %126 = "arith.divf"(%123, %125) : (f32, f32) -> (f32)
    "linalg.yield"(%126) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<5x1xf32>, tensor<5x1xf32>) -> (tensor<5x1xf32>)
  %127 = "tensor.collapse_shape"(%2) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<1x1x3xbf16>) -> (tensor<1x3xbf16>)
  %128 = "tensor.empty"() : () -> (tensor<5x1x3xf32>)
  %129 = "linalg.generic"(%0, %1, %127, %40, %14, %102, %122, %128) ({
  ^bb0(%130: f16, %131: f16, %132: bf16, %133: f32, %134: f32, %135: f32, %136: f32, %137: f32):
    %138 = "arith.extf"(%130) : (f16) -> (f32)
    %139 = "arith.extf"(%131) : (f16) -> (f32)
    %140 = "arith.extf"(%132) : (bf16) -> (f32)
    %141 = "arith.mulf"(%138, %140) : (f32, f32) -> (f32)
    %142 = "arith.subf"(%139, %134) : (f32, f32) -> (f32)
    %143 = "arith.mulf"(%142, %133) : (f32, f32) -> (f32)
    %144 = "arith.subf"(%141, %136) : (f32, f32) -> (f32)
    %145 = "arith.mulf"(%143, %135) : (f32, f32) -> (f32)
    %146 = "arith.subf"(%144, %145) : (f32, f32) -> (f32)
    %147 = "arith.mulf"(%133, %146) : (f32, f32) -> (f32)
    "linalg.yield"(%147) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 7, 1>} : (tensor<5x1x3xf16>, tensor<5x1x3xf16>, tensor<1x3xbf16>, tensor<5x1xf32>, tensor<5x1xf32>, tensor<5x1xf32>, tensor<5x1xf32>, tensor<5x1x3xf32>) -> (tensor<5x1x3xf32>)
  %148 = "tensor.empty"() : () -> (tensor<1x1x3xf32>)
  %149 = "linalg.generic"(%54, %148) ({
  ^bb0(%150: f32, %151: f32):
    "linalg.yield"(%150) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3xf32>, tensor<1x1x3xf32>) -> (tensor<1x1x3xf32>)
  %152 = "tensor.empty"() : () -> (tensor<1x1x3xf32>)
  %153 = "linalg.generic"(%74, %152) ({
  ^bb0(%154: f32, %155: f32):
    "linalg.yield"(%154) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3xf32>, tensor<1x1x3xf32>) -> (tensor<1x1x3xf32>)
  %156 = "tensor.empty"() : () -> (tensor<5x1x3xf16>)
  %157 = "linalg.generic"(%129, %156) ({
  ^bb0(%158: f32, %159: f16):
    %160 = "arith.truncf"(%158) : (f32) -> (f16)
    "linalg.yield"(%160) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<5x1x3xf32>, tensor<5x1x3xf16>) -> (tensor<5x1x3xf16>)
  %161 = "tensor.empty"() : () -> (tensor<1x1x3xf16>)
  %162 = "linalg.generic"(%149, %161) ({
  ^bb0(%163: f32, %164: f16):
    %165 = "arith.truncf"(%163) : (f32) -> (f16)
    "linalg.yield"(%165) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x1x3xf32>, tensor<1x1x3xf16>) -> (tensor<1x1x3xf16>)
  %166 = "tensor.empty"() : () -> (tensor<1x1x3xf16>)
  %167 = "linalg.generic"(%153, %166) ({
  ^bb0(%168: f32, %169: f16):
    %170 = "arith.truncf"(%168) : (f32) -> (f16)
    "linalg.yield"(%170) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x1x3xf32>, tensor<1x1x3xf16>) -> (tensor<1x1x3xf16>)
  "func.return"(%157, %162, %167) : (tensor<5x1x3xf16>, tensor<1x1x3xf16>, tensor<1x1x3xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<5x1x3xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<5x1x3xf16>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x1x3xbf16>
    %r:3 = func.call @compute(%i0, %i1, %i2) : (tensor<5x1x3xf16>, tensor<5x1x3xf16>, tensor<1x1x3xbf16>) -> (tensor<5x1x3xf16>, tensor<1x1x3xf16>, tensor<1x1x3xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<5x1x3xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<5x1x3xf16> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x1x3xf16> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x1x3xf16> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x1x3xf16> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x1x3xf16> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<5x1x3xf16>, tensor<1x1x3xf16>, tensor<1x1x3xf16>) => %signal : !hal.fence
    util.return
  }
}
