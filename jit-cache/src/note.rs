//! Notes: data about a key besides its entry, such as which of several forms of a graph was
//! measured to be the fastest. The cache does not interpret them.
//!
//! On disk a note is a small file, `<key>.note`: the key, the note's bytes, and the BLAKE3 of both.
//! It is replaced as a whole, so a reader sees one note or another, never a part. A note is never
//! evicted: it takes hours to measure and some kilobytes to keep.

use std::io;
use std::path::Path;

use crate::directory::{Directory, Kind, LoadError, name};
use crate::key::Key;
use crate::trust::{DirectoryError, Purpose};

/// Maximum size of a note in bytes.
pub const MAX_NOTE: usize = 1 << 20;
/// Bytes of the key and the hash around a note.
const AROUND: usize = Key::LEN + blake3::OUT_LEN;

/// Writes a note, which replaces an earlier one.
pub(crate) fn store(directory: &Directory, key: &Key, note: &[u8]) -> io::Result<()> {
    if note.len() > MAX_NOTE {
        return Err(io::Error::other(format!("a note of {} bytes", note.len())));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.as_bytes()).update(note);
    let hash = hasher.finalize();
    directory.write(&name(key, Kind::Note), &[key.as_bytes(), note, hash.as_bytes()], None)
}

/// Reads a note. Returns `None` if it does not exist or is damaged.
pub(crate) fn load(directory: &Directory, key: &Key) -> Result<Option<Vec<u8>>, LoadError> {
    match directory.read(&name(key, Kind::Note), (MAX_NOTE + AROUND) as u64) {
        Ok((bytes, _)) => Ok(decode(key, &bytes)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

fn decode(key: &Key, bytes: &[u8]) -> Option<Vec<u8>> {
    let (kept, hash) = bytes.split_last_chunk::<{ blake3::OUT_LEN }>()?;
    if blake3::hash(kept) != blake3::Hash::from_bytes(*hash) {
        return None;
    }
    kept.strip_prefix(key.as_bytes()).map(<[u8]>::to_vec)
}

/// Returns all undamaged notes of a directory, sorted by key.
///
/// # Errors
///
/// If the directory cannot be opened or listed.
pub fn notes(dir: &Path) -> Result<Vec<(Key, Vec<u8>)>, NotesError> {
    let directory = Directory::open(dir, Purpose::Read)?;
    let names = directory.names().map_err(NotesError::Io)?;
    let keys = names.into_iter().filter(|(_, kind, _)| *kind == Kind::Note);
    let mut notes: Vec<(Key, Vec<u8>)> = keys
        .filter_map(|(_, _, key)| key)
        .filter_map(|key| Some((key, load(&directory, &key).ok()??)))
        .collect();
    notes.sort_unstable_by_key(|(key, _)| *key);
    Ok(notes)
}

/// The reason why the notes of a directory cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    /// The directory does not exist or is not trusted.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The system refused to list the directory.
    #[error("the cache directory cannot be listed")]
    Io(#[source] io::Error),
}
