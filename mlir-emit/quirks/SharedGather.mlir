// Single rows of 16-bit floats become a gather, in which two waves write the same shared memory.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x9x1xf16>, %1: tensor<2x1x6xf16>, %2: tensor<2x1x1xi32>, %3: tensor<1x12x1xi32>) -> (tensor<1x12x6xf16>) {
  %4 = "tensor.collapse_shape"(%2) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<2x1x1xi32>) -> (tensor<2xi32>)
  %5 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %6 = "tensor.empty"() : () -> (tensor<2xi32>)
  %7 = "linalg.fill"(%5, %6) ({
  ^bb0(%8: i32, %9: i32):
    "linalg.yield"(%8) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<2xi32>) -> (tensor<2xi32>)
  %10 = "linalg.generic"(%4, %7) ({
  ^bb0(%11: i32, %12: i32):
    %13 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %14 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %15 = "arith.constant"() {value = 12 : i32} : () -> (i32)
    %16 = "arith.minsi"(%11, %15) : (i32, i32) -> (i32)
    %17 = "arith.cmpi"(%14, %13) {predicate = 7 : i64} : (index, index) -> (i1)
    %18 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %19 = "arith.select"(%17, %16, %18) : (i1, i32, i32) -> (i32)
    %20 = "arith.maxsi"(%12, %19) : (i32, i32) -> (i32)
    "linalg.yield"(%20) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>)
  %21 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %22 = "tensor.empty"() : () -> (tensor<2xi32>)
  %23 = "linalg.fill"(%21, %22) ({
  ^bb0(%24: i32, %25: i32):
    "linalg.yield"(%24) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<2xi32>) -> (tensor<2xi32>)
  %26 = "linalg.generic"(%10, %23) ({
  ^bb0(%27: i32, %28: i32):
    %29 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %30 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %31 = "arith.constant"() {value = 1 : index} : () -> (index)
    %32 = "arith.addi"(%30, %31) : (index, index) -> (index)
    %33 = "arith.constant"() {value = 1 : index} : () -> (index)
    %34 = "arith.minui"(%32, %33) : (index, index) -> (index)
    %35 = "tensor.extract"(%10, %34) : (tensor<2xi32>, index) -> (i32)
    %36 = "arith.subi"(%35, %27) : (i32, i32) -> (i32)
    %37 = "arith.constant"() {value = 15 : i32} : () -> (i32)
    %38 = "arith.addi"(%36, %37) : (i32, i32) -> (i32)
    %39 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %40 = "arith.divui"(%38, %39) : (i32, i32) -> (i32)
    %41 = "arith.cmpi"(%32, %29) {predicate = 7 : i64} : (index, index) -> (i1)
    %42 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %43 = "arith.select"(%41, %40, %42) : (i1, i32, i32) -> (i32)
    %44 = "arith.addi"(%28, %43) : (i32, i32) -> (i32)
    "linalg.yield"(%44) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>)
  %45 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %46 = "tensor.empty"() : () -> (tensor<2xi32>)
  %47 = "linalg.fill"(%45, %46) ({
  ^bb0(%48: i32, %49: i32):
    "linalg.yield"(%48) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<2xi32>) -> (tensor<2xi32>)
  %50 = "linalg.generic"(%26, %47) ({
  ^bb0(%51: i32, %52: i32):
    %53 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %54 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %55 = "arith.index_cast"(%53) : (index) -> (i32)
    %56 = "arith.cmpi"(%51, %55) {predicate = 3 : i64} : (i32, i32) -> (i1)
    %57 = "arith.extui"(%56) : (i1) -> (i32)
    %58 = "arith.addi"(%52, %57) : (i32, i32) -> (i32)
    "linalg.yield"(%58) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>)
  %59 = "tensor.collapse_shape"(%3) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<1x12x1xi32>) -> (tensor<12xi32>)
  %60 = "tensor.empty"() : () -> (tensor<2x16xi32>)
  %61 = "linalg.generic"(%60) ({
  ^bb0(%62: i32):
    %63 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %64 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %65 = "tensor.extract"(%50, %63) : (tensor<2xi32>, index) -> (i32)
    %66 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %67 = "arith.maxsi"(%65, %66) : (i32, i32) -> (i32)
    %68 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %69 = "arith.subi"(%67, %68) : (i32, i32) -> (i32)
    %70 = "arith.index_cast"(%69) : (i32) -> (index)
    %71 = "tensor.extract"(%26, %70) : (tensor<2xi32>, index) -> (i32)
    %72 = "arith.index_cast"(%63) : (index) -> (i32)
    %73 = "arith.subi"(%72, %71) : (i32, i32) -> (i32)
    %74 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %75 = "arith.muli"(%73, %74) : (i32, i32) -> (i32)
    %76 = "arith.index_cast"(%64) : (index) -> (i32)
    %77 = "arith.addi"(%75, %76) : (i32, i32) -> (i32)
    %78 = "tensor.extract"(%10, %70) : (tensor<2xi32>, index) -> (i32)
    %79 = "arith.addi"(%78, %77) : (i32, i32) -> (i32)
    %80 = "arith.constant"() {value = 12 : i32} : () -> (i32)
    %81 = "arith.constant"() {value = 1 : index} : () -> (index)
    %82 = "arith.cmpi"(%81, %70) {predicate = 7 : i64} : (index, index) -> (i1)
    %83 = "arith.constant"() {value = 1 : index} : () -> (index)
    %84 = "arith.addi"(%70, %83) : (index, index) -> (index)
    %85 = "arith.minui"(%84, %81) : (index, index) -> (index)
    %86 = "tensor.extract"(%10, %85) : (tensor<2xi32>, index) -> (i32)
    %87 = "arith.select"(%82, %80, %86) : (i1, i32, i32) -> (i32)
    %88 = "arith.cmpi"(%79, %87) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %89 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %90 = "arith.select"(%88, %79, %89) : (i1, i32, i32) -> (i32)
    %91 = "arith.index_cast"(%90) : (i32) -> (index)
    %92 = "tensor.extract"(%59, %91) : (tensor<12xi32>, index) -> (i32)
    %93 = "arith.constant"() {value = 8 : index} : () -> (index)
    %94 = "arith.index_cast"(%92) : (i32) -> (index)
    %95 = "arith.cmpi"(%94, %93) {predicate = 7 : i64} : (index, index) -> (i1)
    %96 = "arith.andi"(%88, %95) : (i1, i1) -> (i1)
    %97 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %98 = "arith.select"(%96, %92, %97) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%98) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<2x16xi32>) -> (tensor<2x16xi32>)
  %99 = "tensor.empty"() : () -> (tensor<2x16x1xf16>)
  %100 = "linalg.generic"(%61, %99) ({
  ^bb0(%101: i32, %102: f16):
    %103 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %104 = "arith.cmpi"(%101, %103) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %105 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %106 = "arith.select"(%104, %101, %105) : (i1, i32, i32) -> (i32)
    %107 = "arith.index_cast"(%106) : (i32) -> (index)
    %108 = "arith.constant"() {value = 0 : index} : () -> (index)
    %109 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %110 = "tensor.extract"(%0, %108, %107, %109) : (tensor<1x9x1xf16>, index, index, index) -> (f16)
    %111 = "arith.constant"() {value = 0.0e0 : f16} : () -> (f16)
    %112 = "arith.select"(%104, %110, %111) : (i1, f16, f16) -> (f16)
    "linalg.yield"(%112) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16xi32>, tensor<2x16x1xf16>) -> (tensor<2x16x1xf16>)
  %113 = "iree_tensor_ext.compute_barrier.start"(%100) : (tensor<2x16x1xf16>) -> (tensor<2x16x1xf16>)
  %114 = "tensor.empty"() : () -> (tensor<2xi32>)
  %115 = "linalg.generic"(%114) ({
  ^bb0(%116: i32):
    %117 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %118 = "tensor.extract"(%50, %117) : (tensor<2xi32>, index) -> (i32)
    %119 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %120 = "arith.maxsi"(%118, %119) : (i32, i32) -> (i32)
    %121 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %122 = "arith.subi"(%120, %121) : (i32, i32) -> (i32)
    %123 = "arith.index_cast"(%122) : (i32) -> (index)
    %124 = "arith.constant"() {value = 2 : index} : () -> (index)
    %125 = "arith.remui"(%123, %124) : (index, index) -> (index)
    %126 = "arith.index_cast"(%125) : (index) -> (i32)
    "linalg.yield"(%126) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<2xi32>) -> (tensor<2xi32>)
  %127 = "tensor.empty"() : () -> (tensor<2x1x6xf16>)
  %128 = "iree_linalg_ext.gather"(%1, %115, %127) {dimension_map = array<i64: 0>} : (tensor<2x1x6xf16>, tensor<2xi32>, tensor<2x1x6xf16>) -> (tensor<2x1x6xf16>)
  %129 = "tensor.collapse_shape"(%128) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<2x1x6xf16>) -> (tensor<2x6xf16>)
  %130 = "tensor.expand_shape"(%129) {reassociation = [[0 : i64], [1 : i64, 2 : i64]], static_output_shape = array<i64: 2, 6, 1>} : (tensor<2x6xf16>) -> (tensor<2x6x1xf16>)
  %131 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %132 = "tensor.empty"() : () -> (tensor<2x16x6xf32>)
  %133 = "linalg.fill"(%131, %132) ({
  ^bb0(%134: f32, %135: f32):
    "linalg.yield"(%134) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x16x6xf32>) -> (tensor<2x16x6xf32>)
  %136 = "linalg.generic"(%113, %130, %133) ({
  ^bb0(%137: f16, %138: f16, %139: f32):
    %140 = "arith.extf"(%137) : (f16) -> (f32)
    %141 = "arith.extf"(%138) : (f16) -> (f32)
    %142 = "arith.mulf"(%140, %141) : (f32, f32) -> (f32)
    %143 = "arith.addf"(%139, %142) : (f32, f32) -> (f32)
    "linalg.yield"(%143) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x16x1xf16>, tensor<2x6x1xf16>, tensor<2x16x6xf32>) -> (tensor<2x16x6xf32>)
  %144 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %145 = "tensor.empty"() : () -> (tensor<12xi32>)
  %146 = "linalg.fill"(%144, %145) ({
  ^bb0(%147: i32, %148: i32):
    "linalg.yield"(%147) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<12xi32>) -> (tensor<12xi32>)
  %149 = "linalg.generic"(%10, %146) ({
  ^bb0(%150: i32, %151: i32):
    %152 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %153 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %154 = "arith.index_cast"(%152) : (index) -> (i32)
    %155 = "arith.cmpi"(%150, %154) {predicate = 3 : i64} : (i32, i32) -> (i1)
    %156 = "arith.extui"(%155) : (i1) -> (i32)
    %157 = "arith.addi"(%151, %156) : (i32, i32) -> (i32)
    "linalg.yield"(%157) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2xi32>, tensor<12xi32>) -> (tensor<12xi32>)
  %158 = "tensor.empty"() : () -> (tensor<12xi32>)
  %159 = "linalg.generic"(%158) ({
  ^bb0(%160: i32):
    %161 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %162 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %163 = "arith.index_cast"(%161) : (index) -> (i32)
    %164 = "arith.maxsi"(%163, %162) : (i32, i32) -> (i32)
    %165 = "arith.index_cast"(%164) : (i32) -> (index)
    %166 = "tensor.extract"(%149, %165) : (tensor<12xi32>, index) -> (i32)
    %167 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %168 = "arith.subi"(%166, %167) : (i32, i32) -> (i32)
    %169 = "arith.minsi"(%163, %168) : (i32, i32) -> (i32)
    %170 = "arith.cmpi"(%169, %162) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %171 = "arith.maxsi"(%168, %162) : (i32, i32) -> (i32)
    %172 = "arith.index_cast"(%171) : (i32) -> (index)
    %173 = "tensor.extract"(%10, %172) : (tensor<2xi32>, index) -> (i32)
    %174 = "arith.subi"(%164, %173) : (i32, i32) -> (i32)
    %175 = "tensor.extract"(%26, %172) : (tensor<2xi32>, index) -> (i32)
    %176 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %177 = "arith.muli"(%175, %176) : (i32, i32) -> (i32)
    %178 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %179 = "arith.addi"(%177, %174) : (i32, i32) -> (i32)
    %180 = "arith.select"(%170, %178, %179) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%180) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<12xi32>) -> (tensor<12xi32>)
  %181 = "tensor.empty"() : () -> (tensor<1x12x6xf32>)
  %182 = "linalg.generic"(%159, %181) ({
  ^bb0(%183: i32, %184: f32):
    %185 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %186 = "arith.cmpi"(%183, %185) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %187 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %188 = "arith.select"(%186, %183, %187) : (i1, i32, i32) -> (i32)
    %189 = "arith.index_cast"(%188) : (i32) -> (index)
    %190 = "arith.constant"() {value = 16 : index} : () -> (index)
    %191 = "arith.divui"(%189, %190) : (index, index) -> (index)
    %192 = "arith.remui"(%189, %190) : (index, index) -> (index)
    %193 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %194 = "tensor.extract"(%136, %191, %192, %193) : (tensor<2x16x6xf32>, index, index, index) -> (f32)
    %195 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %196 = "arith.select"(%186, %194, %195) : (i1, f32, f32) -> (f32)
    "linalg.yield"(%196) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<12xi32>, tensor<1x12x6xf32>) -> (tensor<1x12x6xf32>)
  %197 = "tensor.empty"() : () -> (tensor<1x12x6xf16>)
  %198 = "linalg.generic"(%182, %197) ({
  ^bb0(%199: f32, %200: f16):
    %201 = "arith.truncf"(%199) : (f32) -> (f16)
    "linalg.yield"(%201) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x12x6xf32>, tensor<1x12x6xf16>) -> (tensor<1x12x6xf16>)
  "func.return"(%198) : (tensor<1x12x6xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %in3: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x9x1xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<2x1x6xf16>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<2x1x1xi32>
    %i3 = hal.tensor.import wait(%wait) => %in3 : !hal.buffer_view -> tensor<1x12x1xi32>
    %r = func.call @compute(%i0, %i1, %i2, %i3) : (tensor<1x9x1xf16>, tensor<2x1x6xf16>, tensor<2x1x1xi32>, tensor<1x12x1xi32>) -> (tensor<1x12x6xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x12x6xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x12x6xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x12x6xf16>) => %signal : !hal.fence
    util.return
  }
}
