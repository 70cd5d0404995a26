// The only entry of a list of one tile is read on the host while the graph runs.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x1x3xf16>, %1: tensor<4x3x5xf16>, %2: tensor<4x1x1xi32>) -> (tensor<1x1x5xf16>) {
  %3 = "tensor.collapse_shape"(%2) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<4x1x1xi32>) -> (tensor<4xi32>)
  %4 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %5 = "tensor.empty"() : () -> (tensor<4xi32>)
  %6 = "linalg.fill"(%4, %5) ({
  ^bb0(%7: i32, %8: i32):
    "linalg.yield"(%7) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<4xi32>) -> (tensor<4xi32>)
  %9 = "linalg.generic"(%3, %6) ({
  ^bb0(%10: i32, %11: i32):
    %12 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %13 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %14 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %15 = "arith.minsi"(%10, %14) : (i32, i32) -> (i32)
    %16 = "arith.cmpi"(%13, %12) {predicate = 7 : i64} : (index, index) -> (i1)
    %17 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %18 = "arith.select"(%16, %15, %17) : (i1, i32, i32) -> (i32)
    %19 = "arith.maxsi"(%11, %18) : (i32, i32) -> (i32)
    "linalg.yield"(%19) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xi32>, tensor<4xi32>) -> (tensor<4xi32>)
  %20 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %21 = "tensor.empty"() : () -> (tensor<4xi32>)
  %22 = "linalg.fill"(%20, %21) ({
  ^bb0(%23: i32, %24: i32):
    "linalg.yield"(%23) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<4xi32>) -> (tensor<4xi32>)
  %25 = "linalg.generic"(%9, %22) ({
  ^bb0(%26: i32, %27: i32):
    %28 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %29 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %30 = "arith.constant"() {value = 1 : index} : () -> (index)
    %31 = "arith.addi"(%29, %30) : (index, index) -> (index)
    %32 = "arith.constant"() {value = 3 : index} : () -> (index)
    %33 = "arith.minui"(%31, %32) : (index, index) -> (index)
    %34 = "tensor.extract"(%9, %33) : (tensor<4xi32>, index) -> (i32)
    %35 = "arith.subi"(%34, %26) : (i32, i32) -> (i32)
    %36 = "arith.constant"() {value = 15 : i32} : () -> (i32)
    %37 = "arith.addi"(%35, %36) : (i32, i32) -> (i32)
    %38 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %39 = "arith.divui"(%37, %38) : (i32, i32) -> (i32)
    %40 = "arith.cmpi"(%31, %28) {predicate = 7 : i64} : (index, index) -> (i1)
    %41 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %42 = "arith.select"(%40, %39, %41) : (i1, i32, i32) -> (i32)
    %43 = "arith.addi"(%27, %42) : (i32, i32) -> (i32)
    "linalg.yield"(%43) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xi32>, tensor<4xi32>) -> (tensor<4xi32>)
  %44 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %45 = "tensor.empty"() : () -> (tensor<1xi32>)
  %46 = "linalg.fill"(%44, %45) ({
  ^bb0(%47: i32, %48: i32):
    "linalg.yield"(%47) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<1xi32>) -> (tensor<1xi32>)
  %49 = "linalg.generic"(%25, %46) ({
  ^bb0(%50: i32, %51: i32):
    %52 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %53 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %54 = "arith.index_cast"(%52) : (index) -> (i32)
    %55 = "arith.cmpi"(%50, %54) {predicate = 3 : i64} : (i32, i32) -> (i1)
    %56 = "arith.extui"(%55) : (i1) -> (i32)
    %57 = "arith.addi"(%51, %56) : (i32, i32) -> (i32)
    "linalg.yield"(%57) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xi32>, tensor<1xi32>) -> (tensor<1xi32>)
  %58 = "tensor.empty"() : () -> (tensor<1x16xi32>)
  %59 = "linalg.generic"(%58) ({
  ^bb0(%60: i32):
    %61 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %62 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %63 = "tensor.extract"(%49, %61) : (tensor<1xi32>, index) -> (i32)
    %64 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %65 = "arith.maxsi"(%63, %64) : (i32, i32) -> (i32)
    %66 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %67 = "arith.subi"(%65, %66) : (i32, i32) -> (i32)
    %68 = "arith.index_cast"(%67) : (i32) -> (index)
    %69 = "tensor.extract"(%25, %68) : (tensor<4xi32>, index) -> (i32)
    %70 = "arith.index_cast"(%61) : (index) -> (i32)
    %71 = "arith.subi"(%70, %69) : (i32, i32) -> (i32)
    %72 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %73 = "arith.muli"(%71, %72) : (i32, i32) -> (i32)
    %74 = "arith.index_cast"(%62) : (index) -> (i32)
    %75 = "arith.addi"(%73, %74) : (i32, i32) -> (i32)
    %76 = "tensor.extract"(%9, %68) : (tensor<4xi32>, index) -> (i32)
    %77 = "arith.addi"(%76, %75) : (i32, i32) -> (i32)
    %78 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %79 = "arith.constant"() {value = 3 : index} : () -> (index)
    %80 = "arith.cmpi"(%79, %68) {predicate = 7 : i64} : (index, index) -> (i1)
    %81 = "arith.constant"() {value = 1 : index} : () -> (index)
    %82 = "arith.addi"(%68, %81) : (index, index) -> (index)
    %83 = "arith.minui"(%82, %79) : (index, index) -> (index)
    %84 = "tensor.extract"(%9, %83) : (tensor<4xi32>, index) -> (i32)
    %85 = "arith.select"(%80, %78, %84) : (i1, i32, i32) -> (i32)
    %86 = "arith.subi"(%85, %76) : (i32, i32) -> (i32)
    %87 = "arith.cmpi"(%75, %86) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %88 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %89 = "arith.select"(%87, %77, %88) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%89) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<1x16xi32>) -> (tensor<1x16xi32>)
  %90 = "tensor.empty"() : () -> (tensor<1x16x3xf16>)
  %91 = "linalg.generic"(%59, %90) ({
  ^bb0(%92: i32, %93: f16):
    %94 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %95 = "arith.cmpi"(%92, %94) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %96 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %97 = "arith.select"(%95, %92, %96) : (i1, i32, i32) -> (i32)
    %98 = "arith.index_cast"(%97) : (i32) -> (index)
    %99 = "arith.constant"() {value = 0 : index} : () -> (index)
    %100 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %101 = "tensor.extract"(%0, %99, %98, %100) : (tensor<1x1x3xf16>, index, index, index) -> (f16)
    %102 = "arith.constant"() {value = 0.0e0 : f16} : () -> (f16)
    %103 = "arith.select"(%95, %101, %102) : (i1, f16, f16) -> (f16)
    "linalg.yield"(%103) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x16xi32>, tensor<1x16x3xf16>) -> (tensor<1x16x3xf16>)
  %104 = "iree_tensor_ext.compute_barrier.start"(%91) : (tensor<1x16x3xf16>) -> (tensor<1x16x3xf16>)
  %105 = "tensor.empty"() : () -> (tensor<1xi32>)
  %106 = "linalg.generic"(%105) ({
  ^bb0(%107: i32):
    %108 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %109 = "tensor.extract"(%49, %108) : (tensor<1xi32>, index) -> (i32)
    %110 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %111 = "arith.maxsi"(%109, %110) : (i32, i32) -> (i32)
    %112 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %113 = "arith.subi"(%111, %112) : (i32, i32) -> (i32)
    %114 = "arith.index_cast"(%113) : (i32) -> (index)
    %115 = "arith.constant"() {value = 4 : index} : () -> (index)
    %116 = "arith.remui"(%114, %115) : (index, index) -> (index)
    %117 = "arith.index_cast"(%116) : (index) -> (i32)
    "linalg.yield"(%117) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<1xi32>) -> (tensor<1xi32>)
  %118 = "tensor.empty"() : () -> (tensor<1x3x5xf16>)
  %119 = "iree_linalg_ext.gather"(%1, %106, %118) {dimension_map = array<i64: 0>} : (tensor<4x3x5xf16>, tensor<1xi32>, tensor<1x3x5xf16>) -> (tensor<1x3x5xf16>)
  %120 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %121 = "tensor.empty"() : () -> (tensor<1x16x5xf32>)
  %122 = "linalg.fill"(%120, %121) ({
  ^bb0(%123: f32, %124: f32):
    "linalg.yield"(%123) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x16x5xf32>) -> (tensor<1x16x5xf32>)
  %125 = "linalg.generic"(%104, %119, %122) ({
  ^bb0(%126: f16, %127: f16, %128: f32):
    %129 = "arith.extf"(%126) : (f16) -> (f32)
    %130 = "arith.extf"(%127) : (f16) -> (f32)
    %131 = "arith.mulf"(%129, %130) : (f32, f32) -> (f32)
    %132 = "arith.addf"(%128, %131) : (f32, f32) -> (f32)
    "linalg.yield"(%132) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x16x3xf16>, tensor<1x3x5xf16>, tensor<1x16x5xf32>) -> (tensor<1x16x5xf32>)
  %133 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %134 = "tensor.empty"() : () -> (tensor<1xi32>)
  %135 = "linalg.fill"(%133, %134) ({
  ^bb0(%136: i32, %137: i32):
    "linalg.yield"(%136) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<1xi32>) -> (tensor<1xi32>)
  %138 = "linalg.generic"(%9, %135) ({
  ^bb0(%139: i32, %140: i32):
    %141 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %142 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %143 = "arith.index_cast"(%141) : (index) -> (i32)
    %144 = "arith.cmpi"(%139, %143) {predicate = 3 : i64} : (i32, i32) -> (i1)
    %145 = "arith.extui"(%144) : (i1) -> (i32)
    %146 = "arith.addi"(%140, %145) : (i32, i32) -> (i32)
    "linalg.yield"(%146) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xi32>, tensor<1xi32>) -> (tensor<1xi32>)
  %147 = "tensor.empty"() : () -> (tensor<1xi32>)
  %148 = "linalg.generic"(%147) ({
  ^bb0(%149: i32):
    %150 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %151 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %152 = "arith.index_cast"(%150) : (index) -> (i32)
    %153 = "arith.maxsi"(%152, %151) : (i32, i32) -> (i32)
    %154 = "arith.index_cast"(%153) : (i32) -> (index)
    %155 = "tensor.extract"(%138, %154) : (tensor<1xi32>, index) -> (i32)
    %156 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %157 = "arith.subi"(%155, %156) : (i32, i32) -> (i32)
    %158 = "arith.minsi"(%152, %157) : (i32, i32) -> (i32)
    %159 = "arith.cmpi"(%158, %151) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %160 = "arith.maxsi"(%157, %151) : (i32, i32) -> (i32)
    %161 = "arith.index_cast"(%160) : (i32) -> (index)
    %162 = "tensor.extract"(%9, %161) : (tensor<4xi32>, index) -> (i32)
    %163 = "arith.subi"(%153, %162) : (i32, i32) -> (i32)
    %164 = "tensor.extract"(%25, %161) : (tensor<4xi32>, index) -> (i32)
    %165 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %166 = "arith.muli"(%164, %165) : (i32, i32) -> (i32)
    %167 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %168 = "arith.addi"(%166, %163) : (i32, i32) -> (i32)
    %169 = "arith.select"(%159, %167, %168) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%169) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<1xi32>) -> (tensor<1xi32>)
  %170 = "tensor.empty"() : () -> (tensor<1x1x5xf32>)
  %171 = "linalg.generic"(%148, %170) ({
  ^bb0(%172: i32, %173: f32):
    %174 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %175 = "arith.cmpi"(%172, %174) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %176 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %177 = "arith.select"(%175, %172, %176) : (i1, i32, i32) -> (i32)
    %178 = "arith.index_cast"(%177) : (i32) -> (index)
    %179 = "arith.constant"() {value = 16 : index} : () -> (index)
    %180 = "arith.divui"(%178, %179) : (index, index) -> (index)
    %181 = "arith.remui"(%178, %179) : (index, index) -> (index)
    %182 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %183 = "tensor.extract"(%125, %180, %181, %182) : (tensor<1x16x5xf32>, index, index, index) -> (f32)
    %184 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %185 = "arith.select"(%175, %183, %184) : (i1, f32, f32) -> (f32)
    "linalg.yield"(%185) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1xi32>, tensor<1x1x5xf32>) -> (tensor<1x1x5xf32>)
  %186 = "tensor.empty"() : () -> (tensor<1x1x5xf16>)
  %187 = "linalg.generic"(%171, %186) ({
  ^bb0(%188: f32, %189: f16):
    %190 = "arith.truncf"(%188) : (f32) -> (f16)
    "linalg.yield"(%190) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x1x5xf32>, tensor<1x1x5xf16>) -> (tensor<1x1x5xf16>)
  "func.return"(%187) : (tensor<1x1x5xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x1x3xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<4x3x5xf16>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<4x1x1xi32>
    %r = func.call @compute(%i0, %i1, %i2) : (tensor<1x1x3xf16>, tensor<4x3x5xf16>, tensor<4x1x1xi32>) -> (tensor<1x1x5xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x1x5xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x1x5xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x1x5xf16>) => %signal : !hal.fence
    util.return
  }
}
