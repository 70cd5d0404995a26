//! Operations of a person or a script on a directory of entries: list, verify, clean up, export,
//! import.
//!
//! A directory is opened under the same rules as by a cache, but only [`import`] creates a missing
//! one. Other processes may use it meanwhile.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use tar::EntryType;

use crate::directory::{Directory, Kind, LoadError, MAX_FILE, content_name, name};
use crate::entry::{DecodeError, EncodeError, Entry, Header, Metadata};
use crate::key::Key;
use crate::sweep;
use crate::sweep::Swept;
use crate::trust::{DirectoryError, Purpose};

/// The reason why an operation on a directory failed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The directory does not exist or is not trusted.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The system refused an operation.
    #[error("{action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// An entry that was to be exported is missing or damaged.
    #[error("entry {key} cannot be exported")]
    Export {
        /// The entry.
        key: Key,
        /// What is wrong with it.
        source: LoadError,
    },
}

fn doing(action: &'static str) -> impl FnOnce(io::Error) -> AdminError {
    move |source| AdminError::Io { action, source }
}

/// An entry as [`list`] shows it.
#[derive(Debug)]
pub struct Item {
    /// The key that the entry is stored under.
    pub key: Key,
    /// The entry's metadata, or the reason why they cannot be trusted. Only the header is read and
    /// verified, unlike in [`verify`].
    pub metadata: Result<Metadata, LoadError>,
    /// The size of the entry's file, in bytes.
    pub bytes: u64,
    /// Time of the last use, accurate to an hour: the modification time of the entry's file.
    pub last_used: SystemTime,
}

/// Returns the entries of a directory, the most recently used first.
///
/// # Errors
///
/// If the directory cannot be opened or listed.
pub fn list(dir: &Path) -> Result<Vec<Item>, AdminError> {
    let directory = Directory::open(dir, Purpose::Read)?;
    let mut entries = Vec::new();
    for (file, kind, key) in names(&directory)? {
        let (Kind::Entry, Some(key)) = (kind, key) else {
            continue;
        };
        // The entry may have been evicted meanwhile.
        let Some(stat) = directory.examine(&file).map_err(doing("cannot examine an entry"))? else {
            continue;
        };
        let metadata = header(&directory, &file, &key);
        if matches!(&metadata, Err(error) if error.is_missing()) {
            continue;
        }
        entries.push(Item {
            key,
            metadata,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            last_used: sweep::modified(&stat),
        });
    }
    entries.sort_unstable_by_key(|entry| (std::cmp::Reverse(entry.last_used), entry.key));
    Ok(entries)
}

fn header(directory: &Directory, file: &str, key: &Key) -> Result<Metadata, LoadError> {
    let (start, _) = directory.read_start(file, Header::MAX_END)?;
    let (header, _) = Header::read(&start)?;
    if header.key() != *key {
        return Err(DecodeError::Key { found: header.key() }.into());
    }
    Ok(header.metadata)
}

/// Counts of the files in a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryStats {
    /// Number of entries.
    pub entries: u64,
    /// Size of the entries, in bytes.
    pub entry_bytes: u64,
    /// Number and bytes of entries by target. Entries with a damaged header are not counted here.
    pub targets: BTreeMap<String, (u64, u64)>,
    /// Number of bad entries, which were set aside.
    pub bad: u64,
    /// Size of the bad entries, in bytes.
    pub bad_bytes: u64,
    /// Number of remembered failures.
    pub failures: u64,
    /// Number of notes: measured choices, which are never evicted.
    pub notes: u64,
    /// Number of temporary files: being written now, or left by a process that was killed.
    pub temporaries: u64,
    /// Number of lock files: of entries being created now, or left by a process that was killed.
    pub locks: u64,
    /// Time of last use of the least recently used entry.
    pub oldest_use: Option<SystemTime>,
}

/// Counts what is in a directory.
///
/// # Errors
///
/// If the directory cannot be opened or listed.
pub fn stats(dir: &Path) -> Result<DirectoryStats, AdminError> {
    let mut stats = DirectoryStats::default();
    for entry in list(dir)? {
        stats.entries += 1;
        stats.entry_bytes = stats.entry_bytes.saturating_add(entry.bytes);
        stats.oldest_use = stats
            .oldest_use
            .map_or(Some(entry.last_used), |oldest| Some(oldest.min(entry.last_used)));
        if let Ok(metadata) = entry.metadata {
            let (entries, bytes) = stats.targets.entry(metadata.facts.compiled_for.target).or_default();
            *entries += 1;
            *bytes = bytes.saturating_add(entry.bytes);
        }
    }
    let directory = Directory::open(dir, Purpose::Read)?;
    for (file, kind, _) in names(&directory)? {
        match kind {
            Kind::Bad => {
                let size = directory.examine(&file).map_err(doing("cannot examine an entry"))?;
                stats.bad += 1;
                let size = size.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
                stats.bad_bytes = stats.bad_bytes.saturating_add(size);
            }
            Kind::Failed => stats.failures += 1,
            Kind::Temporary => stats.temporaries += 1,
            Kind::Lock => stats.locks += 1,
            Kind::Note => stats.notes += 1,
            Kind::Entry | Kind::Content => {}
        }
    }
    Ok(stats)
}

/// The result of [`verify`] for one file.
#[derive(Debug)]
pub struct Verdict {
    /// The key in the file's name.
    pub key: Key,
    /// The entry's metadata, or the fault that was found.
    pub result: Result<Metadata, LoadError>,
}

/// Reads every entry of a directory as a cache would, and changes nothing.
///
/// # Errors
///
/// If the directory cannot be opened or listed.
pub fn verify(dir: &Path) -> Result<Vec<Verdict>, AdminError> {
    let directory = Directory::open(dir, Purpose::Read)?;
    let mut verified = Vec::new();
    for (_, kind, key) in names(&directory)? {
        let (Kind::Entry, Some(key)) = (kind, key) else {
            continue;
        };
        match directory.load(&key) {
            // The entry was evicted meanwhile.
            Err(error) if error.is_missing() => {}
            result => verified.push(Verdict {
                key,
                result: result.map(|(entry, _)| entry.metadata),
            }),
        }
    }
    verified.sort_unstable_by_key(|verified| verified.key);
    Ok(verified)
}

/// Removes leftovers of killed processes, expired failures, and the least recently used entries
/// above `limit` bytes. Returns `None` if another process is sweeping.
///
/// # Errors
///
/// If the directory cannot be opened or listed, or something could not be removed.
pub fn gc(dir: &Path, limit: u64) -> Result<Option<Swept>, AdminError> {
    let directory = Arc::new(Directory::open(dir, Purpose::Read)?);
    sweep::sweep(&directory, limit, limit).map_err(doing("cannot make room in the cache directory"))
}

/// Removes all entries, good and bad, and all remembered failures. Entries that are being created
/// now, notes, and files that are not the cache's stay.
///
/// # Errors
///
/// If the directory cannot be opened or listed, or something could not be removed.
pub fn clear(dir: &Path) -> Result<Swept, AdminError> {
    let directory = Arc::new(Directory::open(dir, Purpose::Read)?);
    sweep::clear(&directory).map_err(doing("cannot clear the cache directory"))
}

/// Writes the entries of `keys`, or all if it is `None`, into a tar archive, and returns their
/// number.
///
/// The entries are sorted by key, so the same entries give the same bytes. Every entry is verified.
///
/// # Errors
///
/// If an entry is damaged, or one of `keys` is missing, or the archive cannot be written; the bytes
/// written by then are not an archive.
pub fn export(dir: &Path, keys: Option<&[Key]>, archive: impl Write) -> Result<u64, AdminError> {
    let directory = Directory::open(dir, Purpose::Read)?;
    let mut wanted = match keys {
        Some(keys) => keys.to_vec(),
        None => names(&directory)?
            .into_iter()
            .filter_map(|(_, kind, key)| key.filter(|_| kind == Kind::Entry))
            .collect(),
    };
    wanted.sort_unstable();
    wanted.dedup();
    let writing = || doing("cannot write the archive");
    let mut archive = tar::Builder::new(archive);
    let mut exported = 0;
    for key in wanted {
        let entry = match directory.load(&key) {
            Ok((entry, _)) => entry,
            // Evicted since it was listed.
            Err(error) if keys.is_none() && error.is_missing() => continue,
            Err(source) => return Err(AdminError::Export { key, source }),
        };
        let bytes = entry
            .to_bytes()
            .map_err(|error| doing("cannot encode an entry")(io::Error::other(error)))?;
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(entry.metadata.created_unix);
        archive
            .append_data(&mut header, name(&key, Kind::Entry), bytes.as_slice())
            .map_err(writing())?;
        exported += 1;
    }
    archive
        .into_inner()
        .and_then(|mut archive| archive.flush())
        .map_err(writing())?;
    Ok(exported)
}

/// The result of [`import`].
#[derive(Debug, Default)]
pub struct Imported {
    /// Number of entries added.
    pub added: u64,
    /// Number of entries that existed already, intact.
    pub present: u64,
    /// Members of the archive that were not imported, by name, with the reason.
    pub refused: Vec<(String, ImportError)>,
}

/// The reason why a member of an archive was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The member is not a plain file with the name of an entry.
    #[error("is not an entry")]
    Name,
    /// The member is larger than any entry.
    #[error("has {0} bytes, more than any entry")]
    Size(u64),
    /// The bytes are not those that were exported.
    #[error("is damaged")]
    Damaged(#[from] DecodeError),
    /// The entry cannot be encoded again.
    #[error("cannot be stored")]
    Encode(#[from] EncodeError),
}

/// Adds the entries of a tar archive that [`export`] wrote to a directory.
///
/// A missing directory is created for this user alone; entries in an existing one may be read by
/// whoever may read the directory. Every entry is verified against its own name, and nothing else
/// in the archive is trusted: not its paths, owners or links.
///
/// # Errors
///
/// If the directory cannot be used or written, or the archive cannot be read to its end. Members
/// that are not entries are no error.
pub fn import(dir: &Path, archive: impl Read) -> Result<Imported, AdminError> {
    let mode = fs::metadata(dir).map_or(0o700, |metadata| 0o700 | metadata.mode() & 0o055);
    let directory = Directory::open(dir, Purpose::Keep { mode })?;
    let reading = || doing("cannot read the archive");
    let mut archive = tar::Archive::new(archive);
    let mut imported = Imported::default();
    let mut seen = HashSet::new();
    // Raw, because extension members, which hold names and attributes of any length, would be read
    // into memory as a whole.
    for member in archive.entries().map_err(reading())?.raw(true) {
        let mut member = member.map_err(reading())?;
        // Other programs write such extension members for any file; no entry needs them.
        if let EntryType::XHeader | EntryType::XGlobalHeader | EntryType::GNULongName | EntryType::GNULongLink =
            member.header().entry_type()
        {
            continue;
        }
        let file = String::from_utf8_lossy(&member.path_bytes()).into_owned();
        match read_member(&mut member, &file).map_err(reading())? {
            Err(error) => imported.refused.push((file, error)),
            Ok(entry) if !seen.insert(entry.key) || directory.load(&entry.key).is_ok() => imported.present += 1,
            Ok(entry) => match entry.encode_header() {
                Err(error) => imported.refused.push((file, error.into())),
                Ok(header) => {
                    let content = entry.content.as_ref().map(content_name);
                    directory
                        .write(
                            &name(&entry.key, Kind::Entry),
                            &[&header, &entry.payload],
                            content.as_deref(),
                        )
                        .map_err(doing("cannot store an entry"))?;
                    imported.added += 1;
                }
            },
        }
    }
    Ok(imported)
}

/// Reads the entry in a member of an archive. The outer error is that of reading the archive.
fn read_member(member: &mut tar::Entry<'_, impl Read>, file: &str) -> io::Result<Result<Entry, ImportError>> {
    let (Some((Kind::Entry, Some(key))), EntryType::Regular) = (Kind::of(file), member.header().entry_type()) else {
        return Ok(Err(ImportError::Name));
    };
    let size = member.size();
    if size > MAX_FILE {
        return Ok(Err(ImportError::Size(size)));
    }
    // The buffer grows as bytes arrive, so a forged length costs no memory.
    let mut bytes = Vec::new();
    member.read_to_end(&mut bytes)?;
    Ok(Entry::from_bytes(&Bytes::from(bytes))
        .and_then(|entry| match entry.key == key {
            true => Ok(entry),
            false => Err(DecodeError::Key { found: entry.key }),
        })
        .map_err(ImportError::from))
}

fn names(directory: &Directory) -> Result<Vec<(String, Kind, Option<Key>)>, AdminError> {
    directory.names().map_err(doing("cannot list the cache directory"))
}
