// A reduction whose innermost loop is no whole number of subgroups is one thread's work; several of them in one dispatch are unrolled until the compiler has no end: layernorm of 4 x 300.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<4x1000xf16>, %1: tensor<1x1000xf32>, %2: tensor<1x1000xf32>) -> (tensor<4x1000xf16>, tensor<4x1xf32>, tensor<4x1xf32>) {
  %3 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %4 = "tensor.empty"() : () -> (tensor<4xf32>)
  %5 = "linalg.fill"(%3, %4) ({
  ^bb0(%6: f32, %7: f32):
    "linalg.yield"(%6) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<4xf32>) -> (tensor<4xf32>)
  %8 = "linalg.generic"(%0, %5) ({
  ^bb0(%9: f16, %10: f32):
    %11 = "arith.extf"(%9) : (f16) -> (f32)
    %12 = "arith.addf"(%10, %11) : (f32, f32) -> (f32)
    "linalg.yield"(%12) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x1000xf16>, tensor<4xf32>) -> (tensor<4xf32>)
  %13 = "tensor.empty"() : () -> (tensor<4xf32>)
  %14 = "linalg.generic"(%8, %13) ({
  ^bb0(%15: f32, %16: f32):
    %17 = "arith.constant"() {value = 1.0e3 : f32} : () -> (f32)
    %18 = "arith.divf"(%15, %17) : (f32, f32) -> (f32)
    "linalg.yield"(%18) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
  %19 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %20 = "tensor.empty"() : () -> (tensor<4xf32>)
  %21 = "linalg.fill"(%19, %20) ({
  ^bb0(%22: f32, %23: f32):
    "linalg.yield"(%22) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<4xf32>) -> (tensor<4xf32>)
  %24 = "linalg.generic"(%0, %14, %21) ({
  ^bb0(%25: f16, %26: f32, %27: f32):
    %28 = "arith.extf"(%25) : (f16) -> (f32)
    %29 = "arith.subf"(%28, %26) : (f32, f32) -> (f32)
    %30 = "arith.mulf"(%29, %29) : (f32, f32) -> (f32)
    %31 = "math.copysign"(%30, %30) : (f32, f32) -> (f32)
    %32 = "arith.addf"(%27, %31) : (f32, f32) -> (f32)
    "linalg.yield"(%32) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<4x1000xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
  %33 = "tensor.empty"() : () -> (tensor<4xf32>)
  %34 = "linalg.generic"(%24, %33) ({
  ^bb0(%35: f32, %36: f32):
    %37 = "arith.constant"() {value = 1.0e3 : f32} : () -> (f32)
    %38 = "arith.divf"(%35, %37) : (f32, f32) -> (f32)
    "linalg.yield"(%38) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
  %39 = "tensor.empty"() : () -> (tensor<4xf32>)
  %40 = "linalg.generic"(%34, %39) ({
  ^bb0(%41: f32, %42: f32):
    %43 = "arith.constant"() {value = 1.0e-5 : f32} : () -> (f32)
    %44 = "arith.addf"(%41, %43) : (f32, f32) -> (f32)
    %45 = "arith.constant"() {value = 1.0e0 : f32} : () -> (f32)
    %46 = "math.sqrt"(%44) : (f32) -> (f32)
    %47 = "arith.divf"(%45, %46) : (f32, f32) -> (f32)
    "linalg.yield"(%47) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
  %48 = "tensor.collapse_shape"(%1) {reassociation = [[0 : i64, 1 : i64]]} : (tensor<1x1000xf32>) -> (tensor<1000xf32>)
  %49 = "tensor.collapse_shape"(%2) {reassociation = [[0 : i64, 1 : i64]]} : (tensor<1x1000xf32>) -> (tensor<1000xf32>)
  %50 = "tensor.empty"() : () -> (tensor<4x1000xf32>)
  %51 = "linalg.generic"(%0, %40, %48, %49, %14, %50) ({
  ^bb0(%52: f16, %53: f32, %54: f32, %55: f32, %56: f32, %57: f32):
    %58 = "arith.extf"(%52) : (f16) -> (f32)
    %59 = "arith.subf"(%58, %56) : (f32, f32) -> (f32)
    %60 = "arith.mulf"(%59, %53) : (f32, f32) -> (f32)
    %61 = "arith.mulf"(%54, %60) : (f32, f32) -> (f32)
    %62 = "arith.addf"(%61, %55) : (f32, f32) -> (f32)
    "linalg.yield"(%62) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 5, 1>} : (tensor<4x1000xf16>, tensor<4xf32>, tensor<1000xf32>, tensor<1000xf32>, tensor<4xf32>, tensor<4x1000xf32>) -> (tensor<4x1000xf32>)
  %63 = "tensor.empty"() : () -> (tensor<4x1xf32>)
  %64 = "linalg.generic"(%14, %63) ({
  ^bb0(%65: f32, %66: f32):
    "linalg.yield"(%65) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32>, tensor<4x1xf32>) -> (tensor<4x1xf32>)
  %67 = "tensor.empty"() : () -> (tensor<4x1xf32>)
  %68 = "linalg.generic"(%40, %67) ({
  ^bb0(%69: f32, %70: f32):
    "linalg.yield"(%69) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32>, tensor<4x1xf32>) -> (tensor<4x1xf32>)
  %71 = "tensor.empty"() : () -> (tensor<4x1000xf16>)
  %72 = "linalg.generic"(%51, %71) ({
  ^bb0(%73: f32, %74: f16):
    %75 = "arith.truncf"(%73) : (f32) -> (f16)
    "linalg.yield"(%75) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x1000xf32>, tensor<4x1000xf16>) -> (tensor<4x1000xf16>)
  "func.return"(%72, %64, %68) : (tensor<4x1000xf16>, tensor<4x1xf32>, tensor<4x1xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<4x1000xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x1000xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x1000xf32>
    %r:3 = func.call @compute(%i0, %i1, %i2) : (tensor<4x1000xf16>, tensor<1x1000xf32>, tensor<1x1000xf32>) -> (tensor<4x1000xf16>, tensor<4x1xf32>, tensor<4x1xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<4x1000xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<4x1000xf16> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<4x1xf32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<4x1xf32> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<4x1xf32> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<4x1xf32> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<4x1000xf16>, tensor<4x1xf32>, tensor<4x1xf32>) => %signal : !hal.fence
    util.return
  }
}
