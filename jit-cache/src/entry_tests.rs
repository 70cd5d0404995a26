//! Decoding of intact entries and of all other bytes.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::testing::{entry, key};

fn encoded(number: u64, payload: usize) -> Vec<u8> {
    entry(number, payload).to_bytes().expect("a small header")
}

fn decoded(bytes: Vec<u8>) -> Result<Entry, DecodeError> {
    Entry::from_bytes(&Bytes::from(bytes))
}

/// Returns the number of bytes before the payload.
fn header_length() -> usize {
    encoded(7, 0).len()
}

#[test]
fn what_was_written_is_read() {
    for payload in [0, 1, 100_000] {
        let read = decoded(encoded(7, payload)).expect("intact");
        assert_eq!(read, *entry(7, payload));
    }
}

#[test]
fn payload_is_not_copied() {
    let file = Bytes::from(encoded(7, 100));
    let read = Entry::from_bytes(&file).expect("intact");
    assert_eq!(read.payload.as_ptr(), file[header_length()..].as_ptr());
}

/// Checks the layout by hand, as the module documents it.
#[test]
fn file_opens_with_magic_format_and_length() {
    let bytes = encoded(7, 16);
    assert_eq!(bytes[..8], *b"\x89rotini\n");
    assert_eq!(bytes[8..12], [2, 0, 0, 0]);
    let header = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
    assert_eq!(
        bytes[16 + header..16 + header + 32],
        *blake3::hash(&bytes[..16 + header]).as_bytes()
    );
    assert_eq!(bytes.len(), 16 + header + 32 + 16);
}

#[test]
fn every_bit_counts() {
    let intact = encoded(7, 64);
    for bit in 0..8 * intact.len() {
        let mut bytes = intact.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decoded(bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn every_truncation_is_found() {
    let intact = encoded(7, 64);
    for length in 0..intact.len() {
        assert!(decoded(intact[..length].to_vec()).is_err(), "{length}");
    }
}

#[test]
fn each_kind_of_damage_has_its_name() {
    let header = header_length();
    let damage = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = encoded(7, 64);
        change(&mut bytes);
        decoded(bytes).expect_err("damaged")
    };
    assert!(matches!(damage(&|bytes| bytes.clear()), DecodeError::Magic));
    assert!(matches!(damage(&|bytes| bytes[0] = b'r'), DecodeError::Magic));
    assert!(matches!(
        damage(&|bytes| bytes[8] = 1),
        DecodeError::Format { found: 1 }
    ));
    assert!(matches!(
        damage(&|bytes| bytes.truncate(10)),
        DecodeError::Truncated { part: "format" }
    ));
    assert!(matches!(
        damage(&|bytes| bytes[12..16].copy_from_slice(&[0xff; 4])),
        DecodeError::HeaderLength { length: u32::MAX }
    ));
    assert!(matches!(
        damage(&|bytes| bytes.truncate(40)),
        DecodeError::Truncated { part: "header" }
    ));
    assert!(matches!(
        damage(&|bytes| bytes.truncate(header - 1)),
        DecodeError::Truncated {
            part: "header checksum"
        }
    ));
    assert!(matches!(damage(&|bytes| bytes[50] ^= 1), DecodeError::HeaderChecksum));
    assert!(matches!(
        damage(&|bytes| bytes[header - 1] ^= 1),
        DecodeError::HeaderChecksum
    ));
    assert!(matches!(
        damage(&|bytes| bytes.push(0)),
        DecodeError::PayloadLength {
            expected: 64,
            found: 65
        }
    ));
    assert!(matches!(
        damage(&|bytes| bytes[header] ^= 1),
        DecodeError::PayloadChecksum
    ));
}

/// A reader of bytes from elsewhere learns which keys and target they belong to.
#[test]
fn bytes_tell_their_keys_and_target() {
    let content = ContentKey::from_bytes([5; 32]);
    let mut stored = (*entry(8, 64)).clone();
    stored.content = Some(content);
    let read = decoded(stored.to_bytes().expect("a small header")).expect("intact");
    assert_eq!(read.key, key(8));
    assert_eq!(read.content, Some(content));
    assert_eq!(read.metadata.facts.compiled_for.target, "gfx942");
    assert_eq!(read.metadata.facts.compiled_for.features, "+sramecc");
}

/// This is the order of the metadata in the file, whatever structs hold them in memory.
#[test]
fn metadata_are_written_one_after_the_other() {
    let by_hand = postcard::to_stdvec(&("test", "gfx942", "+sramecc", 7_u64, 1_u32, 2_u64, 3_u64));
    assert_eq!(postcard::to_stdvec(&entry(7, 0).metadata), by_hand);
}

/// A forger can make the checksum fit; decoding the header with postcard must still fail.
#[test]
fn nonsense_under_a_right_checksum_is_an_error() {
    let mut bytes = Vec::from(MAGIC);
    bytes.extend(ENTRY_FORMAT.to_le_bytes());
    bytes.extend(64_u32.to_le_bytes());
    bytes.extend([0xff; 64]);
    let checksum = blake3::hash(&bytes);
    bytes.extend(checksum.as_bytes());
    assert!(matches!(decoded(bytes), Err(DecodeError::Header(_))));
}

#[test]
fn header_too_long_is_not_written() {
    let mut entry = (*entry(7, 1)).clone();
    entry.metadata.facts.producer = "x".repeat(MAX_HEADER);
    assert!(matches!(entry.to_bytes(), Err(EncodeError::HeaderLength { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(decoded(bytes).is_err());
    }

    /// Splices bytes, and optionally makes the header's checksum fit: whatever gets past the
    /// checksum must be refused or decode to the intact payload.
    #[test]
    fn mutated_entries_never_panic(
        position in 0_usize..300,
        removed in 0_usize..16,
        inserted in proptest::collection::vec(any::<u8>(), 0..16),
        seal in any::<bool>(),
    ) {
        let intact = encoded(7, 64);
        let mut bytes = intact.clone();
        let position = position.min(bytes.len());
        let end = (position + removed).min(bytes.len());
        bytes.splice(position..end, inserted);
        if seal {
            reseal(&mut bytes);
        }
        if let Ok(read) = decoded(bytes.clone()) {
            // Only bytes with the right payload get here.
            prop_assert_eq!(&read.payload, &entry(7, 64).payload);
            prop_assert!(seal || bytes == intact);
        }
    }
}

/// Makes length and checksum of the header fit a payload of 64 bytes, if the file is long enough to
/// hold both.
fn reseal(bytes: &mut [u8]) {
    let Some(end) = bytes.len().checked_sub(64 + 32) else {
        return;
    };
    let Some(length) = end.checked_sub(16) else {
        return;
    };
    bytes[12..16].copy_from_slice(&(length as u32).to_le_bytes());
    let checksum = blake3::hash(&bytes[..end]);
    bytes[end..end + 32].copy_from_slice(checksum.as_bytes());
}
