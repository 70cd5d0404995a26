//! Defects of the compiler that the lowering avoids.
//!
//! `register` describes each as data: where it was seen, what goes wrong, and which case guards it.
//! [`legalise`](crate::legalise) has the forms that avoid the defects, and asks [`Quirks::avoids`].
//! All of them are always avoided, except in a test that turns each off alone and demands that its
//! guard then fails (`tests/tests/emulated/quirks.rs`). If a guard passes without its quirk, delete
//! the quirk and the form that avoids it.

mod register;

pub use register::REGISTER;

use crate::target::Target;

/// Declares the quirks, and lists all of them in [`Quirk::ALL`].
macro_rules! quirks {
    ($($name:ident),* $(,)?) => {
        /// A defect that is avoided. [`REGISTER`] describes each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the register describes them")]
        pub enum Quirk { $($name),* }

        impl Quirk {
            /// Every quirk, in the order of the register.
            pub const ALL: &'static [Quirk] = &[$(Quirk::$name),*];

            /// The variant's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Quirk::$name => stringify!($name)),* }
            }
        }
    };
}

quirks! {
    FoldedTranspose,
    LostSums,
    UnspreadReductions,
    MaskedCodes,
    PaddingOfUnitLoops,
    PaddingOfMixedFactors,
    DroppedUnits,
    BlocksAfterRows,
    DilatedMultiplier,
    UnreachedInput,
    UnsettledFactors,
    MixedFactors,
    NarrowedFactors,
    MixedFnuz,
    SingleFnuz,
    UnsignedBytes,
    OddHalves,
    ThinFnuz,
    MaskedBatches,
    StoredSums,
    FoldedSums,
    RepeatedFactors,
    MixedProducts,
    NegatedTerms,
    SignedExtremes,
    ForgottenFunctions,
    PackedReductions,
    InnerLoops,
    GatheredScales,
    MissingFmax,
    FoldedBf16,
    LostNan,
    CopiedSign,
    ConstantFolds,
    YieldedOperand,
    ConstantSums,
    ConstantTransposed,
    RoundedTwice,
    SelectedSingle,
    WideBf16,
    SumsInPlace,
    SingleTile,
    SharedGather,
    UntiledAttention,
    ImplicitGemm,
    PaddedTiles,
    AggressiveFusion,
    CudaMatmuls,
}

/// The kind of device that kernels run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// CPUs.
    Cpu,
    /// AMD GPUs.
    Amd,
    /// NVIDIA GPUs.
    Nvidia,
}

impl Backend {
    /// Returns the backend of a target.
    #[must_use]
    pub const fn of(target: &Target) -> Self {
        match target {
            Target::Cpu | Target::X86(_) => Backend::Cpu,
            Target::Rocm { .. } => Backend::Amd,
            Target::Cuda { .. } => Backend::Nvidia,
        }
    }

    /// Returns the name that documents use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "CPU",
            Backend::Amd => "AMD",
            Backend::Nvidia => "NVIDIA",
        }
    }
}

/// The effect of a quirk that is not avoided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Wrong results.
    Wrong,
    /// The compiler crashes.
    Crash,
    /// The compiler rejects its own intermediate code, or cannot link the result.
    Rejected,
    /// The compiler takes hours, or its code is many times slower.
    Slow,
}

impl Effect {
    /// Returns the name that documents use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Effect::Wrong => "wrong results",
            Effect::Crash => "crash",
            Effect::Rejected => "rejection",
            Effect::Slow => "time",
        }
    }
}

/// The test that shows whether a quirk still exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// A case of the conformance suite fails on this backend without the quirk.
    Case(Backend, &'static str),
    /// A case of the conformance suite does not compile for this backend without the quirk, with
    /// these flags added. No device is needed.
    Compiled(Backend, &'static str, &'static [&'static str]),
    /// No test on the machines of the project shows it, for this reason.
    None(&'static str),
}

/// Everything that is known about a quirk.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The quirk.
    pub quirk: Quirk,
    /// The backends on which it is avoided.
    pub backends: &'static [Backend],
    /// The versions of IREE in which it was seen.
    pub seen_on: &'static [&'static str],
    /// The effect if it is not avoided.
    pub effect: Effect,
    /// The defect: what the compiler does, and in which situation.
    pub what: &'static str,
    /// What the lowering does to avoid it.
    pub instead: &'static str,
    /// The cost at run time, if any.
    pub costs: Option<&'static str>,
    /// The test that shows the defect.
    pub guard: Guard,
    /// The report to the compiler's authors, if there is one.
    pub upstream: Option<&'static str>,
}

impl Quirk {
    /// Returns the quirk's entry in the register.
    #[must_use]
    pub fn description(self) -> Option<&'static Description> {
        REGISTER.iter().find(|description| description.quirk == self)
    }

    const fn bit(self) -> u64 {
        const { assert!(Quirk::ALL.len() <= 64) };
        1 << self as u64
    }
}

/// The quirks that a lowering avoids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks(u64);

impl Quirks {
    /// Every quirk of every target.
    pub(crate) const ALL: Quirks = Quirks(u64::MAX);

    /// Returns all quirks of a target.
    #[must_use]
    pub fn of(target: &Target) -> Self {
        let backend = Backend::of(target);
        let has = |description: &&Description| description.backends.contains(&backend);
        let bits = REGISTER.iter().filter(has).map(|description| description.quirk.bit());
        Quirks(bits.fold(0, |all, bit| all | bit))
    }

    /// Returns these quirks without one of them, for the test that shows its effect.
    #[must_use]
    pub const fn without(self, quirk: Quirk) -> Self {
        Quirks(self.0 & !quirk.bit())
    }

    /// Returns true if the lowering avoids this quirk.
    #[must_use]
    pub const fn avoids(self, quirk: Quirk) -> bool {
        self.0 & quirk.bit() != 0
    }
}

/// Returns the text of `docs/quirks.md`: the register, as one row per quirk.
#[must_use]
pub fn document() -> String {
    let mut text = String::from(HEAD);
    for one in REGISTER {
        let backends: Vec<&str> = one.backends.iter().map(|backend| backend.name()).collect();
        let guard = match one.guard {
            Guard::Case(backend, case) => format!("`{case}` ({})", backend.name()),
            Guard::Compiled(backend, case, flags) => {
                let flags: Vec<String> = flags.iter().map(|flag| format!(", `{flag}`")).collect();
                format!("`{case}` (compiled for {}{})", backend.name(), flags.concat())
            }
            Guard::None(reason) => format!("none: {reason}"),
        };
        let row = [
            format!("`{}`", one.quirk.name()),
            backends.join(", "),
            one.seen_on.join(", "),
            one.effect.name().to_owned(),
            one.what.to_owned(),
            one.instead.to_owned(),
            one.costs.unwrap_or("nothing to speak of").to_owned(),
            guard,
            one.upstream.unwrap_or("not reported").to_owned(),
        ];
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

/// The text before the rows.
const HEAD: &str = "# Quirks of the compiler\n\n\
    For those who work on the lowering, or move to another version of IREE. A quirk is a defect of the compiler that the lowering avoids. \
    Those of AMD GPUs were seen on the emulated MI300 or in its compiler, those of NVIDIA GPUs on an H100 or H200. \
    The list below is written from `mlir-emit/src/quirks/register` by `scripts/quirks`; a test fails if it is stale.\n\n\
    `mlir-emit/src/legalise` has what is written instead, under `quirks.avoids(Quirk::Name)`. The test `quirks` turns each quirk off alone, and demands that its guard then fails. \
    Where a guard passes, the quirk can be deleted, with the form that avoids it: `ROTINI_QUIRKS=all` tries all of them, \
    `ROTINI_QUIRKS=Name` one. `scripts/quirks --report Name` writes a report for the compiler's authors, with the guard's module without the quirk and what was seen.\n\n\
    | Quirk | Targets | Seen on IREE | Effect | What goes wrong | What the lowering does | Cost | Guard | Upstream |\n\
    |---|---|---|---|---|---|---|---|---|\n";
