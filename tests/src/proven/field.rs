//! Fields of a hash.

/// Adds a field of its own length to a hash: no two lists of fields are the same bytes.
pub(super) fn field(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}
