//! Hashes of the emitted modules, to prove that a change of the lowering changes nothing, or to
//! list its changes. No compiler is needed.
//!
//! Each case of the conformance suite and each of 2,000 random graphs has a line with its name and
//! a hash of the module and the compiler's flags for each target of [`TARGETS`]. The first run
//! writes the named file; later runs compare with it, and exit with 1 if anything differs.
//!
//! With `ROTINI_QUIRKS=each`, the hashes of an eighth of the graphs also cover the lowerings
//! without each quirk.

#![expect(clippy::print_stdout, reason = "a command of developers")]

use anyhow::{Context as _, Result};
use rayon::prelude::*;
use rotini_emit::{EmitError, Quirk, Quirks, Target, emit_avoiding};
use rotini_plugin::prepared::check;
use rotini_tests::EMITTED_FOR as TARGETS;
use rotini_tests::cases;
use rotini_tests::random::{Settings, recipe};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Number of random graphs, from the seed 0 on; `ROTINI_GRAPHS` and `ROTINI_SEED` override these.
const RANDOM: u64 = 2000;
/// Maximum number of differing graphs that are listed.
const LISTED: usize = 40;

/// Returns the hash of a graph's lowerings with these sets of quirks avoided, `declined`, or the
/// error.
fn emitted(bytes: &[u8], target: &Target, avoided: &[Quirks]) -> String {
    let Ok(prepared) = check(bytes, target) else {
        return "declined".to_owned();
    };
    let mut hasher = blake3::Hasher::new();
    for quirks in avoided {
        match emit_avoiding(&prepared.graph, target, *quirks) {
            Ok(emitted) => {
                hasher.update(emitted.mlir.as_bytes());
                for flag in &emitted.flags {
                    hasher.update(flag.as_bytes()).update(&[0]);
                }
            }
            Err(EmitError::Unsupported(_)) => return "declined".to_owned(),
            Err(error) => return format!("error:{error}").replace(' ', "_"),
        }
    }
    let hash = hasher.finalize().to_hex();
    hash.chars().take(16).collect()
}

/// Returns the sets of quirks that a graph of this name is lowered with: all of the target's and,
/// for an eighth of the graphs, all but each one.
fn avoided(name: &str, target: &Target) -> Vec<Quirks> {
    let all = Quirks::of(target);
    let mut avoided = vec![all];
    let is_tried = blake3::hash(name.as_bytes()).as_bytes()[0].is_multiple_of(8);
    if is_tried && std::env::var_os("ROTINI_QUIRKS").is_some_and(|quirks| quirks == "each") {
        let each = Quirk::ALL.iter().filter(|&&quirk| all.avoids(quirk));
        avoided.extend(each.map(|&quirk| all.without(quirk)));
    }
    avoided
}

fn lines() -> Result<BTreeMap<String, String>> {
    let targets = TARGETS.map(|name| Target::parse(name).context(name));
    let targets = targets.into_iter().collect::<Result<Vec<_>>>()?;
    let cases = cases::all().into_par_iter().map(|case| (case.name.clone(), case.graph));
    let Settings { seed, count } = Settings::from_environment([RANDOM, RANDOM]);
    let random = (seed..seed + count).into_par_iter();
    let random = random.map(|seed| (format!("seed {seed}"), recipe(seed).graph()));
    let line = |(name, graph): (String, _)| {
        let bytes = rotini_wire::encode(&graph);
        let hashes: Vec<String> = targets
            .iter()
            .map(|target| emitted(&bytes, target, &avoided(&name, target)))
            .collect();
        (name, hashes.join(" "))
    };
    Ok(cases.chain(random).map(line).collect())
}

fn main() -> Result<ExitCode> {
    let file = std::env::args().nth(1).context("usage: emitted FILE")?;
    let file = PathBuf::from(file);
    let now = lines()?;
    if !file.exists() {
        let text: String = now.iter().map(|(name, hashes)| format!("{name}\t{hashes}\n")).collect();
        fs::write(&file, text)?;
        println!("{} graphs on {} targets: written", now.len(), TARGETS.len());
        return Ok(ExitCode::SUCCESS);
    }
    let text = fs::read_to_string(&file)?;
    let before: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    let mut differences = Vec::new();
    for (name, hashes) in &now {
        let Some(former) = before.get(name.as_str()) else {
            differences.push(format!("{name}: new"));
            continue;
        };
        let pairs = former.split(' ').zip(hashes.split(' ')).zip(TARGETS);
        let targets: Vec<&str> = pairs
            .filter(|((former, own), _)| former != own)
            .map(|(_, target)| target)
            .collect();
        if !targets.is_empty() {
            differences.push(format!("{name}: {}", targets.join(" ")));
        }
    }
    for name in before.keys().filter(|name| !now.contains_key(**name)) {
        differences.push(format!("{name}: gone"));
    }
    for difference in differences.iter().take(LISTED) {
        println!("{difference}");
    }
    println!(
        "{} graphs on {} targets: {} differ",
        now.len(),
        TARGETS.len(),
        differences.len()
    );
    Ok(if differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
