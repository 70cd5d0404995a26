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
    %88 = "arith.subi"(%87, %78) : (i32, i32) -> (i32)
    %89 = "arith.cmpi"(%77, %88) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %90 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %91 = "arith.select"(%89, %79, %90) : (i1, i32, i32) -> (i32)
    %92 = "arith.index_cast"(%91) : (i32) -> (index)
    %93 = "tensor.extract"(%59, %92) : (tensor<12xi32>, index) -> (i32)
    %94 = "arith.constant"() {value = 8 : index} : () -> (index)
    %95 = "arith.index_cast"(%93) : (i32) -> (index)
    %96 = "arith.cmpi"(%95, %94) {predicate = 7 : i64} : (index, index) -> (i1)
    %97 = "arith.andi"(%89, %96) : (i1, i1) -> (i1)
    %98 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %99 = "arith.select"(%97, %93, %98) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%99) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<2x16xi32>) -> (tensor<2x16xi32>)
  %100 = "tensor.empty"() : () -> (tensor<2x16x1xf16>)
  %101 = "linalg.generic"(%61, %100) ({
  ^bb0(%102: i32, %103: f16):
    %104 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %105 = "arith.cmpi"(%102, %104) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %106 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %107 = "arith.select"(%105, %102, %106) : (i1, i32, i32) -> (i32)
    %108 = "arith.index_cast"(%107) : (i32) -> (index)
    %109 = "arith.constant"() {value = 0 : index} : () -> (index)
    %110 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %111 = "tensor.extract"(%0, %109, %108, %110) : (tensor<1x9x1xf16>, index, index, index) -> (f16)
    %112 = "arith.constant"() {value = 0.0e0 : f16} : () -> (f16)
    %113 = "arith.select"(%105, %111, %112) : (i1, f16, f16) -> (f16)
    "linalg.yield"(%113) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16xi32>, tensor<2x16x1xf16>) -> (tensor<2x16x1xf16>)
  %114 = "iree_tensor_ext.compute_barrier.start"(%101) : (tensor<2x16x1xf16>) -> (tensor<2x16x1xf16>)
  %115 = "tensor.empty"() : () -> (tensor<2xi32>)
  %116 = "linalg.generic"(%115) ({
  ^bb0(%117: i32):
    %118 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %119 = "tensor.extract"(%50, %118) : (tensor<2xi32>, index) -> (i32)
    %120 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %121 = "arith.maxsi"(%119, %120) : (i32, i32) -> (i32)
    %122 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %123 = "arith.subi"(%121, %122) : (i32, i32) -> (i32)
    %124 = "arith.index_cast"(%123) : (i32) -> (index)
    %125 = "arith.constant"() {value = 2 : index} : () -> (index)
    %126 = "arith.remui"(%124, %125) : (index, index) -> (index)
    %127 = "arith.index_cast"(%126) : (index) -> (i32)
    "linalg.yield"(%127) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<2xi32>) -> (tensor<2xi32>)
  %128 = "tensor.empty"() : () -> (tensor<2x1x6xf16>)
  %129 = "iree_linalg_ext.gather"(%1, %116, %128) {dimension_map = array<i64: 0>} : (tensor<2x1x6xf16>, tensor<2xi32>, tensor<2x1x6xf16>) -> (tensor<2x1x6xf16>)
  %130 = "tensor.collapse_shape"(%129) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<2x1x6xf16>) -> (tensor<2x6xf16>)
  %131 = "tensor.expand_shape"(%130) {reassociation = [[0 : i64], [1 : i64, 2 : i64]], static_output_shape = array<i64: 2, 6, 1>} : (tensor<2x6xf16>) -> (tensor<2x6x1xf16>)
  %132 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %133 = "tensor.empty"() : () -> (tensor<2x16x6xf32>)
  %134 = "linalg.fill"(%132, %133) ({
  ^bb0(%135: f32, %136: f32):
    "linalg.yield"(%135) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<2x16x6xf32>) -> (tensor<2x16x6xf32>)
  %137 = "linalg.generic"(%114, %131, %134) ({
  ^bb0(%138: f16, %139: f16, %140: f32):
    %141 = "arith.extf"(%138) : (f16) -> (f32)
    %142 = "arith.extf"(%139) : (f16) -> (f32)
    %143 = "arith.mulf"(%141, %142) : (f32, f32) -> (f32)
    %144 = "arith.addf"(%140, %143) : (f32, f32) -> (f32)
    "linalg.yield"(%144) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x16x1xf16>, tensor<2x6x1xf16>, tensor<2x16x6xf32>) -> (tensor<2x16x6xf32>)
  %145 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %146 = "tensor.empty"() : () -> (tensor<12xi32>)
  %147 = "linalg.fill"(%145, %146) ({
  ^bb0(%148: i32, %149: i32):
    "linalg.yield"(%148) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<12xi32>) -> (tensor<12xi32>)
  %150 = "linalg.generic"(%10, %147) ({
  ^bb0(%151: i32, %152: i32):
    %153 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %154 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %155 = "arith.index_cast"(%153) : (index) -> (i32)
    %156 = "arith.cmpi"(%151, %155) {predicate = 3 : i64} : (i32, i32) -> (i1)
    %157 = "arith.extui"(%156) : (i1) -> (i32)
    %158 = "arith.addi"(%152, %157) : (i32, i32) -> (i32)
    "linalg.yield"(%158) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2xi32>, tensor<12xi32>) -> (tensor<12xi32>)
  %159 = "tensor.empty"() : () -> (tensor<12xi32>)
  %160 = "linalg.generic"(%159) ({
  ^bb0(%161: i32):
    %162 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %163 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %164 = "arith.index_cast"(%162) : (index) -> (i32)
    %165 = "arith.maxsi"(%164, %163) : (i32, i32) -> (i32)
    %166 = "arith.index_cast"(%165) : (i32) -> (index)
    %167 = "tensor.extract"(%150, %166) : (tensor<12xi32>, index) -> (i32)
    %168 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %169 = "arith.subi"(%167, %168) : (i32, i32) -> (i32)
    %170 = "arith.minsi"(%164, %169) : (i32, i32) -> (i32)
    %171 = "arith.cmpi"(%170, %163) {predicate = 2 : i64} : (i32, i32) -> (i1)
    %172 = "arith.maxsi"(%169, %163) : (i32, i32) -> (i32)
    %173 = "arith.index_cast"(%172) : (i32) -> (index)
    %174 = "tensor.extract"(%10, %173) : (tensor<2xi32>, index) -> (i32)
    %175 = "arith.subi"(%165, %174) : (i32, i32) -> (i32)
    %176 = "tensor.extract"(%26, %173) : (tensor<2xi32>, index) -> (i32)
    %177 = "arith.constant"() {value = 16 : i32} : () -> (i32)
    %178 = "arith.muli"(%176, %177) : (i32, i32) -> (i32)
    %179 = "arith.constant"() {value = -1 : i32} : () -> (i32)
    %180 = "arith.addi"(%178, %175) : (i32, i32) -> (i32)
    %181 = "arith.select"(%171, %179, %180) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%181) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<12xi32>) -> (tensor<12xi32>)
  %182 = "tensor.empty"() : () -> (tensor<1x12x6xf32>)
  %183 = "linalg.generic"(%160, %182) ({
  ^bb0(%184: i32, %185: f32):
    %186 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %187 = "arith.cmpi"(%184, %186) {predicate = 5 : i64} : (i32, i32) -> (i1)
    %188 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %189 = "arith.select"(%187, %184, %188) : (i1, i32, i32) -> (i32)
    %190 = "arith.index_cast"(%189) : (i32) -> (index)
    %191 = "arith.constant"() {value = 16 : index} : () -> (index)
    %192 = "arith.divui"(%190, %191) : (index, index) -> (index)
    %193 = "arith.remui"(%190, %191) : (index, index) -> (index)
    %194 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %195 = "tensor.extract"(%137, %192, %193, %194) : (tensor<2x16x6xf32>, index, index, index) -> (f32)
    %196 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %197 = "arith.select"(%187, %195, %196) : (i1, f32, f32) -> (f32)
    "linalg.yield"(%197) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<12xi32>, tensor<1x12x6xf32>) -> (tensor<1x12x6xf32>)
  %198 = "tensor.empty"() : () -> (tensor<1x12x6xf16>)
  %199 = "linalg.generic"(%183, %198) ({
  ^bb0(%200: f32, %201: f16):
    %202 = "arith.truncf"(%200) : (f32) -> (f16)
    "linalg.yield"(%202) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x12x6xf32>, tensor<1x12x6xf16>) -> (tensor<1x12x6xf16>)
  "func.return"(%199) : (tensor<1x12x6xf16>) -> ()
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
