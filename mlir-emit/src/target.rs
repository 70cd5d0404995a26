//! What a kernel is compiled for, and what follows from it: the form of a convolution and the compiler's flags.

use crate::matmul;
use crate::quirks::{Quirk, Quirks};
use rotini_graph::{NormalGraph, Op};
use std::fmt;

/// The alignment in bytes that pointers to a GPU's memory need: what hipDNN promises, and as much as the widest access of a GPU.
pub const GPU_ALIGNMENT: usize = 16;

/// The machine that a kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The processor that the compiler runs on, with all its features.
    Cpu,
    /// An AMD GPU, by architecture (`gfx942`) or product (`mi300x`), which also tells the number of compute units.
    Rocm {
        /// Architecture or product, as IREE's compiler spells it.
        arch: String,
    },
    /// An NVIDIA GPU.
    Cuda {
        /// Architecture, as IREE's compiler spells it (`sm_80`).
        arch: String,
    },
}

/// The form in which a convolution reaches the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvStrategy {
    /// One `linalg.generic` with the convolution's index maps. GPU code generation turns it into an implicit GEMM.
    Direct,
    /// Operands are first copied to the layouts and extents that code generation for CPUs is fast for, then summed by a plain
    /// convolution or matmul.
    Staged,
}

impl ConvStrategy {
    /// The name that goes into the cache key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ConvStrategy::Direct => "conv-direct",
            ConvStrategy::Staged => "conv-staged",
        }
    }
}

impl Target {
    /// Reads `cpu`, an AMD architecture or product (`gfx942`, `mi300x`) or an NVIDIA one (`sm_80`).
    #[must_use]
    pub fn parse(text: &str) -> Option<Target> {
        let is_word = !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_:+-".contains(&byte));
        match text {
            "cpu" => Some(Target::Cpu),
            _ if !is_word => None,
            _ if text.starts_with("sm_") => Some(Target::Cuda { arch: text.to_owned() }),
            _ if text.starts_with("gfx") || text.starts_with("mi") => Some(Target::Rocm { arch: text.to_owned() }),
            _ => None,
        }
    }

    /// The form of convolutions for this target.
    #[must_use]
    pub const fn conv_strategy(&self) -> ConvStrategy {
        match self {
            Target::Cpu => ConvStrategy::Staged,
            Target::Rocm { .. } | Target::Cuda { .. } => ConvStrategy::Direct,
        }
    }

    /// The alignment in bytes that the caller's pointers need. On the CPU none do: what is not aligned as the code wants it is copied.
    #[must_use]
    pub const fn pointer_alignment(&self) -> i64 {
        match self {
            Target::Cpu => 1,
            Target::Rocm { .. } | Target::Cuda { .. } => GPU_ALIGNMENT as i64,
        }
    }

    /// Whether matrix cores multiply the floats of eight bits that have no negative zero (FNUZ).
    pub(crate) fn multiplies_fnuz(&self) -> bool {
        /// Architecture and products.
        const CDNA3: [&str; 5] = ["gfx942", "mi300x", "mi300a", "mi308x", "mi325x"];
        matches!(self, Target::Rocm { arch } if CDNA3.contains(&arch.split(':').next().unwrap_or_default()))
    }

    /// The least number of lanes of a subgroup; `None` where there are none.
    pub(crate) fn least_subgroup(&self) -> Option<i64> {
        match self {
            Target::Cpu => None,
            // CDNA; RDNA has both.
            Target::Rocm { arch } if arch.starts_with("gfx9") || arch.starts_with("mi") => Some(GREATEST_SUBGROUP),
            Target::Rocm { .. } | Target::Cuda { .. } => Some(32),
        }
    }

    /// Flags to add when the compiler crashes or rejects its own code with [`flags`](Self::flags) alone: they avoid its more ambitious
    /// paths.
    #[must_use]
    pub fn cautious_flags(&self) -> Vec<String> {
        self.cautious_flags_avoiding(Quirks::of(self))
    }

    /// [`cautious_flags`](Self::cautious_flags) for the test that turns quirks off.
    #[doc(hidden)]
    #[must_use]
    pub fn cautious_flags_avoiding(&self, quirks: Quirks) -> Vec<String> {
        let flags = [
            (Quirk::ImplicitGemm, "--iree-codegen-llvmgpu-use-igemm=false"),
            (
                Quirk::PaddedTiles,
                "--iree-codegen-llvmgpu-use-tile-and-fuse-matmul=false",
            ),
            (
                Quirk::AggressiveFusion,
                "--iree-dispatch-creation-enable-aggressive-fusion=false",
            ),
            (Quirk::PackedTiles, "--iree-opt-data-tiling=false"),
            (Quirk::CudaWindows, "--iree-codegen-llvmgpu-use-igemm=false"),
        ];
        let avoided = flags.into_iter().filter(|(quirk, _)| quirks.avoids(*quirk));
        avoided.map(|(_, flag)| flag.to_owned()).collect()
    }

    /// The compiler's flags for a graph.
    pub(crate) fn flags_for(&self, graph: &NormalGraph, quirks: Quirks) -> Vec<String> {
        let mut flags = self.flags_avoiding(quirks);
        if *self == Target::Cpu && packs_matrices(graph) {
            flags.push("--iree-opt-data-tiling".to_owned());
        }
        flags
    }

    /// The compiler's flags for this target, whatever the graph.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        self.flags_avoiding(Quirks::of(self))
    }

    fn flags_avoiding(&self, quirks: Quirks) -> Vec<String> {
        let own = |flags: &[&str]| flags.iter().map(|&flag| flag.to_owned()).collect::<Vec<_>>();
        let mut flags = own(&[
            "--iree-input-type=none",
            // Else f64 is computed in f32, silently.
            "--iree-input-demote-f64-to-f32=false",
            // Else what depends on no input is computed once, when the code is loaded, into memory of its own.
            "--iree-opt-const-expr-hoisting=false",
        ]);
        flags.extend(match self {
            Target::Cpu => own(&[
                "--iree-hal-target-device=local",
                "--iree-hal-local-target-device-backends=llvm-cpu",
                "--iree-llvmcpu-target-cpu=host",
            ]),
            Target::Rocm { arch } => {
                let mut flags = own(&[
                    "--iree-hal-target-device=hip",
                    FUSE_PADDING,
                    // Else a normalization's statistics are dispatches of their own.
                    "--iree-dispatch-creation-enable-aggressive-fusion",
                ]);
                flags.push(format!("--iree-rocm-target={arch}"));
                flags
            }
            Target::Cuda { arch } => {
                let mut flags = own(&["--iree-hal-target-device=cuda"]);
                if quirks.avoids(Quirk::CudaMatmuls) {
                    flags.extend(own(&[
                        "--iree-codegen-llvmgpu-use-tile-and-fuse-matmul=false",
                        "--iree-codegen-llvmgpu-use-vector-distribution=false",
                    ]));
                }
                flags.push(format!("--iree-cuda-target={arch}"));
                flags
            }
        });
        flags
    }
}

/// Whether the operands of matmuls shall be packed into tiles, which is done for all of a graph or for none. They are packed on every
/// execution, so a product that reads a matrix once or twice would take several times as long.
fn packs_matrices(graph: &NormalGraph) -> bool {
    graph.nodes().iter().any(|node| match &node.op {
        Op::Matmul(op) => matmul::is_worth_packing(graph, op),
        Op::ConvFprop(_)
        | Op::ConvDgrad(_)
        | Op::ConvWgrad(_)
        | Op::Sdpa(_)
        | Op::SdpaBackward(_)
        | Op::MoeGroupedMatmul(_)
        | Op::MoeGroupedMatmulBwd(_) => true,
        _ => false,
    })
}

/// The greatest number of lanes that a subgroup of any GPU has.
pub(crate) const GREATEST_SUBGROUP: i64 = 64;

/// Padding becomes part of the convolution's dispatch instead of a fill and a slow copy before it.
const FUSE_PADDING: &str = "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops";

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Cpu => f.write_str("cpu"),
            Target::Rocm { arch } | Target::Cuda { arch } => f.write_str(arch),
        }
    }
}
