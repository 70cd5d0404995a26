//! Helpers that the unit tests share.

use std::sync::Arc;

use crate::entry::{Entry, Metadata};
use crate::facts::{CodeFacts, CompiledFor};
use crate::key::{Key, KeyInputs};

/// Returns a different key for each number.
pub(crate) fn key(number: u64) -> Key {
    Key::of(&KeyInputs {
        graph: &number.to_le_bytes(),
        compiled_for: &CompiledFor::from("gfx942".to_owned()),
        emitter: "1",
        flags: &[],
        compiler: "test",
    })
}

/// Returns an entry with a payload of `bytes` bytes that depends on `number`.
pub(crate) fn entry(number: u64, bytes: usize) -> Arc<Entry> {
    let payload: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(bytes).collect();
    Arc::new(Entry {
        key: key(number),
        content: None,
        metadata: Metadata {
            facts: CodeFacts {
                producer: "test".to_owned(),
                compiled_for: CompiledFor {
                    target: "gfx942".to_owned(),
                    features: "+sramecc".to_owned(),
                },
                workspace_bytes: number,
                dispatches: 1,
            },
            compile_micros: 2,
            created_unix: 3,
        },
        payload: payload.into(),
    })
}
