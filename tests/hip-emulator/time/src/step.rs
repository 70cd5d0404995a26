//! The instructions of a record, by the resources that they occupy, in a text form of a few
//! characters per instruction.

use std::{fmt, str::FromStr};

use crate::RecordError;

/// Operand types of matrix instructions that differ in rate or in the power that they draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// bf16
    Bf16,
    /// f16
    F16,
    /// FP8, BF8 or i8
    Byte,
    /// xf32, f32 or f64
    Wide,
}

impl Operands {
    /// All types.
    pub const ALL: [Self; 4] = [Self::Bf16, Self::F16, Self::Byte, Self::Wide];

    /// Returns the suffix in a record's text. bf16 has none, because all matrix instructions in
    /// records from before this distinction are bf16.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Bf16 => "",
            Self::F16 => "h",
            Self::Byte => "q",
            Self::Wide => "w",
        }
    }
}

/// The resources that an instruction of a kernel occupies. Numbers about memory are means over its
/// executions in the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Vector arithmetic; the number of clocks that it occupies its SIMD
    Valu(u8),
    /// An exponential, which occupies its SIMD for 16 clocks
    Exp,
    /// Vector arithmetic on pairs of f32, or a dot product: occupies its SIMD for 4 clocks, and
    /// never runs concurrently with a matrix instruction
    Packed,
    /// Scalar arithmetic
    Salu,
    /// A matrix instruction
    Mfma {
        /// Clocks for which it occupies its SIMD's matrix unit
        clocks: u16,
        /// Type of the operands
        operands: Operands,
    },
    /// An LDS access
    Lds {
        /// Bytes of all active lanes
        bytes: f32,
        /// Additional turns caused by bank conflicts
        conflicts: f32,
    },
    /// A load from device memory
    Load {
        /// Registers of data per lane
        dwords: u8,
        /// Segments of 64 bytes that the lanes touch
        segments: f32,
        /// Lines of 128 bytes that the lanes touch
        lines: f32,
        /// Lines of them that miss the first-level cache
        missed: f32,
        /// Lines of them that no workgroup on the same die has loaded before
        fresh: f32,
        /// Share of the executions that miss at least one line
        misses: f32,
        /// Share of the executions with at least one fresh line
        freshes: f32,
    },
    /// A store to device memory
    Store {
        /// Registers of data per lane
        dwords: u8,
        /// Bytes of all active lanes
        bytes: f32,
        /// Segments of 64 bytes that the lanes touch
        segments: f32,
        /// Lines of 128 bytes that the lanes touch
        lines: f32,
    },
    /// An atomic on device memory
    Atomic {
        /// Active lanes
        lanes: f32,
        /// Lines of 128 bytes that the lanes touch
        lines: f32,
    },
    /// An access to private memory
    Scratch {
        /// Registers of data per lane
        dwords: u8,
        /// Active lanes
        lanes: f32,
    },
    /// A scalar load
    Scalar,
    /// A branch
    Branch,
    /// An `s_nop`, with its count
    Nop(u8),
    /// `s_waitcnt`: the numbers of accesses that may stay outstanding in `vmcnt` and `lgkmcnt`
    Wait(Option<u8>, Option<u8>),
    /// `s_barrier`
    Barrier,
    /// The end of the wave
    End,
}

/// An instruction, and its dependence on a matrix instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instruction {
    /// The resources that it occupies
    pub step: Step,
    /// Distance in instructions back to the matrix instruction whose result this one reads; 0 if
    /// there is none nearby
    pub after: u8,
}

/// A mean, formatted with its significant digits only.
struct Mean(f32);

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 100.0).round() / 100.0;
        if rounded >= 100.0 {
            write!(f, "{}", rounded.round())
        } else {
            write!(f, "{rounded}")
        }
    }
}

fn count(f: &mut fmt::Formatter<'_>, count: Option<u8>) -> fmt::Result {
    count.map_or(Ok(()), |count| write!(f, "{count}"))
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Step::Valu(clocks) => write!(f, "v{clocks}"),
            Step::Exp => write!(f, "e"),
            Step::Packed => write!(f, "p"),
            Step::Salu => write!(f, "s"),
            Step::Mfma { clocks, operands } => write!(f, "m{clocks}{}", operands.suffix()),
            Step::Lds { bytes, conflicts } => write!(f, "l{},{}", Mean(bytes), Mean(conflicts)),
            Step::Load {
                dwords,
                segments,
                lines,
                missed,
                fresh,
                misses,
                freshes,
            } => write!(
                f,
                "g{dwords},{},{},{},{},{},{}",
                Mean(segments),
                Mean(lines),
                Mean(missed),
                Mean(fresh),
                Mean(misses),
                Mean(freshes)
            ),
            Step::Store {
                dwords,
                bytes,
                segments,
                lines,
            } => write!(f, "t{dwords},{},{},{}", Mean(bytes), Mean(segments), Mean(lines)),
            Step::Atomic { lanes, lines } => write!(f, "a{},{}", Mean(lanes), Mean(lines)),
            Step::Scratch { dwords, lanes } => write!(f, "x{dwords},{}", Mean(lanes)),
            Step::Scalar => write!(f, "c"),
            Step::Branch => write!(f, "b"),
            Step::Nop(clocks) => write!(f, "n{clocks}"),
            Step::Wait(vector, scalar) => {
                write!(f, "w")?;
                count(f, vector)?;
                write!(f, ",")?;
                count(f, scalar)
            }
            Step::Barrier => write!(f, "B"),
            Step::End => write!(f, "E"),
        }?;
        match self.after {
            0 => Ok(()),
            after => write!(f, ":{after}"),
        }
    }
}

impl FromStr for Instruction {
    type Err = RecordError;

    fn from_str(text: &str) -> Result<Self, RecordError> {
        let wrong = || RecordError::Step(text.to_owned());
        let (body, after) = text.split_once(':').unwrap_or((text, "0"));
        let after = after.parse().map_err(|_| wrong())?;
        let mut letters = body.chars();
        let kind = letters.next().ok_or_else(wrong)?;
        let fields: Vec<&str> = match letters.as_str() {
            "" => Vec::new(),
            rest => rest.split(',').collect(),
        };
        let small = |index: usize| -> Result<u8, RecordError> {
            let field: &&str = fields.get(index).ok_or_else(wrong)?;
            field.parse().map_err(|_| wrong())
        };
        let mean = |index: usize| -> Result<f32, RecordError> {
            let field: &&str = fields.get(index).ok_or_else(wrong)?;
            let value: f32 = field.parse().map_err(|_| wrong())?;
            if value.is_finite() && value >= 0.0 {
                Ok(value)
            } else {
                Err(wrong())
            }
        };
        let maybe = |index: usize| match fields.get(index) {
            Some(&"") => Ok(None),
            _ => small(index).map(Some),
        };
        let (step, taken) = match kind {
            'v' => (Step::Valu(small(0)?), 1),
            'e' => (Step::Exp, 0),
            'p' => (Step::Packed, 0),
            's' => (Step::Salu, 0),
            'm' => {
                let field = fields.first().copied().unwrap_or_default();
                let digits = field.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
                let suffix = field.get(digits.len()..).unwrap_or_default();
                let operands = Operands::ALL.into_iter().find(|operands| operands.suffix() == suffix);
                let clocks = digits.parse().map_err(|_| wrong())?;
                let operands = operands.ok_or_else(wrong)?;
                (Step::Mfma { clocks, operands }, 1)
            }
            'l' => {
                let (bytes, conflicts) = (mean(0)?, mean(1)?);
                (Step::Lds { bytes, conflicts }, 2)
            }
            'g' => {
                let load = Step::Load {
                    dwords: small(0)?,
                    segments: mean(1)?,
                    lines: mean(2)?,
                    missed: mean(3)?,
                    fresh: mean(4)?,
                    misses: mean(5)?,
                    freshes: mean(6)?,
                };
                (load, 7)
            }
            't' => {
                let store = Step::Store {
                    dwords: small(0)?,
                    bytes: mean(1)?,
                    segments: mean(2)?,
                    lines: mean(3)?,
                };
                (store, 4)
            }
            'a' => {
                let (lanes, lines) = (mean(0)?, mean(1)?);
                (Step::Atomic { lanes, lines }, 2)
            }
            'x' => {
                let (dwords, lanes) = (small(0)?, mean(1)?);
                (Step::Scratch { dwords, lanes }, 2)
            }
            'c' => (Step::Scalar, 0),
            'b' => (Step::Branch, 0),
            'n' => (Step::Nop(small(0)?), 1),
            'w' => (Step::Wait(maybe(0)?, maybe(1)?), 2),
            'B' => (Step::Barrier, 0),
            'E' => (Step::End, 0),
            _ => return Err(wrong()),
        };
        if fields.len() == taken {
            Ok(Self { step, after })
        } else {
            Err(wrong())
        }
    }
}

/// Formats instructions as text. Equal neighbours are written once, with a count.
pub(crate) fn write(instructions: &[Instruction]) -> String {
    let mut words: Vec<(String, usize)> = Vec::new();
    for instruction in instructions {
        let word = instruction.to_string();
        match words.last_mut() {
            Some((last, count)) if *last == word => *count += 1,
            _ => words.push((word, 1)),
        }
    }
    let words = words.into_iter().map(|(word, count)| match count {
        1 => word,
        _ => format!("{word}*{count}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Parses the text that [`write`] produces.
pub(crate) fn read(text: &str) -> Result<Vec<Instruction>, RecordError> {
    /// More instructions than any kernel has.
    const MOST: usize = 1 << 20;
    let mut all = Vec::new();
    for word in text.split_ascii_whitespace() {
        let (word, count) = word.split_once('*').unwrap_or((word, "1"));
        let count: usize = count.parse().map_err(|_| RecordError::Step(word.to_owned()))?;
        if all.len() + count.min(MOST) > MOST {
            return Err(RecordError::Long);
        }
        all.extend(std::iter::repeat_n(word.parse::<Instruction>()?, count));
    }
    Ok(all)
}
