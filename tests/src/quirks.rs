//! Reports of the compiler's defects for its authors, from the register of quirks.
//!
//! The module of a report is the guard's, lowered without the quirk's workaround; it is not stored
//! in the repository.

use crate::cases::Case;
use anyhow::{Context as _, Result};
use rotini_emit::{Backend, Description, Effect, Guard, Quirks, Target, emit_avoiding};

/// Returns the target whose code shows the quirks of a backend: without rotini's schedules, whose
/// kernels avoid the compiler's defects.
///
/// # Panics
///
/// If a target that is named here is unknown.
#[must_use]
#[expect(clippy::panic, reason = "names that are written here")]
pub fn target(backend: Backend) -> Target {
    let name = match backend {
        Backend::Cpu => "cpu",
        Backend::Amd => "mi300x",
        Backend::Nvidia => "sm_80",
    };
    let target = Target::parse(name).unwrap_or_else(|| panic!("an unknown target: {name}"));
    target.unscheduled().unwrap_or(target)
}

/// A module that shows a defect, and its compiler flags.
#[derive(Clone, Debug)]
pub struct Reproducer {
    /// The backend that runs the code.
    pub backend: Backend,
    /// The case of the conformance suite that guards the quirk.
    pub case: &'static str,
    /// The arguments of `iree-compile`.
    pub flags: Vec<String>,
    /// The module's text.
    pub mlir: String,
}

/// Returns the module of a quirk's guard without the quirk's workaround; `None` if the quirk has no
/// guard.
///
/// # Errors
///
/// If the guard is not among `cases`, or cannot be lowered.
pub fn reproducer(one: &Description, cases: &[Case]) -> Result<Option<Reproducer>> {
    let (backend, case, added) = match one.guard {
        Guard::Case(backend, case) => (backend, case, &[][..]),
        Guard::Compiled(backend, case, flags) => (backend, case, flags),
        Guard::None(_) => return Ok(None),
    };
    let target = target(backend);
    let guard = cases.iter().find(|one| one.name == case);
    let mut graph = guard.context("a guard that is no case")?.graph.clone();
    graph.validate()?;
    let quirks = Quirks::of(&target).without(one.quirk);
    let emitted = emit_avoiding(&graph.normalise().0, &target, quirks)?;
    let added = added.iter().map(|&flag| flag.to_owned());
    Ok(Some(Reproducer {
        backend,
        case,
        flags: emitted.flags.into_iter().chain(added).collect(),
        mlir: emitted.mlir,
    }))
}

/// Returns the report of a quirk in Markdown. `cases`: the conformance suite; `seen`: the guard's
/// message when it failed.
///
/// # Errors
///
/// As [`reproducer`], and if the quirk has no guard.
pub fn report(one: &Description, cases: &[Case], seen: &str) -> Result<String> {
    let Reproducer {
        backend,
        case,
        flags,
        mlir,
    } = reproducer(one, cases)?.context("it has no guard")?;
    let backends: Vec<&str> = one.backends.iter().map(|backend| backend.name()).collect();
    let expected = match one.effect {
        Effect::Wrong => "The results are those of the operations in float64, within the rounding of their types.",
        Effect::Crash | Effect::Rejected => "The module compiles.",
        Effect::Slow => "The module compiles within seconds.",
    };
    // The first sentence, or its part before a colon.
    let ends = [". ", ": "].map(|end| one.what.find(end).unwrap_or(one.what.len()));
    let summary = one.what.get(..ends[0].min(ends[1])).unwrap_or(one.what);
    Ok(format!(
        "# [{}] {}: {}\n\n\
        {}\n\n\
        | | |\n|---|---|\n\
        | IREE | {} |\n\
        | Backends | {} |\n\
        | Case | `{case}` of rotini's conformance suite |\n\
        | Expected | {expected} |\n\
        | Seen | {} |\n\n\
        Compiled with\n\n\
        ```\niree-compile {} module.mlir -o module.vmfb\n```\n\n\
        `module.mlir`:\n\n```mlir\n{}\n```\n",
        backend.name(),
        one.effect.name(),
        summary.trim_end_matches('.'),
        one.what,
        one.seen_on.join(", "),
        backends.join(", "),
        seen.replace('|', "\\|"),
        flags.join(" "),
        mlir.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use super::report;
    use rotini_emit::{Guard, REGISTER};

    #[test]
    fn every_quirk_with_a_guard_has_a_report() {
        let cases = crate::cases::all_graphs().unwrap();
        for one in REGISTER {
            let report = report(one, &cases, "the compiler | says no");
            if matches!(one.guard, Guard::None(_)) {
                assert!(report.is_err());
                continue;
            }
            let report = report.unwrap();
            assert!(report.starts_with("# [") && report.contains(one.what), "{report}");
            assert!(
                report.contains("```mlir\nmodule") && report.contains("says no"),
                "{report}"
            );
            assert!(report.contains("the compiler \\| says"), "a table's cell ends");
        }
    }
}
