//! The builds of the compiler that made the entries of a cache directory.
//!
//! The compiler's build is part of every key, so a machine that has none could not even look a
//! graph up. The file `compilers` in a cache directory names the builds, one a line; whoever
//! publishes there adds its own. A directory that was filled ahead of time serves machines without
//! a compiler by that.
//!
//! The names decide nothing but which keys are looked up: what is found is verified as ever.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const FILE: &str = "compilers";
/// Some hundred builds.
const MAX_BYTES: u64 = 16 * 1024;

/// The builds that made the entries of the directories, each once.
#[must_use]
pub fn read<'a>(directories: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let mut known = Vec::new();
    for directory in directories {
        // Without the file there is nothing to find in the directory, which is no mistake.
        for line in text(directory).unwrap_or_default().lines() {
            if !line.is_empty() && !known.iter().any(|known| known == line) {
                known.push(line.to_owned());
            }
        }
    }
    known
}

/// Notes that code of a build is in the directory.
///
/// # Errors
///
/// What the file system says.
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
    // Whoever may look into the directory may read it, whatever this process's mask is.
    let mode = fs::metadata(directory)?.permissions().mode() & 0o044 | 0o600;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    // One write of one line: what two processes append is apart, and a line that is there twice is
    // read once.
    file.write_all(format!("{build}\n").as_bytes())
}

/// The build that made an entry, from the text that tells people what did: `rotini 0.1.0 with
/// BUILD`. Nothing if it could not be a line of the list.
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
