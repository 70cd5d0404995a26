//! Small kernels in assembler text, run as launches: memory, scalar arithmetic, strict mode, the
//! report.
//!
//! | Module | Owns |
//! |---|---|
//! | `uninitialised` | uses of what nobody wrote, and the kernel without them |
//! | `strict` | each other kind of defect and the kernel without it |
//! | `memory` | every width and address form of loads and stores |
//! | `atomics` | atomics of device memory and LDS |
//! | `scalar` | scalar opcodes against a second model, and mutants of them |
//! | `division` | division as compilers spell it, against IEEE's |
//! | `figures` | the report and occupancy |
//! | `samples` | what is counted for the time model |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot be set up has failed; mutants are printed"
)]

mod atomics;
mod division;
mod figures;
mod memory;
mod samples;
mod scalar;
mod strict;
mod uninitialised;

use std::sync::Mutex;

use crate::{Block, Fault, Kernel, Launch, Memory, Report, Sample, Trap};

/// Device addresses of the buffers of a [`Test`].
const BUFFERS: u64 = 0x1_0000_0000;

/// Sets `v1` to the byte offset of a lane's dword.
const LANE: &str = "v_lshlrev_b32_e32 v1, 2, v0\n";

/// A launch of a kernel whose arguments are the addresses of its buffers.
struct Test {
    text: String,
    lds: u32,
    scratch: u32,
    grid: u32,
    lanes: u32,
    strict: bool,
    /// If set, `s[0:1]` hold the address of the dispatch packet, and `s[2:3]` that of the arguments
    packet: bool,
    threads: usize,
    order: Option<u64>,
    limit: Option<u64>,
    sample: Option<Sample>,
    buffers: Vec<Vec<u8>>,
}

/// Buffers with a gap of 4 GiB between them.
struct Arena(Mutex<Vec<(*mut u8, usize)>>);

// SAFETY: the pointers refer to buffers that outlive the launch, and only the emulator dereferences
// them.
unsafe impl Sync for Arena {}

impl Memory for Arena {
    fn block(&self, address: u64) -> Option<Block> {
        let index = usize::try_from((address / BUFFERS).checked_sub(1)?).ok()?;
        let (host, length) = *self.0.lock().unwrap().get(index)?;
        (address % BUFFERS < length as u64).then_some(Block {
            address: (index as u64 + 1) * BUFFERS,
            bytes: length as u64,
            host,
        })
    }
}

/// A test whose kernel is `prologue`, `text` and the end. The prologue loads up to four addresses
/// to `s[4:11]`.
fn test(text: &str) -> Test {
    Test {
        text: format!("s_load_dwordx8 s[4:11], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n{text}\ns_endpgm"),
        lds: 0,
        scratch: 0,
        grid: 1,
        lanes: 64,
        strict: true,
        packet: false,
        threads: 1,
        order: None,
        limit: None,
        sample: None,
        buffers: vec![vec![0; 4096]; 2],
    }
}

impl Test {
    fn lds(self, lds: u32) -> Self {
        Self { lds, ..self }
    }

    fn scratch(self, scratch: u32) -> Self {
        Self { scratch, ..self }
    }

    fn lanes(self, lanes: u32) -> Self {
        Self { lanes, ..self }
    }

    fn buffers(self, buffers: Vec<Vec<u8>>) -> Self {
        Self { buffers, ..self }
    }

    /// Runs the kernel; the buffers then hold its results.
    fn launch(&mut self) -> Result<Report, Fault> {
        let mut kernel = Kernel::assembled(&self.text, self.lds, self.scratch).unwrap();
        if self.packet {
            (kernel.setup.packet, kernel.setup.user_scalars) = (true, 4);
        }
        let mut kernarg: Vec<u8> = (1..=4_u64).flat_map(|n| (n * BUFFERS).to_le_bytes()).collect();
        kernarg.extend([0; 32]);
        let arena = self.buffers.iter_mut().map(|b| (b.as_mut_ptr(), b.len())).collect();
        Launch {
            kernel: &kernel,
            grid: [self.grid, 1, 1],
            block: [self.lanes, 1, 1],
            dynamic_lds: 0,
            kernarg: &kernarg,
            memory: &Arena(Mutex::new(arena)),
            strict: self.strict,
            threads: self.threads,
            order: self.order,
            limit: self.limit,
            sample: self.sample,
        }
        .run()
    }

    /// Returns the text of the instruction that trapped, and the trap.
    fn trap(mut self) -> Option<(String, Trap)> {
        match self.launch() {
            Ok(_) => None,
            Err(Fault::Trap { instruction, trap, .. }) => Some((instruction, trap)),
            Err(fault) => panic!("{fault}"),
        }
    }

    /// Runs the kernel and returns the second buffer as dwords.
    fn words(mut self) -> Vec<u32> {
        if let Err(fault) = self.launch() {
            panic!("{fault}");
        }
        self.buffers[1]
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| u32::from_le_bytes(*b))
            .collect()
    }
}

/// Checks that a defect is reported at the given instruction, and that the corrected kernel runs.
fn defect(broken: Test, instruction: &str, expected: &Trap, corrected: Test) {
    let text = broken.text.clone();
    let (at, trap) = broken.trap().unwrap_or_else(|| panic!("not found:\n{text}"));
    assert_eq!((at.as_str(), &trap), (instruction, expected), "{text}");
    let text = corrected.text.clone();
    if let Some(found) = corrected.trap() {
        panic!("{found:?} in the corrected kernel:\n{text}");
    }
}

const fn uninitialised(vector: bool, register: u16, lane: u32) -> Trap {
    Trap::Uninitialised { vector, register, lane }
}
