//! Serialized execution contexts: code and everything that is needed to load it in a process
//! without a compiler and without a cache.
//!
//! | Bytes | Content |
//! |---|---|
//! | 8 | magic, `\x89rotctx\n` |
//! | 4 | version of the rest and of compiled code's calling convention, little-endian |
//! | 32 | BLAKE3 of magic, version and everything that follows |
//! | the rest | header in postcard, then the code, then the code for other shapes |
//!
//! Reading takes nothing on trust: bytes that are truncated, extended or changed anywhere are
//! reported as damaged, and only intact bytes are checked for whether they fit the device. The
//! checksum does not protect against malice: the code runs with all rights of the process, so the
//! bytes must come from a source that is trusted as much as that of a library.

use crate::error::Error;
use bytes::Bytes;
use rotini_cache::{CodeFacts, CompiledFor, Key, KeyInputs};
use rotini_emit::{Argument, Signature};
use rotini_graph::{Bindings, DataType, SlotRole};
use serde::{Deserialize, Serialize};

/// Starts with a byte that is not ASCII and ends with a newline, as in cache entries, so that a
/// text conversion is detected.
const MAGIC: [u8; 8] = *b"\x89rotctx\n";
/// Format version. Raised with every change to the header, or to what [`Signature`] says of the
/// compiled function.
const VERSION: u32 = 2;
const HASH: usize = blake3::OUT_LEN;

/// Compiled code, with everything that another process needs to load it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portable {
    /// Producer, target, workspace and dispatches of the code.
    pub facts: CodeFacts,
    /// Operations of one execution, roughly.
    pub operations: u64,
    /// The arguments: element types and extents, which give their spans, and which of them are
    /// written, which decides which may overlap.
    pub signature: Signature,
    /// The vmfb.
    pub code: Bytes,
}

/// The additional state of a context whose graph has dynamic shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerializedShapes {
    /// The graph as the host gave it.
    pub graph: Vec<u8>,
    /// Bytes of workspace for all shapes.
    pub workspace_bytes: u64,
    /// The code of each other set of shapes, with the shapes as numbers.
    pub known: Vec<(Vec<i64>, Portable)>,
}

/// A deserialized context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serialized {
    /// The code.
    pub portable: Portable,
    /// The caller's uids and labels.
    pub bindings: Bindings,
    /// The state for dynamic shapes, if the graph has them.
    pub shapes: Option<SerializedShapes>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    producer: String,
    compiled_for: CompiledFor,
    /// The caller's uids and labels, in the order of the arguments.
    tensors: Vec<(i64, String)>,
    function: Function,
    shapes: Option<Shapes>,
}

/// [`SerializedShapes`] without the code.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Shapes {
    graph: Vec<u8>,
    workspace_bytes: u64,
    known: Vec<Known>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    shapes: Vec<i64>,
    producer: String,
    function: Function,
}

/// The properties that two pieces of interchangeable loaded code share, apart from the code itself.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Function {
    operations: u64,
    workspace_bytes: u64,
    dispatches: u32,
    arguments: Vec<Slot>,
    code_bytes: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Slot {
    dtype: DataType,
    shape: Vec<i64>,
    role: SlotRole,
    packed: bool,
}

impl Function {
    fn of(portable: &Portable) -> Self {
        let arguments = portable.signature.arguments.iter();
        Function {
            operations: portable.operations,
            workspace_bytes: portable.facts.workspace_bytes,
            dispatches: portable.facts.dispatches,
            arguments: arguments
                .map(|argument| Slot {
                    dtype: argument.dtype,
                    shape: argument.shape.clone(),
                    role: argument.role,
                    packed: argument.packed,
                })
                .collect(),
            code_bytes: portable.code.len() as u64,
        }
    }

    fn signature(&self) -> Signature {
        let arguments = self.arguments.iter().map(|slot| Argument {
            role: slot.role,
            dtype: slot.dtype,
            shape: slot.shape.clone(),
            packed: slot.packed,
        });
        Signature {
            arguments: arguments.collect(),
        }
    }
}

impl Portable {
    /// Returns the key of this code once it is loaded. The key is computed from the code itself,
    /// never from what the bytes claim, so that this code is never mistaken for the code that
    /// rotini compiled for a graph.
    ///
    /// # Errors
    ///
    /// Only if memory runs out.
    pub fn key(&self) -> Result<Key, Error> {
        let mut content = postcard::to_stdvec(&Function::of(self)).map_err(internal)?;
        content.extend(blake3::hash(&self.code).as_bytes());
        Ok(Key::of(&KeyInputs {
            graph: &content,
            compiled_for: &self.facts.compiled_for,
            // Not the emitter's fingerprint, because the code exists already.
            emitter: "serialized execution context",
            flags: &[],
            compiler: &self.facts.producer,
        }))
    }

    /// Serializes a context.
    ///
    /// # Errors
    ///
    /// Only if memory runs out.
    pub fn encode(&self, tensors: Vec<(i64, String)>, shapes: Option<&SerializedShapes>) -> Result<Vec<u8>, Error> {
        let known = |(shapes, portable): &(Vec<i64>, Portable)| Known {
            shapes: shapes.clone(),
            producer: portable.facts.producer.clone(),
            function: Function::of(portable),
        };
        let header = Header {
            producer: self.facts.producer.clone(),
            compiled_for: self.facts.compiled_for.clone(),
            tensors,
            function: Function::of(self),
            shapes: shapes.map(|shapes| Shapes {
                graph: shapes.graph.clone(),
                workspace_bytes: shapes.workspace_bytes,
                known: shapes.known.iter().map(known).collect(),
            }),
        };
        let header = postcard::to_stdvec(&header).map_err(internal)?;
        let others = shapes.into_iter().flat_map(|shapes| &shapes.known);
        let mut content: Vec<&[u8]> = vec![&header, &self.code];
        content.extend(others.map(|(_, portable)| &portable.code[..]));
        let hash = checksum(VERSION, &content);
        let mut bytes = [&MAGIC[..], &VERSION.to_le_bytes(), hash.as_bytes()].concat();
        bytes.extend(content.concat());
        Ok(bytes)
    }

    /// Reads the code of a function from the beginning of `rest`.
    fn read(function: &Function, producer: String, header: &Header, rest: &mut &[u8]) -> Option<Self> {
        let (code, behind) = rest.split_at_checked(usize::try_from(function.code_bytes).ok()?)?;
        *rest = behind;
        Some(Portable {
            facts: CodeFacts {
                producer,
                compiled_for: header.compiled_for.clone(),
                workspace_bytes: function.workspace_bytes,
                dispatches: function.dispatches,
            },
            operations: function.operations,
            signature: function.signature(),
            code: Bytes::copy_from_slice(code),
        })
    }
}

impl Serialized {
    /// Decodes a serialized context.
    ///
    /// # Errors
    ///
    /// [`Error::DamagedContext`], or [`Error::ForeignContext`] for an intact context of another
    /// format version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = Error::DamagedContext;
        let (magic, rest) = bytes.split_first_chunk().ok_or(damaged("it ends before its content"))?;
        if *magic != MAGIC {
            return Err(damaged("it does not begin as one of rotini's does"));
        }
        let (version, rest) = rest.split_first_chunk().ok_or(damaged("it ends before its content"))?;
        let version = u32::from_le_bytes(*version);
        let (hash, content) = rest
            .split_first_chunk::<HASH>()
            .ok_or(damaged("it ends before its content"))?;
        if checksum(version, &[content]) != blake3::Hash::from_bytes(*hash) {
            return Err(damaged("it does not match its checksum"));
        }
        if version != VERSION {
            return Err(Error::ForeignContext(format!(
                "its version is {version}, and this is version {VERSION}"
            )));
        }
        let (header, rest) =
            postcard::take_from_bytes::<Header>(content).map_err(|_| damaged("its header cannot be read"))?;
        Self::assemble(&header, rest).ok_or(damaged("its parts do not fit together"))
    }

    fn assemble(header: &Header, mut rest: &[u8]) -> Option<Self> {
        let arguments = &header.function.arguments;
        let portable = Portable::read(&header.function, header.producer.clone(), header, &mut rest)?;
        let shapes = match &header.shapes {
            None => None,
            Some(shapes) => {
                let mut known = Vec::with_capacity(shapes.known.len().min(rest.len()));
                for other in &shapes.known {
                    // The arguments must be the same except for their shapes, so that the same uids
                    // bind to the same arguments.
                    let is_same = |(a, b): (&Slot, &Slot)| (a.dtype, a.role) == (b.dtype, b.role);
                    let others = &other.function.arguments;
                    if others.len() != arguments.len() || !others.iter().zip(arguments).all(is_same) {
                        return None;
                    }
                    let portable = Portable::read(&other.function, other.producer.clone(), header, &mut rest)?;
                    known.push((other.shapes.clone(), portable));
                }
                Some(SerializedShapes {
                    graph: shapes.graph.clone(),
                    workspace_bytes: shapes.workspace_bytes,
                    known,
                })
            }
        };
        if !rest.is_empty() || arguments.len() != header.tensors.len() {
            return None;
        }
        let (uids, labels) = header.tensors.iter().cloned().unzip();
        Some(Serialized {
            portable,
            bindings: Bindings {
                uids,
                labels,
                ..Bindings::default()
            },
            shapes,
        })
    }
}

fn checksum(version: u32, content: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&MAGIC).update(&version.to_le_bytes());
    for part in content {
        hasher.update(part);
    }
    hasher.finalize()
}

fn internal(error: postcard::Error) -> Error {
    Error::Internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    fn shapes(portable: &Portable) -> SerializedShapes {
        let mut smaller = portable.clone();
        smaller.code = Bytes::from_static(b"code of a smaller one");
        smaller.signature.arguments[0].shape[0] = 1;
        SerializedShapes {
            graph: b"graph".to_vec(),
            workspace_bytes: 77,
            known: vec![(vec![1, 2, 3], smaller)],
        }
    }

    fn some() -> (Portable, Vec<(i64, String)>) {
        let argument = |role, shape: &[i64]| Argument {
            role,
            dtype: DataType::F16,
            shape: shape.to_vec(),
            packed: role == SlotRole::Input,
        };
        let portable = Portable {
            facts: CodeFacts {
                producer: "rotini with a compiler".into(),
                compiled_for: CompiledFor {
                    target: "gfx942".into(),
                    features: "+xnack".into(),
                },
                workspace_bytes: 1 << 40,
                dispatches: 3,
            },
            operations: 12,
            signature: Signature {
                arguments: vec![
                    argument(SlotRole::Input, &[2, 3]),
                    argument(SlotRole::Output, &[i64::MAX]),
                ],
            },
            code: Bytes::from_static(b"machine code"),
        };
        (portable, vec![(-1, "x".into()), (i64::MAX, "y \u{1F980}".into())])
    }

    fn status(bytes: &[u8]) -> Status {
        Serialized::decode(bytes).map(drop).unwrap_err().status()
    }

    #[test]
    fn what_is_written_is_read() {
        let (portable, tensors) = some();
        for shapes in [None, Some(shapes(&portable))] {
            let bytes = portable.encode(tensors.clone(), shapes.as_ref()).unwrap();
            let read = Serialized::decode(&bytes).unwrap();
            assert_eq!(read.portable, portable);
            assert_eq!(read.shapes, shapes);
            let read: Vec<_> = read.bindings.uids.into_iter().zip(read.bindings.labels).collect();
            assert_eq!(read, tensors);
        }
    }

    /// Pins the order of the header's fields in the bytes, which must not change with the structs
    /// in memory.
    #[test]
    fn a_header_is_written_field_by_field() {
        let (portable, tensors) = some();
        let bytes = portable.encode(tensors.clone(), None).unwrap();
        let target = ("rotini with a compiler", "gfx942", "+xnack");
        let numbers = (12_u64, 1_u64 << 40, 3_u32, Function::of(&portable).arguments, 12_u64);
        let header = postcard::to_stdvec(&(target, tensors, numbers, None::<u8>)).unwrap();
        assert_eq!(bytes[12 + HASH..], [&header[..], b"machine code"].concat());
    }

    #[test]
    fn any_change_is_damage() {
        let (portable, tensors) = some();
        let bytes = portable.encode(tensors, Some(&shapes(&portable))).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                assert_eq!(status(&bytes), Status::InvalidValue, "byte {at}, bit {bit}");
            }
            assert_eq!(status(&bytes[..at]), Status::InvalidValue, "{at} bytes");
        }
        assert_eq!(status(&[&bytes[..], b"\0"].concat()), Status::InvalidValue);
    }

    /// Bytes of a later version are intact, but not in this version's format.
    #[test]
    fn another_version_is_foreign() {
        let content = b"whatever a later version has here";
        let version = VERSION + 1;
        let hash = checksum(version, &[content]);
        let bytes = [&MAGIC[..], &version.to_le_bytes(), hash.as_bytes(), content].concat();
        assert_eq!(status(&bytes), Status::NotApplicable);
    }

    /// A checksum does not prove where bytes come from: contradictory parts are detected even if it
    /// matches.
    #[test]
    fn parts_have_to_fit() {
        let sealed = |header: &Header, code: &[u8]| {
            let header = postcard::to_stdvec(header).unwrap();
            let hash = checksum(VERSION, &[&header, code]);
            [&MAGIC[..], &VERSION.to_le_bytes(), hash.as_bytes(), &header, code].concat()
        };
        let (portable, tensors) = some();
        let header = |tensors: &[(i64, String)]| Header {
            producer: String::new(),
            compiled_for: CompiledFor::from("cpu".to_owned()),
            tensors: tensors.to_vec(),
            function: Function::of(&portable),
            shapes: None,
        };
        assert!(Serialized::decode(&sealed(&header(&tensors), &portable.code)).is_ok());
        assert_eq!(status(&sealed(&header(&tensors), b"short")), Status::InvalidValue);
        assert_eq!(
            status(&sealed(&header(&tensors[..1]), &portable.code)),
            Status::InvalidValue
        );
    }

    #[test]
    fn keys_tell_code_apart() {
        let (portable, _) = some();
        let key = portable.key().unwrap();
        let other = Portable {
            code: Bytes::from_static(b"machine c0de"),
            ..portable.clone()
        };
        let larger = Portable {
            operations: 13,
            ..portable
        };
        assert!(other.key().unwrap() != key && larger.key().unwrap() != key);
    }
}
