//! The sources that a verdict depends on, besides the compiler's input.
//!
//! Only the code of Rust sources counts: comments, documentation, blanks, unit tests and the order
//! of a file's items void no verdict.

use super::field::field;
use anyhow::{Context as _, Result, ensure};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use std::fs;
use std::path::{Path, PathBuf};

/// Sources that decide right or wrong: the reference, the harness, its calls of the plugin, and the
/// verdicts themselves.
const JUDGE: &[&str] = &[
    "plugin/reference/src",
    "tests/src/harness.rs",
    "tests/src/harness",
    "tests/src/proven.rs",
    "tests/src/proven",
    "plugin/host/src",
];
/// Sources on the path from compiled code in the cache to its outputs.
const EXECUTION: &[&str] = &[
    "plugin/src/pipeline.rs",
    "plugin/src/prepared.rs",
    "plugin/src/runtime.rs",
    "plugin/src/compile.rs",
    "plugin/src/attempts.rs",
    "plugin/src/code.rs",
    "plugin/src/context.rs",
    "plugin/src/device/mod.rs",
    "plugin/src/device/retired.rs",
    "iree/src/lib.rs",
    "iree/src/result.rs",
    "iree/src/runtime",
    "iree-sys/src",
];
/// Files that determine how these are built.
const BUILD: &[&str] = &["iree-sys/build.rs", "rust-toolchain.toml"];
const CPU: &[&str] = &["plugin/src/device/host.rs"];
const GPU: &[&str] = &["plugin/src/device/gpu"];
const EMULATOR: &[&str] = &[
    "tests/hip-emulator/build.rs",
    "tests/hip-emulator/src",
    "tests/hip-emulator/gfx/src",
    "tests/hip-emulator/mfma/src",
];
/// Files that affect no verdict: unit tests, and code that only counts, in sampled runs whose
/// results are not used.
const LEFT_OUT: [&str; 3] = ["tests", "tests.rs", "gfx/src/profile.rs"];
/// Crates that the judge or the emulator compute with, and the one that vendors IREE's runtime.
const CRATES: [&str; 6] = [
    "eerie-sys",
    "half",
    "libm",
    "multiversion",
    "rand_chacha",
    "rustc_apfloat",
];

/// Hashes the sources that affect executions on the CPU, or on the emulated GPU.
///
/// # Errors
///
/// If a listed path is missing: a moved file must not drop out unnoticed.
pub(super) fn hash(root: &Path, on_gpu: bool, hasher: &mut blake3::Hasher) -> Result<()> {
    let device = if on_gpu { [GPU, EMULATOR].concat() } else { CPU.to_vec() };
    for places in [JUDGE, EXECUTION, BUILD, &device] {
        for file in files(root, places)? {
            let name = file.strip_prefix(root)?.as_os_str().as_encoded_bytes().to_vec();
            field(hasher, &name);
            for part in code(&file)? {
                field(hasher, part.as_bytes());
            }
        }
    }
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    for name in CRATES {
        let version = version(&lock, name).with_context(|| format!("Cargo.lock has no {name}"))?;
        field(hasher, version.as_bytes());
    }
    Ok(())
}

/// Returns the parts of a file that affect verdicts: of Rust the items without documentation, in
/// alphabetical order; else the whole text.
fn code(file: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(file)?;
    if file.extension().is_none_or(|extension| extension != "rs") {
        return Ok(vec![text]);
    }
    let parsed = syn::parse_file(&text).with_context(|| format!("{} is not Rust", file.display()))?;
    let attributes = parsed.attrs.iter().map(ToTokens::to_token_stream);
    let items = parsed.items.iter().filter(|item| !is_test(item));
    let items = items.map(ToTokens::to_token_stream);
    let mut parts: Vec<String> = attributes
        .chain(items)
        .map(|part| undocumented(part).to_string())
        .collect();
    parts.retain(|part| !part.is_empty());
    parts.sort();
    Ok(parts)
}

/// Returns true if an item is a module of unit tests.
fn is_test(item: &syn::Item) -> bool {
    let syn::Item::Mod(module) = item else { return false };
    let is_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg") && attribute.meta.to_token_stream().to_string() == "cfg (test)"
    };
    module.attrs.iter().any(is_test)
}

/// Returns tokens without `#[doc = "…"]` and `#![doc = "…"]`, the token form of doc comments.
fn undocumented(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            kept.push(token);
            continue;
        };
        let is_punctuation = |token: Option<&TokenTree>, mark: char| matches!(token, Some(TokenTree::Punct(punctuation)) if punctuation.as_char() == mark);
        let is_doc = matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc");
        let is_inner = is_punctuation(kept.last(), '!');
        let hash = kept.len().checked_sub(if is_inner { 2 } else { 1 });
        if let Some(hash) = hash
            && is_doc
            && group.delimiter() == Delimiter::Bracket
            && is_punctuation(kept.get(hash), '#')
        {
            kept.truncate(hash);
        } else {
            kept.push(Group::new(group.delimiter(), undocumented(group.stream())).into());
        }
    }
    kept.into_iter().collect()
}

/// Fails if a program is older than its sources: its behaviour would be attributed to the wrong
/// sources.
///
/// # Errors
///
/// The same, and those of the file system.
pub(super) fn expect_built(root: &Path, on_gpu: bool) -> Result<()> {
    let device = if on_gpu { GPU } else { CPU };
    let mut programs = vec![
        (std::env::current_exe()?, JUDGE.to_vec()),
        (crate::plugin::path()?, [EXECUTION, device].concat()),
    ];
    if on_gpu {
        programs.push((crate::plugin::emulator()?, EMULATOR.to_vec()));
    }
    for (program, places) in programs {
        let built = fs::metadata(&program)?.modified()?;
        for file in files(root, &places)? {
            ensure!(
                fs::metadata(&file)?.modified()? <= built,
                "{} is older than {}",
                program.display(),
                file.display()
            );
        }
    }
    Ok(())
}

/// Returns the files of some places, in order.
fn files(root: &Path, places: &[&str]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for place in places {
        let mut files = Vec::new();
        collect(&root.join(place), &mut files).with_context(|| format!("verdicts stand on {place}"))?;
        ensure!(!files.is_empty(), "verdicts stand on {place}, which is empty");
        files.sort();
        all.append(&mut files);
    }
    Ok(all)
}

/// Collects the files at or below a place that affect verdicts.
fn collect(place: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !place.is_dir() {
        ensure!(place.is_file(), "{} is not there", place.display());
        files.push(place.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        if !LEFT_OUT.iter().any(|name| path.ends_with(name)) {
            collect(&path, files)?;
        }
    }
    Ok(())
}

/// Returns all versions of a crate in the lock file: the lines after its name.
fn version(lock: &str, name: &str) -> Option<String> {
    let wanted = format!("name = \"{name}\"");
    let lines = lock.lines().zip(lock.lines().skip(1));
    let versions: Vec<&str> = lines
        .filter(|(line, _)| *line == wanted)
        .map(|(_, next)| next)
        .collect();
    (!versions.is_empty()).then(|| versions.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(from: &Path, to: &Path, place: &str) {
        let mut files = Vec::new();
        collect(&from.join(place), &mut files).unwrap();
        for file in files {
            let target = to.join(file.strip_prefix(from).unwrap());
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::copy(&file, &target).unwrap();
        }
    }

    fn hashed(root: &Path, on_gpu: bool) -> Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new();
        hash(root, on_gpu, &mut hasher)?;
        Ok(hasher.finalize())
    }

    /// A changed or missing source of judge, runtime, device or emulator voids all verdicts.
    #[test]
    fn every_listed_source_counts() {
        let root = super::super::root();
        let directory = tempfile::tempdir().unwrap();
        for place in [JUDGE, EXECUTION, BUILD, CPU, GPU, EMULATOR, &["Cargo.lock"]].concat() {
            copy(&root, directory.path(), place);
        }
        let before = [false, true].map(|on_gpu| hashed(directory.path(), on_gpu).unwrap());
        assert_eq!(before, [false, true].map(|on_gpu| hashed(&root, on_gpu).unwrap()));
        for (file, changes) in [
            ("plugin/reference/src/compare.rs", [true, true]),
            ("tests/src/harness/memory.rs", [true, true]),
            ("plugin/src/context.rs", [true, true]),
            ("iree/src/runtime/invocation.rs", [true, true]),
            ("plugin/src/device/host.rs", [true, false]),
            ("plugin/src/device/gpu/launch_plan.rs", [false, true]),
            ("tests/hip-emulator/mfma/src/chain.rs", [false, true]),
            ("tests/hip-emulator/gfx/src/run.rs", [false, true]),
        ] {
            let path = directory.path().join(file);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, format!("{text}\nconst CHANGED: u8 = 0;")).unwrap();
            let after = [false, true].map(|on_gpu| hashed(directory.path(), on_gpu).unwrap());
            assert_eq!([before[0] != after[0], before[1] != after[1]], changes, "{file}");
            let harmless = "\n/// Documented.\n#[cfg(test)]\nmod more {} // A comment.";
            fs::write(&path, format!("//! More words.\n{text}{harmless}")).unwrap();
            let after = [false, true].map(|on_gpu| hashed(directory.path(), on_gpu).unwrap());
            assert_eq!(before, after, "{file}");
            fs::write(&path, text).unwrap();
        }
        let lock = fs::read_to_string(directory.path().join("Cargo.lock")).unwrap();
        let half = format!("name = \"half\"\n{}", version(&lock, "half").unwrap());
        fs::write(
            directory.path().join("Cargo.lock"),
            lock.replace(&half, "name = \"half\"\nversion = \"0.0.0\""),
        )
        .unwrap();
        assert_ne!(hashed(directory.path(), false).unwrap(), before[0]);
        fs::remove_file(directory.path().join("plugin/src/context.rs")).unwrap();
        assert!(hashed(directory.path(), false).is_err());
    }

    /// Documentation, comments, blanks and the order of items do not count; anything else does.
    #[test]
    fn code_alone_counts() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file.rs");
        let parts = |text: &str| {
            fs::write(&file, text).unwrap();
            code(&file).unwrap()
        };
        let plain = parts("fn a(x: u8) -> u8 { x + 1 } struct B { c: u8 }");
        let documented =
            "//! Docs.\n/// B.\nstruct B {\n /// c\n c: u8 } // more\n/* a */ fn a(x: u8) -> u8 { x\n + 1 }";
        assert_eq!(parts(documented), plain);
        for other in [
            "fn a(x: u8) -> u8 { x + 2 } struct B { c: u8 }",
            "#[inline] fn a(x: u8) -> u8 { x + 1 } struct B { c: u8 }",
            "fn a(x: u8) -> u8 { x + 1 }",
        ] {
            assert_ne!(parts(other), plain, "{other}");
        }
        fs::write(&file, "fn {").unwrap();
        assert!(code(&file).is_err());
    }
}
