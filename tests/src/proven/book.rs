//! The files of verdicts: one line for each case on a device, `NAME HASH`, sorted.

use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

/// The hashes under which a case was right, by its name. Cases that share a name have one each.
pub(super) type Lines = BTreeMap<String, BTreeSet<String>>;

/// Reads a file of verdicts. One that is not there has none, and a line that is not understood is
/// none.
pub(super) fn read(path: &Path) -> Lines {
    let mut lines = Lines::new();
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        if let Some((name, hash)) = line.rsplit_once(' ') {
            lines.entry(name.to_owned()).or_default().insert(hash.to_owned());
        }
    }
    lines
}

/// Puts what a run found into a file: for each of its names these hashes, in place of others. Other
/// names keep theirs. Tests are processes that do this side by side.
pub(super) fn replace(path: &Path, found: &Lines) -> Result<()> {
    let directory = path.parent().context("the file is in no directory")?;
    fs::create_dir_all(directory)?;
    let lock = File::open(directory)?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)?;
    let mut lines = read(path);
    lines.extend(found.iter().map(|(name, hashes)| (name.clone(), hashes.clone())));
    let text: String = lines
        .iter()
        .flat_map(|(name, hashes)| hashes.iter().map(move |hash| format!("{name} {hash}\n")))
        .collect();
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    Ok(fs::rename(new, path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_replaced_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cpu.txt");
        let lines = |text: &[(&str, &[&str])]| -> Lines {
            text.iter()
                .map(|(name, hashes)| (name.to_string(), hashes.iter().map(|hash| hash.to_string()).collect()))
                .collect()
        };
        replace(&path, &lines(&[("b", &["1"]), ("a", &["3", "2"])])).unwrap();
        replace(&path, &lines(&[("b", &["4"]), ("c", &[])])).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a 2\na 3\nb 4\n");
        assert_eq!(read(&path), lines(&[("a", &["2", "3"]), ("b", &["4"])]));
    }
}
