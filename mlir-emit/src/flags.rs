//! The compiler's flags for a target and a graph.

use crate::choice::{Chooser, Form};
use crate::legalise::flags::FALLBACK;
use crate::matmul;
use crate::quirks::Quirks;
use crate::target::Target;
use rotini_graph::{NormalGraph, Op};

/// Makes padding part of the convolution's dispatch, instead of a fill and a slow copy before it.
const FUSE_PADDING: &str = "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops";
/// Without this flag, a normalization's statistics are separate dispatches.
const AGGRESSIVE_FUSION: &str = "--iree-dispatch-creation-enable-aggressive-fusion";

impl Target {
    /// Returns the flags to add when the compiler crashes or rejects its own code with
    /// [`flags`](Self::flags) alone: they turn its more ambitious paths off. On CPUs that is the
    /// packing of tiles: an earlier lowering sometimes made it crash, which could not be reproduced
    /// since.
    #[must_use]
    pub fn fallback_flags(&self) -> Vec<String> {
        self.fallback_flags_avoiding(Quirks::of(self))
    }

    /// [`fallback_flags`](Self::fallback_flags) for the test that turns quirks off.
    #[doc(hidden)]
    #[must_use]
    pub fn fallback_flags_avoiding(&self, quirks: Quirks) -> Vec<String> {
        if self.is_cpu() {
            return vec!["--iree-opt-data-tiling=false".to_owned()];
        }
        let avoided = FALLBACK.into_iter().filter(|(quirk, _)| quirks.avoids(*quirk));
        avoided.map(|(_, flag)| flag.to_owned()).collect()
    }

    /// Returns the compiler's flags for a graph.
    pub(crate) fn flags_for(&self, graph: &NormalGraph, quirks: Quirks, chooser: &Chooser) -> Vec<String> {
        let mut flags = self.flags_avoiding(quirks);
        let forms = || vec![Form::new("packed", true), Form::new("plain", false)];
        let packs = packs_matrices(graph);
        let has_products = packs || graph.nodes().iter().any(|node| matches!(node.op, Op::Matmul(_)));
        if self.is_cpu() && has_products && chooser.choose("tiling", packs, forms, |_| None) {
            flags.push("--iree-opt-data-tiling".to_owned());
        }
        let forms = || vec![Form::new("plain", false), Form::new("aggressive", true)];
        if matches!(self, Target::Cuda { .. }) && chooser.choose("fusion", false, forms, |_| None) {
            flags.push(AGGRESSIVE_FUSION.to_owned());
        }
        flags
    }

    /// Returns the compiler's flags for this target, for any graph.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        self.flags_avoiding(Quirks::of(self))
    }

    fn flags_avoiding(&self, quirks: Quirks) -> Vec<String> {
        let own = |flags: &[&str]| flags.iter().map(|&flag| flag.to_owned()).collect::<Vec<_>>();
        let mut flags = own(&[
            "--iree-input-type=none",
            // By default f64 is computed in f32, silently.
            "--iree-input-demote-f64-to-f32=false",
            // Without this flag, values that depend on no input are computed once, when the code is
            // loaded, into separately allocated memory.
            "--iree-opt-const-expr-hoisting=false",
        ]);
        flags.extend(match self {
            Target::Cpu | Target::X86(_) => {
                let mut flags = own(&[
                    "--iree-hal-target-device=local",
                    "--iree-hal-local-target-device-backends=llvm-cpu",
                ]);
                flags.push(match self {
                    Target::X86(level) => format!("--iree-llvmcpu-target-cpu={}", level.name()),
                    _ => "--iree-llvmcpu-target-cpu=host".to_owned(),
                });
                flags
            }
            Target::Rocm { arch } => {
                let mut flags = own(&["--iree-hal-target-device=hip", FUSE_PADDING, AGGRESSIVE_FUSION]);
                flags.push(format!("--iree-rocm-target={}", Target::device(arch)));
                flags
            }
            Target::Cuda { arch } => {
                let mut flags = own(&["--iree-hal-target-device=cuda"]);
                flags.extend(own(quirks.cuda_flags()));
                flags.push(format!("--iree-cuda-target={arch}"));
                flags
            }
        });
        flags
    }
}

/// Returns true if the operands of matmuls shall be packed into tiles; the flag holds for a whole
/// graph. They are packed on every execution, so a product that reads a matrix only once or twice
/// would take several times as long.
fn packs_matrices(graph: &NormalGraph) -> bool {
    graph.nodes().iter().any(|node| match &node.op {
        Op::Matmul(op) => matmul::is_worth_packing(graph, op),
        op => op.contracts(),
    })
}
