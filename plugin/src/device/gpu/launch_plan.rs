//! Launch plans: recordings in the form in which they are replayed. A replay allocates nothing and
//! needs no lookups.

use super::driver::{Driver, Kernel};
use super::driver_error::DriverError;
use crate::device::Buffers;
use rotini_emit::Signature;
use rotini_graph::SlotRole;
use rotini_iree::runtime::{Address, Command, KernelArgument, Word as Number};
use std::ffi::c_void;

/// Maximum number of parameters of a kernel: IREE's drivers allow 16 pointers and 64 constants.
const MAX_PARAMETERS: usize = 80;

/// The steps of one execution, in order.
#[derive(Debug)]
pub(super) struct LaunchPlan {
    steps: Box<[Step]>,
}

#[derive(Debug)]
enum Step {
    Launch {
        kernel: Kernel,
        parameters: Box<[Word]>,
    },
    Fill {
        target: Word,
        pattern: Word,
        pattern_bytes: u8,
        count: usize,
    },
    Copy {
        source: Word,
        target: Word,
        bytes: usize,
    },
}

/// An eight-byte operand of a command.
#[derive(Clone, Copy, Debug)]
enum Word {
    /// A byte offset from the caller's pointer with this index.
    Argument(usize, u64),
    /// A byte offset from the caller's workspace.
    Workspace(u64),
    /// Half of the caller's scalar with this index: its bits from the given bit on. A kernel reads
    /// only the four low bytes of a number, which come first in memory.
    Scalar(usize, u32),
    /// An address or a constant.
    Fixed(u64),
}

// The driver reads a four-byte number through a pointer to the whole word.
const _: () = assert!(cfg!(target_endian = "little"));

impl LaunchPlan {
    /// Converts the commands of a function with these arguments, which are followed by the
    /// workspace.
    ///
    /// # Errors
    ///
    /// A description of the first command that cannot be replayed.
    pub(super) fn new(commands: &[Command], signature: &Signature) -> Result<Self, String> {
        let arguments = signature.arguments.len();
        let is_scalar = |index: &usize| {
            signature
                .arguments
                .get(*index)
                .is_some_and(|own| own.role == SlotRole::Scalar)
        };
        let scalars: Vec<usize> = (0..arguments).filter(is_scalar).collect();
        let number = |number: Number| match number {
            Number::Constant(constant) => Ok(Word::Fixed(constant.into())),
            Number::Number { index, high } => {
                let scalar = scalars.iter().position(|own| *own == index);
                let scalar = scalar.ok_or_else(|| format!("it uses parameter {index}, which is no number"))?;
                Ok(Word::Scalar(scalar, if high { 32 } else { 0 }))
            }
        };
        let word = |address: Address| match address {
            Address::Parameter { index, offset } if index < arguments => Ok(Word::Argument(index, offset)),
            Address::Parameter { index, offset } if index == arguments => Ok(Word::Workspace(offset)),
            Address::Parameter { index, .. } => Err(format!("it uses parameter {index}, which is no memory")),
            Address::Fixed(address) => Ok(Word::Fixed(address)),
        };
        let step = |command: &Command| {
            Ok(match command {
                Command::Launch(launch) => {
                    let count = launch.parameters.len();
                    if count > MAX_PARAMETERS {
                        return Err(format!("a kernel has {count} parameters"));
                    }
                    Step::Launch {
                        kernel: launch.into(),
                        parameters: launch
                            .parameters
                            .iter()
                            .map(|&value| match value {
                                KernelArgument::Address(address) => word(address),
                                KernelArgument::Word(word) => number(word),
                            })
                            .collect::<Result<_, _>>()?,
                    }
                }
                &Command::Fill {
                    target,
                    pattern,
                    pattern_bytes,
                    count,
                } => Step::Fill {
                    target: word(target)?,
                    pattern: number(pattern)?,
                    pattern_bytes,
                    count,
                },
                &Command::Copy { source, target, bytes } => Step::Copy {
                    source: word(source)?,
                    target: word(target)?,
                    bytes,
                },
            })
        };
        Ok(LaunchPlan {
            steps: commands.iter().map(step).collect::<Result<_, String>>()?,
        })
    }

    /// Returns the number of kernels that one execution launches.
    pub(super) fn launches(&self) -> usize {
        self.steps
            .iter()
            .filter(|step| matches!(step, Step::Launch { .. }))
            .count()
    }

    /// Enqueues all steps on a stream.
    ///
    /// # Errors
    ///
    /// The error of the first call that the driver refuses; the steps before it stay enqueued.
    ///
    /// # Safety
    ///
    /// The recording that the plan was made from is alive. There are as many pointers and scalars
    /// as the plan uses, and the pointers and the workspace are valid for the recorded sizes until
    /// the work is done. The stream's device is the one that the code is loaded on.
    pub(super) unsafe fn replay<D: Driver>(
        &self,
        driver: &D,
        stream: *mut c_void,
        buffers: &Buffers<'_>,
    ) -> Result<(), DriverError> {
        let resolve = |word: Word| match word {
            // In bounds by this function's contract.
            Word::Argument(index, offset) => {
                let pointer = buffers.pointers[index].addr() as u64;
                pointer.wrapping_add(offset)
            }
            Word::Workspace(offset) => (buffers.workspace.addr() as u64).wrapping_add(offset),
            // In bounds by this function's contract.
            Word::Scalar(index, shift) => buffers.scalars[index] >> shift,
            Word::Fixed(value) => value,
        };
        let mut values = [0_u64; MAX_PARAMETERS];
        let mut pointers = [std::ptr::null_mut::<c_void>(); MAX_PARAMETERS];
        for step in &self.steps {
            match step {
                Step::Launch { kernel, parameters } => {
                    for ((value, pointer), &word) in values.iter_mut().zip(&mut pointers).zip(parameters) {
                        *value = resolve(word);
                        *pointer = (&raw mut *value).cast();
                    }
                    // SAFETY: the parameters are those that were recorded for this kernel; the
                    // driver copies their values during the call.
                    unsafe { driver.launch(kernel, stream, pointers.as_mut_ptr())? };
                }
                &Step::Fill {
                    target,
                    pattern,
                    pattern_bytes,
                    count,
                } => {
                    // SAFETY: valid by this function's contract.
                    unsafe { driver.fill(resolve(target), resolve(pattern) as u32, pattern_bytes, count, stream)? };
                }
                &Step::Copy { source, target, bytes } => {
                    // SAFETY: as above.
                    unsafe { driver.copy(resolve(source), resolve(target), bytes, stream)? };
                }
            }
        }
        Ok(())
    }
}
