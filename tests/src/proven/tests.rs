use super::*;
use crate::cases::{self, named};
use crate::harness::selection::expect;
use std::sync::Mutex;

const CASE: &str = "pw_ADD_f32";

fn trial(case: &Case) -> Trial<'_> {
    Trial {
        case,
        bytes: rotini_wire::encode(&case.graph),
        inputs: None,
        profile: None,
        alignment: 64,
        executions: 1,
        has_meaning: true,
    }
}

fn compiled_for(target: &str, features: &str) -> CompiledFor<Target> {
    CompiledFor {
        target: Target::parse(target).unwrap(),
        features: features.to_owned(),
    }
}

fn ground() -> Ground {
    Ground {
        sources: blake3::hash(b"these"),
        compiled_for: compiled_for("gfx942", "+a"),
        compiler: "iree 1".to_owned(),
        lower: emit,
    }
}

/// Returns a lowering with additions changed to subtractions: it runs, and is wrong.
fn wrong(graph: &NormalGraph, target: &Target) -> Result<Emitted, EmitError> {
    let mut emitted = emit(graph, target)?;
    assert!(emitted.mlir.contains("arith.addf"));
    emitted.mlir = emitted.mlir.replace("arith.addf", "arith.subf");
    Ok(emitted)
}

fn other_flags(graph: &NormalGraph, target: &Target) -> Result<Emitted, EmitError> {
    let mut emitted = emit(graph, target)?;
    emitted.flags.push("--iree-opt-level=O0".to_owned());
    Ok(emitted)
}

fn other_arguments(graph: &NormalGraph, target: &Target) -> Result<Emitted, EmitError> {
    let mut emitted = emit(graph, target)?;
    emitted.signature.arguments.reverse();
    Ok(emitted)
}

/// Returns grounds that each differ in one respect.
fn changed_grounds() -> [(&'static str, Ground); 7] {
    [
        (
            "MLIR",
            Ground {
                lower: wrong,
                ..ground()
            },
        ),
        (
            "flags",
            Ground {
                lower: other_flags,
                ..ground()
            },
        ),
        (
            "arguments",
            Ground {
                lower: other_arguments,
                ..ground()
            },
        ),
        (
            "sources",
            Ground {
                sources: blake3::hash(b"another emulator"),
                ..ground()
            },
        ),
        (
            "target",
            Ground {
                compiled_for: compiled_for("mi300x", "+a"),
                ..ground()
            },
        ),
        (
            "features",
            Ground {
                compiled_for: compiled_for("gfx942", "+b"),
                ..ground()
            },
        ),
        (
            "compiler",
            Ground {
                compiler: "iree 2".to_owned(),
                ..ground()
            },
        ),
    ]
}

fn verdicts(ground: Ground, mode: &str, path: &Path) -> Verdicts {
    Verdicts {
        ground,
        mode: Mode::parse(mode).unwrap().unwrap(),
        seed: 0,
        path: path.to_owned(),
        known: book::read(path),
    }
}

fn chosen_by(seed: u64, ground: Ground, mode: &str, path: &Path) -> Verdicts {
    Verdicts {
        seed,
        ..verdicts(ground, mode, path)
    }
}

fn changed(what: &str) -> Ground {
    let mut all = changed_grounds().into_iter();
    all.find(|(name, _)| *name == what).unwrap().1
}

/// Runs a case with verdicts, right or wrong; returns whether it was executed, and whether the test
/// passed.
fn run(case: &Case, verdicts: &Verdicts, is_right: bool) -> (bool, bool) {
    let executed = Mutex::new(false);
    let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let execute = |_: &Case| {
            *executed.lock().unwrap() = true;
            ensure!(is_right, "another sum");
            Ok(())
        };
        expect(std::slice::from_ref(case), trial, true, Some(verdicts), execute);
    }));
    (executed.into_inner().unwrap(), passed.is_ok())
}

/// With an injected wrong kernel, or a changed judge, emulator or compiler, a case is executed in
/// spite of its verdict, and reported if it is wrong.
#[test]
fn nothing_wrong_hides_behind_a_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("proven.txt");
    let case = named(CASE).unwrap();
    // Wrong results are not recorded; right ones are, and are not executed again.
    assert_eq!(run(&case, &verdicts(ground(), "prove", &path), false), (true, false));
    assert_eq!(run(&case, &verdicts(ground(), "quick", &path), true), (true, true));
    assert_eq!(run(&case, &verdicts(ground(), "prove", &path), true), (true, true));
    assert_eq!(run(&case, &verdicts(ground(), "quick", &path), false), (false, true));
    let line = std::fs::read_to_string(&path).unwrap();
    for (what, _) in changed_grounds() {
        let mut runs = (0..200).map(|seed| run(&case, &chosen_by(seed, changed(what), "quick", &path), false));
        assert_eq!(runs.find(|(executed, _)| *executed), Some((true, false)), "{what}");
    }
    // The same for changes of the trial.
    let data = cases::Data {
        inputs: crate::harness::fill(&case.graph).unwrap(),
        has_meaning: true,
        case: case.clone(),
    };
    let mut others = data.inputs.clone();
    others.values_mut().next().unwrap()[0] ^= 1;
    let hash = |trial: Trial<'_>| ground().verdict(&trial).unwrap().trial;
    let mut relaxed = case.clone();
    relaxed.graph.tensors[0].alignment = 32;
    let hashes = BTreeSet::from([
        hash(trial(&case)),
        hash(trial(&relaxed)),
        hash(Trial {
            alignment: 16,
            ..trial(&case)
        }),
        hash(Trial {
            executions: 2,
            ..trial(&case)
        }),
        hash(Trial {
            has_meaning: false,
            ..trial(&case)
        }),
        hash(Trial {
            profile: Some(Profile::FewEdges),
            ..trial(&case)
        }),
        hash(Trial {
            inputs: Some(&data.inputs),
            ..trial(&case)
        }),
        hash(Trial {
            inputs: Some(&others),
            ..trial(&case)
        }),
    ]);
    assert_eq!(hashes.len(), 8);
    // A full run trusts no verdict, and removes those of cases that are wrong now.
    assert_eq!(std::fs::read_to_string(&path).unwrap(), line);
    assert_eq!(run(&case, &verdicts(ground(), "full", &path), false), (true, false));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
}

/// CI executes a share of the cases that a changed ground voids, which depends on the seed, and all
/// cases that changed themselves or are new.
#[test]
fn a_share_of_voided_cases_is_executed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("proven.txt");
    let case = named(CASE).unwrap();
    assert_eq!(run(&case, &verdicts(ground(), "prove", &path), true), (true, true));
    for mode in ["trust", "quick"] {
        for what in ["features", "compiler"] {
            let executed = |seed: u64| run(&case, &chosen_by(seed, changed(what), mode, &path), true).0;
            let count = (0..80).filter(|&seed| executed(seed)).count();
            assert!((1..=20).contains(&count), "{mode}, {what}: {count} of 80");
        }
        let mut other = case.clone();
        other.graph.tensors[0].alignment = 32;
        assert_eq!(run(&other, &verdicts(ground(), mode, &path), true), (true, true));
        other.name.push_str("_new");
        assert_eq!(
            run(&other, &verdicts(changed("compiler"), mode, &path), true),
            (true, true)
        );
    }
}

#[test]
fn one_in_twenty_is_executed_again_and_each_in_its_turn() {
    let names: Vec<String> = cases::all().into_iter().map(|case| case.name).collect();
    let chosen = |seed| names.iter().filter(|name| is_chosen(seed, name, AGAIN)).count();
    for seed in 0..20 {
        let share = chosen(seed) * 100 / names.len();
        assert!((3..=7).contains(&share), "seed {seed}: {share} %");
    }
    assert!(
        names
            .iter()
            .all(|name| (0..400).any(|seed| is_chosen(seed, name, AGAIN)))
    );
}

#[test]
fn modes_are_known_by_name() {
    assert_eq!(Mode::parse("").unwrap(), None);
    assert!(Mode::parse("always").is_err());
    let full = Mode::parse("full").unwrap().unwrap();
    assert!(!full.trusts && full.writes);
    assert!(!Mode::parse("trust").unwrap().unwrap().writes);
}
