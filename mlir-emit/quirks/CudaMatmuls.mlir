// Both pipelines for matmuls compute wrong results where a matrix is transposed, as in a 1x1 convolution of NCHW data in f16; so does fused padding in a 1D convolution. Seen executed on an H200 and on an H100.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=cuda --iree-cuda-target=sm_80
module @rotini {
func.func private @compute(%0: tensor<2x8x9x9xf16>, %1: tensor<2x16x9x9xf16>) -> (tensor<16x8x3x3xf16>) {
  %2 = "tensor.empty"() : () -> (tensor<8x3x3x2x9x9xf16>)
  %3 = "linalg.generic"(%2) ({
  ^bb0(%4: f16):
    %5 = "linalg.index"() {dim = 3 : i64} : () -> (index)
    %6 = "arith.constant"() {value = 0 : index} : () -> (index)
    %7 = "arith.constant"() {value = 8 : index} : () -> (index)
    %8 = "arith.muli"(%6, %7) : (index, index) -> (index)
    %9 = "linalg.index"() {dim = 0 : i64} : () -> (index)
    %10 = "arith.addi"(%8, %9) : (index, index) -> (index)
    %11 = "linalg.index"() {dim = 1 : i64} : () -> (index)
    %12 = "arith.constant"() {value = 1 : index} : () -> (index)
    %13 = "arith.muli"(%11, %12) : (index, index) -> (index)
    %14 = "linalg.index"() {dim = 4 : i64} : () -> (index)
    %15 = "arith.constant"() {value = 1 : index} : () -> (index)
    %16 = "arith.muli"(%14, %15) : (index, index) -> (index)
    %17 = "arith.addi"(%16, %13) : (index, index) -> (index)
    %18 = "arith.constant"() {value = 1 : index} : () -> (index)
    %19 = "arith.subi"(%17, %18) : (index, index) -> (index)
    %20 = "arith.constant"() {value = 8 : index} : () -> (index)
    %21 = "arith.cmpi"(%19, %20) {predicate = 7 : i64} : (index, index) -> (i1)
    %22 = "arith.constant"() {value = 0 : index} : () -> (index)
    %23 = "arith.select"(%21, %19, %22) : (i1, index, index) -> (index)
    %24 = "linalg.index"() {dim = 2 : i64} : () -> (index)
    %25 = "arith.constant"() {value = 1 : index} : () -> (index)
    %26 = "arith.muli"(%24, %25) : (index, index) -> (index)
    %27 = "linalg.index"() {dim = 5 : i64} : () -> (index)
    %28 = "arith.constant"() {value = 1 : index} : () -> (index)
    %29 = "arith.muli"(%27, %28) : (index, index) -> (index)
    %30 = "arith.addi"(%29, %26) : (index, index) -> (index)
    %31 = "arith.constant"() {value = 1 : index} : () -> (index)
    %32 = "arith.subi"(%30, %31) : (index, index) -> (index)
    %33 = "arith.constant"() {value = 8 : index} : () -> (index)
    %34 = "arith.cmpi"(%32, %33) {predicate = 7 : i64} : (index, index) -> (i1)
    %35 = "arith.constant"() {value = 0 : index} : () -> (index)
    %36 = "arith.select"(%34, %32, %35) : (i1, index, index) -> (index)
    %37 = "arith.andi"(%21, %34) : (i1, i1) -> (i1)
    %38 = "tensor.extract"(%0, %5, %10, %23, %36) : (tensor<2x8x9x9xf16>, index, index, index, index) -> (f16)
    %39 = "arith.constant"() {value = 0.0e0 : f16} : () -> (f16)
    %40 = "arith.select"(%37, %38, %39) : (i1, f16, f16) -> (f16)
    "linalg.yield"(%40) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>} : (tensor<8x3x3x2x9x9xf16>) -> (tensor<8x3x3x2x9x9xf16>)
  %41 = "tensor.collapse_shape"(%3) {reassociation = [[0 : i64, 1 : i64, 2 : i64], [3 : i64, 4 : i64, 5 : i64]]} : (tensor<8x3x3x2x9x9xf16>) -> (tensor<72x162xf16>)
  %42 = "iree_tensor_ext.compute_barrier.start"(%41) : (tensor<72x162xf16>) -> (tensor<72x162xf16>)
  %43 = "tensor.empty"() : () -> (tensor<16x2x9x9xf16>)
  %44 = "linalg.generic"(%1, %43) ({
  ^bb0(%45: f16, %46: f16):
    "linalg.yield"(%45) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x16x9x9xf16>, tensor<16x2x9x9xf16>) -> (tensor<16x2x9x9xf16>)
  %47 = "tensor.collapse_shape"(%44) {reassociation = [[0 : i64], [1 : i64, 2 : i64, 3 : i64]]} : (tensor<16x2x9x9xf16>) -> (tensor<16x162xf16>)
  %48 = "iree_tensor_ext.compute_barrier.start"(%47) : (tensor<16x162xf16>) -> (tensor<16x162xf16>)
  %49 = "arith.constant"() {value = 0.0e0 : f32} : () -> (f32)
  %50 = "tensor.empty"() : () -> (tensor<16x72xf32>)
  %51 = "linalg.fill"(%49, %50) ({
  ^bb0(%52: f32, %53: f32):
    "linalg.yield"(%52) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<16x72xf32>) -> (tensor<16x72xf32>)
  %54 = "linalg.generic"(%42, %48, %51) ({
  ^bb0(%55: f16, %56: f16, %57: f32):
    %58 = "arith.extf"(%55) : (f16) -> (f32)
    %59 = "arith.extf"(%56) : (f16) -> (f32)
    %60 = "arith.mulf"(%58, %59) : (f32, f32) -> (f32)
    %61 = "arith.addf"(%57, %60) : (f32, f32) -> (f32)
    "linalg.yield"(%61) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<72x162xf16>, tensor<16x162xf16>, tensor<16x72xf32>) -> (tensor<16x72xf32>)
  %62 = "tensor.expand_shape"(%54) {reassociation = [[0 : i64], [1 : i64, 2 : i64, 3 : i64]], static_output_shape = array<i64: 16, 8, 3, 3>} : (tensor<16x72xf32>) -> (tensor<16x8x3x3xf32>)
  %63 = "tensor.empty"() : () -> (tensor<16x8x3x3xf16>)
  %64 = "linalg.generic"(%62, %63) ({
  ^bb0(%65: f32, %66: f16):
    %67 = "arith.truncf"(%65) : (f32) -> (f16)
    "linalg.yield"(%67) : (f16) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<16x8x3x3xf32>, tensor<16x8x3x3xf16>) -> (tensor<16x8x3x3xf16>)
  "func.return"(%64) : (tensor<16x8x3x3xf16>) -> ()
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<2x8x9x9xf16>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<2x16x9x9xf16>
    %r = func.call @compute(%i0, %i1) : (tensor<2x8x9x9xf16>, tensor<2x16x9x9xf16>) -> (tensor<16x8x3x3xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<16x8x3x3xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<16x8x3x3xf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<16x8x3x3xf16>) => %signal : !hal.fence
    util.return
  }
}
