//! The identity of a compilation.
//!
//! Identity is content. [`Key::of`] is the only source of keys, and [`KeyInputs`] names everything
//! that can change a graph's code. [`ContentKey`] does the same one step later, for the compiler's
//! inputs. Each input is hashed with BLAKE3 behind its label and its length, so two different sets
//! of inputs never hash the same bytes.

use std::fmt;
use std::str::FromStr;

use crate::entry::ENTRY_FORMAT;
use crate::facts::CompiledFor;

/// The BLAKE3 context string of [`Key`], which names the key scheme.
///
/// BLAKE3 derives a separate hash function from it: raise the number when a field is added, removed
/// or changes meaning, and every older key becomes unreachable.
const CONTEXT: &str = "rotini jit-cache key v3";
/// The context string of [`ContentKey`]: a value of one kind of key is never a value of the other.
const CONTENT_CONTEXT: &str = "rotini jit-cache content key v1";

/// Everything that decides what code a graph is compiled to.
///
/// Names, uids and graph ids are labels for people and belong in none of these fields.
#[derive(Clone, Copy, Debug)]
pub struct KeyInputs<'a> {
    /// The canonical bytes of the normalised graph.
    pub graph: &'a [u8],
    /// Target and target features of the code.
    pub compiled_for: &'a CompiledFor,
    /// The fingerprint of the emitter's sources. It differs if the same graph may be lowered to
    /// other code.
    pub emitter: &'a str,
    /// The compiler's flags, in the order given: order can matter to a compiler.
    pub flags: &'a [String],
    /// The compiler's exact build: version and revision, not a range.
    pub compiler: &'a str,
}

/// The identity of a compiled graph: 32 bytes, shown as 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; Key::LEN]);

impl Key {
    /// The length of a key in bytes.
    pub const LEN: usize = blake3::OUT_LEN;

    /// Returns the key of `inputs` and of the format that entries are stored in.
    pub fn of(inputs: &KeyInputs<'_>) -> Self {
        // Destructured, so that a field that is added to the struct and forgotten here does not
        // compile.
        let KeyInputs {
            graph,
            compiled_for: CompiledFor { target, features },
            emitter,
            flags,
            compiler,
        } = *inputs;
        // Labels are hashed, so they must stay as they are even if fields are renamed.
        Self::framed(CONTEXT, ENTRY_FORMAT, |framing| {
            framing.field("graph", graph);
            framing.field("target", target.as_bytes());
            framing.field("target_features", features.as_bytes());
            framing.field("emitter", emitter.as_bytes());
            framing.flags(flags);
            framing.field("compiler", compiler.as_bytes());
        })
    }

    fn framed(context: &str, entry_format: u32, fields: impl FnOnce(&mut Framing)) -> Self {
        let mut framing = Framing(blake3::Hasher::new_derive_key(context));
        framing.field("entry_format", &entry_format.to_le_bytes());
        fields(&mut framing);
        Self(framing.0.finalize().into())
    }

    /// Returns the key with these bytes, as an entry's header stores it.
    pub(crate) const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// The error of parsing a text that is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key is {} hexadecimal digits", 2 * Key::LEN)]
pub struct KeyError;

impl FromStr for Key {
    type Err = KeyError;

    /// Parses the format that [`Display`](fmt::Display) writes, and no other: a key has exactly one
    /// spelling.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let key = blake3::Hash::from_hex(text).map_err(|_| KeyError)?;
        let key = Self(key.into());
        // Digits in upper case are no key.
        if key.to_string() == text {
            Ok(key)
        } else {
            Err(KeyError)
        }
    }
}

/// Everything that decides what code a module in MLIR is compiled to.
#[derive(Clone, Copy, Debug)]
pub struct ContentInputs<'a> {
    /// The text of the module, as passed to the compiler.
    pub mlir: &'a [u8],
    /// As in [`KeyInputs`].
    pub compiled_for: &'a CompiledFor,
    /// As in [`KeyInputs`].
    pub flags: &'a [String],
    /// As in [`KeyInputs`].
    pub compiler: &'a str,
}

/// The identity of a compiled module, independent of graph and emitter.
///
/// Entries are found under it when an emitter changed but its output for a graph did not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentKey(Key);

impl ContentKey {
    /// Returns the key of `inputs` and of the format that entries are stored in.
    pub fn of(inputs: &ContentInputs<'_>) -> Self {
        let ContentInputs {
            mlir,
            compiled_for: CompiledFor { target, features },
            flags,
            compiler,
        } = *inputs;
        Self(Key::framed(CONTENT_CONTEXT, ENTRY_FORMAT, |framing| {
            framing.field("mlir", mlir);
            framing.field("target", target.as_bytes());
            framing.field("target_features", features.as_bytes());
            framing.flags(flags);
            framing.field("compiler", compiler.as_bytes());
        }))
    }

    pub(crate) const fn from_bytes(bytes: [u8; Key::LEN]) -> Self {
        Self(Key(bytes))
    }

    /// Returns the bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; Key::LEN] {
        self.0.as_bytes()
    }
}

impl fmt::Display for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentKey({self})")
    }
}

/// A hasher of labelled fields: length of label, label, length of value, value; lengths as
/// little-endian `u64`.
struct Framing(blake3::Hasher);

impl Framing {
    fn field(&mut self, label: &str, value: &[u8]) {
        for part in [label.as_bytes(), value] {
            self.0.update(&(part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    fn flags(&mut self, flags: &[String]) {
        self.field("flag_count", &(flags.len() as u64).to_le_bytes());
        for flag in flags {
            self.field("flag", flag.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(flags: &[&str]) -> Vec<String> {
        flags.iter().map(|&flag| flag.to_owned()).collect()
    }

    fn compiled_for(target: &str, features: &str) -> CompiledFor {
        CompiledFor {
            target: target.to_owned(),
            features: features.to_owned(),
        }
    }

    /// Returns the key of a fixed set of inputs after `change`.
    fn key(change: impl for<'a> FnOnce(&mut KeyInputs<'a>)) -> Key {
        key_for("gfx942", "+sramecc,-xnack", change)
    }

    fn key_for(target: &str, features: &str, change: impl for<'a> FnOnce(&mut KeyInputs<'a>)) -> Key {
        let flags = flags(&["--iree-opt-level=O3", "--fuse"]);
        let compiled_for = compiled_for(target, features);
        let mut inputs = KeyInputs {
            graph: b"graph",
            compiled_for: &compiled_for,
            emitter: "7",
            flags: &flags,
            compiler: "iree 3.13.0 @ 0123abcd",
        };
        change(&mut inputs);
        Key::of(&inputs)
    }

    fn base() -> Key {
        key(|_| ())
    }

    #[test]
    fn graph_changes_the_key() {
        assert_ne!(key(|inputs| inputs.graph = b"grapg"), base());
    }

    #[test]
    fn target_changes_the_key() {
        assert_ne!(key_for("gfx950", "+sramecc,-xnack", |_| ()), base());
    }

    #[test]
    fn target_features_change_the_key() {
        assert_ne!(key_for("gfx942", "+sramecc,+xnack", |_| ()), base());
    }

    #[test]
    fn emitter_changes_the_key() {
        assert_ne!(key(|inputs| inputs.emitter = "8"), base());
    }

    #[test]
    fn flags_change_the_key_by_value_number_and_order() {
        let with = |list: &[&str]| {
            let list = flags(list);
            Key::of(&KeyInputs {
                graph: b"graph",
                compiled_for: &compiled_for("gfx942", "+sramecc,-xnack"),
                emitter: "7",
                flags: &list,
                compiler: "iree 3.13.0 @ 0123abcd",
            })
        };
        assert_eq!(with(&["--iree-opt-level=O3", "--fuse"]), base());
        let others = [
            with(&["--iree-opt-level=O2", "--fuse"]),
            with(&["--fuse", "--iree-opt-level=O3"]),
            with(&["--iree-opt-level=O3"]),
            with(&["--iree-opt-level=O3", "--fuse", ""]),
            with(&["--iree-opt-level=O3--fuse"]),
            with(&[]),
        ];
        for (position, other) in others.iter().enumerate() {
            assert_ne!(*other, base());
            assert!(!others[..position].contains(other));
        }
    }

    #[test]
    fn compiler_changes_the_key() {
        assert_ne!(key(|inputs| inputs.compiler = "iree 3.13.0 @ 0123abce"), base());
    }

    #[test]
    fn entry_format_changes_the_key() {
        let of = |format| Key::framed(CONTEXT, format, |framing| framing.field("graph", b"graph"));
        assert_ne!(of(ENTRY_FORMAT), of(ENTRY_FORMAT + 1));
    }

    #[test]
    fn text_cannot_move_between_neighbouring_fields() {
        assert_ne!(key_for("gfx942+", "sramecc,-xnack", |_| ()), base());
    }

    /// The expected key is hashed by hand: framing and order are an on-disk format. A change of
    /// either that keeps the number in `CONTEXT` would silently make stored entries unreachable or,
    /// worse, mix up entries of two formats.
    #[test]
    fn key_is_the_documented_hash() {
        let mut hasher = blake3::Hasher::new_derive_key("rotini jit-cache key v3");
        let fields: [(&str, &[u8]); 9] = [
            ("entry_format", &[2, 0, 0, 0]),
            ("graph", b"graph"),
            ("target", b"gfx942"),
            ("target_features", b"+sramecc,-xnack"),
            ("emitter", b"7"),
            ("flag_count", &[2, 0, 0, 0, 0, 0, 0, 0]),
            ("flag", b"--iree-opt-level=O3"),
            ("flag", b"--fuse"),
            ("compiler", b"iree 3.13.0 @ 0123abcd"),
        ];
        for (label, value) in fields {
            hasher.update(&(label.len() as u64).to_le_bytes());
            hasher.update(label.as_bytes());
            hasher.update(&(value.len() as u64).to_le_bytes());
            hasher.update(value);
        }
        assert_eq!(base().as_bytes(), hasher.finalize().as_bytes());
    }

    /// The expected key is a literal, so that no code of this crate takes part in the expectation.
    #[test]
    fn key_is_stable() {
        assert_eq!(
            base().to_string(),
            "d00663caf8a47a0971a7b47ec34929eb19f350fb420bc7ae764df7a6d2df59a2"
        );
    }

    /// Returns the content key of fixed inputs after `change`.
    fn content(change: impl for<'a> FnOnce(&mut ContentInputs<'a>)) -> ContentKey {
        content_for("gfx942", "+sramecc", change)
    }

    fn content_for(target: &str, features: &str, change: impl for<'a> FnOnce(&mut ContentInputs<'a>)) -> ContentKey {
        let flags = flags(&["--iree-opt-level=O3"]);
        let compiled_for = compiled_for(target, features);
        let mut inputs = ContentInputs {
            mlir: b"module {}",
            compiled_for: &compiled_for,
            flags: &flags,
            compiler: "iree",
        };
        change(&mut inputs);
        ContentKey::of(&inputs)
    }

    #[test]
    fn each_input_changes_the_content_key() {
        let keys = [
            content(|_| ()),
            content(|inputs| inputs.mlir = b"module { }"),
            content_for("gfx950", "+sramecc", |_| ()),
            content_for("gfx942", "-sramecc", |_| ()),
            content(|inputs| inputs.flags = &[]),
            content(|inputs| inputs.compiler = "iree 2"),
        ];
        for (position, key) in keys.iter().enumerate() {
            assert!(!keys[..position].contains(key), "{position}");
        }
    }

    /// Hashed by hand, like [`key_is_the_documented_hash`].
    #[test]
    fn content_key_is_the_documented_hash() {
        let mut hasher = blake3::Hasher::new_derive_key("rotini jit-cache content key v1");
        let fields: [(&str, &[u8]); 7] = [
            ("entry_format", &[2, 0, 0, 0]),
            ("mlir", b"module {}"),
            ("target", b"gfx942"),
            ("target_features", b"+sramecc"),
            ("flag_count", &[1, 0, 0, 0, 0, 0, 0, 0]),
            ("flag", b"--iree-opt-level=O3"),
            ("compiler", b"iree"),
        ];
        for (label, value) in fields {
            hasher.update(&(label.len() as u64).to_le_bytes());
            hasher.update(label.as_bytes());
            hasher.update(&(value.len() as u64).to_le_bytes());
            hasher.update(value);
        }
        assert_eq!(content(|_| ()).as_bytes(), hasher.finalize().as_bytes());
    }

    #[test]
    fn text_is_a_key_only_as_it_is_written() {
        let text = base().to_string();
        assert_eq!(text.parse(), Ok(base()));
        for wrong in [
            "",
            "0",
            &text[1..],
            &text.to_uppercase(),
            &format!("{text}0"),
            &format!("+{}", &text[1..]),
            &format!("g{}", &text[1..]),
        ] {
            assert_eq!(wrong.parse::<Key>(), Err(KeyError), "{wrong}");
        }
    }
}
