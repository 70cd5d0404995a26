// What is added to a sum of products becomes what the sum starts from, if all its products are one step: it is rounded with each of them, and what cancelled exactly does not.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<4x6x2xf32>, %1: tensor<4x2x9xf32>) -> (tensor<4x6x9xf32>) {
  %2 = "tensor.empty"() : () -> (tensor<4x9x2xf32>)
  %3 = "linalg.generic"(%1, %2) ({
  ^bb0(%4: f32, %5: f32):
    "linalg.yield"(%4) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x2x9xf32>, tensor<4x9x2xf32>) -> (tensor<4x9x2xf32>)
  %6 = "iree_tensor_ext.compute_barrier.start"(%3) : (tensor<4x9x2xf32>) -> (tensor<4x9x2xf32>)
  %7 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %8 = "tensor.empty"() : () -> (tensor<4x6x9xf32>)
  %9 = "linalg.fill"(%7, %8) ({
  ^bb0(%10: f32, %11: f32):
    "linalg.yield"(%10) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<4x6x9xf32>) -> (tensor<4x6x9xf32>)
  %12 = "linalg.generic"(%0, %6, %9) ({
  ^bb0(%13: f32, %14: f32, %15: f32):
    %16 = "arith.mulf"(%13, %14) : (f32, f32) -> (f32)
    %17 = "arith.addf"(%15, %16) : (f32, f32) -> (f32)
    "linalg.yield"(%17) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<4x6x2xf32>, tensor<4x9x2xf32>, tensor<4x6x9xf32>) -> (tensor<4x6x9xf32>)
  %18 = "tensor.empty"() : () -> (tensor<4x6x9xf32>)
  %19 = "linalg.generic"(%12, %18) ({
  ^bb0(%20: f32, %21: f32):
    %22 = "arith.constant"() {value = 4.0e0 : f32} : () -> (f32)
    %23 = "arith.constant"() {value = 6.4e1 : f32} : () -> (f32)
    %24 = "math.absf"(%20) : (f32) -> (f32)
    %25 = "arith.cmpf"(%24, %23) {predicate = 4 : i64} : (f32, f32) -> (i1)
    %26 = "arith.select"(%25, %24, %23) : (i1, f32, f32) -> (f32)
    %27 = "arith.addf"(%26, %22) : (f32, f32) -> (f32)
    %28 = "arith.subf"(%26, %22) : (f32, f32) -> (f32)
    %29 = "arith.divf"(%28, %27) : (f32, f32) -> (f32)
    %30 = "arith.constant"() {value = 2.118298425522466e-5 : f32} : () -> (f32)
    %31 = "arith.constant"() {value = -1.7310823014754179e-6 : f32} : () -> (f32)
    %32 = "math.fma"(%30, %29, %31) : (f32, f32, f32) -> (f32)
    %33 = "arith.constant"() {value = -2.155737762864521e-4 : f32} : () -> (f32)
    %34 = "math.fma"(%32, %29, %33) : (f32, f32, f32) -> (f32)
    %35 = "arith.constant"() {value = 1.3365338709444132e-4 : f32} : () -> (f32)
    %36 = "math.fma"(%34, %29, %35) : (f32, f32, f32) -> (f32)
    %37 = "arith.constant"() {value = 1.6220401055284282e-3 : f32} : () -> (f32)
    %38 = "math.fma"(%36, %29, %37) : (f32, f32, f32) -> (f32)
    %39 = "arith.constant"() {value = -3.4799546374434e-3 : f32} : () -> (f32)
    %40 = "math.fma"(%38, %29, %39) : (f32, f32, f32) -> (f32)
    %41 = "arith.constant"() {value = -7.537717159683632e-3 : f32} : () -> (f32)
    %42 = "math.fma"(%40, %29, %41) : (f32, f32, f32) -> (f32)
    %43 = "arith.constant"() {value = 6.0396648278004936e-2 : f32} : () -> (f32)
    %44 = "math.fma"(%42, %29, %43) : (f32, f32, f32) -> (f32)
    %45 = "arith.constant"() {value = -1.865221598399514e-1 : f32} : () -> (f32)
    %46 = "math.fma"(%44, %29, %45) : (f32, f32, f32) -> (f32)
    %47 = "arith.constant"() {value = 3.8713739385984314e-1 : f32} : () -> (f32)
    %48 = "math.fma"(%46, %29, %47) : (f32, f32, f32) -> (f32)
    %49 = "arith.constant"() {value = -6.078966313662241e-1 : f32} : () -> (f32)
    %50 = "math.fma"(%48, %29, %49) : (f32, f32, f32) -> (f32)
    %51 = "arith.constant"() {value = 7.552851305166057e-1 : f32} : () -> (f32)
    %52 = "math.fma"(%50, %29, %51) : (f32, f32, f32) -> (f32)
    %53 = "arith.divf"(%52, %27) : (f32, f32) -> (f32)
    %54 = "arith.mulf"(%20, %20) : (f32, f32) -> (f32)
    %55 = "arith.negf"(%54) : (f32) -> (f32)
    %56 = "math.fma"(%20, %20, %55) : (f32, f32, f32) -> (f32)
    %57 = "arith.constant"() {value = -5.0e-1 : f32} : () -> (f32)
    %58 = "arith.mulf"(%57, %54) : (f32, f32) -> (f32)
    %59 = "math.exp"(%58) : (f32) -> (f32)
    %60 = "arith.constant"() {value = 5.0e-1 : f32} : () -> (f32)
    %61 = "arith.mulf"(%60, %56) : (f32, f32) -> (f32)
    %62 = "arith.mulf"(%59, %61) : (f32, f32) -> (f32)
    %63 = "arith.subf"(%59, %62) : (f32, f32) -> (f32)
    %64 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %65 = "arith.cmpf"(%59, %64) {predicate = 1 : i64} : (f32, f32) -> (i1)
    %66 = "arith.select"(%65, %59, %63) : (i1, f32, f32) -> (f32)
    %67 = "arith.mulf"(%66, %53) : (f32, f32) -> (f32)
    %68 = "arith.constant"() {value = 1.0e0 : f32} : () -> (f32)
    %69 = "arith.subf"(%68, %67) : (f32, f32) -> (f32)
    %70 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %71 = "arith.cmpf"(%20, %70) {predicate = 2 : i64} : (f32, f32) -> (i1)
    %72 = "arith.select"(%71, %69, %67) : (i1, f32, f32) -> (f32)
    %73 = "arith.mulf"(%20, %72) : (f32, f32) -> (f32)
    "linalg.yield"(%73) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x6x9xf32>, tensor<4x6x9xf32>) -> (tensor<4x6x9xf32>)
  %74 = "tensor.empty"() : () -> (tensor<4x6x9xf32>)
  %75 = "linalg.generic"(%12, %19, %74) ({
  ^bb0(%76: f32, %77: f32, %78: f32):
    %79 = "arith.addf"(%76, %77) : (f32, f32) -> (f32)
    "linalg.yield"(%79) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<4x6x9xf32>, tensor<4x6x9xf32>, tensor<4x6x9xf32>) -> (tensor<4x6x9xf32>)
  "func.return"(%75) : (tensor<4x6x9xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<4x6x2xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<4x2x9xf32>
    %r = func.call @compute(%i0, %i1) : (tensor<4x6x2xf32>, tensor<4x2x9xf32>) -> (tensor<4x6x9xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<4x6x9xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<4x6x9xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<4x6x9xf32>) => %signal : !hal.fence
    util.return
  }
}
