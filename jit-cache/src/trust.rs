//! Which folders and files may be believed.
//!
//! An entry is code that will run in the host, so a folder is used only if nobody but its owner and root can put anything
//! into it: the folder belongs to one of the two and only they can write it, and the same holds for every folder above it,
//! or somebody could put another one in its place. A folder above may be writable by all if it is sticky, as `/tmp` is,
//! because there nobody can rename what is not theirs.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Write permission for the group or for everyone.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Why the disk tier does not use a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder does not exist and could not be made.
    #[error("{} cannot be created", path.display())]
    Create {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder, or one above it, could not be examined.
    #[error("{} cannot be examined", path.display())]
    Examine {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not trusted: the folder, or one above it.
    #[error("{} is not safe to take code from", path.display())]
    Untrusted {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        source: Distrust,
    },
}

/// What makes a file or a folder unfit to take code from.
#[derive(Debug, thiserror::Error)]
pub enum Distrust {
    /// Somebody else's.
    #[error("it belongs to user {owner}, neither this user nor root")]
    Owner {
        /// The user id it belongs to.
        owner: u32,
    },
    /// Somebody else could change it.
    #[error("others can write it (mode {mode:04o})")]
    Writable {
        /// The permission bits.
        mode: u32,
    },
    /// Not a file, or not a folder, where there should be one.
    #[error("it is not a {expected}")]
    Kind {
        /// What it should be.
        expected: &'static str,
    },
}

/// Makes `path` and the folders above it where they are missing, for this user alone, and returns its real path if it can be
/// trusted.
pub(crate) fn folder(path: &Path) -> Result<PathBuf, FolderError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| FolderError::Create {
            path: path.to_owned(),
            source,
        })?;
    let examine = |path: &Path| {
        let path = path.to_owned();
        move |source| FolderError::Examine { path, source }
    };
    let real = fs::canonicalize(path).map_err(examine(path))?;
    for (level, part) in real.ancestors().enumerate() {
        // Of a real path, so there is no link to follow, unless one was put there since: that is seen as not a folder.
        let metadata = fs::symlink_metadata(part).map_err(examine(part))?;
        let sticky_is_enough = level > 0;
        check_folder(&metadata, sticky_is_enough).map_err(|source| FolderError::Untrusted {
            path: part.to_owned(),
            source,
        })?;
    }
    Ok(real)
}

fn check_folder(metadata: &Metadata, sticky_is_enough: bool) -> Result<(), Distrust> {
    if !metadata.is_dir() {
        return Err(Distrust::Kind { expected: "folder" });
    }
    if sticky_is_enough && metadata.mode() & STICKY != 0 {
        return check_owner(metadata);
    }
    check_writers(metadata)
}

/// Whether an opened file may be believed.
pub(crate) fn file(metadata: &Metadata) -> Result<(), Distrust> {
    if !metadata.is_file() {
        return Err(Distrust::Kind {
            expected: "regular file",
        });
    }
    check_writers(metadata)
}

fn check_writers(metadata: &Metadata) -> Result<(), Distrust> {
    check_owner(metadata)?;
    if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(Distrust::Writable {
            mode: metadata.mode() & 0o7777,
        });
    }
    Ok(())
}

fn check_owner(metadata: &Metadata) -> Result<(), Distrust> {
    let owner = metadata.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(Distrust::Owner { owner });
    }
    Ok(())
}
