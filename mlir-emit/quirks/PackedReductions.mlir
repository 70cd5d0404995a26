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
  %36 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %37 = "tensor.empty"() : () -> (tensor<1x2x9xf32>)
  %38 = "linalg.fill"(%36, %37) ({
  ^bb0(%39: f32, %40: f32):
    "linalg.yield"(%39) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x9xf32>) -> (tensor<1x2x9xf32>)
  %41 = "linalg.generic"(%4, %3, %38) ({
  ^bb0(%42: f32, %43: f32, %44: f32):
    %45 = "arith.mulf"(%42, %43) : (f32, f32) -> (f32)
    %46 = "arith.addf"(%44, %45) : (f32, f32) -> (f32)
    "linalg.yield"(%46) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32>, tensor<1x2x9xf32>) -> (tensor<1x2x9xf32>)
  %47 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %48 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %49 = "linalg.fill"(%47, %48) ({
  ^bb0(%50: f32, %51: f32):
    "linalg.yield"(%50) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %52 = "linalg.generic"(%4, %2, %49) ({
  ^bb0(%53: f32, %54: f32, %55: f32):
    %56 = "arith.mulf"(%53, %54) : (f32, f32) -> (f32)
    %57 = "arith.addf"(%55, %56) : (f32, f32) -> (f32)
    "linalg.yield"(%57) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %58 = "tensor.empty"() : () -> (tensor<1x2x9x13xf32>)
  %59 = "linalg.generic"(%35, %52, %41, %58) ({
  ^bb0(%60: f32, %61: f32, %62: f32, %63: f32):
    %64 = "arith.subf"(%61, %62) : (f32, f32) -> (f32)
    %65 = "arith.mulf"(%60, %64) : (f32, f32) -> (f32)
    "linalg.yield"(%65) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 3, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x13xf32>, tensor<1x2x9xf32>, tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %66 = "iree_tensor_ext.compute_barrier.start"(%59) : (tensor<1x2x9x13xf32>) -> (tensor<1x2x9x13xf32>)
  %67 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %68 = "tensor.empty"() : () -> (tensor<1x2x9x8xf32>)
  %69 = "linalg.fill"(%67, %68) ({
  ^bb0(%70: f32, %71: f32):
    "linalg.yield"(%70) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x9x8xf32>) -> (tensor<1x2x9x8xf32>)
  %72 = "linalg.generic"(%66, %1, %69) ({
  ^bb0(%73: f32, %74: f32, %75: f32):
    %76 = "arith.mulf"(%73, %74) : (f32, f32) -> (f32)
    %77 = "arith.addf"(%75, %76) : (f32, f32) -> (f32)
    "linalg.yield"(%77) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x13x8xf32>, tensor<1x2x9x8xf32>) -> (tensor<1x2x9x8xf32>)
  %78 = "tensor.empty"() : () -> (tensor<1x2x9x8xf32>)
  %79 = "linalg.generic"(%72, %78) ({
  ^bb0(%80: f32, %81: f32):
    %82 = "arith.constant"() {value = 2.5e-1 : f32} : () -> (f32)
    %83 = "arith.mulf"(%80, %82) : (f32, f32) -> (f32)
    "linalg.yield"(%83) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32>) -> (tensor<1x2x9x8xf32>)
  %84 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %85 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %86 = "linalg.fill"(%84, %85) ({
  ^bb0(%87: f32, %88: f32):
    "linalg.yield"(%87) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %89 = "linalg.generic"(%66, %0, %86) ({
  ^bb0(%90: f32, %91: f32, %92: f32):
    %93 = "arith.mulf"(%90, %91) : (f32, f32) -> (f32)
    %94 = "arith.addf"(%92, %93) : (f32, f32) -> (f32)
    "linalg.yield"(%94) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %95 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %96 = "linalg.generic"(%89, %95) ({
  ^bb0(%97: f32, %98: f32):
    %99 = "arith.constant"() {value = 2.5e-1 : f32} : () -> (f32)
    %100 = "arith.mulf"(%97, %99) : (f32, f32) -> (f32)
    "linalg.yield"(%100) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %101 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %102 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %103 = "linalg.fill"(%101, %102) ({
  ^bb0(%104: f32, %105: f32):
    "linalg.yield"(%104) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %106 = "linalg.generic"(%35, %4, %103) ({
  ^bb0(%107: f32, %108: f32, %109: f32):
    %110 = "arith.mulf"(%107, %108) : (f32, f32) -> (f32)
    %111 = "arith.addf"(%109, %110) : (f32, f32) -> (f32)
    "linalg.yield"(%111) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x9x13xf32>, tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  %112 = "tensor.empty"() : () -> (tensor<1x2x13x8xf32>)
  %113 = "linalg.generic"(%106, %112) ({
  ^bb0(%114: f32, %115: f32):
    "linalg.yield"(%114) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) -> (tensor<1x2x13x8xf32>)
  "func.return"(%79, %96, %113) : (tensor<1x2x9x8xf32>, tensor<1x2x13x8xf32>, tensor<1x2x13x8xf32>) -> ()
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
