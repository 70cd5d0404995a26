//! Owns the schedules of the matrix products that rotini writes as kernels: tiles, subgroups,
//! buffers in LDS, split-K parts.
//!
//! A workgroup computes a tile of the result. It goes over the sum in steps of 128 bytes: 64 terms
//! of 16-bit floats. It loads the terms of both operands from memory to registers one step ahead
//! (two with two buffers), while it multiplies the terms of earlier steps, and then stores the
//! loaded terms to LDS.

use crate::{Machine, known};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Bytes of a row of an LDS tile: the terms of one step.
pub const STEP_BYTES: u64 = 128;
/// Rows and columns of a matrix instruction.
pub const INTRINSIC: u64 = 16;
/// Lanes of a subgroup.
pub const LANES: u64 = 64;
/// Maximum bytes of LDS of a workgroup.
const LDS: u64 = 65_536;

/// The schedule of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// Rows and columns of a workgroup's tile.
    pub tile: [u64; 2],
    /// Subgroups of a workgroup along the tile's rows and columns.
    pub subgroups: [u64; 2],
    /// Buffers in LDS, each for one step of the sum: with two, one is filled while the other is
    /// read.
    pub buffers: u64,
    /// Split-K parts: the workgroups that share a sum. A second kernel adds their partial sums.
    pub parts: u64,
}

impl Schedule {
    /// Returns the number of lanes per workgroup.
    #[must_use]
    pub fn lanes(&self) -> u64 {
        LANES * self.subgroups[0] * self.subgroups[1]
    }

    /// Returns the bytes of LDS per workgroup.
    #[must_use]
    pub fn lds(&self) -> u64 {
        (self.tile[0] + self.tile[1]) * STEP_BYTES * self.buffers
    }

    /// Returns whether a kernel can have this schedule: each subgroup has whole matrix
    /// instructions, and all lanes have the same share of each copy.
    #[must_use]
    pub fn is_legal(&self) -> bool {
        let chunks = |rows: u64| rows * STEP_BYTES / 16;
        let sides = self.tile.iter().zip(&self.subgroups);
        let is_small =
            |numbers: &[u64], most: u64| numbers.iter().all(|number| number.is_power_of_two() && *number <= most);
        is_small(&self.tile, 1024)
            && is_small(&self.subgroups, 16)
            && is_small(&[self.buffers], 2)
            && (1..=1024).contains(&self.parts)
            && self.lds() <= LDS
            && self.lanes() <= 1024
            && sides
                .clone()
                .all(|(tile, subgroups)| tile.is_multiple_of(subgroups * INTRINSIC))
            // A lane copies elements of one row at a time.
            && self.tile.iter().all(|&rows| rows <= self.lanes() && chunks(rows).is_multiple_of(self.lanes()))
    }

    /// Returns whether a launch can have the product's lanes, and each split-K part has at least
    /// one step.
    #[must_use]
    pub fn fits(&self, problem: &Problem) -> bool {
        let steps = problem.depth.div_ceil(STEP_BYTES);
        self.can_be_launched(problem) && (self.parts == 1 || steps.div_ceil(self.parts) * (self.parts - 1) < steps)
    }

    /// Returns whether a launch can have the product's lanes, fewer than 2^32. A split-K part may
    /// be without a step: it stores zeros.
    #[must_use]
    pub fn can_be_launched(&self, problem: &Problem) -> bool {
        groups(problem, self).saturating_mul(self.lanes()) < 1 << 32
    }

    /// Returns a readable name: `128x64_2x2_b1`, with `_p4` for four parts.
    #[must_use]
    pub fn word(&self) -> String {
        let ([rows, columns], [down, across]) = (self.tile, self.subgroups);
        let parts = if self.parts > 1 {
            format!("_p{}", self.parts)
        } else {
            String::new()
        };
        format!("{rows}x{columns}_{down}x{across}_b{}{parts}", self.buffers)
    }

    /// Returns the schedule with this [`word`](Self::word), if it is legal.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let mut fields = word.split('_');
        let mut pair = || {
            let (down, across) = fields.next()?.split_once('x')?;
            Some([down.parse().ok()?, across.parse().ok()?])
        };
        let (tile, subgroups) = (pair()?, pair()?);
        let buffers = fields.next()?.strip_prefix('b')?.parse().ok()?;
        let parts = fields
            .next()
            .map_or(Some(1), |parts| parts.strip_prefix('p')?.parse().ok())?;
        let schedule = Schedule {
            tile,
            subgroups,
            buffers,
            parts,
        };
        (fields.next().is_none() && schedule.is_legal()).then_some(schedule)
    }
}

impl Default for Schedule {
    /// Returns a schedule with one of the smallest tiles.
    fn default() -> Self {
        Schedule {
            tile: [32, 32],
            subgroups: [2, 2],
            buffers: 1,
            parts: 1,
        }
    }
}

/// The tiles and subgroups to choose from, the largest tiles first.
const TILES: [([u64; 2], [u64; 2]); 17] = [
    ([256, 128], [4, 2]),
    ([128, 256], [2, 4]),
    ([128, 128], [2, 2]),
    ([256, 64], [4, 1]),
    ([64, 256], [1, 4]),
    ([128, 64], [4, 2]),
    ([64, 128], [2, 4]),
    ([128, 64], [2, 2]),
    ([64, 128], [2, 2]),
    ([64, 64], [2, 4]),
    ([64, 64], [2, 2]),
    ([32, 128], [1, 4]),
    ([128, 32], [4, 1]),
    ([32, 64], [1, 2]),
    ([64, 32], [2, 1]),
    ([32, 32], [2, 2]),
    ([16, 64], [1, 2]),
];

/// Numbers of split-K parts to choose from. From 32 parts on, four lanes share the addition of a
/// result, so these numbers are multiples of eight.
pub const PARTS: [u64; 17] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 144, 192, 256, 288];
/// Maximum number of parts that a lane loads before it adds the first.
pub const PARTS_AT_ONCE: u64 = 32;
/// Limit of the workgroups per compute unit that split-K adds to those of the product's tiles.
const WAVES: u64 = 3;

/// The quantities of a product that its estimated time depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// Products in the batch.
    pub count: u64,
    /// Rows of a result.
    pub rows: u64,
    /// Columns of a result.
    pub columns: u64,
    /// Bytes of a row of the first operand: the terms of a sum times their size.
    pub depth: u64,
    /// Bytes of an element of the operands.
    pub element: u64,
    /// Bytes of an element of the stored result.
    pub stored: u64,
    /// Number of sums that read the same element of the first operand: the taps of a window.
    pub reuse: u64,
    /// For each operand, whether the terms of a sum are contiguous in memory.
    pub adjacent: [bool; 2],
}

/// Returns all schedules without split-K, whether they are legal or not.
pub fn candidates() -> impl Iterator<Item = Schedule> {
    TILES.iter().flat_map(|&(tile, subgroups)| {
        [1, 2].into_iter().map(move |buffers| Schedule {
            tile,
            subgroups,
            buffers,
            parts: 1,
        })
    })
}

/// Returns the schedule that was [found](crate::known) to be the fastest for this product, or else
/// the one with the best [estimate](estimated).
#[must_use]
pub fn choose(machine: &Machine, problem: &Problem) -> Option<Schedule> {
    known::schedule(machine, problem).or_else(|| estimated(machine, problem))
}

/// Returns the schedule that is estimated to be the fastest.
///
/// Among the schedules within 2 % of the least estimate, those with the smallest tile come first,
/// and of these the one with the most subgroups: estimates were seen to be too high for small tiles
/// and many subgroups.
#[must_use]
pub fn estimated(machine: &Machine, problem: &Problem) -> Option<Schedule> {
    ranked(machine, problem).first().map(|&(schedule, _)| schedule)
}

/// Returns all schedules of a product with their estimated microseconds, the [estimated] fastest
/// first.
#[must_use]
pub fn ranked(machine: &Machine, problem: &Problem) -> Vec<(Schedule, f64)> {
    /// Estimates up to this multiple of the least count as equally fast.
    const NEARLY: f64 = 1.02;
    let mut all: Vec<_> = timed(machine, problem).collect();
    all.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let least = all.first().map_or(0.0, |&(_, time)| time);
    let nearly = all.partition_point(|&(_, time)| time <= least * NEARLY);
    if let Some(nearly) = all.get_mut(..nearly) {
        nearly.sort_by_key(|(schedule, _)| (schedule.tile[0] * schedule.tile[1], Reverse(schedule.lanes())));
    }
    all
}

fn timed(machine: &Machine, problem: &Problem) -> impl Iterator<Item = (Schedule, f64)> {
    let all = candidates().flat_map(|schedule| parts(machine, problem, schedule));
    all.filter(Schedule::is_legal)
        .filter(|schedule| schedule.can_be_launched(problem))
        .map(|schedule| (schedule, estimate(machine, problem, &schedule)))
}

/// Returns a schedule without split-K, and the same with each number of parts that may be faster.
fn parts(machine: &Machine, problem: &Problem, schedule: Schedule) -> Vec<Schedule> {
    let steps = problem.depth.div_ceil(STEP_BYTES);
    let groups = groups(problem, &schedule);
    let mut all = vec![schedule];
    for parts in PARTS {
        // At least four steps per part, and no more workgroups than run at once.
        if parts * 4 <= steps && groups * (parts - 1) < WAVES * machine.units {
            all.push(Schedule { parts, ..schedule });
        }
    }
    all
}

/// Returns an upper bound of the number of partial sums of a split-K product with `results`
/// results.
///
/// A product of `groups` tiles has at most `groups · tile` results, and fewer than `1 + 3 · units /
/// groups` parts.
#[must_use]
pub fn most_shared(machine: &Machine, results: u64) -> u64 {
    let tile = TILES.iter().map(|([rows, columns], _)| rows * columns).max();
    let by_units = results.saturating_add(WAVES * machine.units * tile.unwrap_or(0));
    by_units.min(results.saturating_mul(PARTS[PARTS.len() - 1]))
}

fn groups(problem: &Problem, schedule: &Schedule) -> u64 {
    let [rows, columns] = schedule.tile;
    problem
        .count
        .saturating_mul(problem.rows.div_ceil(rows))
        .saturating_mul(problem.columns.div_ceil(columns))
        .saturating_mul(schedule.parts)
}

/// Returns the estimated microseconds of a product, by a closed form.
///
/// The constants are those that fit best the predictions of `rotini-time` for 920 kernels of
/// products and of ResNet-50's layers; `ADDING` was fitted again after that model learned that
/// dependent launches have a gap. The estimates of 441 products differ from its predictions by 14 %
/// (root mean square).
#[must_use]
pub fn estimate(machine: &Machine, problem: &Problem, schedule: &Schedule) -> f64 {
    /// Clocks per microsecond.
    const CLOCK: f64 = 2100.0;
    /// Bytes per clock that a compute unit reads from the second-level cache while all units read.
    const CACHE: f64 = 34.5;
    /// Bytes per clock that a compute unit reads from beyond the second-level cache.
    const BEYOND: f64 = 10.0;
    /// Bytes of a cache line.
    const LINE: f64 = 128.0;
    /// Bytes per clock that a compute unit stores of a tile of the result.
    const STORE: f64 = 7.1;
    /// Clocks from a load to its data, if the data is beyond the second-level cache.
    const LATENCY: f64 = 1880.0;
    /// Fixed clocks of a step, with one buffer and with two.
    const TURN: [f64; 2] = [1350.0, 330.0];
    /// Minimum clocks of a step, with one buffer and with two: with two buffers, the loads of a
    /// step are issued two steps ahead.
    const LOADED: [f64; 2] = [0.0, 900.0];
    /// Clocks of a load of a row of 128 bytes.
    const LOAD: f64 = 3.7;
    /// Fraction of the shorter of two overlapping kinds of work that the longer one does not hide;
    /// above 1 where waves wait for one another. The first pair is for a workgroup that is alone on
    /// its compute unit, the second for several; each pair is for one buffer and for two.
    const SHOWN: [[f64; 2]; 2] = [[1.72, 1.37], [1.19, 0.66]];
    /// Clocks of a lane per byte that it transposes in registers, for elements of one byte and of
    /// two; and the fraction of these clocks that other waves do not hide.
    const TURNED: [f64; 2] = [6.3, 3.0];
    const TURNED_SHOWN: f64 = 0.16;
    /// Time of adding the split-K parts without its memory traffic, in launches. By predictions of
    /// 223 products in parts, in which a launch waits for the one before it.
    const ADDING: f64 = 1.6;
    let [rows, columns] = schedule.tile.map(|extent| extent as f64);
    let [down, across] = schedule.subgroups.map(|count| count as f64);
    let subgroups = down * across;
    let steps = problem.depth.div_ceil(STEP_BYTES * schedule.parts) as f64;
    let groups = groups(problem, schedule) as f64;
    let registers = 40.0
        + rows * columns / (64.0 * subgroups)
        + (rows + columns) * 8.0 / (16.0 * subgroups) * schedule.buffers as f64
        + (rows / down + columns / across) / 16.0 * 8.0;
    let by_registers = (512.0 / registers).floor().max(1.0) * 4.0 / subgroups;
    let by_lds = (LDS / schedule.lds()) as f64;
    let resident = by_registers.min(by_lds).min(8.0).floor().max(1.0);
    let units = machine.units as f64;
    let each = (groups / units).ceil();
    let at_once = resident.min(each);

    // Clocks of a step of one workgroup.
    let matrix = rows * columns / 16.0;
    let lds = subgroups * (rows / down + columns / across) + rows + columns;
    let loads = LOAD * (rows + columns);
    let busy = (groups / units).min(1.0);
    // Where terms are not contiguous, lanes copy contiguous rows: those of a narrow tile are only a
    // part of a cache line.
    let brought = |extent: f64, adjacent: bool| {
        if adjacent {
            extent
        } else {
            extent.max(LINE / problem.element as f64)
        }
    };
    let [own, other] = problem.adjacent;
    let cache = (brought(rows, own) + brought(columns, other)) * STEP_BYTES as f64 / CACHE * busy;
    // The rows and columns of tiles that the concurrent workgroups of a die read for the first
    // time.
    let die = (at_once * units / 8.0).min(groups / 8.0).max(1.0);
    let tall = die.sqrt().min(problem.rows as f64 / rows).max(1.0);
    let wide = (die / tall).min(problem.columns as f64 / columns).max(1.0);
    let fresh = (tall * rows / problem.reuse as f64 + wide * columns) / die;
    let beyond = fresh * STEP_BYTES as f64 / BEYOND * busy;
    let of_buffers = |of: [f64; 2]| if schedule.buffers == 1 { of[0] } else { of[1] };
    let [one, several] = SHOWN.map(of_buffers);
    let shown = if at_once < 2.0 { one } else { several };
    let together = matrix.max(lds).max(loads).max(cache).max(beyond) + shown * matrix.min(lds.max(loads).max(cache));
    let turned = [(own, rows), (other, columns)].map(|(adjacent, rows)| if adjacent { 0.0 } else { rows });
    let turned = turned.iter().sum::<f64>() * STEP_BYTES as f64 / (LANES as f64 * subgroups);
    let turning = turned * if problem.element == 1 { TURNED[0] } else { TURNED[1] };
    let together = together + TURNED_SHOWN * turning * subgroups;
    let alone = (of_buffers(TURN) + matrix.max(lds)).max(of_buffers(LOADED)) + turning;
    let step = together.max(alone / at_once);
    let element = if schedule.parts > 1 { 4 } else { problem.stored };
    let storing = rows * columns * element as f64 / STORE * busy;
    let clocks = each * (steps * step + (0.3 * LATENCY + storing) / at_once);
    let results = problem.count as f64 * problem.rows as f64 * problem.columns as f64;
    let after = if schedule.parts > 1 {
        let turns = schedule.parts.div_ceil(PARTS_AT_ONCE) as f64;
        let moved = results * (4.0 * schedule.parts as f64 + problem.stored as f64) / machine.memory;
        ADDING * machine.launch + moved.max((turns - 1.0) * LATENCY / CLOCK)
    } else {
        0.35 * results * problem.stored as f64 / machine.memory
    };
    machine.launch + clocks / CLOCK + after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_candidates_are_legal() {
        for schedule in candidates() {
            let is_large = schedule.lds() > LDS;
            assert!(schedule.is_legal() || is_large, "{}", schedule.word());
        }
    }

    #[test]
    fn shared_sums_stay_below_their_bound() {
        let machine = Machine::of("mi300x").expect("it is known");
        for count in [1, 3, 64] {
            for [rows, columns] in [[1, 1], [1, 4096], [100, 16], [4096, 16], [512, 4608], [4096, 4096]] {
                for terms in [64, 1000, 6144, 1 << 20] {
                    let (depth, stored) = (2 * terms, 2);
                    let problem = Problem {
                        count,
                        rows,
                        columns,
                        depth,
                        element: 2,
                        stored,
                        reuse: 1,
                        adjacent: [true; 2],
                    };
                    let results = count * rows * columns;
                    for (schedule, _) in timed(machine, &problem) {
                        assert!(schedule.parts * results <= most_shared(machine, results), "{problem:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_word_says_all_of_a_schedule() {
        for schedule in candidates().filter(Schedule::is_legal) {
            for parts in [1, 12] {
                let schedule = Schedule { parts, ..schedule };
                assert_eq!(Schedule::parse(&schedule.word()), Some(schedule));
            }
        }
        for word in [
            "",
            "64x64",
            "64x64_2x2_b3",
            "0x64_2x2_b1",
            "64x64_0x2_b1",
            "64x64_2x2_b1_p0",
            "64x64_2x2_b1_p2_",
        ] {
            assert_eq!(Schedule::parse(word), None, "{word}");
        }
    }

    #[test]
    fn long_sums_with_few_results_are_shared() {
        let machine = Machine::of("mi300x").expect("it is known");
        let problem = Problem {
            count: 1,
            rows: 64,
            columns: 576,
            depth: 200_704,
            element: 2,
            stored: 2,
            reuse: 1,
            adjacent: [true; 2],
        };
        let schedule = choose(machine, &problem).expect("there are candidates");
        assert!(schedule.parts > 8, "{}", schedule.word());
    }
}
