//! Verdicts: which cases were right before, and need not be executed again.
//!
//! `tests/proven` has a file for each device. Its first line has a hash of what all verdicts depend
//! on, their *ground*: the compiler's build, the CPU's features, and the sources of the judge, of
//! the execution path and of the emulator ([`sources`]). Each other line has the name of a case and
//! a hash of what it alone depends on: the compiler's input (MLIR, flags, target), the graph as the
//! judge reads it, its inputs and how it is executed ([`book`]). Neither covers the emitter's
//! sources: if a changed lowering emits the same MLIR for a case, the verdict holds. If one of the
//! hashes no longer fits, the case is executed.
//!
//! A changed judge, or another processor, voids all verdicts of a device at once. Then CI cannot
//! execute everything within its time: of the voided cases it executes one in [`VOIDED`]. Cases
//! whose own hash changed, and new ones, are executed in any case.
//!
//! | `ROTINI_TEST_PROVEN` | What is executed | What is written |
//! |---|---|---|
//! | not set, or `ROTINI_CASE` names cases | every case | nothing |
//! | `trust` | unproven cases, a share of the voided, a twentieth of the proven | nothing |
//! | `quick` | unproven cases, a share of the voided | nothing |
//! | `prove` | unproven cases, all voided, a twentieth of the proven | the cases that were right |
//! | `full` | every case | the cases that were right |
//!
//! `ROTINI_TEST_SEED` chooses the twentieth and the share.

mod book;
mod field;
mod sources;

use crate::cases::Case;
use anyhow::{Context as _, Result, bail, ensure};
use book::Lines;
pub(crate) use book::Verdict;
use field::field;
use rotini_cache::{CompiledFor, ContentInputs, ContentKey};
use rotini_emit::{EmitError, Emitted, FINGERPRINT, Target, emit};
use rotini_graph::NormalGraph;
use rotini_plugin::config::Config;
use rotini_plugin::prepared::check;
use rotini_plugin::runtime::Runtime;
use rotini_reference::{Buffers, Profile};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Interval at which proven cases are executed anyway.
const AGAIN: u64 = 20;

/// Interval at which cases are executed whose verdicts have another ground.
const VOIDED: u64 = 12;

/// The manner in which a case is executed and judged.
#[derive(Clone, Debug)]
pub(crate) struct Trial<'a> {
    /// The case.
    pub(crate) case: &'a Case,
    /// The graph's bytes.
    pub(crate) bytes: Vec<u8>,
    /// The buffers, if not the harness's.
    pub(crate) inputs: Option<&'a Buffers>,
    /// The harness's fill profile; `None`: the profiles that consumers ask for.
    pub(crate) profile: Option<Profile>,
    /// Alignment of the buffers' addresses, in bytes.
    pub(crate) alignment: usize,
    /// Number of executions.
    pub(crate) executions: usize,
    /// Whether the reference judges the outputs.
    pub(crate) has_meaning: bool,
}

impl Trial<'_> {
    /// Returns the trial's name in the file: the same case is tried in several ways.
    fn name(&self) -> String {
        let mut name = self.case.name.replace(char::is_whitespace, "_");
        if self.inputs.is_some() {
            name.push_str("@data");
        }
        if let Some(profile) = self.profile {
            let _ = write!(name, "@{profile:?}");
        }
        let _ = write!(name, "@{}", self.alignment);
        name
    }

    /// Hashes the inputs and the manner in which the graph is executed and judged.
    fn hash_manner(&self, hasher: &mut blake3::Hasher) {
        // Destructured, so that a new field of a trial that is forgotten here does not compile.
        let Trial {
            case: _,
            bytes: _,
            inputs,
            profile,
            alignment,
            executions,
            has_meaning,
        } = self;
        let manner = format!("{profile:?} {alignment} {executions} {has_meaning}");
        field(hasher, manner.as_bytes());
        let mut buffers: Vec<_> = inputs.iter().flat_map(|inputs| inputs.iter()).collect();
        buffers.sort();
        for (uid, bytes) in buffers {
            field(hasher, &uid.to_le_bytes());
            field(hasher, bytes);
        }
    }
}

/// The common dependencies of all verdicts on a device.
struct Ground {
    /// Hash of the sources.
    sources: blake3::Hash,
    compiled_for: CompiledFor<Target>,
    compiler: String,
    /// The lowering. Tests inject another one.
    lower: fn(&NormalGraph, &Target) -> Result<Emitted, EmitError>,
}

impl Ground {
    /// Returns the ground of this process: its device, and the compiler that the plugin will find.
    fn of_this_process(on_gpu: bool) -> Result<Self> {
        let runtime = Runtime::new(Config::from_env())?;
        let device = runtime.default_device()?;
        let mut hasher = blake3::Hasher::new();
        sources::hash(&root(), on_gpu, &mut hasher)?;
        Ok(Ground {
            sources: hasher.finalize(),
            compiled_for: device.compiled_for().clone(),
            compiler: runtime.compiler()?.identity().to_owned(),
            lower: emit,
        })
    }

    /// Returns the verdict that a trial gets if it is right; an error if the plugin declines it.
    fn verdict(&self, trial: &Trial<'_>) -> Result<Verdict> {
        let target = &self.compiled_for.target;
        let plan = check(&trial.bytes, target)?;
        let emitted = (self.lower)(&plan.graph, target)?;
        let mut graph = trial.case.graph.clone();
        graph.validate()?;
        let content = ContentKey::of(&ContentInputs {
            mlir: emitted.mlir.as_bytes(),
            // The ground covers the CPU's features and the compiler.
            compiled_for: &CompiledFor::from(target.to_string()),
            flags: &[emitted.flags, target.fallback_flags()].concat(),
            compiler: "",
        });
        let bound = rotini_emit::workspace_bound(&plan.graph, target)?;
        let operations = rotini_emit::operations(&plan.graph);
        let mut hasher = blake3::Hasher::new_derive_key("rotini verdict v2");
        field(&mut hasher, content.as_bytes());
        // The meaning, the mapping from tensors to arguments, and the ways of executing.
        field(&mut hasher, format!("{graph:?}").as_bytes());
        let bindings = format!("{:?} {:?} {bound} {operations}", plan.bindings, emitted.signature);
        field(&mut hasher, bindings.as_bytes());
        trial.hash_manner(&mut hasher);
        Ok(Verdict {
            trial: shortened(hasher.finalize()),
            ground: self.hash(),
        })
    }

    /// Returns the hash of the ground.
    fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("rotini verdict's ground v1");
        field(&mut hasher, self.sources.as_bytes());
        let CompiledFor { target, features } = &self.compiled_for;
        field(&mut hasher, target.to_string().as_bytes());
        field(&mut hasher, features.as_bytes());
        field(&mut hasher, self.compiler.as_bytes());
        shortened(hasher.finalize())
    }
}

/// Returns 64 bits of a hash, in hexadecimal digits.
fn shortened(hash: blake3::Hash) -> String {
    hash.to_hex()[..16].to_owned()
}

/// The handling of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode {
    /// Whether verdicts are trusted.
    trusts: bool,
    /// Whether a share of the proven trials is executed nevertheless.
    repeats: bool,
    /// Whether verdicts are written.
    writes: bool,
}

impl Mode {
    fn parse(text: &str) -> Result<Option<Self>> {
        let (trusts, repeats, writes) = match text {
            "" => return Ok(None),
            "trust" => (true, true, false),
            "quick" => (true, false, false),
            "prove" => (true, true, true),
            "full" => (false, false, true),
            other => bail!("ROTINI_TEST_PROVEN={other}"),
        };
        Ok(Some(Mode {
            trusts,
            repeats,
            writes,
        }))
    }
}

/// The reason why a trial is not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// It was right, and nothing that its result depends on has changed.
    Proven,
    /// It was right under another judge or on another processor; this run executes a share of
    /// those.
    Voided,
}

/// The verdicts on a device.
pub(crate) struct Verdicts {
    ground: Ground,
    mode: Mode,
    seed: u64,
    path: PathBuf,
    known: Lines,
}

impl Verdicts {
    /// Returns the verdicts that apply to this process; `None` if none do.
    ///
    /// # Errors
    ///
    /// If their ground cannot be read, or the plugin was not built from these sources.
    pub(crate) fn of_this_process(on_gpu: bool) -> Result<Option<Self>> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let Some(mode) = Mode::parse(&variable("ROTINI_TEST_PROVEN"))? else {
            return Ok(None);
        };
        // Cases selected by name are always executed, and verdicts do not apply to another device.
        if !variable("ROTINI_CASE").is_empty() || !variable("ROTINI_TEST_DEVICE").is_empty() {
            return Ok(None);
        }
        let seed = match variable("ROTINI_TEST_SEED").as_str() {
            "" => 0,
            text => text.parse().with_context(|| format!("ROTINI_TEST_SEED={text}"))?,
        };
        let plugin = std::fs::read(crate::plugin::path()?)?;
        ensure!(
            contains(&plugin, FINGERPRINT.as_bytes()),
            "the plugin was built from other sources than this test: verdicts would be on another lowering"
        );
        sources::expect_built(&root(), on_gpu)?;
        let name = if on_gpu { "gfx942.txt" } else { "cpu.txt" };
        let path = root().join("tests/proven").join(name);
        Ok(Some(Verdicts {
            ground: Ground::of_this_process(on_gpu)?,
            mode,
            seed,
            known: book::read(&path),
            path,
        }))
    }

    /// Returns the verdict that a trial gets if it is right; `None` if the plugin declines it, or
    /// it does not lower: then it is executed and reported.
    pub(crate) fn verdict(&self, trial: &Trial<'_>) -> Option<Verdict> {
        self.ground.verdict(trial).ok()
    }

    /// Returns the reason why a trial need not be executed; `None` if it must be.
    pub(crate) fn passed(&self, trial: &Trial<'_>, verdict: &Verdict) -> Option<Passed> {
        let name = trial.name();
        let known = self.known.get(&name)?;
        if !self.mode.trusts {
            return None;
        }
        if known.contains(verdict) {
            let is_again = self.mode.repeats && is_chosen(self.seed, &name, AGAIN);
            return (!is_again).then_some(Passed::Proven);
        }
        let is_voided = known.iter().all(|one| one.ground != verdict.ground);
        let is_left_out = is_voided && !self.mode.writes && !is_chosen(self.seed, &name, VOIDED);
        is_left_out.then_some(Passed::Voided)
    }

    /// Writes the verdicts of the trials that are proven now, by execution or before; the other
    /// trials of the run lose theirs.
    pub(crate) fn record(&self, trials: Vec<(Trial<'_>, Option<Verdict>)>) -> Result<()> {
        if !self.mode.writes {
            return Ok(());
        }
        let mut found = Lines::new();
        for (trial, verdict) in trials {
            let verdicts: &mut BTreeSet<Verdict> = found.entry(trial.name()).or_default();
            verdicts.extend(verdict);
        }
        book::replace(&self.path, &found)
    }
}

/// Returns true if a seed selects a case: on average one in `every`.
fn is_chosen(seed: u64, name: &str, every: u64) -> bool {
    let mut hasher = blake3::Hasher::new();
    field(&mut hasher, &seed.to_le_bytes());
    field(&mut hasher, name.as_bytes());
    let [first, ..] = *hasher.finalize().as_bytes().as_chunks::<8>().0 else {
        return true;
    };
    u64::from_le_bytes(first).is_multiple_of(every)
}

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests;
