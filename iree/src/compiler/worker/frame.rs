//! Frames on the connection between pool and worker: a header of 16 bytes, then a payload.
//!
//! | Bytes | What |
//! |---|---|
//! | 4 | [`MAGIC`] |
//! | 4 | [`VERSION`] of the sender, little-endian |
//! | 8 | length of the payload, little-endian |
//!
//! The header has the same layout in all versions, so that each side can name the other's version.

use serde::{Serialize, de::DeserializeOwned};

/// The magic number at the start of each frame.
pub(super) const MAGIC: [u8; 4] = *b"rtcw";
/// The version of the protocol, incremented with every change of a message.
pub(super) const VERSION: u32 = 1;
/// Maximum bytes of a payload: a kernel has no use for constants of a gigabyte.
const LIMIT: u64 = 1 << 30;
const HEADER: usize = 16;

/// The reason why bytes are not a frame of this protocol.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("`{0}` is no message")]
    Magic(String),
    #[error("the other side speaks version {0} of it, and this one version {VERSION}")]
    Version(u32),
    #[error("a message of {0} bytes is too long")]
    TooLong(u64),
    #[error("a message cannot be read: {0}")]
    Payload(#[from] postcard::Error),
    #[error("it has sent more than it was asked for")]
    Unasked,
    #[error("a message has {0} bytes more than it needs")]
    Trailing(usize),
}

/// Encodes a message as a frame.
pub(super) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut frame = postcard::to_extend(message, header(0))?;
    let length = frame.len().saturating_sub(HEADER) as u64;
    if length > LIMIT {
        return Err(FrameError::TooLong(length));
    }
    frame.splice(..HEADER, header(length));
    Ok(frame)
}

/// Returns a frame without payload, which only carries this side's version.
pub(super) fn empty() -> Vec<u8> {
    header(0)
}

fn header(length: u64) -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes(), &length.to_le_bytes()].concat()
}

/// Decodes a payload, and requires that the message uses all of it.
pub(super) fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, FrameError> {
    match postcard::take_from_bytes(payload)? {
        (message, []) => Ok(message),
        (_, rest) => Err(FrameError::Trailing(rest.len())),
    }
}

/// A buffer that assembles frames from the bytes received.
#[derive(Debug, Default)]
pub(super) struct Incoming(Vec<u8>);

impl Incoming {
    /// Appends received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the number of bytes that wait for the rest of their frame.
    pub(super) fn pending(&self) -> usize {
        self.0.len()
    }

    /// Returns the payload of the next frame if it is complete. A wrong magic number is detected
    /// from the first byte on.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let bytes = &self.0;
        if bytes.iter().zip(&MAGIC).any(|(byte, magic)| byte != magic) {
            let start = bytes.get(..64).unwrap_or(bytes);
            return Err(FrameError::Magic(start.escape_ascii().to_string()));
        }
        let Some((version, rest)) = bytes.get(MAGIC.len()..).and_then(|rest| rest.split_first_chunk()) else {
            return Ok(None);
        };
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let Some((length, rest)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        let length = u64::from_le_bytes(*length);
        if length > LIMIT {
            return Err(FrameError::TooLong(length));
        }
        let Some((payload, rest)) = usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length))
        else {
            return Ok(None);
        };
        let (payload, rest) = (payload.to_vec(), rest.to_vec());
        self.0 = rest;
        Ok(Some(payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_however_they_arrive() {
        let messages = ["".to_owned(), "x".repeat(1000)];
        let stream: Vec<u8> = messages.iter().flat_map(|message| encode(message).unwrap()).collect();
        for size in [1, 7, 16, stream.len()] {
            let (mut incoming, mut out) = (Incoming::default(), Vec::<String>::new());
            for chunk in stream.chunks(size) {
                incoming.push(chunk);
                while let Some(payload) = incoming.next().unwrap() {
                    out.push(decode(&payload).unwrap());
                }
            }
            assert_eq!(
                (out.as_slice(), incoming.pending()),
                (&messages[..], 0),
                "in chunks of {size}"
            );
        }
    }

    #[test]
    fn what_is_no_frame_is_seen_at_once() {
        let next = |bytes: &[u8]| {
            let mut incoming = Incoming::default();
            incoming.push(bytes);
            incoming.next()
        };
        assert!(matches!(next(b"h"), Err(FrameError::Magic(text)) if text == "h"));
        assert!(matches!(next(b"rtcw\x02\0\0\0"), Err(FrameError::Version(2))));
        let mut huge = header(0);
        huge[8..].fill(0xff);
        assert!(matches!(next(&huge), Err(FrameError::TooLong(u64::MAX))));
        assert!(matches!(next(b""), Ok(None)));
    }

    #[test]
    fn a_payload_is_read_to_its_end() {
        assert!(matches!(decode::<u8>(&[1, 2]), Err(FrameError::Trailing(1))));
        assert!(matches!(decode::<String>(&[9, b'a']), Err(FrameError::Payload(_))));
    }
}
