//! The one engine: its name and its id.

use crate::error::Error;

/// The engine's name. hipDNN derives the id from it and drops an engine whose name does not hash to
/// its id.
pub const NAME: &str = "ROTINI_ENGINE";

/// [`NAME`] as the C string that the C boundary returns.
pub const NAME_C: &std::ffi::CStr = c"ROTINI_ENGINE";

/// The engine's id: 64-bit FNV-1a of the name, as in hipDNN's `EngineNames.hpp`.
pub const ID: i64 = fnv1a(NAME.as_bytes());

/// Refuses another engine's id.
///
/// # Errors
///
/// [`Error::UnknownEngine`].
pub(crate) fn expect(engine_id: i64) -> Result<(), Error> {
    if engine_id == ID {
        Ok(())
    } else {
        Err(Error::UnknownEngine(engine_id))
    }
}

const fn fnv1a(bytes: &[u8]) -> i64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(0x100_0000_01b3);
        rest = tail;
    }
    hash.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_hipdnn_derives_them() {
        // Names registered with hipDNN, and their published ids.
        assert_eq!(fnv1a(b"MIOPEN_ENGINE").cast_unsigned(), 0x15b4_6865_c717_a122);
        assert_eq!(fnv1a(b"FUSILLI_ENGINE").cast_unsigned(), 0xd3b0_0d1f_8f0b_df92);
        assert_eq!(NAME.as_bytes(), NAME_C.to_bytes());
    }
}
