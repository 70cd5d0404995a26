//! The files of verdicts: a line with the ground of most of them, `ground HASH`, and a line per
//! case on a device, sorted: `NAME HASH`, followed by the ground if it is another.
//!
//! So a changed judge, which voids all verdicts, changes one line once all cases were executed
//! again.

use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

/// Name of the line with the ground of most verdicts.
const GROUND: &str = "ground";

/// The record of a right execution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Verdict {
    /// Hash of the compiler's input, and of how it is executed and judged.
    pub(super) trial: String,
    /// Hash of the compiler, the execution path and the judge of all trials.
    pub(super) ground: String,
}

/// The verdicts by case name. Cases that share a name have a verdict each.
pub(super) type Lines = BTreeMap<String, BTreeSet<Verdict>>;

/// Reads a file of verdicts. A missing file has none, and lines that cannot be parsed are ignored.
pub(super) fn read(path: &Path) -> Lines {
    let mut lines = Lines::new();
    let mut usual = "";
    let text = fs::read_to_string(path).unwrap_or_default();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (name, trial, ground) = match fields[..] {
            [GROUND, ground] => {
                usual = ground;
                continue;
            }
            [name, trial] => (name, trial, usual),
            [name, trial, ground] => (name, trial, ground),
            _ => continue,
        };
        let [trial, ground] = [trial, ground].map(str::to_owned);
        lines
            .entry(name.to_owned())
            .or_default()
            .insert(Verdict { trial, ground });
    }
    lines
}

/// Returns a file's text.
fn text(lines: &Lines) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for verdict in lines.values().flatten() {
        *counts.entry(&verdict.ground).or_default() += 1;
    }
    let Some((usual, _)) = counts.into_iter().max_by_key(|(_, count)| *count) else {
        return String::new();
    };
    let line = |(name, Verdict { trial, ground }): (&String, &Verdict)| match ground == usual {
        true => format!("{name} {trial}\n"),
        false => format!("{name} {trial} {ground}\n"),
    };
    let verdicts = lines
        .iter()
        .flat_map(|(name, verdicts)| verdicts.iter().map(move |verdict| (name, verdict)));
    format!("{GROUND} {usual}\n{}", verdicts.map(line).collect::<String>())
}

/// Merges a run's verdicts into a file: each of its names gets these verdicts instead of its old
/// ones; other names keep theirs. Several test processes do this concurrently.
pub(super) fn replace(path: &Path, found: &Lines) -> Result<()> {
    let directory = path.parent().context("the file is in no directory")?;
    fs::create_dir_all(directory)?;
    let lock = File::open(directory)?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)?;
    let mut lines = read(path);
    lines.extend(found.iter().map(|(name, verdicts)| (name.clone(), verdicts.clone())));
    let new = path.with_extension("new");
    fs::write(&new, text(&lines))?;
    Ok(fs::rename(new, path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(cases: &[(&str, &[[&str; 2]])]) -> Lines {
        let verdict = |[trial, ground]: &[&str; 2]| Verdict {
            trial: trial.to_string(),
            ground: ground.to_string(),
        };
        cases
            .iter()
            .map(|(name, verdicts)| (name.to_string(), verdicts.iter().map(verdict).collect()))
            .collect()
    }

    #[test]
    fn lines_are_replaced_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cpu.txt");
        replace(&path, &lines(&[("b", &[["1", "x"]]), ("a", &[["3", "x"], ["2", "x"]])])).unwrap();
        replace(&path, &lines(&[("b", &[["4", "x"]]), ("c", &[])])).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ground x\na 2\na 3\nb 4\n");
        assert_eq!(
            read(&path),
            lines(&[("a", &[["2", "x"], ["3", "x"]]), ("b", &[["4", "x"]])])
        );
    }

    /// Until all cases were executed on another ground, that ground is the exception; then one line
    /// differs.
    #[test]
    fn another_ground_changes_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cpu.txt");
        let text = || fs::read_to_string(&path).unwrap();
        replace(
            &path,
            &lines(&[("a", &[["1", "x"]]), ("b", &[["2", "x"]]), ("c", &[["3", "x"]])]),
        )
        .unwrap();
        replace(&path, &lines(&[("b", &[["2", "y"]])])).unwrap();
        assert_eq!(text(), "ground x\na 1\nb 2 y\nc 3\n");
        let mixed = lines(&[("a", &[["1", "x"]]), ("b", &[["2", "y"]]), ("c", &[["3", "x"]])]);
        assert_eq!(read(&path), mixed);
        replace(&path, &lines(&[("a", &[["1", "y"]]), ("c", &[["3", "y"]])])).unwrap();
        assert_eq!(text(), "ground y\na 1\nb 2\nc 3\n");
    }
}
