//! A compiled graph as bytes: in memory, on disk, and wherever else its user stores it.
//!
//! An entry consists of a payload, which this crate never interprets, its keys, and [`Metadata`].
//! On disk:
//!
//! | Bytes | Content |
//! |---|---|
//! | 8 | magic, `\x89rotini\n` |
//! | 4 | [`ENTRY_FORMAT`], little-endian |
//! | 4 | length of the header, little-endian |
//! | that length | header in postcard: keys, metadata, length and BLAKE3 of the payload |
//! | 32 | BLAKE3 of everything before |
//! | the rest | payload |
//!
//! Reading trusts nothing: a file that is truncated, extended, changed in any bit, of another
//! format or stored under another key yields a [`DecodeError`], never a panic and never an entry.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::facts::CodeFacts;
use crate::key::{ContentKey, Key};

/// The version of the on-disk layout that the module describes.
///
/// It is also an input of every key, so entries of two formats never share a name.
pub const ENTRY_FORMAT: u32 = 2;

/// The magic number at the start of a file. The first byte is not ASCII and the last is a newline,
/// so that a file that went through a text conversion is recognised.
const MAGIC: [u8; 8] = *b"\x89rotini\n";
/// The largest header, in bytes. Real headers have some hundred bytes; the bound keeps a forged
/// length from being taken seriously.
const MAX_HEADER: usize = 64 * 1024;
/// Bytes of magic, format and header length.
const PREFIX: usize = 16;
const HASH: usize = blake3::OUT_LEN;

/// The facts about a payload that can be read without the payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The facts about the code.
    pub facts: CodeFacts,
    /// Compilation time in microseconds.
    pub compile_micros: u64,
    /// Creation time of the entry, in seconds since the Unix epoch. An entry never changes, so its
    /// last use is not recorded here but in the modification time of its file.
    pub created_unix: u64,
}

/// A cached compilation, immutable and shared.
///
/// The payload stays alive for as long as anyone holds a clone of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key that the entry is stored under.
    pub key: Key,
    /// The key of the module that the code was compiled from, if known.
    pub content: Option<ContentKey>,
    /// The metadata of the payload.
    pub metadata: Metadata,
    /// The compiled code. Cloning it is cheap and copies nothing.
    pub payload: Bytes,
}

impl Entry {
    /// Returns the entry as one contiguous buffer, with the same bytes as its file: self-contained,
    /// and verified by whoever reads it.
    ///
    /// # Errors
    ///
    /// If the metadata are too long to be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut bytes = self.encode_header()?;
        bytes.extend_from_slice(&self.payload);
        Ok(bytes)
    }

    /// Decodes an entry and verifies it as on every load.
    ///
    /// The payload shares the memory of `bytes`. The caller has to check the key and the target.
    ///
    /// # Errors
    ///
    /// If `bytes` differ in any bit from what [`Entry::to_bytes`] returned.
    pub fn from_bytes(bytes: &Bytes) -> Result<Self, DecodeError> {
        let (header, payload) = Header::read(bytes)?;
        if header.payload_bytes != payload.len() as u64 {
            return Err(DecodeError::PayloadLength {
                expected: header.payload_bytes,
                found: payload.len() as u64,
            });
        }
        if blake3::hash(payload) != blake3::Hash::from_bytes(header.payload_hash) {
            return Err(DecodeError::PayloadChecksum);
        }
        Ok(Self {
            key: Key::from_bytes(header.key),
            content: header.content.map(ContentKey::from_bytes),
            metadata: header.metadata,
            // `payload` is a subslice of `bytes`, as `slice_ref` requires.
            payload: bytes.slice_ref(payload),
        })
    }

    /// Encodes everything that precedes the payload in the file.
    pub(crate) fn encode_header(&self) -> Result<Vec<u8>, EncodeError> {
        let header = postcard::to_stdvec(&Header {
            key: *self.key.as_bytes(),
            content: self.content.map(|key| *key.as_bytes()),
            metadata: self.metadata.clone(),
            payload_bytes: self.payload.len() as u64,
            payload_hash: blake3::hash(&self.payload).into(),
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

    /// Returns the weight of the entry in the memory tier, in bytes: payload, texts, and a small
    /// constant for bookkeeping.
    pub(crate) fn weight(&self) -> u64 {
        const BOOKKEEPING: usize = 320;
        let CodeFacts {
            producer, compiled_for, ..
        } = &self.metadata.facts;
        let parts = [
            self.payload.len(),
            producer.len(),
            compiled_for.target.len(),
            compiled_for.features.len(),
            BOOKKEEPING,
        ];
        parts.iter().map(|&part| part as u64).sum()
    }
}

/// The reason why bytes do not decode to the expected entry.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes do not begin with the magic number.
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
    /// The header claims more bytes than any header has.
    #[error("the header claims {length} bytes, at most {MAX_HEADER} are possible")]
    HeaderLength {
        /// The length claimed, in bytes.
        length: u32,
    },
    /// The header was changed after it was written.
    #[error("the header does not match its checksum")]
    HeaderChecksum,
    /// The header matches its checksum and still cannot be decoded: it was not written by this
    /// crate.
    #[error("the header cannot be read")]
    Header(#[source] postcard::Error),
    /// The entry of another key, stored under this key's name.
    #[error("holds the entry of another key, {found}")]
    Key {
        /// The key the entry was written for.
        found: Key,
    },
    /// An entry that was compiled from another module, stored under this module's name.
    #[error("holds the code of another module")]
    Content,
    /// The payload is shorter or longer than it was when written.
    #[error("the payload has {found} bytes, {expected} were written")]
    PayloadLength {
        /// The length written, in bytes.
        expected: u64,
        /// The length found, in bytes.
        found: u64,
    },
    /// The payload was changed after it was written.
    #[error("the payload does not match its checksum")]
    PayloadChecksum,
}

/// The reason why an entry cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The metadata could not be serialised.
    #[error("the header cannot be written")]
    Header(#[source] postcard::Error),
    /// Producer, target and features together are longer than any header may be.
    #[error("the header would have {length} bytes, at most {MAX_HEADER} are possible")]
    HeaderLength {
        /// The length it would have, in bytes.
        length: usize,
    },
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Header {
    key: [u8; Key::LEN],
    content: Option<[u8; Key::LEN]>,
    pub(crate) metadata: Metadata,
    payload_bytes: u64,
    payload_hash: [u8; HASH],
}

impl Header {
    /// The largest offset in bytes at which a header with its checksum can end.
    pub(crate) const MAX_END: usize = PREFIX + MAX_HEADER + HASH;

    pub(crate) fn key(&self) -> Key {
        Key::from_bytes(self.key)
    }

    /// Returns the verified header of a file that starts with the bytes `file`, and the bytes after
    /// it.
    pub(crate) fn read(file: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let truncated = |part| DecodeError::Truncated { part };
        let (magic, rest) = file.split_first_chunk().ok_or(DecodeError::Magic)?;
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

        // The checksum covers everything before it.
        let covered = file
            .len()
            .checked_sub(rest.len())
            .and_then(|covered| file.get(..covered))
            .ok_or(truncated("header"))?;
        if blake3::hash(covered) != blake3::Hash::from_bytes(*checksum) {
            return Err(DecodeError::HeaderChecksum);
        }
        let header = postcard::from_bytes(header).map_err(DecodeError::Header)?;
        Ok((header, payload))
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
