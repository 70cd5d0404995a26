//! The targets that kernels are compiled for, and their properties.

use crate::choice::Choices;
use crate::kernel::Registers;
use rotini_schedule::Machine;
use std::fmt;

/// The alignment, in bytes, that pointers to a GPU's memory need: hipDNN promises that much, and
/// the widest access of a GPU is as wide.
pub const GPU_ALIGNMENT: usize = 16;

/// Suffix of a target's name if the compiler chooses all schedules.
const UNSCHEDULED: &str = ":unscheduled";
/// Separator in a target's name before the schedule to try, which all products get that it fits.
const CUT: &str = ":cut-";

/// The device that kernels are compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The processor of the machine that the compiler runs on, with all its features.
    Cpu,
    /// All x86-64 processors of at least this level.
    X86(Level),
    /// An AMD GPU, by architecture (`gfx942`) or product (`mi300x`), which determines the number of
    /// compute units too.
    Rocm {
        /// Architecture or product, as IREE's compiler spells it. With the suffix `:unscheduled`,
        /// the compiler chooses all schedules. To try schedules: with `:cut-64x64_2x2_b1`, products
        /// have this schedule where it fits; with `:cut-3`, the fourth best by the estimate; with
        /// `:cut-l64_w256_r3`, rows have that schedule.
        arch: String,
    },
    /// An NVIDIA GPU.
    Cuda {
        /// Architecture, as IREE's compiler spells it (`sm_80`).
        arch: String,
    },
}

/// A level of x86-64 features, as the psABI defines it and IREE's compiler spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// `x86-64-v3`: AVX2, with fused multiplication and addition.
    V3,
    /// `x86-64-v4`: AVX-512 as well.
    V4,
}

impl Level {
    /// Reads `x86-64-v3` or `x86-64-v4`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Level> {
        [Level::V3, Level::V4].into_iter().find(|level| level.name() == text)
    }

    /// Returns the level's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::V3 => "x86-64-v3",
            Level::V4 => "x86-64-v4",
        }
    }

    /// Returns true if this machine's processor has all features of the level.
    #[must_use]
    pub fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let of_v3 = has!("avx2")
                && has!("bmi1")
                && has!("bmi2")
                && has!("f16c")
                && has!("fma")
                && has!("lzcnt")
                && has!("movbe");
            let of_v4 =
                || has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
            of_v3 && (self == Level::V3 || of_v4())
        }
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

/// The form in which a convolution reaches the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvStrategy {
    /// One `linalg.generic` with the convolution's index maps, which GPU code generation turns into
    /// an implicit GEMM.
    Direct,
    /// Operands are first copied to layouts and extents for which code generation for CPUs is fast,
    /// then summed by a plain convolution or matmul.
    Staged,
}

impl Target {
    /// Reads `cpu`, a level of x86-64 (`x86-64-v3`), an AMD architecture or product (`gfx942`,
    /// `mi300x`) or an NVIDIA one (`sm_80`).
    #[must_use]
    pub fn parse(text: &str) -> Option<Target> {
        let is_word = !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_:+-".contains(&byte));
        match text {
            "cpu" => Some(Target::Cpu),
            _ if text.starts_with("x86-64") => Level::parse(text).map(Target::X86),
            _ if !is_word => None,
            _ if text.starts_with("sm_") => Some(Target::Cuda { arch: text.to_owned() }),
            _ if text.starts_with("gfx") || text.starts_with("mi") => Some(Target::Rocm { arch: text.to_owned() }),
            _ => None,
        }
    }

    /// Returns true for CPUs.
    #[must_use]
    pub const fn is_cpu(&self) -> bool {
        matches!(self, Target::Cpu | Target::X86(_))
    }

    /// Returns true for CPUs with 32 registers of 512 bits.
    pub(crate) fn has_wide_registers(&self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Target::Cpu => std::arch::is_x86_feature_detected!("avx512f"),
            Target::X86(level) => *level == Level::V4,
            _ => false,
        }
    }

    /// Returns the vector registers of a CPU that has fused multiply-add and gathers: AVX2 or
    /// AVX-512. `None` for other targets.
    pub(crate) fn registers(&self) -> Option<Registers> {
        const WIDE: Registers = Registers { lanes: 16, count: 32 };
        const NARROW: Registers = Registers { lanes: 8, count: 16 };
        if self.has_wide_registers() {
            return Some(WIDE);
        }
        let has_avx2 = match self {
            #[cfg(target_arch = "x86_64")]
            Target::Cpu => std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma"),
            Target::X86(_) => true,
            _ => false,
        };
        has_avx2.then_some(NARROW)
    }

    /// Returns the form of convolutions for this target.
    #[must_use]
    pub const fn conv_strategy(&self) -> ConvStrategy {
        match self {
            Target::Cpu | Target::X86(_) => ConvStrategy::Staged,
            Target::Rocm { .. } | Target::Cuda { .. } => ConvStrategy::Direct,
        }
    }

    /// Returns the alignment, in bytes, that the caller's pointers need. On the CPU any pointer
    /// will do: buffers that are not aligned as the code needs are copied.
    #[must_use]
    pub const fn pointer_alignment(&self) -> i64 {
        match self {
            Target::Cpu | Target::X86(_) => 1,
            Target::Rocm { .. } | Target::Cuda { .. } => GPU_ALIGNMENT as i64,
        }
    }

    /// Returns true if matrix cores multiply FNUZ floats: those of eight bits without a negative
    /// zero.
    pub(crate) fn multiplies_fnuz(&self) -> bool {
        matches!(self, Target::Rocm { arch } if Machine::of(arch).is_some())
    }

    /// Returns the machine that schedules are chosen for; `None` if the compiler chooses all of
    /// them.
    pub(crate) fn machine(&self) -> Option<&'static Machine> {
        match self {
            Target::Rocm { arch } if !arch.ends_with(UNSCHEDULED) => Machine::of(arch),
            _ => None,
        }
    }

    /// Returns the same target with the compiler's own schedules; `None` if it has no others.
    #[must_use]
    pub fn unscheduled(&self) -> Option<Target> {
        self.machine()?;
        Some(Target::Rocm {
            arch: format!("{self}{UNSCHEDULED}"),
        })
    }

    /// Returns the device in a target's name, as IREE's compiler spells it: the name without the
    /// choice of schedules.
    #[must_use]
    pub fn device(name: &str) -> &str {
        let name = name.strip_suffix(UNSCHEDULED).unwrap_or(name);
        name.split_once(CUT).map_or(name, |(name, _)| name)
    }

    /// Returns the target for which a graph is lowered with these choices: the one [without
    /// schedules](Self::unscheduled) if IREE's own code is demanded on a GPU, else this one.
    pub(crate) fn chosen(&self, choices: &Choices) -> Target {
        let unscheduled = self.unscheduled().filter(|_| choices.is_iree());
        unscheduled.unwrap_or_else(|| self.clone())
    }

    /// Returns the choices at the end of the target's name, which are tried where they fit: one
    /// schedule of products and of rows, or a rank among the estimates of products.
    pub(crate) fn tried(&self) -> Option<Choices> {
        let Target::Rocm { arch } = self else { return None };
        let (_, word) = arch.split_once(CUT)?;
        Some(match word.parse::<usize>() {
            Ok(rank) => Choices::of("gemm", &format!("#{rank}")),
            Err(_) => Choices::of("gemm", word).with(&Choices::of("rows", word)),
        })
    }

    /// Returns the least number of lanes of a subgroup; `None` if the target has no subgroups.
    pub(crate) fn least_subgroup(&self) -> Option<i64> {
        match self {
            Target::Cpu | Target::X86(_) => None,
            // CDNA has subgroups of 64 only; RDNA has 32 and 64.
            Target::Rocm { arch } if arch.starts_with("gfx9") || arch.starts_with("mi") => Some(GREATEST_SUBGROUP),
            Target::Rocm { .. } | Target::Cuda { .. } => Some(32),
        }
    }
}

/// The greatest number of lanes in a subgroup of any GPU.
pub(crate) const GREATEST_SUBGROUP: i64 = 64;

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Cpu => f.write_str("cpu"),
            Target::X86(level) => f.write_str(level.name()),
            Target::Rocm { arch } | Target::Cuda { arch } => f.write_str(arch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_they_are_written() {
        for name in ["cpu", "x86-64-v3", "x86-64-v4", "gfx942", "mi300x:unscheduled", "sm_80"] {
            assert_eq!(
                Target::parse(name).map(|target| target.to_string()).as_deref(),
                Some(name)
            );
        }
        for name in ["", "x86-64", "x86-64-v2", "x86-64-v3 ", "arm64", "gfx942 --flag"] {
            assert_eq!(Target::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_level_has_flags_and_registers_of_its_own() {
        let registers = [Level::V3, Level::V4].map(|level| Target::X86(level).has_wide_registers());
        assert_eq!(registers, [false, true]);
        let flags = Target::X86(Level::V3).flags();
        assert!(
            flags.contains(&"--iree-llvmcpu-target-cpu=x86-64-v3".to_owned()),
            "{flags:?}"
        );
        assert_eq!(Target::X86(Level::V3).flags().len(), Target::Cpu.flags().len());
    }
}
