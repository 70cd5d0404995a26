// An operation that turns out late to yield one of its operands: the kernel that does nothing but copy is rejected.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%0: tensor<6x4x1xi32>, %1: tensor<6x1x1xi32>) -> (tensor<6x1x1xi32>, tensor<6x1x1xi32>) {
  %2 = "arith.constant"() {value = 0 : i32} : () -> (i32)
  %3 = "tensor.empty"() : () -> (tensor<6x1xi32>)
  %4 = "linalg.fill"(%2, %3) ({
  ^bb0(%5: i32, %6: i32):
    "linalg.yield"(%5) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (i32, tensor<6x1xi32>) -> (tensor<6x1xi32>)
  %7 = "linalg.generic"(%0, %4) ({
  ^bb0(%8: i32, %9: i32):
    %10 = "arith.constant"() {value = -2147483648 : i32} : () -> (i32)
    %11 = "arith.xori"(%8, %10) : (i32, i32) -> (i32)
    %12 = "arith.maxui"(%9, %11) : (i32, i32) -> (i32)
    "linalg.yield"(%12) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x4x1xi32>, tensor<6x1xi32>) -> (tensor<6x1xi32>)
  %13 = "tensor.empty"() : () -> (tensor<6x1x1xi32>)
  %14 = "linalg.generic"(%7, %13) ({
  ^bb0(%15: i32, %16: i32):
    %17 = "arith.constant"() {value = -2147483648 : i32} : () -> (i32)
    %18 = "arith.xori"(%15, %17) : (i32, i32) -> (i32)
    "linalg.yield"(%18) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1xi32>, tensor<6x1x1xi32>) -> (tensor<6x1x1xi32>)
  %19 = "tensor.empty"() : () -> (tensor<6x1x1xi32>)
  %20 = "linalg.generic"(%14, %19) ({
  ^bb0(%21: i32, %22: i32):
    %23 = "arith.constant"() {value = 1 : i32} : () -> (i32)
    %24 = "arith.muli"(%23, %21) : (i32, i32) -> (i32)
    "linalg.yield"(%24) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<6x1x1xi32>, tensor<6x1x1xi32>) -> (tensor<6x1x1xi32>)
  %25 = "iree_tensor_ext.compute_barrier.start"(%20) : (tensor<6x1x1xi32>) -> (tensor<6x1x1xi32>)
  %26 = "tensor.empty"() : () -> (tensor<6x1x1xi32>)
  %27 = "linalg.generic"(%14, %25, %1, %26) ({
  ^bb0(%28: i32, %29: i32, %30: i32, %31: i32):
    %32 = "arith.constant"() {value = 0 : i32} : () -> (i32)
    %33 = "arith.cmpi"(%30, %32) {predicate = 1 : i64} : (i32, i32) -> (i1)
    %34 = "arith.select"(%33, %28, %29) : (i1, i32, i32) -> (i32)
    "linalg.yield"(%34) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 3, 1>} : (tensor<6x1x1xi32>, tensor<6x1x1xi32>, tensor<6x1x1xi32>, tensor<6x1x1xi32>) -> (tensor<6x1x1xi32>)
  "func.return"(%14, %27) : (tensor<6x1x1xi32>, tensor<6x1x1xi32>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<6x4x1xi32>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<6x1x1xi32>
    %r:2 = func.call @compute(%i0, %i1) : (tensor<6x4x1xi32>, tensor<6x1x1xi32>) -> (tensor<6x1x1xi32>, tensor<6x1x1xi32>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<6x1x1xi32> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<6x1x1xi32> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<6x1x1xi32> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<6x1x1xi32> from %workspace : !hal.buffer
    %b:2 = hal.tensor.barrier join(%t0, %t1 : tensor<6x1x1xi32>, tensor<6x1x1xi32>) => %signal : !hal.fence
    util.return
  }
}
