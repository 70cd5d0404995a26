//! The structure of the sources: no import cycle of a crate has more than two files, no file is
//! longer than 500 lines, only the register of quirks names the compiler's version, and no comment
//! of the product has a phrase that readers did not understand.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

use rotini_emit::REGISTER;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::Visit;
use syn::{Item, UseTree};

/// The directories of crates and test programs with several files.
const CRATES: [&str; 32] = [
    "mlir-emit/src",
    "mlir-emit/graph/src",
    "mlir-emit/custom/src",
    "mlir-emit/schedule/src",
    "plugin/src",
    "plugin/wire/src",
    "plugin/host/src",
    "plugin/cli/src",
    "plugin/workloads/src",
    "plugin/bench/src",
    "plugin/inspect/src",
    "plugin/artifact/src",
    "jit-cache/src",
    "iree/src",
    "iree-sys/src",
    "compile-worker/src",
    "compile-worker/tests/worker",
    "tests/src",
    "tests/tests/conformance",
    "tests/tests/emulated",
    "tests/tests/process",
    "plugin/reference/src",
    "plugin/reference/tests/suite",
    "tests/verify/src",
    "tests/hip-emulator/src",
    "tests/hip-emulator/gfx/src",
    "tests/hip-emulator/mfma/src",
    "tests/hip-emulator/time/src",
    "benches/src",
    "benches/engine/src",
    "benches/onnxruntime-engine/src",
    "benches/speed/src",
];

/// Maximum number of lines of a file; generated files are exempt.
const MOST_LINES: usize = 500;

/// Maximum number of columns of a comment line.
const WIDEST_COMMENT: usize = 100;

/// Phrases that readers of the field did not understand.
const UNCLEAR: [&str; 6] = [
    "what is made of",
    "as it lies",
    "as they lie",
    "so many",
    "of our own",
    "in the place of",
];

/// Directory of `flatc`'s output.
const GENERATED: &str = "generated";

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests are in the repository").to_owned()
}

/// Returns all sources below a directory.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.expect("a directory can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != GENERATED {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the path of a file's module: `[]` for the crate's root.
fn module(directory: &Path, file: &Path) -> Vec<String> {
    let inside = file
        .strip_prefix(directory)
        .expect("a file of the crate")
        .with_extension("");
    let mut names: Vec<String> = inside.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        names.pop();
    }
    names
}

/// The paths of the crate that a file uses, from the crate's root, and those that it re-exports, by
/// their new name.
#[derive(Default)]
struct Named {
    own: Vec<String>,
    paths: BTreeSet<Vec<String>>,
    exports: BTreeMap<String, Vec<String>>,
}

impl Named {
    /// Returns a path from the crate's root; `None` if it belongs to another crate.
    fn absolute(&self, path: &[String], modules: &BTreeSet<Vec<String>>) -> Option<Vec<String>> {
        let first = path.first()?;
        let mut base = self.own.clone();
        let mut rest = path;
        match first.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                let mut module = base.clone();
                module.push(child.to_owned());
                if !modules.contains(&module) {
                    return None;
                }
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }
}

struct Reader<'m> {
    named: Named,
    modules: &'m BTreeSet<Vec<String>>,
}

impl Reader<'_> {
    fn tree(&mut self, tree: &UseTree, before: &mut Vec<String>, is_export: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before, is_export);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before, is_export)),
            UseTree::Name(name) => self.leaf(before, &name.ident.to_string(), &name.ident.to_string(), is_export),
            UseTree::Rename(rename) => {
                self.leaf(before, &rename.ident.to_string(), &rename.rename.to_string(), is_export);
            }
            UseTree::Glob(_) => self.leaf(before, "*", "*", false),
        }
    }

    fn leaf(&mut self, before: &[String], name: &str, new: &str, is_export: bool) {
        let mut path = before.to_vec();
        if name != "self" {
            path.push(name.to_owned());
        }
        if let Some(path) = self.named.absolute(&path, self.modules) {
            if is_export {
                self.named.exports.insert(new.to_owned(), path.clone());
            }
            self.named.paths.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(module) => &module.attrs,
            Item::Fn(function) => &function.attrs,
            Item::Use(used) => &used.attrs,
            Item::Impl(one) => &one.attrs,
            _ => &Vec::new(),
        };
        let is_test = attributes.iter().any(|attribute| {
            use quote::ToTokens as _;
            attribute.path().is_ident("cfg") && attribute.to_token_stream().to_string().contains("test")
        });
        if !is_test {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_export = !matches!(item.vis, syn::Visibility::Inherited);
        self.tree(&item.tree, &mut Vec::new(), is_export);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1
            && let Some(path) = self.named.absolute(&names, self.modules)
        {
            self.named.paths.insert(path);
        }
        syn::visit::visit_path(self, path);
    }
}

/// Returns the module whose file a path leads to: re-exports are followed to the definition.
fn resolve(path: &[String], files: &BTreeMap<Vec<String>, Named>, depth: usize) -> Vec<String> {
    let mut module: Vec<String> = Vec::new();
    for name in path {
        module.push(name.clone());
        if files.contains_key(&module) {
            continue;
        }
        module.pop();
        let export = files.get(&module).and_then(|named| named.exports.get(name));
        return match export {
            Some(export) if depth < 8 && export != path => resolve(export, files, depth + 1),
            _ => module,
        };
    }
    module
}

/// Returns the cycles of a graph with more than two files.
fn circles(edges: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> BTreeSet<BTreeSet<Vec<String>>> {
    let reached = |from: &Vec<String>| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&Vec<String>> = edges[from].iter().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module.clone()) {
                next.extend(&edges[module]);
            }
        }
        seen
    };
    let all: BTreeMap<_, _> = edges.keys().map(|module| (module.clone(), reached(module))).collect();
    let circle = |module: &Vec<String>| {
        let others = all[module].iter().filter(|other| all[*other].contains(module));
        others.cloned().collect::<BTreeSet<_>>()
    };
    all.keys().map(circle).filter(|circle| circle.len() > 2).collect()
}

#[test]
fn no_circle_has_more_than_two_files() {
    let mut found = Vec::new();
    for name in CRATES {
        let directory = root().join(name);
        let files: Vec<PathBuf> = sources(&directory)
            .into_iter()
            .filter(|file| !file.starts_with(directory.join("bin")))
            .collect();
        let modules: BTreeSet<Vec<String>> = files.iter().map(|file| module(&directory, file)).collect();
        let mut read = BTreeMap::new();
        for file in &files {
            let own = module(&directory, file);
            if own.last().is_some_and(|name| name.ends_with("tests")) {
                continue;
            }
            let text = fs::read_to_string(file).expect("a source can be read");
            let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let mut reader = Reader {
                named: Named {
                    own: own.clone(),
                    ..Named::default()
                },
                modules: &modules,
            };
            reader.visit_file(&syntax);
            read.insert(own, reader.named);
        }
        let edges = read
            .iter()
            .map(|(own, named)| {
                let used = named
                    .paths
                    .iter()
                    .filter(|path| !named.exports.values().any(|export| export == *path));
                let used = used.map(|path| resolve(path, &read, 0)).filter(|module| module != own);
                (own.clone(), used.collect())
            })
            .collect();
        let circles = circles(&edges);
        let count: usize = circles.iter().map(BTreeSet::len).sum();
        if count > 0 {
            let names = circles.iter().flatten().map(|module| module.join("::"));
            println!("{name}: {}", names.collect::<Vec<_>>().join(", "));
            found.push((name, count));
        }
    }
    assert!(
        found.is_empty(),
        "files that import each other in circles of more than two: {found:?}"
    );
}

/// The check detects a cycle of three.
#[test]
fn a_circle_of_three_is_found() {
    let edge = |from: &str, to: &[&str]| {
        let path = |name: &str| vec![name.to_owned()];
        (path(from), to.iter().map(|name| path(name)).collect::<BTreeSet<_>>())
    };
    let three = [
        edge("a", &["b"]),
        edge("b", &["c"]),
        edge("c", &["a"]),
        edge("d", &["a"]),
    ];
    assert_eq!(circles(&three.into()).len(), 1);
    let two = [edge("a", &["b"]), edge("b", &["a", "c"]), edge("c", &[])];
    assert!(circles(&two.into()).is_empty());
}

#[test]
fn files_are_short() {
    let mut long = Vec::new();
    for file in sources(&root()) {
        let lines = fs::read_to_string(&file).expect("a source can be read").lines().count();
        if lines > MOST_LINES {
            long.push(file.strip_prefix(root()).unwrap_or(&file).display().to_string());
        }
    }
    assert!(long.is_empty(), "files of more than {MOST_LINES} lines: {long:?}");
}

/// Tables, diagrams, code and addresses are exempt, since they are not wrapped.
#[test]
fn comments_are_narrow() {
    let mut wide = Vec::new();
    for file in sources(&root()) {
        let text = fs::read_to_string(&file).expect("a source can be read");
        let mut is_fenced = false;
        for (number, line) in (1..).zip(text.lines()) {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                is_fenced = false;
                continue;
            };
            let comment = comment.trim_start_matches(['/', '!']);
            is_fenced ^= comment.trim_start().starts_with("```");
            let is_wrapped =
                !is_fenced && !comment.starts_with("     ") && !comment.contains("://") && !comment.contains('|');
            if is_wrapped && line.chars().count() > WIDEST_COMMENT {
                wide.push(format!("{}:{number}", file.display()));
            }
        }
    }
    assert!(
        wide.is_empty(),
        "comments of more than {WIDEST_COMMENT} columns: {wide:#?}"
    );
}

/// This file is exempt, because it lists the phrases.
#[test]
fn words_are_plain() {
    let mut files: Vec<PathBuf> = sources(&root())
        .into_iter()
        .filter(|file| !file.ends_with(file!()))
        .collect();
    for directory in [root(), root().join("docs")] {
        let entries = fs::read_dir(directory).expect("a directory can be read");
        let paths = entries.map(|entry| entry.expect("a directory can be read").path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    assert!(files.len() > 300);
    let mut unclear = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source can be read").to_lowercase();
        let words: Vec<&str> = text
            .split_whitespace()
            .filter(|word| !["//", "///", "//!"].contains(word))
            .collect();
        let text = words.join(" ");
        for phrase in UNCLEAR.iter().filter(|phrase| text.contains(**phrase)) {
            unclear.push(format!("{}: {phrase}", file.display()));
        }
    }
    assert!(unclear.is_empty(), "{unclear:#?}");
}

/// A compiler defect that the lowering avoids is in the register only.
#[test]
fn only_the_register_names_the_compilers_version() {
    let directory = root().join("mlir-emit/src");
    let versions: BTreeSet<&str> = REGISTER.iter().flat_map(|one| one.seen_on.iter().copied()).collect();
    assert!(!versions.is_empty());
    for file in sources(&directory) {
        if file.starts_with(directory.join("quirks")) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source can be read");
        for version in &versions {
            assert!(!text.contains(version), "{} names {version}", file.display());
        }
    }
}

/// `docs/quirks.md` equals the register's document. `ROTINI_WRITE_QUIRKS` writes it.
#[test]
fn the_list_of_quirks_is_that_of_the_register() {
    let document = root().join("docs/quirks.md");
    if std::env::var_os("ROTINI_WRITE_QUIRKS").is_some() {
        fs::write(&document, rotini_emit::quirks_document()).expect("docs can be written");
    }
    let written = fs::read_to_string(&document).expect("docs/quirks.md is there");
    assert!(
        written == rotini_emit::quirks_document(),
        "docs/quirks.md is stale: scripts/quirks writes it"
    );
}

/// Files that the architecture document names exist: from the root, or below the emitter's sources.
#[test]
fn the_map_names_files_that_exist() {
    let root = root();
    let map = fs::read_to_string(root.join("docs/architecture.md")).expect("there is no map");
    let is_path = |text: &&str| {
        let is_named = |one: char| one.is_ascii_alphanumeric() || "_-./".contains(one);
        (text.ends_with(".rs") || text.ends_with(".toml")) && text.chars().all(is_named)
    };
    // Every second piece is between two backticks.
    let paths: Vec<&str> = map.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(paths.len() > 30, "the map names {} files", paths.len());
    let exists = |path: &&&str| {
        ["", "mlir-emit/src"]
            .iter()
            .any(|base| root.join(base).join(path).exists())
    };
    let missing: Vec<&&str> = paths.iter().filter(|path| !exists(path)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
