//! The state of a wave, and the data that a worker thread keeps between the waves it runs.

use crate::{
    executions::Executions,
    inst::{MFMA_SOURCE, Program, Scalar, sgpr},
    lanes::{In, Mode, Out, Row},
    memory::{Global, Lds},
    report::Report,
    strict::Tracker,
};

/// A wave of 64 lanes.
pub(crate) struct Wave {
    /// Vector registers, then accumulation registers
    pub(crate) rows: Vec<Row>,
    /// Scalar registers by the number of the encoding: 106 is VCC, 124 M0, 126 EXEC
    pub(crate) scalars: [u32; 128],
    pub(crate) scc: bool,
    /// Index of the next instruction
    pub(crate) pc: usize,
    pub(crate) mode: Mode,
    /// VGPR indexing, if it is on: offset and operands
    pub(crate) index: Option<(u16, u8)>,
    /// Private memory, lane by lane
    pub(crate) scratch: Vec<u8>,
    /// Strict mode: flags of its initialised bytes
    pub(crate) scratch_known: Vec<bool>,
    /// Number of instructions run in loops
    pub(crate) steps: u64,
    pub(crate) number: u32,
    pub(crate) tracker: Tracker,
}

impl Wave {
    /// Returns a wave with poisoned registers, so that reading an uninitialised one gives no
    /// plausible value.
    pub(crate) fn new(program: &Program, number: u32, scratch: u32) -> Self {
        let mut wave = Self {
            rows: vec![[0; 64]; usize::from(program.rows)],
            scalars: [0; 128],
            scc: false,
            pc: 0,
            mode: Mode(0),
            index: None,
            scratch: vec![0; scratch as usize * 64],
            scratch_known: vec![false; scratch as usize * 64],
            steps: 0,
            number,
            tracker: Tracker::default(),
        };
        wave.reset();
        wave
    }

    /// Resets the wave to the state before launch.
    pub(crate) fn reset(&mut self) {
        // A NaN as f32, f16 and bf16, and an out-of-range index
        const POISON: u32 = 0xffad_ffad;
        self.rows.fill([POISON; 64]);
        self.scalars.fill(POISON);
        self.scratch.fill(0xad);
        self.scratch_known.fill(false);
        self.steps = 0;
        self.scc = false;
        self.pc = 0;
        self.index = None;
        self.tracker.reset(self.rows.len());
    }

    #[inline]
    pub(crate) fn exec(&self) -> u64 {
        self.pair(sgpr::EXEC)
    }

    /// Returns 64 bits from two consecutive scalar registers.
    #[inline]
    pub(crate) fn pair(&self, first: u8) -> u64 {
        let first = usize::from(first & 0x7f);
        u64::from(self.scalars[first]) | u64::from(self.scalars[(first + 1) & 0x7f]) << 32
    }

    #[inline]
    pub(crate) fn set_pair(&mut self, first: u8, value: u64) {
        let first = usize::from(first & 0x7f);
        self.scalars[first] = value as u32;
        self.scalars[(first + 1) & 0x7f] = (value >> 32) as u32;
    }

    #[inline]
    pub(crate) fn scalar(&self, source: Scalar) -> u32 {
        match source {
            Scalar::Register(number) => self.scalars[usize::from(number & 0x7f)],
            Scalar::Constant(value) => value,
            Scalar::Scc => u32::from(self.scc),
        }
    }
}

/// Data that a worker thread keeps between waves.
pub(crate) struct Context<'a> {
    pub(crate) program: &'a Program,
    pub(crate) memory: Global<'a>,
    pub(crate) lds: Lds,
    /// Buffers for prepared source rows
    pub(crate) rows: Box<[Row; 6]>,
    pub(crate) out: Box<Out>,
    /// Copies of a matrix instruction's sources
    pub(crate) matrix: Box<[[Row; MFMA_SOURCE]; 2]>,
    pub(crate) report: Report,
    pub(crate) executions: Executions,
    /// Maximum number of instructions that a wave may run in loops
    pub(crate) limit: u64,
    /// Result of the last `s_memtime`
    pub(crate) clock: u64,
}

impl<'a> Context<'a> {
    pub(crate) fn new(program: &'a Program, memory: Global<'a>, lds: Lds, limit: u64) -> Self {
        Self {
            program,
            memory,
            lds,
            rows: Box::new([[0; 64]; 6]),
            out: Box::new(Out {
                r: [[0; 64]; 2],
                mask: 0,
            }),
            matrix: Box::new([[[0; 64]; MFMA_SOURCE]; 2]),
            report: Report::default(),
            executions: Executions::new(program),
            limit,
            clock: 0,
        }
    }
}

/// The row for a source that an opcode does not have.
pub(crate) static ZERO: Row = [0; 64];

impl<'a> In<'a> {
    pub(crate) fn empty(mode: Mode) -> Self {
        In {
            r: [&ZERO; 6],
            mask: 0,
            mode,
        }
    }
}
