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
    %86 = "arith.cmpi"(%77, %85) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %87 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %88 = "arith.select"(%86, %77, %87) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%88) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<1x16xi32>) -> (tensor<1x16xi32>)
  %89 = "tensor.empty"() : () -> (tensor<1x16x3xf16>)
  %90 = "linalg.generic"(%59, %89) ({
  ^bb0(%91: i32, %92: f16):
    %93 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %94 = "arith.cmpi"(%91, %93) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %95 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %96 = "arith.select"(%94, %91, %95) : (i1, i32, i32) -> (i32)
    %97 = "arith.index_cast"(%96) : (i32) -> (index)
    %98 = "arith.constant"() {value = 0 : index} : () -> (index)
    %99 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %100 = "tensor.extract"(%0, %98, %97, %99) : (tensor<1x1x3xf16>, index, index, index) -> (f16)
    %101 = "arith.constant"() {value = 0.0e0 : f16} : () -> (f16)
    %102 = "arith.select"(%94, %100, %101) : (i1, f16, f16) -> (f16)
    "linalg.yield"(%102) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x16xi32>, tensor<1x16x3xf16>) -> (tensor<1x16x3xf16>)
  %103 = "iree_tensor_ext.compute_barrier.start"(%90) : (tensor<1x16x3xf16>) -> (tensor<1x16x3xf16>)
  %104 = "tensor.empty"() : () -> (tensor<1xi32>)
  %105 = "linalg.generic"(%104) ({
  ^bb0(%106: i32):
    %107 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %108 = "tensor.extract"(%49, %107) : (tensor<1xi32>, index) -> (i32)
    %109 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %110 = "arith.maxsi"(%108, %109) : (i32, i32) -> (i32)
    %111 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %112 = "arith.subi"(%110, %111) : (i32, i32) -> (i32)
    %113 = "arith.index_cast"(%112) : (i32) -> (index)
    %114 = "arith.constant"() {value = 4 : index} : () -> (index)
    %115 = "arith.remui"(%113, %114) : (index, index) -> (index)
    %116 = "arith.index_cast"(%115) : (index) -> (i32)
    "linalg.yield"(%116) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<1xi32>) -> (tensor<1xi32>)
  %117 = "tensor.empty"() : () -> (tensor<1x3x5xf16>)
  %118 = "iree_linalg_ext.gather"(%1, %105, %117) {dimension_map = array<i64: 0>} : (tensor<4x3x5xf16>, tensor<1xi32>, tensor<1x3x5xf16>) -> (tensor<1x3x5xf16>)
  %119 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %120 = "tensor.empty"() : () -> (tensor<1x16x5xf32>)
  %121 = "linalg.fill"(%119, %120) ({
  ^bb0(%122: f32, %123: f32):
    "linalg.yield"(%122) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x16x5xf32>) -> (tensor<1x16x5xf32>)
  %124 = "linalg.generic"(%103, %118, %121) ({
  ^bb0(%125: f16, %126: f16, %127: f32):
    %128 = "arith.extf"(%125) : (f16) -> (f32)
    %129 = "arith.extf"(%126) : (f16) -> (f32)
    %130 = "arith.mulf"(%128, %129) : (f32, f32) -> (f32)
    %131 = "arith.addf"(%127, %130) : (f32, f32) -> (f32)
    "linalg.yield"(%131) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x16x3xf16>, tensor<1x3x5xf16>, tensor<1x16x5xf32>) -> (tensor<1x16x5xf32>)
  %132 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %133 = "tensor.empty"() : () -> (tensor<1xi32>)
  %134 = "linalg.fill"(%132, %133) ({
  ^bb0(%135: i32, %136: i32):
    "linalg.yield"(%135) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<1xi32>) -> (tensor<1xi32>)
  %137 = "linalg.generic"(%9, %134) ({
  ^bb0(%138: i32, %139: i32):
    %140 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %141 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %142 = "arith.index_cast"(%140) : (index) -> (i32)
    %143 = "arith.cmpi"(%138, %142) {predicate = 3 : i64} : (i32, i32) -> (i1)
    %144 = "arith.extui"(%143) : (i1) -> (i32)
    %145 = "arith.addi"(%139, %144) : (i32, i32) -> (i32)
    "linalg.yield"(%145) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xi32>, tensor<1xi32>) -> (tensor<1xi32>)
  %146 = "tensor.empty"() : () -> (tensor<1xi32>)
  %147 = "linalg.generic"(%146) ({
  ^bb0(%148: i32):
    %149 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %150 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %151 = "arith.index_cast"(%149) : (index) -> (i32)
    %152 = "arith.maxsi"(%151, %150) : (i32, i32) -> (i32)
    %153 = "arith.index_cast"(%152) : (i32) -> (index)
    %154 = "tensor.extract"(%137, %153) : (tensor<1xi32>, index) -> (i32)
    %155 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %156 = "arith.subi"(%154, %155) : (i32, i32) -> (i32)
    %157 = "arith.minsi"(%151, %156) : (i32, i32) -> (i32)
    %158 = "arith.cmpi"(%157, %150) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %159 = "arith.maxsi"(%156, %150) : (i32, i32) -> (i32)
    %160 = "arith.index_cast"(%159) : (i32) -> (index)
    %161 = "tensor.extract"(%9, %160) : (tensor<4xi32>, index) -> (i32)
    %162 = "arith.subi"(%152, %161) : (i32, i32) -> (i32)
    %163 = "tensor.extract"(%25, %160) : (tensor<4xi32>, index) -> (i32)
    %164 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %165 = "arith.muli"(%163, %164) : (i32, i32) -> (i32)
    %166 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %167 = "arith.addi"(%165, %162) : (i32, i32) -> (i32)
    %168 = "arith.select"(%158, %166, %167) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%168) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<1xi32>) -> (tensor<1xi32>)
  %169 = "tensor.empty"() : () -> (tensor<1x1x5xf32>)
  %170 = "linalg.generic"(%147, %169) ({
  ^bb0(%171: i32, %172: f32):
    %173 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %174 = "arith.cmpi"(%171, %173) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %175 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %176 = "arith.select"(%174, %171, %175) : (i1, i32, i32) -> (i32)
    %177 = "arith.index_cast"(%176) : (i32) -> (index)
    %178 = "arith.constant"() {value = 16 : index} : () -> (index)
    %179 = "arith.divui"(%177, %178) : (index, index) -> (index)
    %180 = "arith.remui"(%177, %178) : (index, index) -> (index)
    %181 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %182 = "tensor.extract"(%124, %179, %180, %181) : (tensor<1x16x5xf32>, index, index, index) -> (f32)
    %183 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %184 = "arith.select"(%174, %182, %183) : (i1, f32, f32) -> (f32)
    "linalg.yield"(%184) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1xi32>, tensor<1x1x5xf32>) -> (tensor<1x1x5xf32>)
  %185 = "tensor.empty"() : () -> (tensor<1x1x5xf16>)
  %186 = "linalg.generic"(%170, %185) ({
  ^bb0(%187: f32, %188: f16):
    %189 = "arith.truncf"(%187) : (f32) -> (f16)
    "linalg.yield"(%189) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x1x5xf32>, tensor<1x1x5xf16>) -> (tensor<1x1x5xf16>)
  "func.return"(%186) : (tensor<1x1x5xf16>) -> ()
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
