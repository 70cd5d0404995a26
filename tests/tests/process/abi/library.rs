//! The exports and dependencies of the shared library.

use object::elf::{DT_NEEDED, FileHeader64, STB_GNU_UNIQUE, STB_LOCAL};
use object::read::elf::{Dyn as _, FileHeader as _, Sym as _};
use object::{Endianness, SymbolIndex};
use rotini_tests::plugin;
use std::collections::BTreeSet;

/// Symbols that hipDNN looks up, from the facts of the ABI: four required base functions and twelve
/// engine functions, and all optional ones of API version 1.5.0.
const ABI: [&str; 27] = [
    "hipdnnPluginGetName",
    "hipdnnPluginGetVersion",
    "hipdnnPluginGetType",
    "hipdnnPluginGetLastErrorString",
    "hipdnnPluginSetLoggingCallback",
    "hipdnnPluginGetApiVersion",
    "hipdnnPluginSetLogLevel",
    "hipdnnEnginePluginGetAllEngineIds",
    "hipdnnEnginePluginCreate",
    "hipdnnEnginePluginDestroy",
    "hipdnnEnginePluginSetStream",
    "hipdnnEnginePluginGetApplicableEngineIds",
    "hipdnnEnginePluginGetEngineDetails",
    "hipdnnEnginePluginEnumerateCandidates",
    "hipdnnEnginePluginGetPrediction",
    "hipdnnEnginePluginDestroyEngineDetails",
    "hipdnnEnginePluginGetWorkspaceSize",
    "hipdnnEnginePluginCreateExecutionContext",
    "hipdnnEnginePluginDestroyExecutionContext",
    "hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext",
    "hipdnnEnginePluginExecuteOpGraph",
    "hipdnnEnginePluginExecuteOpGraphWithOverrides",
    "hipdnnEnginePluginGetEngineName",
    "hipdnnEnginePluginSerializeExecutionContext",
    "hipdnnEnginePluginSerializeExecutionContextWithEngineId",
    "hipdnnEnginePluginDestroySerializedExecutionContext",
    "hipdnnEnginePluginCreateExecutionContextFromSerialized",
];

/// Libraries that any C++ program loads; the last one is the loader itself, which thread-local
/// storage needs.
const SYSTEM: [&str; 5] = [
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "ld-linux-x86-64.so.2",
];

fn file() -> Vec<u8> {
    std::fs::read(plugin::path().unwrap()).unwrap()
}

#[test]
fn exports_exactly_the_abi() {
    let bytes = file();
    let header = FileHeader64::<Endianness>::parse(bytes.as_slice()).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, bytes.as_slice()).unwrap();
    let symbols = sections
        .symbols(endian, bytes.as_slice(), object::elf::SHT_DYNSYM)
        .unwrap();
    let mut exported = BTreeSet::new();
    for (index, symbol) in symbols.iter().enumerate() {
        // A unique symbol would keep the library mapped after it is closed.
        assert_ne!(
            symbol.st_bind(),
            STB_GNU_UNIQUE,
            "{:?}",
            symbol.name(endian, symbols.strings())
        );
        if index != SymbolIndex(0).0 && !symbol.is_undefined(endian) && symbol.st_bind() != STB_LOCAL {
            let name = symbol.name(endian, symbols.strings()).unwrap();
            exported.insert(std::str::from_utf8(name).unwrap().to_owned());
        }
    }
    assert_eq!(exported, ABI.map(str::to_owned).into());
}

#[test]
fn needs_no_library_but_the_systems() {
    let bytes = file();
    let header = FileHeader64::<Endianness>::parse(bytes.as_slice()).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, bytes.as_slice()).unwrap();
    let (entries, link) = sections.dynamic(endian, bytes.as_slice()).unwrap().unwrap();
    let strings = sections.strings(endian, bytes.as_slice(), link).unwrap();
    let needed: BTreeSet<String> = entries
        .iter()
        .filter(|entry| entry.tag32(endian) == Some(DT_NEEDED))
        .map(|entry| String::from_utf8_lossy(entry.string(endian, strings).unwrap()).into_owned())
        .collect();
    assert!(needed.contains("libc.so.6"), "the list cannot be right: {needed:?}");
    let foreign: Vec<_> = needed.iter().filter(|name| !SYSTEM.contains(&name.as_str())).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}
