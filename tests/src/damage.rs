//! Damages a serialized graph as a careless or hostile host could. `plugin/wire/tests/mutations.rs`
//! includes this file too.

use rand::RngExt as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

/// Values at which lengths, offsets, extents and their products tend to break.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    3,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Damages bytes once.
///
/// # Panics
///
/// If there are no other graphs.
#[expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
pub fn damage(bytes: &mut Vec<u8>, others: &[Vec<u8>], rng: &mut ChaCha8Rng) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.random_range(0..bytes.len());
    match rng.random_range(0..9) {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << rng.random_range(0..8),
        2 => bytes[at] = rng.random(),
        // A number of any width, aligned as in FlatBuffers: an edge value, or a small change of the
        // old value. Many graphs survive the latter, with another extent, stride, uid, type or
        // mode.
        choice @ 3..=5 => {
            let width = *[1, 2, 4, 8].choose(rng).unwrap();
            let at = at - at % width;
            let Some(place) = bytes.get_mut(at..at + width) else {
                return;
            };
            let mut number = [0; 8];
            number[..width].copy_from_slice(place);
            let number = match choice {
                3 => *EDGES.choose(rng).unwrap(),
                _ => u64::from_le_bytes(number).wrapping_add_signed(rng.random_range(-4..=4)),
            };
            place.copy_from_slice(&number.to_le_bytes()[..width]);
        }
        // An offset moved by words, so that its target has another type.
        6 => {
            let at = at - at % 4;
            if let Some(word) = bytes[at..].first_chunk_mut::<4>() {
                *word = u32::from_le_bytes(*word)
                    .wrapping_add_signed(4 * rng.random_range(-16..16))
                    .to_le_bytes();
            }
        }
        // A part of another graph, inserted or written over.
        choice => {
            let other = others.choose(rng).unwrap();
            let from = rng.random_range(0..other.len()) & !3;
            let part = &other[from..other.len().min(from + rng.random_range(1..64))];
            let at = at & !3;
            let end = if choice == 7 {
                at
            } else {
                bytes.len().min(at + part.len())
            };
            bytes.splice(at..end, part.iter().copied());
        }
    }
}
