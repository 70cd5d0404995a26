// Sums of a loop inside of an element, computed in the dispatch of reductions: a row in five is wrong.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x11x8xbf16>, %1: tensor<1x11x5xbf16>, %2: tensor<2x1x1xi32>, %3: tensor<2x5x8xbf16>, %4: tensor<1x1x8xbf16>) -> (tensor<2x5x8xf32>, tensor<1x1x8xbf16>, tensor<1x1x8xbf16>) {
  %5 = "tensor.collapse_shape"(%2) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<2x1x1xi32>) -> (tensor<2xi32>)
  %6 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %7 = "tensor.empty"() : () -> (tensor<2xi32>)
  %8 = "linalg.fill"(%6, %7) ({
  ^bb0(%9: i32, %10: i32):
    "linalg.yield"(%9) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<2xi32>) -> (tensor<2xi32>)
  %11 = "linalg.generic"(%5, %8) ({
  ^bb0(%12: i32, %13: i32):
    %14 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %15 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %16 = "arith.constant"() {value = 11 : i32} : () -> (i32)
    %17 = "arith.minsi"(%12, %16) : (i32, i32) -> (i32)
    %18 = "arith.cmpi"(%15, %14) {predicate = 7 : i64} : (index, index) -> (i1)
    %19 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %20 = "arith.select"(%18, %17, %19) : (i1, i32, i32) -> (i32)
    %21 = "arith.maxsi"(%13, %20) : (i32, i32) -> (i32)
    "linalg.yield"(%21) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>)
  %22 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %23 = "tensor.empty"() : () -> (tensor<2xi32>)
  %24 = "linalg.fill"(%22, %23) ({
  ^bb0(%25: i32, %26: i32):
    "linalg.yield"(%25) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<2xi32>) -> (tensor<2xi32>)
  %27 = "linalg.generic"(%11, %24) ({
  ^bb0(%28: i32, %29: i32):
    %30 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %31 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %32 = "arith.constant"() {value = 1 : index} : () -> (index)
    %33 = "arith.addi"(%31, %32) : (index, index) -> (index)
    %34 = "arith.constant"() {value = 1 : index} : () -> (index)
    %35 = "arith.minui"(%33, %34) : (index, index) -> (index)
    %36 = "tensor.extract"(%11, %35) : (tensor<2xi32>, index) -> (i32)
    %37 = "arith.subi"(%36, %28) : (i32, i32) -> (i32)
    %38 = "arith.constant"() {value = 15 : i32} : () -> (i32)
    %39 = "arith.addi"(%37, %38) : (i32, i32) -> (i32)
    %40 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %41 = "arith.divui"(%39, %40) : (i32, i32) -> (i32)
    %42 = "arith.cmpi"(%33, %30) {predicate = 7 : i64} : (index, index) -> (i1)
    %43 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %44 = "arith.select"(%42, %41, %43) : (i1, i32, i32) -> (i32)
    %45 = "arith.addi"(%29, %44) : (i32, i32) -> (i32)
    "linalg.yield"(%45) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>)
  %46 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %47 = "tensor.empty"() : () -> (tensor<2xi32>)
  %48 = "linalg.fill"(%46, %47) ({
  ^bb0(%49: i32, %50: i32):
    "linalg.yield"(%49) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<2xi32>) -> (tensor<2xi32>)
  %51 = "linalg.generic"(%27, %48) ({
  ^bb0(%52: i32, %53: i32):
    %54 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %55 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %56 = "arith.index_cast"(%54) : (index) -> (i32)
    %57 = "arith.cmpi"(%52, %56) {predicate = 3 : i64} : (i32, i32) -> (i1)
    %58 = "arith.extui"(%57) : (i1) -> (i32)
    %59 = "arith.addi"(%53, %58) : (i32, i32) -> (i32)
    "linalg.yield"(%59) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>)
  %60 = "tensor.empty"() : () -> (tensor<2x16xi32>)
  %61 = "linalg.generic"(%60) ({
  ^bb0(%62: i32):
    %63 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %64 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %65 = "tensor.extract"(%51, %63) : (tensor<2xi32>, index) -> (i32)
    %66 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %67 = "arith.maxsi"(%65, %66) : (i32, i32) -> (i32)
    %68 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %69 = "arith.subi"(%67, %68) : (i32, i32) -> (i32)
    %70 = "arith.index_cast"(%69) : (i32) -> (index)
    %71 = "tensor.extract"(%27, %70) : (tensor<2xi32>, index) -> (i32)
    %72 = "arith.index_cast"(%63) : (index) -> (i32)
    %73 = "arith.subi"(%72, %71) : (i32, i32) -> (i32)
    %74 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %75 = "arith.muli"(%73, %74) : (i32, i32) -> (i32)
    %76 = "arith.index_cast"(%64) : (index) -> (i32)
    %77 = "arith.addi"(%75, %76) : (i32, i32) -> (i32)
    %78 = "tensor.extract"(%11, %70) : (tensor<2xi32>, index) -> (i32)
    %79 = "arith.addi"(%78, %77) : (i32, i32) -> (i32)
    %80 = "arith.constant"() {value = 11 : i32} : () -> (i32)
    %81 = "arith.constant"() {value = 1 : index} : () -> (index)
    %82 = "arith.cmpi"(%81, %70) {predicate = 7 : i64} : (index, index) -> (i1)
    %83 = "arith.constant"() {value = 1 : index} : () -> (index)
    %84 = "arith.addi"(%70, %83) : (index, index) -> (index)
    %85 = "arith.minui"(%84, %81) : (index, index) -> (index)
    %86 = "tensor.extract"(%11, %85) : (tensor<2xi32>, index) -> (i32)
    %87 = "arith.select"(%82, %80, %86) : (i1, i32, i32) -> (i32)
    %88 = "arith.cmpi"(%79, %87) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %89 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %90 = "arith.select"(%88, %79, %89) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%90) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<2x16xi32>) -> (tensor<2x16xi32>)
  %91 = "tensor.empty"() : () -> (tensor<2x16x5xbf16>)
  %92 = "linalg.generic"(%61, %91) ({
  ^bb0(%93: i32, %94: bf16):
    %95 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %96 = "arith.cmpi"(%93, %95) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %97 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %98 = "arith.select"(%96, %93, %97) : (i1, i32, i32) -> (i32)
    %99 = "arith.index_cast"(%98) : (i32) -> (index)
    %100 = "arith.constant"() {value = 0 : index} : () -> (index)
    %101 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %102 = "tensor.extract"(%1, %100, %99, %101) : (tensor<1x11x5xbf16>, index, index, index) -> (bf16)
    %103 = "arith.constant"() {value = 0.0e0 : bf16} : () -> (bf16)
    %104 = "arith.select"(%96, %102, %103) : (i1, bf16, bf16) -> (bf16)
    "linalg.yield"(%104) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16xi32>, tensor<2x16x5xbf16>) -> (tensor<2x16x5xbf16>)
  %105 = "iree_tensor_ext.compute_barrier.start"(%92) : (tensor<2x16x5xbf16>) -> (tensor<2x16x5xbf16>)
  %106 = "tensor.empty"() : () -> (tensor<2x16x8xbf16>)
  %107 = "linalg.generic"(%61, %106) ({
  ^bb0(%108: i32, %109: bf16):
    %110 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %111 = "arith.cmpi"(%108, %110) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %112 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %113 = "arith.select"(%111, %108, %112) : (i1, i32, i32) -> (i32)
    %114 = "arith.index_cast"(%113) : (i32) -> (index)
    %115 = "arith.constant"() {value = 0 : index} : () -> (index)
    %116 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %117 = "tensor.extract"(%0, %115, %114, %116) : (tensor<1x11x8xbf16>, index, index, index) -> (bf16)
    %118 = "arith.constant"() {value = 0.0e0 : bf16} : () -> (bf16)
    %119 = "arith.select"(%111, %117, %118) : (i1, bf16, bf16) -> (bf16)
    "linalg.yield"(%119) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16xi32>, tensor<2x16x8xbf16>) -> (tensor<2x16x8xbf16>)
  %120 = "iree_tensor_ext.compute_barrier.start"(%107) : (tensor<2x16x8xbf16>) -> (tensor<2x16x8xbf16>)
  %121 = "tensor.empty"() : () -> (tensor<2x5x16xbf16>)
  %122 = "linalg.generic"(%105, %121) ({
  ^bb0(%123: bf16, %124: bf16):
    "linalg.yield"(%123) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16x5xbf16>, tensor<2x5x16xbf16>) -> (tensor<2x5x16xbf16>)
  %125 = "iree_tensor_ext.compute_barrier.start"(%122) : (tensor<2x5x16xbf16>) -> (tensor<2x5x16xbf16>)
  %126 = "tensor.empty"() : () -> (tensor<2x8x16xbf16>)
  %127 = "linalg.generic"(%120, %126) ({
  ^bb0(%128: bf16, %129: bf16):
    "linalg.yield"(%128) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16x8xbf16>, tensor<2x8x16xbf16>) -> (tensor<2x8x16xbf16>)
  %130 = "iree_tensor_ext.compute_barrier.start"(%127) : (tensor<2x8x16xbf16>) -> (tensor<2x8x16xbf16>)
  %131 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %132 = "tensor.empty"() : () -> (tensor<2x5x8xf32>)
  %133 = "linalg.fill"(%131, %132) ({
  ^bb0(%134: f32, %135: f32):
    "linalg.yield"(%134) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %136 = "linalg.generic"(%125, %130, %133) ({
  ^bb0(%137: bf16, %138: bf16, %139: f32):
    %140 = "arith.extf"(%137) : (bf16) -> (f32)
    %141 = "arith.extf"(%138) : (bf16) -> (f32)
    %142 = "arith.mulf"(%140, %141) : (f32, f32) -> (f32)
    %143 = "arith.addf"(%139, %142) : (f32, f32) -> (f32)
    "linalg.yield"(%143) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x5x16xbf16>, tensor<2x8x16xbf16>, tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %144 = "iree_tensor_ext.compute_barrier.start"(%136) : (tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %145 = "tensor.empty"() : () -> (tensor<2x5x8xf32>)
  %146 = "linalg.generic"(%145) ({
  ^bb0(%147: f32):
    %148 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %149 = "tensor.extract"(%27, %148) : (tensor<2xi32>, index) -> (i32)
    %150 = "tensor.extract"(%11, %148) : (tensor<2xi32>, index) -> (i32)
    %151 = "arith.constant"() {value = 11 : i32} : () -> (i32)
    %152 = "arith.constant"() {value = 1 : index} : () -> (index)
    %153 = "arith.cmpi"(%152, %148) {predicate = 7 : i64} : (index, index) -> (i1)
    %154 = "arith.constant"() {value = 1 : index} : () -> (index)
    %155 = "arith.addi"(%148, %154) : (index, index) -> (index)
    %156 = "arith.minui"(%155, %152) : (index, index) -> (index)
    %157 = "tensor.extract"(%11, %156) : (tensor<2xi32>, index) -> (i32)
    %158 = "arith.select"(%153, %151, %157) : (i1, i32, i32) -> (i32)
    %159 = "arith.subi"(%158, %150) : (i32, i32) -> (i32)
    %160 = "arith.constant"() {value = 15 : i32} : () -> (i32)
    %161 = "arith.addi"(%159, %160) : (i32, i32) -> (i32)
    %162 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %163 = "arith.divui"(%161, %162) : (i32, i32) -> (i32)
    %164 = "arith.addi"(%149, %163) : (i32, i32) -> (i32)
    %165 = "arith.index_cast"(%149) : (i32) -> (index)
    %166 = "arith.index_cast"(%164) : (i32) -> (index)
    %167 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %168 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %169 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %170 = "arith.constant"() {value = 1 : index} : () -> (index)
    %171 = "scf.for"(%165, %166, %170, %169) ({
    ^bb0(%172: index, %173: f32):
      %174 = "tensor.extract"(%144, %172, %167, %168) : (tensor<2x5x8xf32>, index, index, index) -> (f32)
      %175 = "arith.addf"(%173, %174) : (f32, f32) -> (f32)
      "scf.yield"(%175) : (f32) -> ()
    }) : (index, index, index, f32) -> (f32)
    "linalg.yield"(%171) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %176 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %177 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %178 = "linalg.fill"(%176, %177) ({
  ^bb0(%179: f32, %180: f32):
    "linalg.yield"(%179) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %181 = "linalg.generic"(%146, %178) ({
  ^bb0(%182: f32, %183: f32):
    %184 = "arith.addf"(%183, %182) : (f32, f32) -> (f32)
    "linalg.yield"(%184) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5x8xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %185 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %186 = "linalg.generic"(%181, %185) ({
  ^bb0(%187: f32, %188: f32):
    %189 = "arith.constant"() {value = 8.0e0 : f32} : () -> (f32)
    %190 = "arith.divf"(%187, %189) : (f32, f32) -> (f32)
    "linalg.yield"(%190) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %191 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %192 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %193 = "linalg.fill"(%191, %192) ({
  ^bb0(%194: f32, %195: f32):
    "linalg.yield"(%194) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %196 = "linalg.generic"(%146, %186, %193) ({
  ^bb0(%197: f32, %198: f32, %199: f32):
    %200 = "arith.subf"(%197, %198) : (f32, f32) -> (f32)
    %201 = "arith.mulf"(%200, %200) : (f32, f32) -> (f32)
    %202 = "math.copysign"(%201, %201) : (f32, f32) -> (f32)
    %203 = "arith.addf"(%199, %202) : (f32, f32) -> (f32)
    "linalg.yield"(%203) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x5x8xf32>, tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %204 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %205 = "linalg.generic"(%196, %204) ({
  ^bb0(%206: f32, %207: f32):
    %208 = "arith.constant"() {value = 8.0e0 : f32} : () -> (f32)
    %209 = "arith.divf"(%206, %208) : (f32, f32) -> (f32)
    "linalg.yield"(%209) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %210 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %211 = "linalg.generic"(%205, %210) ({
  ^bb0(%212: f32, %213: f32):
    %214 = "arith.constant"() {value = 1.0e-3 : f32} : () -> (f32)
    %215 = "arith.addf"(%212, %214) : (f32, f32) -> (f32)
    %216 = "arith.constant"() {value = 1.0e0 : f32} : () -> (f32)
    %217 = "math.sqrt"(%215) : (f32) -> (f32)
    %218 = "arith.divf"(%216, %217) : (f32, f32) -> (f32)
    "linalg.yield"(%218) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %219 = "tensor.collapse_shape"(%4) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<1x1x8xbf16>) -> (tensor<8xbf16>)
  %220 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %221 = "tensor.empty"() : () -> (tensor<8xf32>)
  %222 = "linalg.fill"(%220, %221) ({
  ^bb0(%223: f32, %224: f32):
    "linalg.yield"(%223) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<8xf32>) -> (tensor<8xf32>)
  %225 = "linalg.generic"(%3, %146, %219, %211, %186, %222) ({
  ^bb0(%226: bf16, %227: f32, %228: bf16, %229: f32, %230: f32, %231: f32):
    %232 = "arith.extf"(%226) : (bf16) -> (f32)
    %233 = "arith.extf"(%228) : (bf16) -> (f32)
    %234 = "arith.mulf"(%232, %233) : (f32, f32) -> (f32)
    %235 = "arith.subf"(%227, %230) : (f32, f32) -> (f32)
    %236 = "arith.mulf"(%235, %229) : (f32, f32) -> (f32)
    %237 = "arith.mulf"(%232, %236) : (f32, f32) -> (f32)
    %238 = "arith.addf"(%231, %237) : (f32, f32) -> (f32)
    "linalg.yield"(%238) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 5, 1>} : (tensor<2x5x8xbf16>, tensor<2x5x8xf32>, tensor<8xbf16>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<8xf32>) -> (tensor<8xf32>)
  %239 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %240 = "tensor.empty"() : () -> (tensor<8xf32>)
  %241 = "linalg.fill"(%239, %240) ({
  ^bb0(%242: f32, %243: f32):
    "linalg.yield"(%242) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<8xf32>) -> (tensor<8xf32>)
  %244 = "linalg.generic"(%3, %241) ({
  ^bb0(%245: bf16, %246: f32):
    %247 = "arith.extf"(%245) : (bf16) -> (f32)
    %248 = "arith.addf"(%246, %247) : (f32, f32) -> (f32)
    "linalg.yield"(%248) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5x8xbf16>, tensor<8xf32>) -> (tensor<8xf32>)
  %249 = "tensor.collapse_shape"(%4) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<1x1x8xbf16>) -> (tensor<8xbf16>)
  %250 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %251 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %252 = "linalg.fill"(%250, %251) ({
  ^bb0(%253: f32, %254: f32):
    "linalg.yield"(%253) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %255 = "linalg.generic"(%3, %146, %249, %211, %186, %252) ({
  ^bb0(%256: bf16, %257: f32, %258: bf16, %259: f32, %260: f32, %261: f32):
    %262 = "arith.extf"(%256) : (bf16) -> (f32)
    %263 = "arith.extf"(%258) : (bf16) -> (f32)
    %264 = "arith.mulf"(%262, %263) : (f32, f32) -> (f32)
    %265 = "arith.subf"(%257, %260) : (f32, f32) -> (f32)
    %266 = "arith.mulf"(%265, %259) : (f32, f32) -> (f32)
    %267 = "arith.mulf"(%264, %266) : (f32, f32) -> (f32)
    %268 = "math.copysign"(%267, %267) : (f32, f32) -> (f32)
    %269 = "arith.addf"(%261, %268) : (f32, f32) -> (f32)
    "linalg.yield"(%269) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 5, 1>} : (tensor<2x5x8xbf16>, tensor<2x5x8xf32>, tensor<8xbf16>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %270 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %271 = "linalg.generic"(%255, %270) ({
  ^bb0(%272: f32, %273: f32):
    %274 = "arith.constant"() {value = 8.0e0 : f32} : () -> (f32)
    %275 = "arith.divf"(%272, %274) : (f32, f32) -> (f32)
    "linalg.yield"(%275) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %276 = "tensor.collapse_shape"(%4) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<1x1x8xbf16>) -> (tensor<8xbf16>)
  %277 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %278 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %279 = "linalg.fill"(%277, %278) ({
  ^bb0(%280: f32, %281: f32):
    "linalg.yield"(%280) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %282 = "linalg.generic"(%3, %276, %279) ({
  ^bb0(%283: bf16, %284: bf16, %285: f32):
    %286 = "arith.extf"(%283) : (bf16) -> (f32)
    %287 = "arith.extf"(%284) : (bf16) -> (f32)
    %288 = "arith.mulf"(%286, %287) : (f32, f32) -> (f32)
    %289 = "arith.addf"(%285, %288) : (f32, f32) -> (f32)
    "linalg.yield"(%289) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x5x8xbf16>, tensor<8xbf16>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %290 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %291 = "linalg.generic"(%282, %290) ({
  ^bb0(%292: f32, %293: f32):
    %294 = "arith.constant"() {value = 8.0e0 : f32} : () -> (f32)
    %295 = "arith.divf"(%292, %294) : (f32, f32) -> (f32)
    "linalg.yield"(%295) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %296 = "tensor.collapse_shape"(%4) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<1x1x8xbf16>) -> (tensor<8xbf16>)
  %297 = "tensor.empty"() : () -> (tensor<2x5x8xf32>)
  %298 = "linalg.generic"(%3, %146, %296, %211, %186, %271, %291, %297) ({
  ^bb0(%299: bf16, %300: f32, %301: bf16, %302: f32, %303: f32, %304: f32, %305: f32, %306: f32):
    %307 = "arith.extf"(%299) : (bf16) -> (f32)
    %308 = "arith.extf"(%301) : (bf16) -> (f32)
    %309 = "arith.mulf"(%307, %308) : (f32, f32) -> (f32)
    %310 = "arith.subf"(%300, %303) : (f32, f32) -> (f32)
    %311 = "arith.mulf"(%310, %302) : (f32, f32) -> (f32)
    %312 = "arith.subf"(%309, %305) : (f32, f32) -> (f32)
    %313 = "arith.mulf"(%311, %304) : (f32, f32) -> (f32)
    %314 = "arith.subf"(%312, %313) : (f32, f32) -> (f32)
    %315 = "arith.mulf"(%302, %314) : (f32, f32) -> (f32)
    "linalg.yield"(%315) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 7, 1>} : (tensor<2x5x8xbf16>, tensor<2x5x8xf32>, tensor<8xbf16>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %316 = "tensor.empty"() : () -> (tensor<1x1x8xf32>)
  %317 = "linalg.generic"(%225, %316) ({
  ^bb0(%318: f32, %319: f32):
    "linalg.yield"(%318) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8xf32>, tensor<1x1x8xf32>) -> (tensor<1x1x8xf32>)
  %320 = "tensor.empty"() : () -> (tensor<1x1x8xf32>)
  %321 = "linalg.generic"(%244, %320) ({
  ^bb0(%322: f32, %323: f32):
    "linalg.yield"(%322) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8xf32>, tensor<1x1x8xf32>) -> (tensor<1x1x8xf32>)
  %324 = "tensor.empty"() : () -> (tensor<1x1x8xbf16>)
  %325 = "linalg.generic"(%317, %324) ({
  ^bb0(%326: f32, %327: bf16):
    %328 = "arith.truncf"(%326) : (f32) -> (bf16)
    "linalg.yield"(%328) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x1x8xf32>, tensor<1x1x8xbf16>) -> (tensor<1x1x8xbf16>)
  %329 = "tensor.empty"() : () -> (tensor<1x1x8xbf16>)
  %330 = "linalg.generic"(%321, %329) ({
  ^bb0(%331: f32, %332: bf16):
    %333 = "arith.truncf"(%331) : (f32) -> (bf16)
    "linalg.yield"(%333) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x1x8xf32>, tensor<1x1x8xbf16>) -> (tensor<1x1x8xbf16>)
  "func.return"(%298, %325, %330) : (tensor<2x5x8xf32>, tensor<1x1x8xbf16>, tensor<1x1x8xbf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %in3: !hal.buffer_view, %in4: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x11x8xbf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x11x5xbf16>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<2x1x1xi32>
    %i3 = hal.tensor.import wait(%wait) => %in3 : !hal.buffer_view -> tensor<2x5x8xbf16>
    %i4 = hal.tensor.import wait(%wait) => %in4 : !hal.buffer_view -> tensor<1x1x8xbf16>
    %r:3 = func.call @compute(%i0, %i1, %i2, %i3, %i4) : (tensor<1x11x8xbf16>, tensor<1x11x5xbf16>, tensor<2x1x1xi32>, tensor<2x5x8xbf16>, tensor<1x1x8xbf16>) -> (tensor<2x5x8xf32>, tensor<1x1x8xbf16>, tensor<1x1x8xbf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<2x5x8xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<2x5x8xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x1x8xbf16> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x1x8xbf16> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x1x8xbf16> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x1x8xbf16> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<2x5x8xf32>, tensor<1x1x8xbf16>, tensor<1x1x8xbf16>) => %signal : !hal.fence
    util.return
  }
}
