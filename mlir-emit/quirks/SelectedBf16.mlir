// bf16 is selected in f32, and on the way back what is no number changes.
// iree-compile --iree-input-type=none --iree-input-demote-f64-to-f32=false --iree-opt-const-expr-hoisting=false --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host
module @rotini {
func.func private @compute(%arg0: tensor<3x5xbf16>, %arg1: tensor<45xbf16>) -> tensor<45xbf16> {
  %0 = tensor.empty() : tensor<3x5xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<3x5xbf16>) outs(%0 : tensor<3x5xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %6 = arith.extf %in : bf16 to f32
    %7 = math.erf %6 : f32
    %cst = arith.constant 0.000000e+00 : f32
    %8 = arith.cmpf oeq, %6, %cst : f32
    %9 = arith.select %8, %6, %7 : f32
    linalg.yield %9 : f32
  } -> tensor<3x5xf32>
  %2 = tensor.empty() : tensor<3x5xbf16>
  %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<3x5xf32>) outs(%2 : tensor<3x5xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %6 = arith.truncf %in : f32 to bf16
    linalg.yield %6 : bf16
  } -> tensor<3x5xbf16>
  %4 = tensor.empty() : tensor<45xbf16>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%arg1 : tensor<45xbf16>) outs(%4 : tensor<45xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %c0 = arith.constant 0 : index
    %6 = linalg.index 0 : index
    %true = arith.constant true
    %c16 = arith.constant 16 : index
    %7 = arith.divui %6, %c16 : index
    %8 = arith.remui %6, %c16 : index
    %c2 = arith.constant 2 : index
    %9 = arith.cmpi ule, %7, %c2 : index
    %10 = arith.andi %true, %9 : i1
    %11 = arith.minui %7, %c2 : index
    %c3 = arith.constant 3 : index
    %12 = arith.divui %8, %c3 : index
    %13 = arith.remui %8, %c3 : index
    %c4 = arith.constant 4 : index
    %14 = arith.cmpi ule, %12, %c4 : index
    %15 = arith.andi %10, %14 : i1
    %16 = arith.minui %12, %c4 : index
    %17 = arith.cmpi ule, %13, %c0 : index
    %18 = arith.andi %15, %17 : i1
    %extracted = tensor.extract %3[%11, %16] : tensor<3x5xbf16>
    %19 = arith.select %18, %extracted, %in : bf16
    linalg.yield %19 : bf16
  } -> tensor<45xbf16>
  return %5 : tensor<45xbf16>
}
  util.func public @main(%in0: !hal.buffer_view, %out0: !hal.buffer_view, %workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {iree.abi.stub} {
    %i0 = hal.tensor.import wait(%wait) => %in0 : !hal.buffer_view -> tensor<3x5xbf16>
    %old0 = hal.tensor.import wait(%wait) => %out0 : !hal.buffer_view -> tensor<45xbf16>
    %r = func.call @compute(%i0, %old0) : (tensor<3x5xbf16>, tensor<45xbf16>) -> (tensor<45xbf16>)
    %a0 = hal.tensor.alias wait(%wait) => %r : tensor<45xbf16> to %out0 : !hal.buffer_view
    %t0 = hal.tensor.transients %a0 : tensor<45xbf16> from %workspace : !hal.buffer
    %b = hal.tensor.barrier join(%t0 : tensor<45xbf16>) => %signal : !hal.fence
    util.return
  }
}
