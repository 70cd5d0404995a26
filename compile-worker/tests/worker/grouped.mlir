// A grouped convolution, NCHW, f32, 8 channels to 12 in 2 groups, 7x7, 3x3: IREE 3.13 recurses without end when it compiles it for
// gfx942, in the lowering of buffer pointers after the implicit GEMM.
module @rotini {
func.func private @compute(%x: tensor<1x8x7x7xf32>, %w: tensor<12x4x3x3xf32>) -> tensor<1x12x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %xg = tensor.expand_shape %x [[0], [1, 2], [3], [4]] output_shape [1, 2, 4, 7, 7] : tensor<1x8x7x7xf32> into tensor<1x2x4x7x7xf32>
  %padded = tensor.pad %xg low[0, 0, 0, 1, 1] high[0, 0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %l: index, %m: index, %o: index):
    tensor.yield %zero : f32
  } : tensor<1x2x4x7x7xf32> to tensor<1x2x4x9x9xf32>
  %wg = tensor.expand_shape %w [[0, 1], [2], [3], [4]] output_shape [2, 6, 4, 3, 3] : tensor<12x4x3x3xf32> into tensor<2x6x4x3x3xf32>
  %empty = tensor.empty() : tensor<1x2x6x7x7xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x2x6x7x7xf32>) -> tensor<1x2x6x7x7xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 + d6, d4 + d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %wg : tensor<1x2x4x9x9xf32>, tensor<2x6x4x3x3xf32>) outs(%init : tensor<1x2x6x7x7xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x2x6x7x7xf32>
  %r = tensor.collapse_shape %y [[0], [1, 2], [3], [4]] : tensor<1x2x6x7x7xf32> into tensor<1x12x7x7xf32>
  return %r : tensor<1x12x7x7xf32>
}
  util.func public @main(%in0: !hal.buffer_view, %in1: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) {
    %x = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<1x8x7x7xf32>
    %w = hal.tensor.import wait(%wait) => %in1 : !hal.buffer_view -> tensor<12x4x3x3xf32>
    %r = func.call @compute(%x, %w) : (tensor<1x8x7x7xf32>, tensor<12x4x3x3xf32>) -> tensor<1x12x7x7xf32>
    %a = hal.tensor.alias wait(%wait) => %r : tensor<1x12x7x7xf32> to %out0 : !hal.buffer_view
    %t = hal.tensor.transients %a : tensor<1x12x7x7xf32> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t : tensor<1x12x7x7xf32>) => %signal : !hal.fence
    util.return
  }
}
