//! The rules for files that may be executed.
//!
//! The host runs the files that are found here, in its own process or beside it. So only trusted
//! users may be able to change a file that was found by a search, or any directory above it, since
//! others could replace the file. A directory above may be open if it is sticky, as `/tmp` is,
//! since there nobody can rename files of other users.
//!
//! Trusted users are root, the user of this process, and everyone who could replace the code that
//! performs this check: the owners of its file and of the directories above it. An installation
//! that belongs to an administrator, or to the user who made a container's image, is therefore as
//! good as one's own.
//!
//! The rules are weaker for a file that was named explicitly, because that choice includes its
//! owner: it is refused only if it, or a directory above it that is not sticky, is writable by
//! everyone.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

const STICKY: u32 = 0o1000;
const BY_GROUP: u32 = 0o020;
const BY_ALL: u32 = 0o002;

/// The origin of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// An environment variable names the file.
    Named,
    /// The file was found in one of the usual places.
    Searched,
}

/// The reason why a file is not executed.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Distrust {
    #[error("{} belongs to user {owner}, who is not trusted", path.display())]
    Owner { path: PathBuf, owner: u32 },
    #[error("others than its owner can write {} (mode {mode:04o})", path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("it cannot be examined: {0}")]
    Examine(String),
}

impl From<io::Error> for Distrust {
    fn from(error: io::Error) -> Self {
        Self::Examine(error.to_string())
    }
}

/// The trusted users, by id.
#[derive(Debug)]
pub(super) struct Trusted(BTreeSet<u32>);

impl Trusted {
    /// Collects root, the user of this process, and the owners of `code` and the directories above
    /// it.
    pub(super) fn with_code(code: Option<&Path>) -> Self {
        let mut users = BTreeSet::from([0, rustix::process::geteuid().as_raw()]);
        let owners = code.into_iter().flat_map(Path::ancestors).map(fs::symlink_metadata);
        users.extend(owners.flatten().map(|metadata| metadata.uid()));
        Self(users)
    }

    /// Returns the real path of a file that may be executed: a path that no untrusted user can
    /// redirect to another file.
    pub(super) fn examine(&self, path: &Path, origin: Origin) -> Result<PathBuf, Distrust> {
        let real = fs::canonicalize(path)?;
        for (depth, path) in real.ancestors().enumerate() {
            // The path is a real path, so it has no link to follow, unless one was created since.
            let metadata = fs::symlink_metadata(path)?;
            let (owner, mode) = (metadata.uid(), metadata.mode());
            if origin == Origin::Searched && !self.0.contains(&owner) {
                let path = path.to_owned();
                return Err(Distrust::Owner { path, owner });
            }
            let is_sticky = depth > 0 && mode & STICKY != 0;
            let is_open = match origin {
                Origin::Named => mode & BY_ALL != 0,
                // By convention a user's private group has the user's id, and users' files are
                // often writable by it.
                Origin::Searched => mode & BY_ALL != 0 || mode & BY_GROUP != 0 && metadata.gid() != owner,
            };
            if is_open && !is_sticky {
                return Err(Distrust::Writable {
                    path: path.to_owned(),
                    mode: mode & 0o7777,
                });
            }
        }
        Ok(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    const STRANGER: u32 = 54_321;

    struct Place {
        directory: tempfile::TempDir,
        file: PathBuf,
    }

    impl Place {
        /// Creates a program in a directory in a directory.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let inner = directory.path().join("bin");
            fs::create_dir(&inner).unwrap();
            let file = inner.join("program");
            fs::write(&file, "#!/bin/sh\n").unwrap();
            let place = Self { directory, file };
            for path in [place.file.clone(), inner, place.directory.path().to_owned()] {
                place.mode(&path, 0o755);
            }
            place
        }

        fn mode(&self, path: &Path, mode: u32) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }

        fn is_trusted(&self, origin: Origin) -> bool {
            match Trusted::with_code(None).examine(&self.file, origin) {
                Ok(real) => {
                    assert_eq!(real, fs::canonicalize(&self.file).unwrap());
                    true
                }
                Err(Distrust::Examine(error)) => panic!("{error}"),
                Err(_) => false,
            }
        }

        /// Returns the file and the directories above it that belong to this test.
        fn parts(&self) -> [PathBuf; 3] {
            let inner = self.file.parent().unwrap();
            [self.file.clone(), inner.to_owned(), self.directory.path().to_owned()]
        }
    }

    #[test]
    fn what_everyone_can_write_is_never_executed() {
        let place = Place::new();
        for origin in [Origin::Named, Origin::Searched] {
            // Temporary files are in a sticky directory.
            assert!(place.is_trusted(origin), "{origin:?}");
            for part in place.parts() {
                place.mode(&part, 0o777);
                assert!(!place.is_trusted(origin), "{origin:?}: {} is open", part.display());
                let is_directory = part.is_dir();
                place.mode(&part, 0o1777);
                assert_eq!(place.is_trusted(origin), is_directory, "{origin:?}: {}", part.display());
                place.mode(&part, 0o755);
            }
        }
    }

    #[test]
    fn a_link_is_as_good_as_what_it_leads_to() {
        let place = Place::new();
        let link = place.directory.path().join("link");
        symlink(&place.file, &link).unwrap();
        let trusted = Trusted::with_code(None);
        // The real path is what is executed: replacing the link has no effect.
        let real = trusted.examine(&link, Origin::Searched).unwrap();
        assert_eq!(real, fs::canonicalize(&place.file).unwrap());
        place.mode(place.file.parent().unwrap(), 0o777);
        assert!(trusted.examine(&link, Origin::Named).is_err());
    }

    #[test]
    fn a_group_can_write_only_where_it_is_private() {
        let place = Place::new();
        let metadata = fs::metadata(&place.file).unwrap();
        for part in place.parts() {
            place.mode(&part, 0o775);
            let is_private = metadata.uid() == metadata.gid();
            assert_eq!(place.is_trusted(Origin::Searched), is_private, "{}", part.display());
            assert!(place.is_trusted(Origin::Named));
            place.mode(&part, 0o755);
        }
        if chown(&place.file, None, Some(STRANGER)).is_err() {
            return eprintln!("skipped in part: only root can give files away");
        }
        assert!(place.is_trusted(Origin::Searched));
        place.mode(&place.file, 0o775);
        assert!(!place.is_trusted(Origin::Searched));
    }

    #[test]
    fn what_belongs_to_a_stranger_is_only_executed_if_named() {
        for part in 0..3 {
            let place = Place::new();
            let part = &place.parts()[part];
            if chown(part, Some(STRANGER), Some(STRANGER)).is_err() {
                return eprintln!("skipped: only root can give files away");
            }
            assert!(!place.is_trusted(Origin::Searched), "{}", part.display());
            assert!(place.is_trusted(Origin::Named), "{}", part.display());
            // If the code that performs the check belongs to the stranger too, the stranger is
            // trusted.
            let code = Trusted::with_code(Some(part));
            assert!(code.examine(&place.file, Origin::Searched).is_ok());
        }
    }
}
