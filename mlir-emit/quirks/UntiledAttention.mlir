// The compiler's attention has no matrix instructions for heads that are no power of two of 16 or more, and some do not compile.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<1x2x7x8xf32>, %1: tensor<1x2x1x8xf32>, %2: tensor<1x2x1x8xf32>) -> (tensor<1x2x7x8xf32>) {
  %3 = "arith.constant"() {value = 6.931471805599453e-1 : f32} : () -> (f32)
  %4 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %5 = "tensor.empty"() : () -> (tensor<1x2x7x8xf32>)
  %6 = "linalg.fill"(%4, %5) ({
  ^bb0(%7: f32, %8: f32):
    "linalg.yield"(%7) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x7x8xf32>) -> (tensor<1x2x7x8xf32>)
  %9 = "arith.constant"() {value = -3.4028234663852886e38 : f32} : () -> (f32)
  %10 = "tensor.empty"() : () -> (tensor<1x2x7xf32>)
  %11 = "linalg.fill"(%9, %10) ({
  ^bb0(%12: f32, %13: f32):
    "linalg.yield"(%12) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x7xf32>) -> (tensor<1x2x7xf32>)
  %14 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %15 = "tensor.empty"() : () -> (tensor<1x2x7xf32>)
  %16 = "linalg.fill"(%14, %15) ({
  ^bb0(%17: f32, %18: f32):
    "linalg.yield"(%17) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<1x2x7xf32>) -> (tensor<1x2x7xf32>)
  %19, %20, %21 = "iree_linalg_ext.online_attention"(%0, %1, %2, %3, %6, %11, %16) ({
  ^bb0(%22: f32):
    %23 = "arith.constant"() {value = 3.6067376022224085e-1 : f32} : () -> (f32)
    %24 = "arith.mulf"(%22, %23) : (f32, f32) -> (f32)
    "iree_linalg_ext.yield"(%24) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4, d5) -> ()>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2)>]} : (tensor<1x2x7x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, f32, tensor<1x2x7x8xf32>, tensor<1x2x7xf32>, tensor<1x2x7xf32>) -> (tensor<1x2x7x8xf32>, tensor<1x2x7xf32>, tensor<1x2x7xf32>)
  %25 = "tensor.empty"() : () -> (tensor<1x2x7xf32>)
  %26 = "linalg.generic"(%20, %25) ({
  ^bb0(%27: f32, %28: f32):
    %29 = "arith.constant"() {value = 6.931471805599453e-1 : f32} : () -> (f32)
    %30 = "arith.mulf"(%29, %27) : (f32, f32) -> (f32)
    "linalg.yield"(%30) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<1x2x7xf32>, tensor<1x2x7xf32>) -> (tensor<1x2x7xf32>)
  %31 = "tensor.empty"() : () -> (tensor<1x2x7x8xf32>)
  %32 = "linalg.generic"(%19, %21, %31) ({
  ^bb0(%33: f32, %34: f32, %35: f32):
    %36 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %37 = "arith.cmpf"(%34, %36) {predicate = 1 : i64} : (f32, f32) -> (i1)
    %38 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
    %39 = "arith.divf"(%33, %34) : (f32, f32) -> (f32)
    %40 = "arith.select"(%37, %38, %39) : (i1, f32, f32) -> (f32)
    "linalg.yield"(%40) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x7x8xf32>, tensor<1x2x7xf32>, tensor<1x2x7x8xf32>) -> (tensor<1x2x7x8xf32>)
  "func.return"(%32) : (tensor<1x2x7x8xf32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x2x7x8xf32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<1x2x1x8xf32>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x2x1x8xf32>
    %r = func.call @compute(%i0, %i1, %i2) : (tensor<1x2x7x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>) -> (tensor<1x2x7x8xf32>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<1x2x7x8xf32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<1x2x7x8xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<1x2x7x8xf32>) => %signal : !hal.fence
    util.return
  }
}
