//! What an instruction touches, as bit sets: made once at decode from its [`Uses`].

use smallvec::SmallVec;

use crate::{
    inst::{Address, Code, Condition, Inst, LaneOp, Range, Uses, sgpr},
    report::Class,
};

/// 64 rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// Rows from 64 times this
    pub(crate) index: usize,
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// The counters that an instruction raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    /// `vmcnt`
    pub(crate) vector: bool,
    /// `lgkmcnt`
    pub(crate) scalar: bool,
    /// May finish before or after its neighbours: only a count of 0 covers it.
    pub(crate) unordered: bool,
}

/// What an instruction touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) words: SmallVec<[Word; 2]>,
    pub(crate) scalars_read: u128,
    pub(crate) scalars_written: u128,
    pub(crate) reads_scc: bool,
    pub(crate) writes_scc: bool,
    /// Works on all lanes whatever EXEC is.
    pub(crate) all_lanes: bool,
    /// Writes less than the lanes of EXEC: `flow` has to look.
    pub(crate) special: bool,
    pub(crate) counters: Option<Counters>,
}

impl Footprint {
    pub(crate) fn new(inst: &Inst, uses: &Uses) -> Self {
        let mut footprint = Self {
            all_lanes: matches!(inst.code, Code::Mfma(_)),
            special: match &inst.code {
                Code::Lanes(op) => matches!(op, LaneOp::WriteLane(..)),
                Code::Valu(valu) => valu.dpp.is_some(),
                _ => false,
            },
            reads_scc: uses.reads_scc,
            counters: counters(inst),
            ..Self::default()
        };
        match inst.code {
            Code::Branch { condition, .. } => match condition {
                Condition::Scc(_) => footprint.reads_scc = true,
                Condition::VccZero(_) => footprint.scalars_read = scalar_mask(sgpr::VCC.into(), 2),
                // EXEC is initialised always: writing anything else to it is a fault.
                Condition::Always | Condition::ExecZero(_) => {}
            },
            Code::Salu { scc, .. } => footprint.writes_scc = scc,
            Code::SaveExec { .. } => footprint.writes_scc = true,
            _ => {}
        }
        for range in uses.reads.iter().chain(&uses.data) {
            footprint.add(range, false);
        }
        for range in &uses.writes {
            footprint.add(range, true);
        }
        footprint
    }

    fn add(&mut self, range: &Range, written: bool) {
        let (first, count) = (usize::from(range.first), usize::from(range.count));
        if !range.vector {
            let mask = scalar_mask(first, count);
            let set = if written {
                &mut self.scalars_written
            } else {
                &mut self.scalars_read
            };
            *set |= mask;
            return;
        }
        for row in first..first + count {
            let index = row / 64;
            let position = self.words.iter().position(|word| word.index == index);
            let position = position.unwrap_or_else(|| {
                self.words.push(Word {
                    index,
                    ..Word::default()
                });
                self.words.len() - 1
            });
            let word = &mut self.words[position];
            let set = if written { &mut word.written } else { &mut word.read };
            *set |= 1 << (row % 64);
        }
    }
}

/// Scalar registers as bits.
pub(crate) const fn scalar_mask(first: usize, count: usize) -> u128 {
    let ones = if count >= 128 { u128::MAX } else { (1 << count) - 1 };
    if first >= 128 { 0 } else { ones << first }
}

fn counters(inst: &Inst) -> Option<Counters> {
    let (vector, scalar, unordered) = match (inst.class, &inst.code) {
        (Class::Smem, _) => (false, true, true),
        (Class::Lds, _) => (false, true, false),
        // A flat access may go to LDS or to memory: it raises both, and its order among either is open.
        (_, Code::Vmem(vmem)) if matches!(vmem.address, Address::Flat { .. }) => (true, true, true),
        (Class::Load | Class::Store | Class::Scratch, _) => (true, false, false),
        _ => return None,
    };
    Some(Counters {
        vector,
        scalar,
        unordered,
    })
}
