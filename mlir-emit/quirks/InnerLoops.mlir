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
    %88 = "arith.subi"(%87, %78) : (i32, i32) -> (i32)
    %89 = "arith.cmpi"(%77, %88) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %90 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %91 = "arith.select"(%89, %79, %90) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%91) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<2x16xi32>) -> (tensor<2x16xi32>)
  %92 = "tensor.empty"() : () -> (tensor<2x16x5xbf16>)
  %93 = "linalg.generic"(%61, %92) ({
  ^bb0(%94: i32, %95: bf16):
    %96 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %97 = "arith.cmpi"(%94, %96) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %98 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %99 = "arith.select"(%97, %94, %98) : (i1, i32, i32) -> (i32)
    %100 = "arith.index_cast"(%99) : (i32) -> (index)
    %101 = "arith.constant"() {value = 0 : index} : () -> (index)
    %102 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %103 = "tensor.extract"(%1, %101, %100, %102) : (tensor<1x11x5xbf16>, index, index, index) -> (bf16)
    %104 = "arith.constant"() {value = 0.0e0 : bf16} : () -> (bf16)
    %105 = "arith.select"(%97, %103, %104) : (i1, bf16, bf16) -> (bf16)
    "linalg.yield"(%105) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16xi32>, tensor<2x16x5xbf16>) -> (tensor<2x16x5xbf16>)
  %106 = "iree_tensor_ext.compute_barrier.start"(%93) : (tensor<2x16x5xbf16>) -> (tensor<2x16x5xbf16>)
  %107 = "tensor.empty"() : () -> (tensor<2x16x8xbf16>)
  %108 = "linalg.generic"(%61, %107) ({
  ^bb0(%109: i32, %110: bf16):
    %111 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %112 = "arith.cmpi"(%109, %111) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %113 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %114 = "arith.select"(%112, %109, %113) : (i1, i32, i32) -> (i32)
    %115 = "arith.index_cast"(%114) : (i32) -> (index)
    %116 = "arith.constant"() {value = 0 : index} : () -> (index)
    %117 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %118 = "tensor.extract"(%0, %116, %115, %117) : (tensor<1x11x8xbf16>, index, index, index) -> (bf16)
    %119 = "arith.constant"() {value = 0.0e0 : bf16} : () -> (bf16)
    %120 = "arith.select"(%112, %118, %119) : (i1, bf16, bf16) -> (bf16)
    "linalg.yield"(%120) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16xi32>, tensor<2x16x8xbf16>) -> (tensor<2x16x8xbf16>)
  %121 = "iree_tensor_ext.compute_barrier.start"(%108) : (tensor<2x16x8xbf16>) -> (tensor<2x16x8xbf16>)
  %122 = "tensor.empty"() : () -> (tensor<2x5x16xbf16>)
  %123 = "linalg.generic"(%106, %122) ({
  ^bb0(%124: bf16, %125: bf16):
    "linalg.yield"(%124) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16x5xbf16>, tensor<2x5x16xbf16>) -> (tensor<2x5x16xbf16>)
  %126 = "iree_tensor_ext.compute_barrier.start"(%123) : (tensor<2x5x16xbf16>) -> (tensor<2x5x16xbf16>)
  %127 = "tensor.empty"() : () -> (tensor<2x8x16xbf16>)
  %128 = "linalg.generic"(%121, %127) ({
  ^bb0(%129: bf16, %130: bf16):
    "linalg.yield"(%129) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16x8xbf16>, tensor<2x8x16xbf16>) -> (tensor<2x8x16xbf16>)
  %131 = "iree_tensor_ext.compute_barrier.start"(%128) : (tensor<2x8x16xbf16>) -> (tensor<2x8x16xbf16>)
  %132 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %133 = "tensor.empty"() : () -> (tensor<2x5x8xf32>)
  %134 = "linalg.fill"(%132, %133) ({
  ^bb0(%135: f32, %136: f32):
    "linalg.yield"(%135) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %137 = "linalg.generic"(%126, %131, %134) ({
  ^bb0(%138: bf16, %139: bf16, %140: f32):
    %141 = "arith.extf"(%138) : (bf16) -> (f32)
    %142 = "arith.extf"(%139) : (bf16) -> (f32)
    %143 = "arith.mulf"(%141, %142) : (f32, f32) -> (f32)
    %144 = "arith.addf"(%140, %143) : (f32, f32) -> (f32)
    "linalg.yield"(%144) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x5x16xbf16>, tensor<2x8x16xbf16>, tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %145 = "iree_tensor_ext.compute_barrier.start"(%137) : (tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %146 = "tensor.empty"() : () -> (tensor<2x5x8xf32>)
  %147 = "linalg.generic"(%146) ({
  ^bb0(%148: f32):
    %149 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %150 = "tensor.extract"(%27, %149) : (tensor<2xi32>, index) -> (i32)
    %151 = "tensor.extract"(%11, %149) : (tensor<2xi32>, index) -> (i32)
    %152 = "arith.constant"() {value = 11 : i32} : () -> (i32)
    %153 = "arith.constant"() {value = 1 : index} : () -> (index)
    %154 = "arith.cmpi"(%153, %149) {predicate = 7 : i64} : (index, index) -> (i1)
    %155 = "arith.constant"() {value = 1 : index} : () -> (index)
    %156 = "arith.addi"(%149, %155) : (index, index) -> (index)
    %157 = "arith.minui"(%156, %153) : (index, index) -> (index)
    %158 = "tensor.extract"(%11, %157) : (tensor<2xi32>, index) -> (i32)
    %159 = "arith.select"(%154, %152, %158) : (i1, i32, i32) -> (i32)
    %160 = "arith.subi"(%159, %151) : (i32, i32) -> (i32)
    %161 = "arith.constant"() {value = 15 : i32} : () -> (i32)
    %162 = "arith.addi"(%160, %161) : (i32, i32) -> (i32)
    %163 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %164 = "arith.divui"(%162, %163) : (i32, i32) -> (i32)
    %165 = "arith.addi"(%150, %164) : (i32, i32) -> (i32)
    %166 = "arith.index_cast"(%150) : (i32) -> (index)
    %167 = "arith.index_cast"(%165) : (i32) -> (index)
    %168 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %169 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %170 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %171 = "arith.constant"() {value = 1 : index} : () -> (index)
    %172 = "scf.for"(%166, %167, %171, %170) ({
    ^bb0(%173: index, %174: f32):
      %175 = "tensor.extract"(%145, %173, %168, %169) : (tensor<2x5x8xf32>, index, index, index) -> (f32)
      %176 = "arith.addf"(%174, %175) : (f32, f32) -> (f32)
      "scf.yield"(%176) : (f32) -> ()
    }) : (index, index, index, f32) -> (f32)
    "linalg.yield"(%172) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %177 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %178 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %179 = "linalg.fill"(%177, %178) ({
  ^bb0(%180: f32, %181: f32):
    "linalg.yield"(%180) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %182 = "linalg.generic"(%147, %179) ({
  ^bb0(%183: f32, %184: f32):
    %185 = "arith.addf"(%184, %183) : (f32, f32) -> (f32)
    "linalg.yield"(%185) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5x8xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %186 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %187 = "linalg.generic"(%182, %186) ({
  ^bb0(%188: f32, %189: f32):
    %190 = "arith.constant"() {value = 8.0e0 : f32} : () -> (f32)
    %191 = "arith.divf"(%188, %190) : (f32, f32) -> (f32)
    "linalg.yield"(%191) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %192 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %193 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %194 = "linalg.fill"(%192, %193) ({
  ^bb0(%195: f32, %196: f32):
    "linalg.yield"(%195) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %197 = "linalg.generic"(%147, %187, %194) ({
  ^bb0(%198: f32, %199: f32, %200: f32):
    %201 = "arith.subf"(%198, %199) : (f32, f32) -> (f32)
    %202 = "arith.mulf"(%201, %201) : (f32, f32) -> (f32)
    %203 = "math.copysign"(%202, %202) : (f32, f32) -> (f32)
    %204 = "arith.addf"(%200, %203) : (f32, f32) -> (f32)
    "linalg.yield"(%204) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x5x8xf32>, tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %205 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %206 = "linalg.generic"(%197, %205) ({
  ^bb0(%207: f32, %208: f32):
    %209 = "arith.constant"() {value = 8.0e0 : f32} : () -> (f32)
    %210 = "arith.divf"(%207, %209) : (f32, f32) -> (f32)
    "linalg.yield"(%210) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %211 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %212 = "linalg.generic"(%206, %211) ({
  ^bb0(%213: f32, %214: f32):
    %215 = "arith.constant"() {value = 1.0e-3 : f32} : () -> (f32)
    %216 = "arith.addf"(%213, %215) : (f32, f32) -> (f32)
    %217 = "arith.constant"() {value = 1.0e0 : f32} : () -> (f32)
    %218 = "math.sqrt"(%216) : (f32) -> (f32)
    %219 = "arith.divf"(%217, %218) : (f32, f32) -> (f32)
    "linalg.yield"(%219) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %220 = "tensor.collapse_shape"(%4) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<1x1x8xbf16>) -> (tensor<8xbf16>)
  %221 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %222 = "tensor.empty"() : () -> (tensor<8xf32>)
  %223 = "linalg.fill"(%221, %222) ({
  ^bb0(%224: f32, %225: f32):
    "linalg.yield"(%224) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<8xf32>) -> (tensor<8xf32>)
  %226 = "linalg.generic"(%3, %147, %220, %212, %187, %223) ({
  ^bb0(%227: bf16, %228: f32, %229: bf16, %230: f32, %231: f32, %232: f32):
    %233 = "arith.extf"(%227) : (bf16) -> (f32)
    %234 = "arith.extf"(%229) : (bf16) -> (f32)
    %235 = "arith.mulf"(%233, %234) : (f32, f32) -> (f32)
    %236 = "arith.subf"(%228, %231) : (f32, f32) -> (f32)
    %237 = "arith.mulf"(%236, %230) : (f32, f32) -> (f32)
    %238 = "arith.mulf"(%233, %237) : (f32, f32) -> (f32)
    %239 = "arith.addf"(%232, %238) : (f32, f32) -> (f32)
    "linalg.yield"(%239) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 5, 1>} : (tensor<2x5x8xbf16>, tensor<2x5x8xf32>, tensor<8xbf16>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<8xf32>) -> (tensor<8xf32>)
  %240 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %241 = "tensor.empty"() : () -> (tensor<8xf32>)
  %242 = "linalg.fill"(%240, %241) ({
  ^bb0(%243: f32, %244: f32):
    "linalg.yield"(%243) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<8xf32>) -> (tensor<8xf32>)
  %245 = "linalg.generic"(%3, %242) ({
  ^bb0(%246: bf16, %247: f32):
    %248 = "arith.extf"(%246) : (bf16) -> (f32)
    %249 = "arith.addf"(%247, %248) : (f32, f32) -> (f32)
    "linalg.yield"(%249) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5x8xbf16>, tensor<8xf32>) -> (tensor<8xf32>)
  %250 = "tensor.collapse_shape"(%4) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<1x1x8xbf16>) -> (tensor<8xbf16>)
  %251 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %252 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %253 = "linalg.fill"(%251, %252) ({
  ^bb0(%254: f32, %255: f32):
    "linalg.yield"(%254) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %256 = "linalg.generic"(%3, %147, %250, %212, %187, %253) ({
  ^bb0(%257: bf16, %258: f32, %259: bf16, %260: f32, %261: f32, %262: f32):
    %263 = "arith.extf"(%257) : (bf16) -> (f32)
    %264 = "arith.extf"(%259) : (bf16) -> (f32)
    %265 = "arith.mulf"(%263, %264) : (f32, f32) -> (f32)
    %266 = "arith.subf"(%258, %261) : (f32, f32) -> (f32)
    %267 = "arith.mulf"(%266, %260) : (f32, f32) -> (f32)
    %268 = "arith.mulf"(%265, %267) : (f32, f32) -> (f32)
    %269 = "math.copysign"(%268, %268) : (f32, f32) -> (f32)
    %270 = "arith.addf"(%262, %269) : (f32, f32) -> (f32)
    "linalg.yield"(%270) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 5, 1>} : (tensor<2x5x8xbf16>, tensor<2x5x8xf32>, tensor<8xbf16>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %271 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %272 = "linalg.generic"(%256, %271) ({
  ^bb0(%273: f32, %274: f32):
    %275 = "arith.constant"() {value = 8.0e0 : f32} : () -> (f32)
    %276 = "arith.divf"(%273, %275) : (f32, f32) -> (f32)
    "linalg.yield"(%276) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %277 = "tensor.collapse_shape"(%4) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<1x1x8xbf16>) -> (tensor<8xbf16>)
  %278 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %279 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %280 = "linalg.fill"(%278, %279) ({
  ^bb0(%281: f32, %282: f32):
    "linalg.yield"(%281) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %283 = "linalg.generic"(%3, %277, %280) ({
  ^bb0(%284: bf16, %285: bf16, %286: f32):
    %287 = "arith.extf"(%284) : (bf16) -> (f32)
    %288 = "arith.extf"(%285) : (bf16) -> (f32)
    %289 = "arith.mulf"(%287, %288) : (f32, f32) -> (f32)
    %290 = "arith.addf"(%286, %289) : (f32, f32) -> (f32)
    "linalg.yield"(%290) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x5x8xbf16>, tensor<8xbf16>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %291 = "tensor.empty"() : () -> (tensor<2x5xf32>)
  %292 = "linalg.generic"(%283, %291) ({
  ^bb0(%293: f32, %294: f32):
    %295 = "arith.constant"() {value = 8.0e0 : f32} : () -> (f32)
    %296 = "arith.divf"(%293, %295) : (f32, f32) -> (f32)
    "linalg.yield"(%296) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<2x5xf32>)
  %297 = "tensor.collapse_shape"(%4) {reassociation = [[0 : i64, 1 : i64, 2 : i64]]} : (tensor<1x1x8xbf16>) -> (tensor<8xbf16>)
  %298 = "tensor.empty"() : () -> (tensor<2x5x8xf32>)
  %299 = "linalg.generic"(%3, %147, %297, %212, %187, %272, %292, %298) ({
  ^bb0(%300: bf16, %301: f32, %302: bf16, %303: f32, %304: f32, %305: f32, %306: f32, %307: f32):
    %308 = "arith.extf"(%300) : (bf16) -> (f32)
    %309 = "arith.extf"(%302) : (bf16) -> (f32)
    %310 = "arith.mulf"(%308, %309) : (f32, f32) -> (f32)
    %311 = "arith.subf"(%301, %304) : (f32, f32) -> (f32)
    %312 = "arith.mulf"(%311, %303) : (f32, f32) -> (f32)
    %313 = "arith.subf"(%310, %306) : (f32, f32) -> (f32)
    %314 = "arith.mulf"(%312, %305) : (f32, f32) -> (f32)
    %315 = "arith.subf"(%313, %314) : (f32, f32) -> (f32)
    %316 = "arith.mulf"(%303, %315) : (f32, f32) -> (f32)
    "linalg.yield"(%316) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 7, 1>} : (tensor<2x5x8xbf16>, tensor<2x5x8xf32>, tensor<8xbf16>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>)
  %317 = "tensor.empty"() : () -> (tensor<1x1x8xf32>)
  %318 = "linalg.generic"(%226, %317) ({
  ^bb0(%319: f32, %320: f32):
    "linalg.yield"(%319) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8xf32>, tensor<1x1x8xf32>) -> (tensor<1x1x8xf32>)
  %321 = "tensor.empty"() : () -> (tensor<1x1x8xf32>)
  %322 = "linalg.generic"(%245, %321) ({
  ^bb0(%323: f32, %324: f32):
    "linalg.yield"(%323) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8xf32>, tensor<1x1x8xf32>) -> (tensor<1x1x8xf32>)
  %325 = "tensor.empty"() : () -> (tensor<1x1x8xbf16>)
  %326 = "linalg.generic"(%318, %325) ({
  ^bb0(%327: f32, %328: bf16):
    %329 = "arith.truncf"(%327) : (f32) -> (bf16)
    "linalg.yield"(%329) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x1x8xf32>, tensor<1x1x8xbf16>) -> (tensor<1x1x8xbf16>)
  %330 = "tensor.empty"() : () -> (tensor<1x1x8xbf16>)
  %331 = "linalg.generic"(%322, %330) ({
  ^bb0(%332: f32, %333: bf16):
    %334 = "arith.truncf"(%332) : (f32) -> (bf16)
    "linalg.yield"(%334) : (bf16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x1x8xf32>, tensor<1x1x8xbf16>) -> (tensor<1x1x8xbf16>)
  "func.return"(%299, %326, %331) : (tensor<2x5x8xf32>, tensor<1x1x8xbf16>, tensor<1x1x8xbf16>) -> ()
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
