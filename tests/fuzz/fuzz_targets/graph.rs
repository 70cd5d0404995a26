//! Bytes to graph, normal form, cache key, check and lowering: whatever the bytes, nothing panics, and what `check` accepts is lowered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rotini_emit::Target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(graph) = rotini_wire::decode(bytes) else { return };
    let (normal, _) = graph.normalise();
    normal.canonical_bytes().expect("a graph has a key");
    for target in [Target::Cpu, Target::Rocm { arch: "gfx942".into() }] {
        if rotini_emit::check(&normal, &target).is_ok() {
            rotini_emit::workspace_bound(&normal, &target).expect("an accepted graph has a bound");
            rotini_emit::emit(&normal, &target).expect("an accepted graph is lowered");
        }
    }
});
