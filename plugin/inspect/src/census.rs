//! Counts of instructions by class and width: of a whole kernel, and of its hottest loop.

use crate::{
    class::Class,
    decode::{self, DecodeError, Instruction},
    matrix,
};
use std::collections::BTreeMap;

/// Instructions by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census(pub BTreeMap<Class, u64>);

/// Clocks for which the instructions of one wave occupy each unit at its full rate, without
/// conflicts. LDS and the address unit serve four SIMDs, so their clocks are multiplied by four.
/// The largest of these numbers bounds a compute unit whose SIMDs all run such waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The matrix unit of a SIMD
    pub matrix: u64,
    /// The vector unit of a SIMD
    pub vector: u64,
    /// LDS of a compute unit
    pub lds: u64,
    /// The address unit of a compute unit, for loads and stores
    pub addresses: u64,
}

impl Clocks {
    /// Returns each unit's name and clocks.
    #[must_use]
    pub const fn named(self) -> [(&'static str, u64); 4] {
        [
            ("matrix units", self.matrix),
            ("vector units", self.vector),
            ("LDS", self.lds),
            ("addresses of loads and stores", self.addresses),
        ]
    }

    /// Returns the name of the unit that is busy longest; `None` if no unit is busy.
    #[must_use]
    pub fn most(self) -> Option<&'static str> {
        let all = self.named().into_iter().filter(|&(_, clocks)| clocks > 0);
        all.max_by_key(|&(_, clocks)| clocks).map(|(name, _)| name)
    }
}

impl Census {
    fn of<'a>(instructions: impl IntoIterator<Item = &'a Instruction>) -> Self {
        let mut counts = BTreeMap::new();
        for instruction in instructions {
            *counts.entry(instruction.class).or_default() += 1;
        }
        Self(counts)
    }

    /// Returns the number of all instructions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the number of instructions whose class satisfies `is`.
    pub fn count(&self, is: impl Fn(Class) -> bool) -> u64 {
        let of_class = self.0.iter().filter(|&(&class, _)| is(class));
        of_class.map(|(_, count)| count).sum()
    }

    /// Returns the number of matrix instructions.
    #[must_use]
    pub fn matrix(&self) -> u64 {
        self.count(|class| matches!(class, Class::Matrix(_)))
    }

    /// Returns the operations of a wave's matrix instructions.
    #[must_use]
    pub fn operations(&self) -> u64 {
        let of = |(class, count): (&Class, &u64)| match class {
            Class::Matrix(name) => matrix::operations(name) * count,
            _ => 0,
        };
        self.0.iter().map(of).sum()
    }

    /// Returns the clocks for which the instructions occupy each unit.
    #[must_use]
    pub fn clocks(&self) -> Clocks {
        /// Lanes of a wave, SIMDs of a compute unit
        const LANES: u64 = 64;
        const SIMDS: u64 = 4;
        let mut clocks = Clocks {
            matrix: 0,
            vector: 0,
            lds: 0,
            addresses: 0,
        };
        for (&class, &count) in &self.0 {
            match class {
                Class::Matrix(name) => clocks.matrix += count * matrix::clocks(name),
                Class::Vector | Class::Accumulator => clocks.vector += 4 * count,
                // LDS moves 128 bytes per clock.
                Class::LdsRead(bytes) | Class::LdsWrite(bytes) => {
                    clocks.lds += SIMDS * count * (LANES * u64::from(bytes)).div_ceil(128);
                }
                Class::LdsOther => clocks.lds += SIMDS * count * 2,
                // The address unit moves 64 bytes per clock, and takes at least a clock for each 16
                // lanes.
                Class::Load(bytes) | Class::Store(bytes) => {
                    clocks.addresses += SIMDS * count * (LANES * u64::from(bytes)).div_ceil(64).max(4);
                }
                Class::Atomic => clocks.addresses += SIMDS * count * LANES,
                _ => {}
            }
        }
        clocks
    }
}

/// The instruction counts of a kernel's machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The whole kernel
    pub all: Census,
    /// The hottest loop: among the innermost loops, the one with the most matrix instructions, then
    /// with the most instructions
    pub hottest: Option<Census>,
}

impl Code {
    /// Counts the instructions of a kernel.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with the first word that is not understood.
    pub fn of(code: &[u8]) -> Result<Self, DecodeError> {
        let instructions = decode::instructions(code)?;
        // A loop is a range of code that ends with a branch back to its beginning.
        let loops: Vec<&[Instruction]> = instructions
            .iter()
            .enumerate()
            .filter_map(|(index, branch)| {
                let begin = usize::try_from(branch.target?).ok()?;
                let first = instructions.binary_search_by_key(&begin, |other| other.at).ok()?;
                // A branch to the next instruction is no loop.
                instructions.get(first..=index).filter(|part| !part.is_empty())
            })
            .collect();
        let holds = |outer: &[Instruction], inner: &[Instruction]| {
            let range = |part: &[Instruction]| part.first().zip(part.last()).map(|(first, last)| (first.at, last.at));
            let (Some(outer), Some(inner)) = (range(outer), range(inner)) else {
                return false;
            };
            outer != inner && outer.0 <= inner.0 && inner.1 <= outer.1
        };
        let innermost = loops
            .iter()
            .filter(|outer| !loops.iter().any(|inner| holds(outer, inner)));
        let hottest = innermost
            .map(|part| Census::of(*part))
            .max_by_key(|census| (census.matrix(), census.total()));
        Ok(Self {
            all: Census::of(&instructions),
            hottest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_branch_to_the_next_instruction_is_no_loop() {
        let found = Code::of(&code(&[0xbf80_0000, 0xbf85_0000, 0xbf81_0000])).unwrap();
        assert_eq!((found.all.total(), found.hottest), (3, None));
    }

    /// Assembled by hand: a loop around two loops, the second of which has the matrix instruction.
    #[test]
    fn the_hottest_loop_is_the_innermost_with_matrix_instructions() {
        const NOP: u32 = 0xbf80_0000;
        const ADD: u32 = 0x6800_0300; // v_add_u32 v0, v0, v1
        const MFMA: [u32; 2] = [0xd3cd_0000, 0x0402_0d04]; // v_mfma_f32_16x16x16_f16
        let back = |words: u16| 0xbf85_0000 | u32::from(0_u16.wrapping_sub(words + 1));
        let found = Code::of(&code(&[
            NOP,
            // The outer loop extends from here to the last branch.
            ADD,
            ADD,
            ADD,
            back(2),
            MFMA[0],
            MFMA[1],
            ADD,
            back(3),
            ADD,
            back(9),
            0xbf81_0000,
        ]))
        .unwrap();
        let expected = |counts: &[(Class, u64)]| Census(counts.iter().copied().collect());
        let mfma = Class::Matrix("v_mfma_f32_16x16x16_f16");
        assert_eq!(
            found.hottest,
            Some(expected(&[(mfma, 1), (Class::Vector, 1), (Class::Branch, 1)]))
        );
        assert_eq!(
            found.all,
            expected(&[(mfma, 1), (Class::Vector, 5), (Class::Branch, 3), (Class::Other, 2)])
        );
        assert_eq!(found.all.operations(), 8192);
    }

    #[test]
    fn clocks_are_those_of_full_rates() {
        let census = Census(BTreeMap::from([
            (Class::Matrix("v_mfma_f32_16x16x16_f16"), 4),
            (Class::Vector, 3),
            (Class::LdsRead(16), 2),
            (Class::Load(16), 1),
            (Class::Store(1), 1),
        ]));
        let clocks = census.clocks();
        // Matrix: 16 clocks each. Vector: 4 each. LDS: 8 clocks each, on four SIMDs. Addresses: 16
        // clocks for the load and the minimum of 4 for the store, on four SIMDs.
        assert_eq!(
            (clocks.matrix, clocks.vector, clocks.lds, clocks.addresses),
            (64, 12, 64, 80)
        );
        assert_eq!(clocks.most(), Some("addresses of loads and stores"));
    }
}
