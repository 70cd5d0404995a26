//! The compiler builds that made the entries of a cache directory.
//!
//! The compiler's build is part of every key, so a machine without a compiler could not even look a
//! graph up. The file `compilers` in a cache directory lists the builds, one per line, and every
//! process that publishes an entry adds its compiler's build. With this file, a directory that was
//! filled ahead of time serves machines without a compiler.
//!
//! The names only decide which keys are looked up: the entries found are verified as always.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const FILE: &str = "compilers";
/// Maximum size of the file, enough for some hundred builds.
const MAX_BYTES: u64 = 16 * 1024;

/// Returns the builds that made the directories' entries, without duplicates.
#[must_use]
pub fn read<'a>(directories: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let mut known = Vec::new();
    for directory in directories {
        // A directory without the file has no entries to find, which is no error.
        for line in text(directory).unwrap_or_default().lines() {
            if !line.is_empty() && !known.iter().any(|known| known == line) {
                known.push(line.to_owned());
            }
        }
    }
    known
}

/// Records that the directory contains code of a build.
///
/// # Errors
///
/// The file system's errors, or that the existing file is not a list of compilers.
pub fn note(directory: &Path, build: &str) -> io::Result<()> {
    match text(directory) {
        Ok(text) if text.lines().any(|line| line == build) => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(directory.join(FILE))?;
    // Users who may read the directory may read the file, regardless of this process's umask.
    let mode = fs::metadata(directory)?.permissions().mode() & 0o044 | 0o600;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    // A single write of one line, so that lines that two processes append do not interleave. A
    // duplicate line is read once.
    file.write_all(format!("{build}\n").as_bytes())
}

/// Returns the build from an entry's producer, a text for people: `rotini 0.1.0 with BUILD`. `None`
/// if the build could not be a line of the list.
#[must_use]
pub fn build_of(producer: &str) -> Option<&str> {
    let (_, build) = producer.split_once(" with ")?;
    (!build.contains(char::is_control)).then_some(build)
}

fn text(directory: &Path) -> io::Result<String> {
    let path = directory.join(FILE);
    let metadata = fs::symlink_metadata(&path)?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is no list of compilers", path.display()),
        ));
    }
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_noted_once_and_read_from_all_directories() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (directory, build) in [(&one, "a"), (&one, "b"), (&one, "a"), (&other, "b"), (&other, "c")] {
            note(directory.path(), build).unwrap();
        }
        assert_eq!(fs::read_to_string(one.path().join(FILE)).unwrap(), "a\nb\n");
        let directories = [one.path(), Path::new("/nonexistent"), other.path()];
        assert_eq!(read(directories.into_iter()), ["a", "b", "c"]);
    }

    #[test]
    fn producers_name_builds() {
        assert_eq!(build_of("rotini 0.1.0 with iree 3 with x"), Some("iree 3 with x"));
        assert_eq!((build_of("rotini 0.1.0"), build_of("rotini with a\nb")), (None, None));
    }

    #[test]
    fn what_is_no_list_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("target"), "x").unwrap();
        std::os::unix::fs::symlink(directory.path().join("target"), directory.path().join(FILE)).unwrap();
        assert!(note(directory.path(), "a").is_err());
        assert!(read([directory.path()].into_iter()).is_empty());
    }
}
