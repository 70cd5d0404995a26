//! Reproducers: everything that is needed to repeat a failed compilation elsewhere.
//!
//! A reproducer is a directory:
//!
//! | File | Content |
//! |---|---|
//! | `graph.fb` | the graph as the host gave it |
//! | `rotini.mlir` | the module that was passed to the compiler |
//! | `command.txt` | the command line that compiles it |
//! | `diagnostics.txt` | the compiler's diagnostics, up to 256 KiB |
//! | `reproducer.json` | [`Versions`] |
//!
//! There are at most [`LIMIT`] reproducers: the oldest are removed to make room. Other files and
//! directories beside them are never touched.

use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file name of the module. Every compilation gets this name for its source, because the name
/// becomes part of the code and must not vary.
pub(crate) const SOURCE_NAME: &str = "rotini.mlir";

/// Maximum number of reproducers that are kept.
pub const LIMIT: usize = 16;
/// Prefix of a reproducer's directory name; the beginning of the graph's key follows.
const PREFIX: &str = "failed-";
const DIAGNOSTICS_LIMIT: usize = 256 * 1024;

/// The versions, target and flags that a graph was compiled with, and the error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// rotini's version.
    pub rotini: String,
    /// The fingerprint of the lowering's sources.
    pub emitter: String,
    /// The compiler's build.
    pub compiler: String,
    /// The target that was compiled for.
    pub target: String,
    /// The target's features.
    pub features: String,
    /// The compiler's flags.
    pub flags: Vec<String>,
    /// The first line of the error.
    pub error: String,
}

/// A graph that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reproducer {
    /// The graph as the host gave it; empty if the module did not come from a graph.
    pub graph: Vec<u8>,
    /// The module.
    pub mlir: String,
    /// The compiler's diagnostics.
    pub diagnostics: String,
    /// The versions, target and flags that the graph was compiled with.
    pub versions: Versions,
}

impl Reproducer {
    /// Writes the reproducer to a directory below `parent`, and removes the oldest reproducers
    /// beyond the limit. The directory's name is derived from `name`, which is the same for the
    /// same graph; one that exists is left as it is.
    ///
    /// # Errors
    ///
    /// The file system's errors.
    pub fn write(&self, parent: &Path, name: &str) -> io::Result<PathBuf> {
        let place = parent.join(format!("{PREFIX}{name}"));
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        if place.is_dir() {
            return Ok(place);
        }
        make_room(parent, LIMIT.saturating_sub(1))?;
        // Written under a temporary name and renamed, so that a directory with the final name is
        // always complete. The temporary directory is removed on failure.
        let directory = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(parent)?;
        let diagnostics = self.diagnostics.as_bytes();
        let diagnostics = diagnostics.get(..DIAGNOSTICS_LIMIT).unwrap_or(diagnostics);
        fs::write(directory.path().join("graph.fb"), &self.graph)?;
        fs::write(directory.path().join(SOURCE_NAME), &self.mlir)?;
        fs::write(directory.path().join("command.txt"), self.command())?;
        fs::write(directory.path().join("diagnostics.txt"), diagnostics)?;
        fs::write(
            directory.path().join("reproducer.json"),
            serde_json::to_vec_pretty(&self.versions)?,
        )?;
        match fs::rename(directory.path(), &place) {
            Ok(()) => drop(directory.keep()),
            // Another process has written the same reproducer meanwhile.
            Err(_) if place.is_dir() => {}
            Err(error) => return Err(error),
        }
        Ok(place)
    }

    /// Reads a reproducer.
    ///
    /// # Errors
    ///
    /// The file system's errors, or that the directory is no reproducer.
    pub fn read(directory: &Path) -> io::Result<Self> {
        Ok(Reproducer {
            graph: fs::read(directory.join("graph.fb"))?,
            mlir: fs::read_to_string(directory.join(SOURCE_NAME))?,
            diagnostics: String::from_utf8_lossy(&fs::read(directory.join("diagnostics.txt"))?).into_owned(),
            versions: serde_json::from_slice(&fs::read(directory.join("reproducer.json"))?)?,
        })
    }

    /// Returns the command line that compiles the module, for a shell in the reproducer's
    /// directory.
    fn command(&self) -> String {
        let mut command = String::from("iree-compile");
        for flag in &self.versions.flags {
            command.push_str(&format!(" '{}'", flag.replace('\'', r"'\''")));
        }
        command.push_str(&format!(" {SOURCE_NAME} -o rotini.vmfb\n"));
        command
    }
}

/// Removes the oldest reproducers until at most `limit` are left.
fn make_room(parent: &Path, limit: usize) -> io::Result<()> {
    let mut present: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        // Another process may have removed an entry since it was listed; it is skipped.
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && let Ok(metadata) = entry.metadata()
            && metadata.is_dir()
        {
            present.push((metadata.modified()?, entry.path()));
        }
    }
    present.sort_unstable();
    let excess = present.len().saturating_sub(limit);
    for (_, directory) in present.into_iter().take(excess) {
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Reproducer {
        Reproducer {
            graph: vec![1, 2, 3],
            mlir: "module {}".into(),
            diagnostics: "error: no".into(),
            versions: Versions {
                rotini: "1".into(),
                emitter: "2".into(),
                compiler: "build-id:0".into(),
                target: "gfx942".into(),
                features: String::new(),
                flags: vec!["--one".into(), "--it's=x y".into()],
                error: "no".into(),
            },
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let place = some().write(&directory.path().join("new"), "0123").unwrap();
        assert_eq!(Reproducer::read(&place).unwrap(), some());
        let command = fs::read_to_string(place.join("command.txt")).unwrap();
        assert_eq!(
            command,
            "iree-compile '--one' '--it'\\''s=x y' rotini.mlir -o rotini.vmfb\n"
        );
    }

    #[test]
    fn there_are_never_more_than_the_limit_and_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("mine")).unwrap();
        fs::write(directory.path().join("failed-file"), "not a directory").unwrap();
        for name in 0..LIMIT + 3 {
            some().write(directory.path(), &format!("{name:04}")).unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), LIMIT + 2, "{names:?}");
        assert!(names.contains(&"mine".to_owned()) && names.contains(&"failed-file".to_owned()));
        assert!(names.contains(&format!("failed-{:04}", LIMIT + 2)) && !names.contains(&"failed-0000".to_owned()));
    }

    #[test]
    fn diagnostics_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let reproducer = Reproducer {
            diagnostics: "é".repeat(DIAGNOSTICS_LIMIT),
            ..some()
        };
        let place = reproducer.write(directory.path(), "x").unwrap();
        assert_eq!(
            fs::metadata(place.join("diagnostics.txt")).unwrap().len(),
            DIAGNOSTICS_LIMIT as u64
        );
    }
}
