// Scales of blocks that are gathered from between gaps make NaN of sums if the last block is cut off.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=hip --iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops --iree-dispatch-creation-enable-aggressive-fusion --iree-rocm-target=mi300x
module @rotini {
func.func private @compute(%arg0: tensor<6x3xi8>, %arg1: tensor<9xi8>, %arg2: tensor<1x3xf16>, %arg3: tensor<1x3xf16>) -> (tensor<6x3xf16>, tensor<1x3xf16>, tensor<1x3xf16>) {
  %0 = tensor.empty() : tensor<2x3xi8>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%0 : tensor<2x3xi8>) {
  ^bb0(%out: i8):
    %c0 = arith.constant 0 : index
    %32 = linalg.index 0 : index
    %c6 = arith.constant 6 : index
    %33 = arith.muli %32, %c6 : index
    %34 = arith.addi %c0, %33 : index
    %35 = linalg.index 1 : index
    %c1 = arith.constant 1 : index
    %36 = arith.muli %35, %c1 : index
    %37 = arith.addi %34, %36 : index
    %extracted = tensor.extract %arg1[%37] : tensor<9xi8>
    linalg.yield %extracted : i8
  } -> tensor<2x3xi8>
  %padded = tensor.pad %arg0 low[0, 0] high[2, 0] {
  ^bb0(%arg4: index, %arg5: index):
    %c0_i8 = arith.constant 0 : i8
    tensor.yield %c0_i8 : i8
  } : tensor<6x3xi8> to tensor<8x3xi8>
  %expanded = tensor.expand_shape %padded [[0, 1], [2]] output_shape [2, 4, 3] : tensor<8x3xi8> into tensor<2x4x3xi8>
  %2 = tensor.empty() : tensor<2x4x3xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded, %1 : tensor<2x4x3xi8>, tensor<2x3xi8>) outs(%2 : tensor<2x4x3xf32>) {
  ^bb0(%in: i8, %in_13: i8, %out: f32):
    %32 = arith.extui %in : i8 to i32
    %c127_i32 = arith.constant 127 : i32
    %33 = arith.andi %32, %c127_i32 : i32
    %c20_i32 = arith.constant 20 : i32
    %34 = arith.shli %33, %c20_i32 : i32
    %c1006632960_i32 = arith.constant 1006632960 : i32
    %35 = arith.addi %34, %c1006632960_i32 : i32
    %36 = arith.sitofp %33 : i32 to f32
    %cst_14 = arith.constant 0.001953125 : f32
    %37 = arith.mulf %36, %cst_14 : f32
    %38 = arith.bitcast %37 : f32 to i32
    %c8_i32 = arith.constant 8 : i32
    %39 = arith.cmpi slt, %33, %c8_i32 : i32
    %40 = arith.select %39, %38, %35 : i32
    %c126_i32 = arith.constant 126 : i32
    %41 = arith.cmpi sgt, %33, %c126_i32 : i32
    %c2143289344_i32 = arith.constant 2143289344 : i32
    %42 = arith.select %41, %c2143289344_i32, %40 : i32
    %c128_i32 = arith.constant 128 : i32
    %43 = arith.andi %32, %c128_i32 : i32
    %c24_i32 = arith.constant 24 : i32
    %44 = arith.shli %43, %c24_i32 : i32
    %45 = arith.ori %42, %44 : i32
    %46 = arith.bitcast %45 : i32 to f32
    %47 = arith.extui %in_13 : i8 to i32
    %c23_i32 = arith.constant 23 : i32
    %48 = arith.shli %47, %c23_i32 : i32
    %c0_i32 = arith.constant 0 : i32
    %49 = arith.cmpi eq, %47, %c0_i32 : i32
    %c4194304_i32 = arith.constant 4194304 : i32
    %50 = arith.select %49, %c4194304_i32, %48 : i32
    %c255_i32 = arith.constant 255 : i32
    %51 = arith.cmpi eq, %47, %c255_i32 : i32
    %c2143289344_i32_15 = arith.constant 2143289344 : i32
    %52 = arith.select %51, %c2143289344_i32_15, %50 : i32
    %53 = arith.bitcast %52 : i32 to f32
    %54 = arith.mulf %46, %53 : f32
    linalg.yield %54 : f32
  } -> tensor<2x4x3xf32>
  %collapsed = tensor.collapse_shape %3 [[0, 1], [2]] : tensor<2x4x3xf32> into tensor<8x3xf32>
  %extracted_slice = tensor.extract_slice %collapsed[0, 0] [6, 3] [1, 1] : tensor<8x3xf32> to tensor<6x3xf32>
  %collapsed_0 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %collapsed_1 = tensor.collapse_shape %arg3 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %collapsed_2 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %cst = arith.constant 0.000000e+00 : f32
  %4 = tensor.empty() : tensor<3xf32>
  %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<3xf32>) -> tensor<3xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%extracted_slice, %extracted_slice, %collapsed_0, %collapsed_1, %collapsed_2 : tensor<6x3xf32>, tensor<6x3xf32>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>) outs(%5 : tensor<3xf32>) {
  ^bb0(%in: f32, %in_13: f32, %in_14: f16, %in_15: f16, %in_16: f16, %out: f32):
    %32 = arith.extf %in_14 : f16 to f32
    %33 = arith.extf %in_15 : f16 to f32
    %34 = arith.extf %in_16 : f16 to f32
    %35 = arith.mulf %in, %32 : f32
    %36 = arith.subf %in_13, %34 : f32
    %37 = arith.mulf %36, %33 : f32
    %38 = arith.mulf %in, %37 : f32
    %39 = arith.addf %out, %38 : f32
    linalg.yield %39 : f32
  } -> tensor<3xf32>
  %cst_3 = arith.constant 0.000000e+00 : f32
  %7 = tensor.empty() : tensor<3xf32>
  %8 = linalg.fill ins(%cst_3 : f32) outs(%7 : tensor<3xf32>) -> tensor<3xf32>
  %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%extracted_slice : tensor<6x3xf32>) outs(%8 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %32 = arith.addf %out, %in : f32
    linalg.yield %32 : f32
  } -> tensor<3xf32>
  %collapsed_4 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %collapsed_5 = tensor.collapse_shape %arg3 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %collapsed_6 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %cst_7 = arith.constant 0.000000e+00 : f32
  %10 = tensor.empty() : tensor<3xf32>
  %11 = linalg.fill ins(%cst_7 : f32) outs(%10 : tensor<3xf32>) -> tensor<3xf32>
  %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%extracted_slice, %extracted_slice, %collapsed_4, %collapsed_5, %collapsed_6 : tensor<6x3xf32>, tensor<6x3xf32>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>) outs(%11 : tensor<3xf32>) {
  ^bb0(%in: f32, %in_13: f32, %in_14: f16, %in_15: f16, %in_16: f16, %out: f32):
    %32 = arith.extf %in_14 : f16 to f32
    %33 = arith.extf %in_15 : f16 to f32
    %34 = arith.extf %in_16 : f16 to f32
    %35 = arith.mulf %in, %32 : f32
    %36 = arith.subf %in_13, %34 : f32
    %37 = arith.mulf %36, %33 : f32
    %38 = arith.mulf %35, %37 : f32
    %39 = arith.addf %out, %38 : f32
    linalg.yield %39 : f32
  } -> tensor<3xf32>
  %13 = tensor.empty() : tensor<3xf32>
  %14 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%12 : tensor<3xf32>) outs(%13 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_13 = arith.constant 6.000000e+00 : f32
    %32 = arith.divf %in, %cst_13 : f32
    linalg.yield %32 : f32
  } -> tensor<3xf32>
  %collapsed_8 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %cst_9 = arith.constant 0.000000e+00 : f32
  %15 = tensor.empty() : tensor<3xf32>
  %16 = linalg.fill ins(%cst_9 : f32) outs(%15 : tensor<3xf32>) -> tensor<3xf32>
  %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%extracted_slice, %collapsed_8 : tensor<6x3xf32>, tensor<3xf16>) outs(%16 : tensor<3xf32>) {
  ^bb0(%in: f32, %in_13: f16, %out: f32):
    %32 = arith.extf %in_13 : f16 to f32
    %33 = arith.mulf %in, %32 : f32
    %34 = arith.addf %out, %33 : f32
    linalg.yield %34 : f32
  } -> tensor<3xf32>
  %18 = tensor.empty() : tensor<3xf32>
  %19 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%17 : tensor<3xf32>) outs(%18 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %cst_13 = arith.constant 6.000000e+00 : f32
    %32 = arith.divf %in, %cst_13 : f32
    linalg.yield %32 : f32
  } -> tensor<3xf32>
  %collapsed_10 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %collapsed_11 = tensor.collapse_shape %arg3 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %collapsed_12 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %20 = tensor.empty() : tensor<6x3xf32>
  %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice, %extracted_slice, %collapsed_10, %collapsed_11, %collapsed_12, %14, %19 : tensor<6x3xf32>, tensor<6x3xf32>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf32>, tensor<3xf32>) outs(%20 : tensor<6x3xf32>) {
  ^bb0(%in: f32, %in_13: f32, %in_14: f16, %in_15: f16, %in_16: f16, %in_17: f32, %in_18: f32, %out: f32):
    %32 = arith.extf %in_14 : f16 to f32
    %33 = arith.extf %in_15 : f16 to f32
    %34 = arith.extf %in_16 : f16 to f32
    %35 = arith.mulf %in, %32 : f32
    %36 = arith.subf %in_13, %34 : f32
    %37 = arith.mulf %36, %33 : f32
    %38 = arith.subf %35, %in_18 : f32
    %39 = arith.mulf %37, %in_17 : f32
    %40 = arith.subf %38, %39 : f32
    %41 = arith.mulf %33, %40 : f32
    linalg.yield %41 : f32
  } -> tensor<6x3xf32>
  %22 = tensor.empty() : tensor<1x3xf32>
  %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<3xf32>) outs(%22 : tensor<1x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x3xf32>
  %24 = tensor.empty() : tensor<1x3xf32>
  %25 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<3xf32>) outs(%24 : tensor<1x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x3xf32>
  %26 = tensor.empty() : tensor<6x3xf16>
  %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%21 : tensor<6x3xf32>) outs(%26 : tensor<6x3xf16>) {
  ^bb0(%in: f32, %out: f16):
    %32 = arith.truncf %in : f32 to f16
    linalg.yield %32 : f16
  } -> tensor<6x3xf16>
  %28 = tensor.empty() : tensor<1x3xf16>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%23 : tensor<1x3xf32>) outs(%28 : tensor<1x3xf16>) {
  ^bb0(%in: f32, %out: f16):
    %32 = arith.truncf %in : f32 to f16
    linalg.yield %32 : f16
  } -> tensor<1x3xf16>
  %30 = tensor.empty() : tensor<1x3xf16>
  %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%25 : tensor<1x3xf32>) outs(%30 : tensor<1x3xf16>) {
  ^bb0(%in: f32, %out: f16):
    %32 = arith.truncf %in : f32 to f16
    linalg.yield %32 : f16
  } -> tensor<1x3xf16>
  return %27, %29, %31 : tensor<6x3xf16>, tensor<1x3xf16>, tensor<1x3xf16>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %in2: !hal.buffer_view, %in3: !hal.buffer_view, %out0: !hal.buffer_view, %out1: !hal.buffer_view, %out2: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<6x3xi8>
    %i1 = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<9xi8>
    %i2 = hal.tensor.import wait(%wait) => %in2 : !hal.buffer_view -> tensor<1x3xf16>
    %i3 = hal.tensor.import wait(%wait) => %in3 : !hal.buffer_view -> tensor<1x3xf16>
    %r:3 = func.call @compute(%i0, %i1, %i2, %i3) : (tensor<6x3xi8>, tensor<9xi8>, tensor<1x3xf16>, tensor<1x3xf16>) -> (tensor<6x3xf16>, tensor<1x3xf16>, tensor<1x3xf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r#0 : tensor<6x3xf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<6x3xf16> from %workspace : !hal.buffer
    %a1 = hal.tensor.alias wait(%wait) => %r#1 : tensor<1x3xf16> to %out1 : !hal.buffer_view
    %t1 = hal.tensor.transients %a1 : tensor<1x3xf16> from %workspace : !hal.buffer
    %a2 = hal.tensor.alias wait(%wait) => %r#2 : tensor<1x3xf16> to %out2 : !hal.buffer_view
    %t2 = hal.tensor.transients %a2 : tensor<1x3xf16> from %workspace : !hal.buffer
    %b:3 = hal.tensor.barrier join(%t0, %t1, %t2 : tensor<6x3xf16>, tensor<1x3xf16>, tensor<1x3xf16>) => %signal : !hal.fence
    util.return
  }
}
