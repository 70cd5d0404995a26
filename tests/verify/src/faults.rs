//! Modules with one fault each, which must be refused: a verifier that accepts everything would
//! find nothing.

use crate::verifier::Verifier;
use anyhow::{Context as _, Result, bail, ensure};

/// A module without a fault, as the emitter writes it: a kernel, structured operations, and
/// operations of IREE with and without a region.
const RIGHT: &str = include_str!("faults.mlir");

/// A fault: a text that occurs once in the module, and its replacement.
struct Fault {
    /// The text.
    right: &'static str,
    /// The replacement.
    wrong: &'static str,
    /// The expected message.
    said: &'static str,
}

const FAULTS: &[Fault] = &[
    // Type errors.
    Fault {
        right: r#""arith.addf"(%7, %6) : (f32, f32) -> (f32)"#,
        wrong: r#""arith.addf"(%7, %6) : (f32, f32) -> (f16)"#,
        said: "expects different type than prior uses: 'f32' vs 'f16'",
    },
    Fault {
        right: "memref<24xf32>, index) -> ()",
        wrong: "memref<24xf32>, i64) -> ()",
        said: "expects different type than prior uses: 'i64' vs 'index'",
    },
    Fault {
        right: "{value = dense<0.0e0> : vector<4xf32>}",
        wrong: "{value = dense<0.0e0> : vector<8xf32>}",
        said: "'arith.constant' op failed to verify that all of {value, result} have same type",
    },
    Fault {
        right: r#""linalg.yield"(%8) : (f32) -> ()"#,
        wrong: r#""linalg.yield"() : () -> ()"#,
        said: "expected number of yield values (0) to match the number of inits",
    },
    Fault {
        right: r#""vector.load"(%2, %0) : (memref<24xf16>, index)"#,
        wrong: r#""vector.load"(%2) : (memref<24xf16>)"#,
        said: "requires 1 indices",
    },
    Fault {
        right: "{m = 16 : i32, n = 16 : i32, k = 16 : i32",
        wrong: "{m = 16 : i32, n = 16 : i32, k = 32 : i32",
        said: "expected 8 source values for this operation but got 4",
    },
    Fault {
        right: r#""scf.yield"(%5) : (vector<4xf32>)"#,
        wrong: r#""scf.yield"(%4) : (vector<4xf16>)"#,
        said: "successor operand type #0 'vector<4xf16>' should match successor input type #0 'vector<4xf32>'",
    },
    // Errors of uses.
    Fault {
        right: r#""func.return"(%3, %1)"#,
        wrong: r#""func.return"(%5, %1)"#,
        said: "use of undeclared SSA value name",
    },
    Fault {
        right: r#""vector.store"(%8, %3, %1)"#,
        wrong: r#""vector.store"(%99, %3, %1)"#,
        said: "use of undeclared SSA value name",
    },
    Fault {
        right: r#""iree_tensor_ext.compute_barrier.start"(%1)"#,
        wrong: r#""iree_tensor_ext.compute_barrier.start"(%2)"#,
        said: "operand #0 does not dominate this use",
    },
    Fault {
        right: "%t0 = hal.tensor.transients %a0 : tensor<4xf32>",
        wrong: "%t0 = hal.tensor.transients %a0 : tensor<5xf32>",
        said: "expects different type than prior uses",
    },
    // Errors of maps and attributes.
    Fault {
        right: "affine_map<(d0, d1) -> (d0, d1)>",
        wrong: "affine_map<(d0, d1) -> (d0)>",
        said: "expected operand #0 rank (2) to match the result rank of indexing_map (1)",
    },
    Fault {
        right: "affine_map<(d0, d1) -> (d0, d1)>",
        wrong: "affine_map<(d0, d1) -> (d0, d1 + 1)>",
        said: "invalid indexing maps are non-invertible",
    },
    Fault {
        right: "predicate = 6 : i64",
        wrong: "predicate = 60 : i64",
        said: "attribute 'predicate' failed to satisfy constraint",
    },
    Fault {
        right: "iterator_types = [#linalg.iterator_type<parallel>, ",
        wrong: "iterator_types = [",
        said: "expected indexing_map #0 to have 1 dim(s) to match the number of loops",
    },
    Fault {
        right: "operandSegmentSizes = array<i32: 1, 1>",
        wrong: "operandSegmentSizes = array<i32: 2, 1>",
        said: "operand count (2) does not match with the total size (3)",
    },
    // Errors of functions.
    Fault {
        right: "func.call @compute(",
        wrong: "func.call @computed(",
        said: "'computed' does not reference a valid function",
    },
    Fault {
        right: "func.func private @compute(%0: tensor<4x6xf16>) -> (tensor<4xf32>, tensor<4x6xf32>)",
        wrong: "func.func private @compute(%0: tensor<4x6xf16>) -> (tensor<4xf32>, tensor<4x7xf32>)",
        said: "doesn't match function result type ('tensor<4x7xf32>')",
    },
    Fault {
        right: "hal.return %x, %one, %one : index, index, index",
        wrong: "hal.return %x, %one : index, index",
        said: "has 2 operands, but enclosing function (@kernel) returns 3",
    },
    // Misspelt names, and lines that the shell does not know.
    Fault {
        right: r#""arith.addf""#,
        wrong: r#""arith.add""#,
        said: "unregistered operation 'arith.add'",
    },
    Fault {
        right: r#""tensor.empty""#,
        wrong: r#""tensr.empty""#,
        said: "an operation that src/shell.rs does not know",
    },
    Fault {
        right: "hal.interface.workgroup.id[0]",
        wrong: "hal.interface.workgroup.count[0]",
        said: "a line that src/shell.rs does not know",
    },
];

/// Returns the number of faults, after checking that each is refused, and the original module is
/// not.
///
/// # Errors
///
/// A fault that is not refused, or for another reason than expected.
pub(crate) fn are_refused() -> Result<usize> {
    let mut verifier = Verifier::new();
    if let Err(reason) = verifier.verify(RIGHT) {
        bail!("a module without a fault is refused: {}\n{}", reason.what, reason.place);
    }
    for Fault { right, wrong, said } in FAULTS {
        ensure!(
            RIGHT.matches(right).count() == 1,
            "faults.mlir is to have once: {right}"
        );
        let module = RIGHT.replacen(right, wrong, 1);
        let reason = verifier.verify(&module).err();
        let reason = reason.with_context(|| format!("a fault is not refused: {wrong}"))?;
        ensure!(
            reason.what.contains(said),
            "{wrong}: refused for another reason than {said}: {}",
            reason.what
        );
    }
    // The faults have left no state in the context.
    ensure!(
        verifier.verify(RIGHT).is_ok(),
        "a module without a fault is refused after faults"
    );
    Ok(FAULTS.len())
}
