//! Reads the metadata of a code object, for any AMD GPU: the msgpack map in its note.
//!
//! The layout is described in LLVM's "User Guide for AMDGPU Backend".

use object::{
    Endianness, elf,
    read::elf::{FileHeader, SectionHeader},
};
use rmpv::Value;

use crate::error::CodeObjectError;

/// `NT_AMDGPU_METADATA`
const NOTE: u32 = 32;

/// Returns the metadata map of a code object.
///
/// # Errors
///
/// [`CodeObjectError`]: not ELF, not AMDGPU, or no such note.
pub fn read(bytes: &[u8]) -> Result<Value, CodeObjectError> {
    let header = elf::FileHeader64::<Endianness>::parse(bytes).map_err(CodeObjectError::Elf)?;
    let endian = header.endian().map_err(CodeObjectError::Elf)?;
    let machine = header.e_machine(endian);
    if machine != elf::EM_AMDGPU {
        return Err(CodeObjectError::Machine(machine));
    }
    let sections = header.sections(endian, bytes).map_err(CodeObjectError::Elf)?;
    for section in sections.iter() {
        let Some(mut notes) = section.notes(endian, bytes).map_err(CodeObjectError::Elf)? else {
            continue;
        };
        while let Some(note) = notes.next().map_err(CodeObjectError::Elf)? {
            if note.name() == b"AMDGPU" && note.n_type(endian) == NOTE {
                return rmpv::decode::read_value(&mut note.desc())
                    .map_err(|error| CodeObjectError::Metadata(format!("no msgpack: {error}")));
            }
        }
    }
    Err(CodeObjectError::Metadata("there is none".to_owned()))
}

/// Returns the value of a key, if the map has it.
pub fn get<'v>(map: &'v Value, key: &str) -> Option<&'v Value> {
    let mut pairs = map.as_map()?.iter();
    pairs
        .find(|(name, _)| name.as_str() == Some(key))
        .map(|(_, value)| value)
}

/// Returns the list of a key.
///
/// # Errors
///
/// [`CodeObjectError::Metadata`] if there is none.
pub fn list<'v>(map: &'v Value, key: &str) -> Result<&'v [Value], CodeObjectError> {
    get(map, key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .ok_or_else(|| CodeObjectError::Metadata(format!("no list {key}")))
}

/// Returns the 32-bit number of a key.
///
/// # Errors
///
/// [`CodeObjectError::Metadata`] if there is none.
pub fn number(map: &Value, key: &str) -> Result<u32, CodeObjectError> {
    get(map, key)
        .and_then(Value::as_u64)
        .and_then(|value| u32::try_from(value).ok())
        .ok_or_else(|| CodeObjectError::Metadata(format!("no number {key}")))
}

/// Returns the text of a key.
///
/// # Errors
///
/// [`CodeObjectError::Metadata`] if there is none.
pub fn text<'v>(map: &'v Value, key: &str) -> Result<&'v str, CodeObjectError> {
    get(map, key)
        .and_then(Value::as_str)
        .ok_or_else(|| CodeObjectError::Metadata(format!("no text {key}")))
}
