//! A compiled graph as bytes, in memory and on disk.
//!
//! An entry is a payload, which this crate never looks into, and [`Metadata`] about it. On disk:
//!
//! | Bytes | Content |
//! |---|---|
//! | 8 | magic, `\x89rotini\n` |
//! | 4 | [`ENTRY_FORMAT`], little-endian |
//! | 4 | length of the header, little-endian |
//! | that many | header in postcard: key, metadata, length and BLAKE3 of the payload |
//! | 32 | BLAKE3 of everything before |
//! | the rest | payload |
//!
//! Reading takes nothing on trust: a file that is truncated, extended, changed in any bit, of another format or stored
//! under another key is a [`DecodeError`], never a panic and never an entry.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::key::Key;

/// The version of the layout above. It is also an input of every key, so entries of two formats never share a name.
pub const ENTRY_FORMAT: u32 = 1;

/// The first byte is not ASCII and the last is a newline: a file that went through a text conversion is recognised.
const MAGIC: [u8; 8] = *b"\x89rotini\n";
/// Headers are some hundred bytes. The bound keeps a forged length from being taken seriously.
const MAX_HEADER: usize = 64 * 1024;
const HASH: usize = blake3::OUT_LEN;

/// What is known about a payload without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Who made the payload: program and compiler, for people.
    pub producer: String,
    /// The target it was compiled for, for people; the key is what decides.
    pub target: String,
    /// The device memory one execution needs besides its tensors, in bytes: exact.
    pub workspace_bytes: u64,
    /// The number of kernels one execution launches.
    pub dispatches: u32,
    /// The time the compilation took, in microseconds.
    pub compile_micros: u64,
    /// When the entry was made, in seconds since the Unix epoch.
    pub created_unix: u64,
}

/// A cached compilation. Immutable and shared: the payload stays alive for as long as anyone holds a clone of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What is known about the payload.
    pub metadata: Metadata,
    /// The compiled code. Cloning it is cheap and copies nothing.
    pub payload: Bytes,
}

impl Entry {
    /// What the entry weighs in the memory tier, in bytes: payload, texts, and a little for the bookkeeping.
    pub(crate) fn weight(&self) -> u64 {
        const BOOKKEEPING: usize = 256;
        let parts = [
            self.payload.len(),
            self.metadata.producer.len(),
            self.metadata.target.len(),
            BOOKKEEPING,
        ];
        parts.iter().map(|&part| part as u64).sum()
    }
}

/// Why bytes are not the entry they should be.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes do not begin as an entry does.
    #[error("not a cache entry: the magic number is missing")]
    Magic,
    /// Written by another version of this crate.
    #[error("entry format {found}, this version reads {ENTRY_FORMAT}")]
    Format {
        /// The format that the bytes claim.
        found: u32,
    },
    /// The bytes end inside the part named.
    #[error("truncated: ends inside the {part}")]
    Truncated {
        /// The part that is incomplete.
        part: &'static str,
    },
    /// The header claims a length that no header has.
    #[error("the header claims {length} bytes, at most {MAX_HEADER} are possible")]
    HeaderLength {
        /// The length claimed, in bytes.
        length: u32,
    },
    /// The bytes of the header are not those that were written.
    #[error("the header does not match its checksum")]
    HeaderChecksum,
    /// The header is intact and still does not make sense: whoever wrote it was not this crate.
    #[error("the header cannot be read")]
    Header(#[source] postcard::Error),
    /// An entry of another key, stored under this one's name.
    #[error("holds the entry of another key, {found}")]
    Key {
        /// The key the entry was written for.
        found: Key,
    },
    /// The payload is shorter or longer than it was when written.
    #[error("the payload has {found} bytes, {expected} were written")]
    PayloadLength {
        /// The length written, in bytes.
        expected: u64,
        /// The length found, in bytes.
        found: u64,
    },
    /// The bytes of the payload are not those that were written.
    #[error("the payload does not match its checksum")]
    PayloadChecksum,
}

/// Why an entry cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The metadata could not be serialised.
    #[error("the header cannot be written")]
    Header(#[source] postcard::Error),
    /// Producer and target together are longer than any header may be.
    #[error("the header would have {length} bytes, at most {MAX_HEADER} are possible")]
    HeaderLength {
        /// The length it would have, in bytes.
        length: usize,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    key: [u8; Key::LEN],
    metadata: Metadata,
    payload_bytes: u64,
    payload_hash: [u8; HASH],
}

/// Everything that comes before the payload of `entry` in its file.
pub(crate) fn encode_header(key: &Key, entry: &Entry) -> Result<Vec<u8>, EncodeError> {
    let header = postcard::to_stdvec(&Header {
        key: *key.as_bytes(),
        metadata: entry.metadata.clone(),
        payload_bytes: entry.payload.len() as u64,
        payload_hash: blake3::hash(&entry.payload).into(),
    })
    .map_err(EncodeError::Header)?;
    let length = u32::try_from(header.len())
        .ok()
        .filter(|&length| length as usize <= MAX_HEADER)
        .ok_or(EncodeError::HeaderLength { length: header.len() })?;

    let mut bytes = Vec::from(MAGIC);
    bytes.extend(ENTRY_FORMAT.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(header);
    let checksum = blake3::hash(&bytes);
    bytes.extend(checksum.as_bytes());
    Ok(bytes)
}

/// The entry of `key` that `file` holds. The payload shares `file`'s memory.
pub(crate) fn decode(key: &Key, file: &Bytes) -> Result<Entry, DecodeError> {
    let truncated = |part| DecodeError::Truncated { part };
    let rest: &[u8] = file;
    let (magic, rest) = rest.split_first_chunk().ok_or(DecodeError::Magic)?;
    if *magic != MAGIC {
        return Err(DecodeError::Magic);
    }
    let (format, rest) = rest.split_first_chunk().ok_or(truncated("format"))?;
    let format = u32::from_le_bytes(*format);
    if format != ENTRY_FORMAT {
        return Err(DecodeError::Format { found: format });
    }
    let (length, rest) = rest.split_first_chunk().ok_or(truncated("header length"))?;
    let length = u32::from_le_bytes(*length);
    if length as usize > MAX_HEADER {
        return Err(DecodeError::HeaderLength { length });
    }
    let (header, rest) = rest.split_at_checked(length as usize).ok_or(truncated("header"))?;
    let (checksum, payload) = rest.split_first_chunk::<HASH>().ok_or(truncated("header checksum"))?;

    // What the checksum covers is what comes before it.
    let covered = file
        .len()
        .checked_sub(rest.len())
        .and_then(|covered| file.get(..covered))
        .ok_or(truncated("header"))?;
    if blake3::hash(covered) != blake3::Hash::from_bytes(*checksum) {
        return Err(DecodeError::HeaderChecksum);
    }
    let header: Header = postcard::from_bytes(header).map_err(DecodeError::Header)?;
    if header.key != *key.as_bytes() {
        return Err(DecodeError::Key {
            found: Key::from_bytes(header.key),
        });
    }
    if header.payload_bytes != payload.len() as u64 {
        return Err(DecodeError::PayloadLength {
            expected: header.payload_bytes,
            found: payload.len() as u64,
        });
    }
    if blake3::hash(payload) != blake3::Hash::from_bytes(header.payload_hash) {
        return Err(DecodeError::PayloadChecksum);
    }
    Ok(Entry {
        metadata: header.metadata,
        // `payload` is a part of `file`, which is what `slice_ref` demands.
        payload: file.slice_ref(payload),
    })
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
