//! The rules for trusting directories and files.
//!
//! An entry is code that will run in the host. So a directory is used only if nobody but its owner
//! and root can put anything into it: it belongs to this user or to root, and only its owner can
//! write to it. The same holds for every directory above it, or another user could replace it. A
//! directory above may be writable by all if it is sticky, as `/tmp` is, because there nobody can
//! rename files of other users.
//!
//! A directory is opened once and used through its descriptor from then on. So the directory that
//! was examined is the one that is used, whatever is renamed or linked meanwhile.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Write permission for the group or for everyone.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// The reason why the disk tier does not use a directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory does not exist and could not be created.
    #[error("{} cannot be created", path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory, or one above it, could not be examined.
    #[error("{} cannot be examined", path.display())]
    Examine {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory is on a file system that other machines share: neither its locks nor its times
    /// are reliable.
    #[error("{} is on a network file system ({kind}); a directory on a local disk can be used instead", path.display())]
    Network {
        /// The directory.
        path: PathBuf,
        /// The kind of file system.
        kind: &'static str,
    },
    /// The directory, or one above it, is not trusted.
    #[error("{} is not safe to take code from", path.display())]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        source: Distrust,
    },
}

impl DirectoryError {
    /// Returns whether the same attempt may succeed later although nobody changes the directory.
    pub(crate) fn is_passing(&self) -> bool {
        let (Self::Create { source, .. } | Self::Examine { source, .. }) = self else {
            return false;
        };
        let passing = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::AGAIN,
            Errno::INTR,
            Errno::NOSPC,
            Errno::DQUOT,
        ];
        Errno::from_io_error(source).is_some_and(|errno| passing.contains(&errno))
    }
}

/// The reason why a file or a directory is unfit to take code from.
#[derive(Debug, thiserror::Error)]
pub enum Distrust {
    /// It belongs to another user.
    #[error("it belongs to user {owner}, neither this user nor root")]
    Owner {
        /// The user id it belongs to.
        owner: u32,
    },
    /// Another user could change it.
    #[error("others can write it (mode {mode:04o})")]
    Writable {
        /// The permission bits.
        mode: u32,
    },
    /// It is not a regular file, or not a directory, as expected.
    #[error("it is not a {expected}")]
    Kind {
        /// The expected kind of file.
        expected: &'static str,
    },
}

/// The purpose of opening a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To read entries from the directory as it is.
    Read,
    /// To store entries. A missing directory is created with this mode. Missing directories above
    /// it get the same mode, which the process's umask may restrict further.
    Keep {
        /// The permission bits.
        mode: u32,
    },
}

/// Opens the directory if it can be trusted, and returns it with its real path.
pub(crate) fn open(path: &Path, purpose: Purpose) -> Result<(File, PathBuf), DirectoryError> {
    let examine = |path: &Path| {
        let path = path.to_owned();
        move |source| DirectoryError::Examine { path, source }
    };
    let is_new = match purpose {
        Purpose::Keep { mode } => make(path, mode).map_err(|source| DirectoryError::Create {
            path: path.to_owned(),
            source,
        })?,
        Purpose::Read => false,
    };
    let real = fs::canonicalize(path).map_err(examine(path))?;
    let untrusted = |path: &Path| {
        let path = path.to_owned();
        move |source| DirectoryError::Untrusted { path, source }
    };
    for above in real.ancestors().skip(1) {
        // The path is a real path, so it has no link to follow, unless one was created since: then
        // this is not a directory and is refused.
        let metadata = fs::symlink_metadata(above).map_err(examine(above))?;
        check_directory(&metadata, true).map_err(untrusted(above))?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(&real, flags, Mode::empty()).map_err(|errno| examine(&real)(errno.into()))?;
    let directory = File::from(directory);
    let metadata = directory.metadata().map_err(examine(&real))?;
    check_directory(&metadata, false).map_err(untrusted(&real))?;
    // The process's umask may have removed permissions from the requested mode. They are set
    // through the descriptor and not by name, because the name may have come to lead to another
    // directory before anything was examined.
    if is_new && let Purpose::Keep { mode } = purpose {
        let set = directory.set_permissions(fs::Permissions::from_mode(mode));
        set.map_err(examine(&real))?;
    }
    // Reading needs neither locks nor times.
    if purpose != Purpose::Read {
        let system = rustix::fs::fstatfs(&directory).map_err(|errno| examine(&real)(errno.into()))?;
        if let Some(kind) = network(system.f_type.cast_unsigned()) {
            return Err(DirectoryError::Network { path: real, kind });
        }
    }
    Ok((directory, real))
}

/// Creates the directory unless it exists. Returns whether it is new.
fn make(path: &Path, mode: u32) -> io::Result<bool> {
    let made = || DirBuilder::new().mode(0o700).create(path).map(|()| true);
    match made() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(above) = path.parent() {
                DirBuilder::new().recursive(true).mode(mode).create(above)?;
            }
            match made() {
                // Another process created it first.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                result => result,
            }
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // A read-only file system reports `EROFS` even if the directory exists.
        Err(_) if path.is_dir() => Ok(false),
        result => result,
    }
}

/// Returns the name of the file system with this magic number (`statfs(2)`), if it is a network
/// file system.
fn network(magic: u64) -> Option<&'static str> {
    // Some numbers are negative if the field is a signed 32-bit one.
    Some(match magic & 0xffff_ffff {
        0x6969 => "NFS",
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => "SMB",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        _ => return None,
    })
}

fn check_directory(metadata: &Metadata, sticky_is_enough: bool) -> Result<(), Distrust> {
    if !metadata.is_dir() {
        return Err(Distrust::Kind { expected: "directory" });
    }
    if sticky_is_enough && metadata.mode() & STICKY != 0 {
        return check_owner(metadata);
    }
    check_writers(metadata)
}

/// Checks that an opened file is a regular file that only this user or root could have written.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are from the kernel's `magic.h` and from `statfs(2)`.
    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        const EXT4: u64 = 0xef53;
        const TMPFS: u64 = 0x0102_1994;
        const OVERLAY: u64 = 0x794c_7630;
        for local in [EXT4, TMPFS, OVERLAY] {
            assert_eq!(network(local), None);
        }
        assert_eq!(network(0x6969), Some("NFS"));
        assert_eq!(network(0xff53_4d42), Some("SMB"));
        assert_eq!(network(0xffff_ffff_ff53_4d42), Some("SMB"), "sign-extended");
    }
}
