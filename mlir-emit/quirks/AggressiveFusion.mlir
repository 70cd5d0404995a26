// The sums of layernorm backward of a converted f64 use what is defined after them.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<6x1x3xf64>, %1: tensor<1x1x3xf64>) -> (tensor<6x1x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>) {
  %2 = "tensor.empty"() : () -> (tensor<6x1x3xf32>)
  %3 = "linalg.generic"(%0, %2) ({
  ^bb0(%4: f64, %5: f32):
    %6 = "arith.truncf"(%4) : (f64) -> (f32)
    "linalg.yield"(%6) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1x3xf64>, tensor<6x1x3xf32>) -> (tensor<6x1x3xf32>)
  %7 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %8 = "tensor.empty"() : () -> (tensor<6x1xf32>)
  %9 = "linalg.fill"(%7, %8) ({
  ^bb0(%10: f32, %11: f32):
    "linalg.yield"(%10) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %12 = "linalg.generic"(%0, %9) ({
  ^bb0(%13: f64, %14: f32):
    %15 = "arith.truncf"(%13) : (f64) -> (f32)
    %16 = "arith.addf"(%14, %15) : (f32, f32) -> (f32)
    "linalg.yield"(%16) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1x3xf64>, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %17 = "tensor.empty"() : () -> (tensor<6x1xf32>)
  %18 = "linalg.generic"(%12, %17) ({
  ^bb0(%19: f32, %20: f32):
    %21 = "arith.constant"() {value = 3.0e0 : f32} : () -> (f32)
    %22 = "arith.divf"(%19, %21) : (f32, f32) -> (f32)
    "linalg.yield"(%22) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1xf32>, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %23 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %24 = "tensor.empty"() : () -> (tensor<6x1xf32>)
  %25 = "linalg.fill"(%23, %24) ({
  ^bb0(%26: f32, %27: f32):
    "linalg.yield"(%26) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %28 = "linalg.generic"(%0, %18, %25) ({
  ^bb0(%29: f64, %30: f32, %31: f32):
    %32 = "arith.truncf"(%29) : (f64) -> (f32)
    %33 = "arith.subf"(%32, %30) : (f32, f32) -> (f32)
    %34 = "arith.mulf"(%33, %33) : (f32, f32) -> (f32)
    %35 = "math.copysign"(%34, %34) : (f32, f32) -> (f32)
    %36 = "arith.addf"(%31, %35) : (f32, f32) -> (f32)
    "linalg.yield"(%36) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<6x1x3xf64>, tensor<6x1xf32>, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %37 = "tensor.empty"() : () -> (tensor<6x1xf32>)
  %38 = "linalg.generic"(%28, %37) ({
  ^bb0(%39: f32, %40: f32):
    %41 = "arith.constant"() {value = 3.0e0 : f32} : () -> (f32)
    %42 = "arith.divf"(%39, %41) : (f32, f32) -> (f32)
    "linalg.yield"(%42) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1xf32>, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %43 = "tensor.empty"() : () -> (tensor<6x1xf32>)
  %44 = "linalg.generic"(%38, %43) ({
  ^bb0(%45: f32, %46: f32):
    %47 = "arith.constant"() {value = 1.0e-5 : f32} : () -> (f32)
    %48 = "arith.addf"(%45, %47) : (f32, f32) -> (f32)
    %49 = "arith.constant"() {value = 1.0e0 : f32} : () -> (f32)
    %50 = "math.sqrt"(%48) : (f32) -> (f32)
    %51 = "arith.divf"(%49, %50) : (f32, f32) -> (f32)
    "linalg.yield"(%51) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1xf32>, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %52 = "tensor.collapse_shape"(%1) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<1x1x3xf64>) -> (tensor<1x3xf64>)
  %53 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %54 = "tensor.empty"() : () -> (tensor<3xf32>)
  %55 = "linalg.fill"(%53, %54) ({
  ^bb0(%56: f32, %57: f32):
    "linalg.yield"(%56) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<3xf32>) -> (tensor<3xf32>)
  %58 = "linalg.generic"(%3, %0, %52, %44, %18, %55) ({
  ^bb0(%59: f32, %60: f64, %61: f64, %62: f32, %63: f32, %64: f32):
    %65 = "arith.truncf"(%60) : (f64) -> (f32)
    %66 = "arith.truncf"(%61) : (f64) -> (f32)
    %67 = "arith.mulf"(%59, %66) : (f32, f32) -> (f32)
    %68 = "arith.subf"(%65, %63) : (f32, f32) -> (f32)
    %69 = "arith.mulf"(%68, %62) : (f32, f32) -> (f32)
    %70 = "arith.mulf"(%59, %69) : (f32, f32) -> (f32)
    %71 = "arith.addf"(%64, %70) : (f32, f32) -> (f32)
    "linalg.yield"(%71) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 5, 1>} : (tensor<6x1x3xf32>, tensor<6x1x3xf64>, tensor<1x3xf64>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<3xf32>) -> (tensor<3xf32>)
  %72 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %73 = "tensor.empty"() : () -> (tensor<3xf32>)
  %74 = "linalg.fill"(%72, %73) ({
  ^bb0(%75: f32, %76: f32):
    "linalg.yield"(%75) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<3xf32>) -> (tensor<3xf32>)
  %77 = "linalg.generic"(%3, %74) ({
  ^bb0(%78: f32, %79: f32):
    %80 = "arith.addf"(%79, %78) : (f32, f32) -> (f32)
    "linalg.yield"(%80) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1x3xf32>, tensor<3xf32>) -> (tensor<3xf32>)
  %81 = "tensor.collapse_shape"(%1) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<1x1x3xf64>) -> (tensor<1x3xf64>)
  %82 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %83 = "tensor.empty"() : () -> (tensor<6x1xf32>)
  %84 = "linalg.fill"(%82, %83) ({
  ^bb0(%85: f32, %86: f32):
    "linalg.yield"(%85) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %87 = "linalg.generic"(%3, %0, %81, %44, %18, %84) ({
  ^bb0(%88: f32, %89: f64, %90: f64, %91: f32, %92: f32, %93: f32):
    %94 = "arith.truncf"(%89) : (f64) -> (f32)
    %95 = "arith.truncf"(%90) : (f64) -> (f32)
    %96 = "arith.mulf"(%88, %95) : (f32, f32) -> (f32)
    %97 = "arith.subf"(%94, %92) : (f32, f32) -> (f32)
    %98 = "arith.mulf"(%97, %91) : (f32, f32) -> (f32)
    %99 = "arith.mulf"(%96, %98) : (f32, f32) -> (f32)
    %100 = "math.copysign"(%99, %99) : (f32, f32) -> (f32)
    %101 = "arith.addf"(%93, %100) : (f32, f32) -> (f32)
    "linalg.yield"(%101) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 5, 1>} : (tensor<6x1x3xf32>, tensor<6x1x3xf64>, tensor<1x3xf64>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %102 = "tensor.empty"() : () -> (tensor<6x1xf32>)
  %103 = "linalg.generic"(%87, %102) ({
  ^bb0(%104: f32, %105: f32):
    %106 = "arith.constant"() {value = 3.0e0 : f32} : () -> (f32)
    %107 = "arith.divf"(%104, %106) : (f32, f32) -> (f32)
    "linalg.yield"(%107) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1xf32>, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %108 = "tensor.collapse_shape"(%1) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<1x1x3xf64>) -> (tensor<1x3xf64>)
  %109 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %110 = "tensor.empty"() : () -> (tensor<6x1xf32>)
  %111 = "linalg.fill"(%109, %110) ({
  ^bb0(%112: f32, %113: f32):
    "linalg.yield"(%112) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %114 = "linalg.generic"(%3, %108, %111) ({
  ^bb0(%115: f32, %116: f64, %117: f32):
    %118 = "arith.truncf"(%116) : (f64) -> (f32)
    %119 = "arith.mulf"(%115, %118) : (f32, f32) -> (f32)
    %120 = "arith.addf"(%117, %119) : (f32, f32) -> (f32)
    "linalg.yield"(%120) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<6x1x3xf32>, tensor<1x3xf64>, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %121 = "tensor.empty"() : () -> (tensor<6x1xf32>)
  %122 = "linalg.generic"(%114, %121) ({
  ^bb0(%123: f32, %124: f32):
    %125 = "arith.constant"() {value = 3.0e0 : f32} : () -> (f32)
    %126 = "arith.divf"(%123, %125) : (f32, f32) -> (f32)
    "linalg.yield"(%126) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1xf32>, tensor<6x1xf32>) -> (tensor<6x1xf32>)
  %127 = "tensor.collapse_shape"(%1) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<1x1x3xf64>) -> (tensor<1x3xf64>)
  %128 = "tensor.empty"() : () -> (tensor<6x1x3xf32>)
  %129 = "linalg.generic"(%3, %0, %127, %44, %18, %103, %122, %128) ({
  ^bb0(%130: f32, %131: f64, %132: f64, %133: f32, %134: f32, %135: f32, %136: f32, %137: f32):
    %138 = "arith.truncf"(%131) : (f64) -> (f32)
    %139 = "arith.truncf"(%132) : (f64) -> (f32)
    %140 = "arith.mulf"(%130, %139) : (f32, f32) -> (f32)
    %141 = "arith.subf"(%138, %134) : (f32, f32) -> (f32)
    %142 = "arith.mulf"(%141, %133) : (f32, f32) -> (f32)
    %143 = "arith.subf"(%140, %136) : (f32, f32) -> (f32)
    %144 = "arith.mulf"(%142, %135) : (f32, f32) -> (f32)
    %145 = "arith.subf"(%143, %144) : (f32, f32) -> (f32)
    %146 = "arith.mulf"(%133, %145) : (f32, f32) -> (f32)
    "linalg.yield"(%146) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 7, 1>} : (tensor<6x1x3xf32>, tensor<6x1x3xf64>, tensor<1x3xf64>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1xf32>, tensor<6x1x3xf32>) -> (tensor<6x1x3xf32>)
  %147 = "tensor.empty"() : () -> (tensor<1x1x3xf32>)
  %148 = "linalg.generic"(%58, %147) ({
  ^bb0(%149: f32, %150: f32):
    "linalg.yield"(%149) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3xf32>, tensor<1x1x3xf32>) -> (tensor<1x1x3xf32>)
  %151 = "tensor.empty"() : () -> (tensor<1x1x3xf32>)
  %152 = "linalg.generic"(%77, %151) ({
  ^bb0(%153: f32, %154: f32):
    "linalg.yield"(%153) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<3xf32>, tensor<1x1x3xf32>) -> (tensor<1x1x3xf32>)
  "func.return"(%129, %148, %152) : (tensor<6x1x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<6x1x3xf64>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x1x3xf64>
    %r:3 = func.call @compute(%i0, %i1) : (tensor<6x1x3xf64>, tensor<1x1x3xf64>) -> (tensor<6x1x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<6x1x3xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<6x1x3xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x1x3xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x1x3xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x1x3xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x1x3xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<6x1x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>) => %signal : !hal.fence
    util.return
  }
}
