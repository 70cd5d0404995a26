//! Length-prefixed fields of a hash.

/// Adds a length-prefixed field to a hash, so that different lists of fields never hash the same
/// bytes.
pub(super) fn field(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}
