//! Hashes of trials that this very program has computed before. Each takes a lowering, and all lowerings take a minute; a program that is
//! run again lowers the same graphs to the same.
//!
//! `ROTINI_TEST_CACHE/hashes` has a file for each build of a test program, named by the hash of the program: one line for each trial,
//! `KEY HASH`. A program of other sources has another file.

use super::field::field;
use anyhow::Result;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What a program has computed before.
pub(super) struct Memo {
    known: HashMap<String, String>,
    /// Takes what is computed now. Tests are processes that write side by side: each line is one write, at the end of the file.
    file: Mutex<File>,
}

impl Memo {
    /// That of a program, in a directory that may not be there yet.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub(super) fn of(program: &Path, directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)?;
        let path = directory.join(blake3::hash(&fs::read(program)?).to_hex().as_str());
        let file = File::options().create(true).append(true).open(&path)?;
        let known = fs::read_to_string(&path)?;
        let whole = |line: &str| {
            let (key, hash) = line.split_once(' ')?;
            (key.len() == 64 && hash.len() == 16).then(|| (key.to_owned(), hash.to_owned()))
        };
        Ok(Memo {
            known: known.lines().filter_map(whole).collect(),
            file: Mutex::new(file),
        })
    }

    /// The hash of a trial, of which these are all that it depends on besides the program: computed if it was not before. `None` is not
    /// remembered.
    pub(super) fn get(&self, parts: &[&[u8]], compute: impl FnOnce() -> Option<String>) -> Option<String> {
        let mut hasher = blake3::Hasher::new_derive_key("rotini verdict memo v1");
        for part in parts {
            field(&mut hasher, part);
        }
        let key = hasher.finalize().to_hex().to_string();
        if let Some(hash) = self.known.get(&key) {
            return Some(hash.clone());
        }
        let hash = compute()?;
        let line = format!("{key} {hash}\n");
        // What cannot be kept is computed again.
        _ = self
            .file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(line.as_bytes());
        Some(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_computed_once_by_each_program() {
        let directory = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (first, second) = (program("first", "a"), program("second", "b"));
        let hashes = directory.path().join("hashes");
        let memo = |program: &Path| Memo::of(program, &hashes).unwrap();
        let some = |text: &str| Some(text.repeat(16));
        assert_eq!(memo(&first).get(&[b"x", b"y"], || None), None);
        assert_eq!(memo(&first).get(&[b"x", b"y"], || some("1")), some("1"));
        assert_eq!(
            memo(&first).get(&[b"x", b"y"], || unreachable!("it is known")),
            some("1")
        );
        // Other parts, or another program.
        assert_eq!(memo(&first).get(&[b"xy", b""], || some("2")), some("2"));
        assert_eq!(memo(&second).get(&[b"x", b"y"], || some("3")), some("3"));
        // A line that was cut is none.
        for file in fs::read_dir(&hashes).unwrap() {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, &text[..text.len() - 9]).unwrap();
        }
        assert_eq!(memo(&second).get(&[b"x", b"y"], || some("4")), some("4"));
    }
}
