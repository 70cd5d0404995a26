// The result of a reduction is packed for the epilogue of a matmul as one column of all batches; the rows of later batches are not where they are read.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host --iree-opt-data-tiling
module @rotini {
func.func private @compute(%0: tensor<1x2x9x8xf32>, %1: tensor<1x2x13x8xf32>, %2: tensor<1x2x13x20xf32>, %3: tensor<1x2x9x20xf32>, %4: tensor<1x2x9x20xf32>, %5: tensor<1x2x9x1xf32>) -> (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x20xf32>) {
  %6 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %7 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %8 = "linalg.fill"(%6, %7) ({
  ^bb0(%9: f32, %10: f32):
    "linalg.yield"(%9) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %11 = "linalg.generic"(%0, %1, %8) ({
  ^bb0(%12: f32, %13: f32, %14: f32):
    %15 = "arith.mulf"(%12, %13) : (f32, f32) -> (f32)
    %16 = "arith.addf"(%14, %15) : (f32, f32) -> (f32)
    "linalg.yield"(%16) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %17 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %18 = "linalg.generic"(%11, %17) ({
  ^bb0(%19: f32, %20: f32):
    %21 = "arith.constant"() {value = 2.5e-1 : f32} : () -> (f32)
    %22 = "arith.mulf"(%19, %21) : (f32, f32) -> (f32)
    "linalg.yield"(%22) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %23 = "tensor.collapse_shape"(%5) {reassociation = [[0 : i64], [1 : i64], [2 : i64, 3 : i64]]} : (tensor<1x2x9x1xf32>) -> (tensor<1x2x9xf32>)
  %24 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %25 = "linalg.generic"(%18, %23, %24) ({
  ^bb0(%26: f32, %27: f32, %28: f32):
    %29 = "arith.subf"(%26, %27) : (f32, f32) -> (f32)
    %30 = "math.exp"(%29) : (f32) -> (f32)
    %31 = "arith.constant"() {value = 0xFF800000 : f32} : () -> (f32)
    %32 = "arith.cmpf"(%26, %31) {predicate = 1 : i64} : (f32, f32) -> (i1)
    %33 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %34 = "arith.select"(%32, %33, %30) : (i1, f32, f32) -> (f32)
    "linalg.yield"(%34) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %35 = "iree_tensor_ext.compute_barrier.start"(%25) : (tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %36 = "tensor.expand_shape"(%4) {reassociation = [[0 : i64], [1 : i64], [2 : i64], [3 : i64, 4 : i64]], static_output_shape = array<i64: 1, 2, 9, 5, 4>} : (tensor<1x2x9x20xf32>) -> (tensor<1x2x9x5x4xf32>)
  %37 = "tensor.expand_shape"(%3) {reassociation = [[0 : i64], [1 : i64], [2 : i64], [3 : i64, 4 : i64]], static_output_shape = array<i64: 1, 2, 9, 5, 4>} : (tensor<1x2x9x20xf32>) -> (tensor<1x2x9x5x4xf32>)
  %38 = "arith.constant"() {value = 0.0e0 : f64} : () -> (f64)
  %39 = "tensor.empty"() : () -> (tensor<1x2x9x4xf64>)
  %40 = "linalg.fill"(%38, %39) ({
  ^bb0(%41: f64, %42: f64):
    "linalg.yield"(%41) : (f64) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f64, tensor<1x2x9x4xf64>) -> (tensor<1x2x9x4xf64>)
  %43 = "linalg.generic"(%36, %37, %40) ({
  ^bb0(%44: f32, %45: f32, %46: f64):
    %47 = "arith.mulf"(%44, %45) : (f32, f32) -> (f32)
    %48 = "arith.extf"(%47) : (f32) -> (f64)
    %49 = "arith.addf"(%46, %48) : (f64, f64) -> (f64)
    "linalg.yield"(%49) : (f64) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x5x4xf32>, tensor<1x2x9x5x4xf32>, tensor<1x2x9x4xf64>) -> (tensor<1x2x9x4xf64>)
  %50 = "arith.constant"() {value = 0.0e0 : f64} : () -> (f64)
  %51 = "tensor.empty"() : () -> (tensor<1x2x9xf64>)
  %52 = "linalg.fill"(%50, %51) ({
  ^bb0(%53: f64, %54: f64):
    "linalg.yield"(%53) : (f64) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f64, tensor<1x2x9xf64>) -> (tensor<1x2x9xf64>)
  %55 = "linalg.generic"(%43, %52) ({
  ^bb0(%56: f64, %57: f64):
    %58 = "arith.addf"(%57, %56) : (f64, f64) -> (f64)
    "linalg.yield"(%58) : (f64) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x9x4xf64>, tensor<1x2x9xf64>) -> (tensor<1x2x9xf64>)
  %59 = "tensor.empty"() : () -> (tensor<1x2x9xf32>)
  %60 = "linalg.generic"(%55, %59) ({
  ^bb0(%61: f64, %62: f32):
    %63 = "arith.truncf"(%61) : (f64) -> (f32)
    "linalg.yield"(%63) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x9xf64>, tensor<1x2x9xf32>) -> (tensor<1x2x9xf32>)
  %64 = "tensor.collapse_shape"(%60) {reassociation = [[0 : i64, 1 : i64], [2 : i64]]} : (tensor<1x2x9xf32>) -> (tensor<2x9xf32>)
  %65 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %66 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %67 = "linalg.fill"(%65, %66) ({
  ^bb0(%68: f32, %69: f32):
    "linalg.yield"(%68) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %70 = "linalg.generic"(%4, %2, %67) ({
  ^bb0(%71: f32, %72: f32, %73: f32):
    %74 = "arith.mulf"(%71, %72) : (f32, f32) -> (f32)
    %75 = "arith.addf"(%73, %74) : (f32, f32) -> (f32)
    "linalg.yield"(%75) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x20xf32>, tensor<1x2x13x20xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %76 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %77 = "linalg.generic"(%35, %70, %64, %76) ({
  ^bb0(%78: f32, %79: f32, %80: f32, %81: f32):
    %82 = "arith.subf"(%79, %80) : (f32, f32) -> (f32)
    %83 = "arith.mulf"(%78, %82) : (f32, f32) -> (f32)
    "linalg.yield"(%83) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 3, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x13xf32>, tensor<2x9xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %84 = "iree_tensor_ext.compute_barrier.start"(%77) : (tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %85 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %86 = "tensor.empty"() : () -> (tensor<1x2x9x8xf32>)
  %87 = "linalg.fill"(%85, %86) ({
  ^bb0(%88: f32, %89: f32):
    "linalg.yield"(%88) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x9x8xf32>) -> (tensor<1x2x9x8xf32>)
  %90 = "linalg.generic"(%84, %1, %87) ({
  ^bb0(%91: f32, %92: f32, %93: f32):
    %94 = "arith.mulf"(%91, %92) : (f32, f32) -> (f32)
    %95 = "arith.addf"(%93, %94) : (f32, f32) -> (f32)
    "linalg.yield"(%95) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x13x8xf32>, tensor<1x2x9x8xf32>) -> (tensor<1x2x9x8xf32>)
  %96 = "tensor.empty"() : () -> (tensor<1x2x9x8xf32>)
  %97 = "linalg.generic"(%90, %96) ({
  ^bb0(%98: f32, %99: f32):
    %100 = "arith.constant"() {value = 2.5e-1 : f32} : () -> (f32)
    %101 = "arith.mulf"(%98, %100) : (f32, f32) -> (f32)
    "linalg.yield"(%101) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32>) -> (tensor<1x2x9x8xf32>)
  %102 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %103 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %104 = "linalg.fill"(%102, %103) ({
  ^bb0(%105: f32, %106: f32):
    "linalg.yield"(%105) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %107 = "linalg.generic"(%84, %0, %104) ({
  ^bb0(%108: f32, %109: f32, %110: f32):
    %111 = "arith.mulf"(%108, %109) : (f32, f32) -> (f32)
    %112 = "arith.addf"(%110, %111) : (f32, f32) -> (f32)
    "linalg.yield"(%112) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %113 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %114 = "linalg.generic"(%107, %113) ({
  ^bb0(%115: f32, %116: f32):
    %117 = "arith.constant"() {value = 2.5e-1 : f32} : () -> (f32)
    %118 = "arith.mulf"(%115, %117) : (f32, f32) -> (f32)
    "linalg.yield"(%118) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %119 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %120 = "tensor.empty"() : () -> (tensor<1x2x13x20xf32>)
  %121 = "linalg.fill"(%119, %120) ({
  ^bb0(%122: f32, %123: f32):
    "linalg.yield"(%122) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x13x20xf32>) -> (tensor<1x2x13x20xf32>)
  %124 = "linalg.generic"(%35, %4, %121) ({
  ^bb0(%125: f32, %126: f32, %127: f32):
    %128 = "arith.mulf"(%125, %126) : (f32, f32) -> (f32)
    %129 = "arith.addf"(%127, %128) : (f32, f32) -> (f32)
    "linalg.yield"(%129) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x20xf32>, tensor<1x2x13x20xf32>) -> (tensor<1x2x13x20xf32>)
  %130 = "tensor.empty"() : () -> (tensor<1x2x13x20xf32>)
  %131 = "linalg.generic"(%124, %130) ({
  ^bb0(%132: f32, %133: f32):
    "linalg.yield"(%132) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x13x20xf32>, tensor<1x2x13x20xf32>) -> (tensor<1x2x13x20xf32>)
  "func.return"(%97, %114, %131) : (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x20xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %in3: !hal.buffer_view, %in4: !hal.buffer_view, %in5: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x2x9x8xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x2x13x8xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x2x13x20xf32>
    %i3 = hal.tensor.import wait(%wait) => %in3 : !hal.buffer_view -> tensor<1x2x9x20xf32>
    %i4 = hal.tensor.import wait(%wait) => %in4 : !hal.buffer_view -> tensor<1x2x9x20xf32>
    %i5 = hal.tensor.import wait(%wait) => %in5 : !hal.buffer_view -> tensor<1x2x9x1xf32>
    %r:3 = func.call @compute(%i0, %i1, %i2, %i3, %i4, %i5) : (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x20xf32>, tensor<1x2x9x20xf32>, tensor<1x2x9x20xf32>, tensor<1x2x9x1xf32>) -> (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x20xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<1x2x9x8xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x2x9x8xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x2x13x8xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x2x13x8xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x2x13x20xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x2x13x20xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x20xf32>) => %signal : !hal.fence
    util.return
  }
}
