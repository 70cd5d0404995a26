//! A directory of entries, used through its descriptor: the names of its files, and the operations
//! on them.
//!
//! | Name | Content |
//! |---|---|
//! | `<key>.entry` | an entry, complete from the moment the name exists |
//! | `<content key>.content` | the same file under its other key, a hard link |
//! | `<key>.bad` | an entry that failed verification, kept for inspection until room is needed |
//! | `<key>.failed` | why creating the entry failed, for at most a day |
//! | `<key>.note` | a caller's data about the key, whole or not at all |
//! | `<key>.lock` | locked by the process that creates the entry or the note |
//! | `.sweep.lock` | locked by the process that sweeps the directory |
//! | `.publish-*.tmp` | a file being written; removed at the age of a day, its writer was killed |
//!
//! Other files are never touched: the user chooses the directory and may keep other files in it.
//!
//! A file is written under a temporary name and renamed, so a reader sees all of it or none,
//! however the writer ends. Nothing is synced: after a power failure a file may be short or empty,
//! which verification detects, and the cost is one compilation.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;

use crate::entry::{DecodeError, Entry};
use crate::key::{ContentKey, Key};
use crate::trust::{self, DirectoryError, Distrust, Purpose};

/// The largest file in bytes. Entries have some hundred kilobytes; the bound keeps a file that is
/// not an entry from being read into memory.
pub(crate) const MAX_FILE: u64 = 1 << 30;
pub(crate) const SWEEP_LOCK: &str = ".sweep.lock";
const TEMPORARY_PREFIX: &str = ".publish-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// The kind of a file, which its name states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Entry,
    Content,
    Bad,
    Failed,
    Note,
    Lock,
    Temporary,
}

impl Kind {
    const fn extension(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Content => "content",
            Self::Bad => "bad",
            Self::Failed => "failed",
            Self::Note => "note",
            Self::Lock => "lock",
            Self::Temporary => "tmp",
        }
    }

    /// Returns the kind of the file `name` and its key, or `None` if the file is not the cache's.
    /// Temporary files have no key.
    pub(crate) fn of(name: &str) -> Option<(Self, Option<Key>)> {
        if name.starts_with(TEMPORARY_PREFIX) && name.ends_with(TEMPORARY_SUFFIX) {
            return Some((Self::Temporary, None));
        }
        let (key, extension) = name.split_once('.')?;
        let kinds = [
            Self::Entry,
            Self::Content,
            Self::Bad,
            Self::Failed,
            Self::Note,
            Self::Lock,
        ];
        let kind = kinds.into_iter().find(|kind| kind.extension() == extension)?;
        Some((kind, Some(key.parse().ok()?)))
    }
}

/// Returns the name of the file of `kind` that belongs to `key`.
pub(crate) fn name(key: &Key, kind: Kind) -> String {
    format!("{key}.{}", kind.extension())
}

pub(crate) fn content_name(key: &ContentKey) -> String {
    format!("{key}.{}", Kind::Content.extension())
}

/// The reason why a file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The system refused to read the file.
    #[error("cannot be read")]
    Io(#[from] io::Error),
    /// Another user could have written the file.
    #[error("is not safe to take code from")]
    Untrusted(#[from] Distrust),
    /// The file is larger than any entry.
    #[error("has {0} bytes, more than any entry")]
    Size(u64),
    /// The bytes are not those that were written.
    #[error("is damaged")]
    Damaged(#[from] DecodeError),
}

impl LoadError {
    /// Returns whether the file does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Returns whether the cause is the system and not the file.
    pub(crate) fn is_system(&self) -> bool {
        // `ELOOP`, the refusal to follow a symbolic link, is a fault of the file.
        matches!(self, Self::Io(error) if error.raw_os_error() != Some(Errno::LOOP.raw_os_error()))
    }

    /// Returns whether the fault is the file's own, under each of its names.
    pub(crate) fn is_of_file(&self) -> bool {
        match self {
            Self::Io(_) | Self::Damaged(DecodeError::Key { .. } | DecodeError::Content) => false,
            Self::Untrusted(_) | Self::Size(_) | Self::Damaged(_) => true,
        }
    }
}

/// An open directory that was found to be trustworthy.
#[derive(Debug)]
pub(crate) struct Directory {
    descriptor: File,
    path: PathBuf,
    file_mode: Mode,
}

impl Directory {
    pub(crate) fn open(path: &Path, purpose: Purpose) -> Result<Self, DirectoryError> {
        let (descriptor, path) = trust::open(path, purpose)?;
        let file_mode = match purpose {
            Purpose::Keep { mode } => Mode::from_bits_truncate(mode & 0o666),
            Purpose::Read => Mode::empty(),
        };
        Ok(Self {
            descriptor,
            path,
            file_mode,
        })
    }

    /// Returns the real path that the directory had when it was opened, for people.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the entry of `key`, verified, and its file.
    pub(crate) fn load(&self, key: &Key) -> Result<(Entry, File), LoadError> {
        let (bytes, file) = self.read(&name(key, Kind::Entry), MAX_FILE)?;
        let entry = Entry::from_bytes(&bytes)?;
        if entry.key != *key {
            return Err(DecodeError::Key { found: entry.key }.into());
        }
        Ok((entry, file))
    }

    /// Returns an entry that was compiled from the module of `content`, verified, and its file.
    pub(crate) fn load_content(&self, content: &ContentKey) -> Result<(Entry, File), LoadError> {
        let (bytes, file) = self.read(&content_name(content), MAX_FILE)?;
        let entry = Entry::from_bytes(&bytes)?;
        if entry.content != Some(*content) {
            return Err(DecodeError::Content.into());
        }
        Ok((entry, file))
    }

    /// Returns all bytes of a trusted file that has at most `limit` bytes.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<(Bytes, File), LoadError> {
        let (mut file, metadata) = self.open_file(name)?;
        let size = metadata.len();
        let capacity = usize::try_from(size).map_err(|_| LoadError::Size(size))?;
        if size > limit {
            return Err(LoadError::Size(size));
        }
        let mut bytes = Vec::with_capacity(capacity);
        (&mut file).take(size).read_to_end(&mut bytes)?;
        Ok((Bytes::from(bytes), file))
    }

    /// Returns the first `length` bytes of a trusted file, or all of them if it is shorter.
    pub(crate) fn read_start(&self, name: &str, length: usize) -> Result<(Vec<u8>, Metadata), LoadError> {
        let (file, metadata) = self.open_file(name)?;
        let mut bytes = Vec::new();
        file.take(length as u64).read_to_end(&mut bytes)?;
        Ok((bytes, metadata))
    }

    fn open_file(&self, name: &str) -> Result<(File, Metadata), LoadError> {
        // Without `NONBLOCK`, opening a pipe under an entry's name would block the host for ever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.descriptor, name, flags, Mode::empty()).map_err(io::Error::from)?;
        let file = File::from(file);
        let metadata = file.metadata()?;
        trust::file(&metadata)?;
        Ok((file, metadata))
    }

    /// Opens the lock file `name`, and creates it if it is missing.
    pub(crate) fn open_lock(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }

    /// Writes a file of these parts under `name`, and links it to `other` too, unless the file
    /// system has no hard links or that name is taken.
    pub(crate) fn write(&self, name: &str, parts: &[&[u8]], other: Option<&str>) -> io::Result<()> {
        let temporary = Temporary::create(self)?;
        for part in parts {
            (&temporary.file).write_all(part)?;
        }
        // The file's mode must not depend on the umask of the process that happens to write it.
        rustix::fs::fchmod(&temporary.file, self.file_mode)?;
        mark_used(&temporary.file);
        if let Some(other) = other {
            let linked = rustix::fs::linkat(
                &self.descriptor,
                &temporary.name,
                &self.descriptor,
                other,
                AtFlags::empty(),
            );
            // Without the link, one compilation is not saved, once, after an upgrade of the
            // emitter.
            if let Err(error) = linked
                && error != Errno::EXIST
            {
                tracing::debug!(%error, "cannot link a cache entry to its content");
            }
        }
        self.rename(&temporary.name, name)
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Removes a file; a missing file is no error.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Err(Errno::NOENT) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the status of `name` without following a link, or `None` if the file does not exist.
    pub(crate) fn examine(&self, name: &str) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether `name` still refers to this open file.
    pub(crate) fn is_named(&self, file: &File, name: &str) -> io::Result<bool> {
        let opened = rustix::fs::fstat(file)?;
        Ok(self
            .examine(name)?
            .is_some_and(|named| (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)))
    }

    /// Marks `name` as the most recently used file.
    pub(crate) fn touch(&self, name: &str) -> io::Result<()> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        Ok(rustix::fs::utimensat(
            &self.descriptor,
            name,
            &times,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Returns the names in the directory that are the cache's.
    pub(crate) fn names(&self) -> io::Result<Vec<(String, Kind, Option<Key>)>> {
        let mut names = Vec::new();
        for item in Dir::read_from(&self.descriptor)? {
            let item = item?;
            if let Ok(name) = item.file_name().to_str()
                && let Some((kind, key)) = Kind::of(name)
            {
                names.push((name.to_owned(), kind, key));
            }
        }
        Ok(names)
    }
}

/// A file under a unique name, which is removed unless it is renamed.
struct Temporary<'a> {
    directory: &'a Directory,
    file: File,
    name: String,
}

impl<'a> Temporary<'a> {
    fn create(directory: &'a Directory) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        loop {
            // Two containers that share the directory may both have this process id: the clock
            // distinguishes them, and if it does not, `EXCL` does.
            let clock = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.subsec_nanos());
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!(
                "{TEMPORARY_PREFIX}{:x}-{count:x}-{clock:x}{TEMPORARY_SUFFIX}",
                process::id()
            );
            match rustix::fs::openat(&directory.descriptor, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    return Ok(Self {
                        directory,
                        file: file.into(),
                        name,
                    });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // The name no longer exists if the file was renamed. A file that cannot be removed now is
        // removed by a sweep after a day.
        let _ = self.directory.remove(&self.name);
    }
}

/// Marks `file` as the most recently used one. The time is set explicitly because the clock of the
/// file system is too coarse to order two publications.
pub(crate) fn mark_used(file: &File) {
    if let Err(error) = file.set_modified(SystemTime::now()) {
        // In a read-only directory, for example: only the order of eviction is lost, and nothing is
        // evicted there.
        tracing::trace!(%error, "cannot note the use of a cache entry");
    }
}
