// The result of a reduction is packed for the epilogue of a matmul as one column of all batches; the rows of later batches are not where they are read.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host --iree-opt-data-tiling
module @rotini {
func.func private @compute(%0: tensor<1x2x9x8xf32>, %1: tensor<1x2x13x8xf32>, %2: tensor<1x2x13x8xf32>, %3: tensor<1x2x9x8xf32>, %4: tensor<1x2x9x8xf32>, %5: tensor<1x2x9x1xf32>) -> (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) {
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
    %23 = "arith.constant"() {value = 0xFF800000 : f32} : () -> (f32)
    %24 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %25 = "arith.index_cast"(%24) : (index) -> (i64)
    %26 = "arith.sitofp"(%25) : (i64) -> (f32)
    %27 = "linalg.index"() {dim = 3 : i64} : () -> (index)
    %28 = "arith.index_cast"(%27) : (index) -> (i64)
    %29 = "arith.sitofp"(%28) : (i64) -> (f32)
    %30 = "arith.subf"(%29, %26) : (f32, f32) -> (f32)
    %31 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %32 = "arith.subf"(%30, %31) : (f32, f32) -> (f32)
    "linalg.yield"(%22) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %33 = "tensor.collapse_shape"(%5) {reassociation = [[0 : i64], [1 : i64], [2 : i64, 3 : i64]]} : (tensor<1x2x9x1xf32>) -> (tensor<1x2x9xf32>)
  %34 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %35 = "linalg.generic"(%18, %33, %34) ({
  ^bb0(%36: f32, %37: f32, %38: f32):
    %39 = "arith.subf"(%36, %37) : (f32, f32) -> (f32)
    %40 = "math.exp"(%39) : (f32) -> (f32)
    %41 = "arith.constant"() {value = 0xFF800000 : f32} : () -> (f32)
    %42 = "arith.cmpf"(%36, %41) {predicate = 1 : i64} : (f32, f32) -> (i1)
    %43 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %44 = "arith.select"(%42, %43, %40) : (i1, f32, f32) -> (f32)
    "linalg.yield"(%44) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %45 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %46 = "tensor.empty"() : () -> (tensor<1x2x9xf32>)
  %47 = "linalg.fill"(%45, %46) ({
  ^bb0(%48: f32, %49: f32):
    "linalg.yield"(%48) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x9xf32>) -> (tensor<1x2x9xf32>)
  %50 = "linalg.generic"(%4, %3, %47) ({
  ^bb0(%51: f32, %52: f32, %53: f32):
    %54 = "arith.mulf"(%51, %52) : (f32, f32) -> (f32)
    %55 = "arith.addf"(%53, %54) : (f32, f32) -> (f32)
    "linalg.yield"(%55) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32>, tensor<1x2x9xf32>) -> (tensor<1x2x9xf32>)
  %56 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %57 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %58 = "linalg.fill"(%56, %57) ({
  ^bb0(%59: f32, %60: f32):
    "linalg.yield"(%59) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %61 = "linalg.generic"(%4, %2, %58) ({
  ^bb0(%62: f32, %63: f32, %64: f32):
    %65 = "arith.mulf"(%62, %63) : (f32, f32) -> (f32)
    %66 = "arith.addf"(%64, %65) : (f32, f32) -> (f32)
    "linalg.yield"(%66) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %67 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %68 = "linalg.generic"(%35, %61, %50, %67) ({
  ^bb0(%69: f32, %70: f32, %71: f32, %72: f32):
    %73 = "arith.subf"(%70, %71) : (f32, f32) -> (f32)
    %74 = "arith.mulf"(%69, %73) : (f32, f32) -> (f32)
    "linalg.yield"(%74) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 3, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x13xf32>, tensor<1x2x9xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %75 = "iree_tensor_ext.compute_barrier.start"(%68) : (tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %76 = "iree_tensor_ext.compute_barrier.start"(%35) : (tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %77 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %78 = "tensor.empty"() : () -> (tensor<1x2x9x8xf32>)
  %79 = "linalg.fill"(%77, %78) ({
  ^bb0(%80: f32, %81: f32):
    "linalg.yield"(%80) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x9x8xf32>) -> (tensor<1x2x9x8xf32>)
  %82 = "linalg.generic"(%75, %1, %79) ({
  ^bb0(%83: f32, %84: f32, %85: f32):
    %86 = "arith.mulf"(%83, %84) : (f32, f32) -> (f32)
    %87 = "arith.addf"(%85, %86) : (f32, f32) -> (f32)
    "linalg.yield"(%87) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x13x8xf32>, tensor<1x2x9x8xf32>) -> (tensor<1x2x9x8xf32>)
  %88 = "tensor.empty"() : () -> (tensor<1x2x9x8xf32>)
  %89 = "linalg.generic"(%82, %88) ({
  ^bb0(%90: f32, %91: f32):
    %92 = "arith.constant"() {value = 2.5e-1 : f32} : () -> (f32)
    %93 = "arith.mulf"(%90, %92) : (f32, f32) -> (f32)
    "linalg.yield"(%93) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32>) -> (tensor<1x2x9x8xf32>)
  %94 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %95 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %96 = "linalg.fill"(%94, %95) ({
  ^bb0(%97: f32, %98: f32):
    "linalg.yield"(%97) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %99 = "linalg.generic"(%75, %0, %96) ({
  ^bb0(%100: f32, %101: f32, %102: f32):
    %103 = "arith.mulf"(%100, %101) : (f32, f32) -> (f32)
    %104 = "arith.addf"(%102, %103) : (f32, f32) -> (f32)
    "linalg.yield"(%104) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %105 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %106 = "linalg.generic"(%99, %105) ({
  ^bb0(%107: f32, %108: f32):
    %109 = "arith.constant"() {value = 2.5e-1 : f32} : () -> (f32)
    %110 = "arith.mulf"(%107, %109) : (f32, f32) -> (f32)
    "linalg.yield"(%110) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %111 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %112 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %113 = "linalg.fill"(%111, %112) ({
  ^bb0(%114: f32, %115: f32):
    "linalg.yield"(%114) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %116 = "linalg.generic"(%76, %4, %113) ({
  ^bb0(%117: f32, %118: f32, %119: f32):
    %120 = "arith.mulf"(%117, %118) : (f32, f32) -> (f32)
    %121 = "arith.addf"(%119, %120) : (f32, f32) -> (f32)
    "linalg.yield"(%121) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %122 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %123 = "linalg.generic"(%116, %122) ({
  ^bb0(%124: f32, %125: f32):
    "linalg.yield"(%124) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  "func.return"(%89, %106, %123) : (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %in3: !hal.buffer_view, %in4: !hal.buffer_view, %in5: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x2x9x8xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x2x13x8xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x2x13x8xf32>
    %i3 = hal.tensor.import wait(%wait) => %in3 : !hal.buffer_view -> tensor<1x2x9x8xf32>
    %i4 = hal.tensor.import wait(%wait) => %in4 : !hal.buffer_view -> tensor<1x2x9x8xf32>
    %i5 = hal.tensor.import wait(%wait) => %in5 : !hal.buffer_view -> tensor<1x2x9x1xf32>
    %r:3 = func.call @compute(%i0, %i1, %i2, %i3, %i4, %i5) : (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32>, tensor<1x2x9x1xf32>) -> (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<1x2x9x8xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x2x9x8xf32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x2x13x8xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x2x13x8xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x2x13x8xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x2x13x8xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) => %signal : !hal.fence
    util.return
  }
}
