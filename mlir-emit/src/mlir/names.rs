//! The names of all operations that the emitter uses.

use std::fmt;

/// Declares the operations and their names.
macro_rules! names {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// The name of an operation: its dialect and its own name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Name { $($variant),* }

        impl Name {
            /// The name in MLIR's text.
            pub(crate) const fn text(self) -> &'static str {
                match self { $(Name::$variant => $text),* }
            }

            /// Returns the operation with this name in MLIR's text.
            pub(crate) fn of_text(text: &str) -> Self {
                match text {
                    $($text => Name::$variant,)*
                    _ => unreachable!("{text} is no operation that is emitted"),
                }
            }
        }
    };
}

names! {
    AmdgpuDpp = "amdgpu.dpp",
    AmdgpuMfma = "amdgpu.mfma",
    AmdgpuRawBufferLoad = "amdgpu.raw_buffer_load",
    AmdgpuRawBufferStore = "amdgpu.raw_buffer_store",
    ArithAddf = "arith.addf",
    ArithAddi = "arith.addi",
    ArithAndi = "arith.andi",
    ArithBitcast = "arith.bitcast",
    ArithCmpf = "arith.cmpf",
    ArithCmpi = "arith.cmpi",
    ArithConstant = "arith.constant",
    ArithDivf = "arith.divf",
    ArithDivsi = "arith.divsi",
    ArithDivui = "arith.divui",
    ArithExtf = "arith.extf",
    ArithExtsi = "arith.extsi",
    ArithExtui = "arith.extui",
    ArithFptosi = "arith.fptosi",
    ArithFptoui = "arith.fptoui",
    ArithIndexCast = "arith.index_cast",
    ArithIndexCastui = "arith.index_castui",
    ArithMaximumf = "arith.maximumf",
    ArithMaxnumf = "arith.maxnumf",
    ArithMaxsi = "arith.maxsi",
    ArithMaxui = "arith.maxui",
    ArithMinimumf = "arith.minimumf",
    ArithMinnumf = "arith.minnumf",
    ArithMinsi = "arith.minsi",
    ArithMinui = "arith.minui",
    ArithMulf = "arith.mulf",
    ArithMuli = "arith.muli",
    ArithNegf = "arith.negf",
    ArithOri = "arith.ori",
    ArithRemui = "arith.remui",
    ArithSelect = "arith.select",
    ArithShli = "arith.shli",
    ArithShrsi = "arith.shrsi",
    ArithShrui = "arith.shrui",
    ArithSitofp = "arith.sitofp",
    ArithSubf = "arith.subf",
    ArithSubi = "arith.subi",
    ArithTruncf = "arith.truncf",
    ArithTrunci = "arith.trunci",
    ArithUitofp = "arith.uitofp",
    ArithXori = "arith.xori",
    FlowDispatch = "flow.dispatch",
    FlowDispatchRegion = "flow.dispatch.region",
    FlowReturn = "flow.return",
    FuncCall = "func.call",
    FuncReturn = "func.return",
    GpuBarrier = "gpu.barrier",
    GpuShuffle = "gpu.shuffle",
    IreeLinalgExtGather = "iree_linalg_ext.gather",
    IreeLinalgExtOnlineAttention = "iree_linalg_ext.online_attention",
    IreeLinalgExtYield = "iree_linalg_ext.yield",
    IreeTensorExtComputeBarrierEnd = "iree_tensor_ext.compute_barrier.end",
    IreeTensorExtComputeBarrierStart = "iree_tensor_ext.compute_barrier.start",
    LinalgFill = "linalg.fill",
    LinalgGeneric = "linalg.generic",
    LinalgIndex = "linalg.index",
    LinalgYield = "linalg.yield",
    MathAbsf = "math.absf",
    MathAbsi = "math.absi",
    MathCeil = "math.ceil",
    MathCopysign = "math.copysign",
    MathCos = "math.cos",
    MathErf = "math.erf",
    MathExp = "math.exp",
    MathExp2 = "math.exp2",
    MathExpm1 = "math.expm1",
    MathFloor = "math.floor",
    MathFma = "math.fma",
    MathFpowi = "math.fpowi",
    MathIsnan = "math.isnan",
    MathLdexp = "math.ldexp",
    MathLog = "math.log",
    MathLog1p = "math.log1p",
    MathRoundeven = "math.roundeven",
    MathSin = "math.sin",
    MathSqrt = "math.sqrt",
    MathTanh = "math.tanh",
    MemrefAlloc = "memref.alloc",
    MemrefAlloca = "memref.alloca",
    MemrefLoad = "memref.load",
    MemrefStore = "memref.store",
    RocdlExp2 = "rocdl.exp2",
    RocdlSchedBarrier = "rocdl.sched.barrier",
    RocdlUpdateDpp = "rocdl.update.dpp",
    RotiniProduct = "rotini.product",
    ScfFor = "scf.for",
    ScfIf = "scf.if",
    ScfYield = "scf.yield",
    TensorBitcast = "tensor.bitcast",
    TensorCast = "tensor.cast",
    TensorCollapseShape = "tensor.collapse_shape",
    TensorEmpty = "tensor.empty",
    TensorExpandShape = "tensor.expand_shape",
    TensorExtract = "tensor.extract",
    TensorExtractSlice = "tensor.extract_slice",
    TensorInsertSlice = "tensor.insert_slice",
    TensorPad = "tensor.pad",
    TensorYield = "tensor.yield",
    VectorBitcast = "vector.bitcast",
    VectorBroadcast = "vector.broadcast",
    VectorExtract = "vector.extract",
    VectorFma = "vector.fma",
    VectorFromElements = "vector.from_elements",
    VectorGather = "vector.gather",
    VectorLoad = "vector.load",
    VectorMaskedload = "vector.maskedload",
    VectorMaskedstore = "vector.maskedstore",
    VectorReduction = "vector.reduction",
    VectorScatter = "vector.scatter",
    VectorShuffle = "vector.shuffle",
    VectorStore = "vector.store",
}

impl Name {
    /// Returns true if the operation belongs to this dialect.
    pub(crate) fn is_of(self, dialect: &str) -> bool {
        self.text().split_once('.').is_some_and(|(own, _)| own == dialect)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_a_body_is_known() {
        for name in rotini_custom::operations() {
            assert_eq!(Name::of_text(name).text(), name);
        }
    }
}
