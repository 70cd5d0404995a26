//! Other copies of this plugin in the same directory. hipDNN loads every `.so` in that directory,
//! and an engine id can be registered only once. With two copies, either one of them is rejected or
//! every graph fails, depending on hipDNN's version.

use rotini_iree::compiler::own_file;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Warns of other copies, once per process: hosts set their logging function as often as they like.
pub(crate) fn tell() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        let Some(own) = own_file() else { return };
        for other in copies(&own) {
            tracing::warn!(
                "{} looks like another copy of {}: hipDNN loads both, and all graphs may fail because they are one engine. Remove one",
                other.display(),
                own.display()
            );
        }
    });
}

/// Returns the other files that hipDNN would load and that seem to be this plugin, judged by name
/// or by size.
fn copies(own: &Path) -> Vec<PathBuf> {
    let size = |path: &Path| fs::metadata(path).ok().map(|metadata| metadata.len());
    let (Some(directory), own_size) = (own.parent(), size(own)) else {
        return Vec::new();
    };
    let looks_alike = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // hipDNN loads each real file once, however many links point to it.
        let is_other = fs::canonicalize(path).is_ok_and(|real| real != own && real.is_file());
        is_other && path.extension().is_some_and(|ending| ending == "so") && {
            name.contains("rotini_plugin") || (size(path) == own_size && own_size.is_some())
        }
    };
    let mut copies: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| looks_alike(path))
        .collect();
    copies.sort();
    copies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_told_from_other_engines_and_links() {
        let directory = tempfile::tempdir().unwrap();
        let directory = fs::canonicalize(directory.path()).unwrap();
        let file = |name: &str, content: &str| {
            fs::write(directory.join(name), content).unwrap();
            directory.join(name)
        };
        let own = file("librotini_plugin.so", "the plugin");
        file("libmiopen_plugin.so", "another engine");
        file("librotini_plugin.so.1", "hipDNN does not load it");
        std::os::unix::fs::symlink(&own, directory.join("librotini_plugin_link.so")).unwrap();
        assert!(copies(&own).is_empty(), "{:?}", copies(&own));
        let older = file("librotini_plugin-0.0.9.so", "an older plugin");
        let renamed = file("renamed.so", "the plugin");
        assert_eq!(copies(&own), [older, renamed]);
    }
}
