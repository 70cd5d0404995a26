//! Schedules of fused row reductions: how the elements of a row are distributed over lanes.
//!
//! A lane takes runs of four contiguous elements; its next run is `lanes` runs further on. If the
//! runs of a lane fit into its registers, each is loaded once, however many passes over the row
//! there are; if not, each pass loads the runs again.

use crate::Machine;
use crate::gemm::LANES as SUBGROUP;

/// Elements of a run: those that a lane takes at once.
pub const RUN: u64 = 4;
/// Maximum number of lanes per workgroup.
const MOST_LANES: u64 = 1024;
/// Runs per lane of a long row, above which the row gets more lanes.
const RUNS: u64 = 4;
/// Maximum number of runs per lane of a short row. It is larger than [`RUNS`] because a fifth run
/// can leave fewer lanes without an element.
const MOST_RUNS: u64 = 5;
/// Maximum number of elements, of 32 bits each, that a lane keeps in registers: in the largest
/// workgroup, half of the lane's registers; and in other workgroups.
const KEPT: [u64; 2] = [64, 96];
/// Runs that a lane has in flight if it does not keep them.
const AT_ONCE: u64 = 4;
/// Maximum number of runs that a lane has in flight if it has several rows.
const MOST_TOGETHER: u64 = 8;
/// Minimum number of workgroups per compute unit for lanes to have several rows.
const GROUPS: u64 = 4;
/// Rows of at least this length are split into parts if there are two compute units or more per
/// row, because otherwise most units would be idle. The first length is for rows that are only
/// reduced. The second is for other rows, for which the additional launches pay off earlier. By
/// prediction, in f16: 32 rows of 65536 elements take 16.2 µs whole and 12.1 in parts (layernorm),
/// 21.6 and 13.6 (softmax), 4.5 and 6.0 (sum).
const LONG: [u64; 2] = [1 << 17, 40960];
/// Minimum number of elements of a part, maximum number of parts of a row, and the number of which
/// the elements of a part are a multiple.
const PART: u64 = 1 << 12;
const MOST_PARTS: u64 = 64;
const WHOLE: u64 = SUBGROUP * RUN;
/// Maximum number of elements of a row, so that a lane does not combine too many one after the
/// other.
const LONGEST: u64 = 1 << 20;

/// The sizes of a row reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The number of rows.
    pub rows: u64,
    /// Elements per row.
    pub length: u64,
    /// Tensors with all of these elements that the kernel reads.
    pub read: u64,
}

/// The schedule of a row reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Lanes per row: a power of two.
    pub lanes: u64,
    /// Lanes per workgroup, which has one row or several.
    pub workgroup: u64,
    /// Runs per lane. The last run may be beyond the row.
    pub runs: u64,
    /// Runs that are loaded before the first is used, if each pass loads them again; `None` if a
    /// lane keeps all its runs in registers.
    pub at_once: Option<u64>,
    /// Rows that a lane handles, one after the other.
    pub each: u64,
}

impl Problem {
    /// Returns whether there is a kernel for rows of this length.
    #[must_use]
    pub const fn is_possible(&self) -> bool {
        self.length > 1 && self.length <= LONGEST
    }

    /// Returns the number of parts of a row, and the number of elements of each part but the last.
    /// There is one part if there are enough rows, or if they are short. `has_elements`: whether
    /// the kernel also computes outputs with one element per element of a row.
    #[must_use]
    pub fn parts(&self, machine: &Machine, has_elements: bool) -> [u64; 2] {
        let units = machine.units.checked_div(self.rows).unwrap_or(1);
        let [combined, others] = LONG;
        if self.length < (if has_elements { others } else { combined }) || units < 2 {
            return [1, self.length];
        }
        let most = units.min(self.length / PART).min(MOST_PARTS);
        let parts = (most + 1).next_power_of_two() / 2;
        let length = self.length.div_ceil(parts.max(1)).next_multiple_of(WHOLE);
        [self.length.div_ceil(length), length]
    }

    /// Returns the schedule of a reduction. The limits were chosen by predictions for rows of 64 to
    /// 8192 elements.
    #[must_use]
    pub fn schedule(&self) -> Schedule {
        let runs = self.length.div_ceil(RUN).max(1);
        let lanes = if runs <= SUBGROUP * RUNS {
            self.of_a_subgroup()
        } else {
            runs.div_ceil(RUNS).next_power_of_two().min(MOST_LANES)
        };
        // Small workgroups wait for fewer other subgroups, but many workgroups take time to launch.
        let groups = self.rows.saturating_mul(lanes) / SUBGROUP;
        let workgroup = lanes.max(match groups {
            0..=4096 => SUBGROUP,
            4097..=8192 => 2 * SUBGROUP,
            _ => 4 * SUBGROUP,
        });
        let runs = runs.div_ceil(lanes);
        let [kept_by_many, kept] = KEPT;
        let most = if workgroup == MOST_LANES { kept_by_many } else { kept };
        let is_kept = runs * RUN * self.read.max(1) <= most;
        Schedule {
            lanes,
            workgroup,
            runs,
            at_once: (!is_kept).then_some(AT_ONCE),
            each: 1,
        }
    }

    /// Returns the schedule of a kernel without reductions; `None` if a lane cannot keep its
    /// elements in registers. Lanes have several rows as long as there are enough workgroups, so
    /// that the operands that rows have in common are loaded once for all rows of a lane.
    #[must_use]
    pub fn of_elements(&self, machine: &Machine) -> Option<Schedule> {
        let schedule = self.schedule();
        let groups = self.rows.div_ceil(schedule.rows());
        let fits = |each: &u64| {
            each * schedule.runs * self.read.max(1) <= MOST_TOGETHER && groups / each >= GROUPS * machine.units
        };
        let each = [8, 4, 2].into_iter().find(fits).unwrap_or(1);
        (self.length > 1 && schedule.at_once.is_none()).then_some(Schedule { each, ..schedule })
    }

    /// Returns the number of lanes of a short row: the one that leaves the fewest elements beyond
    /// the row, and among equal ones the largest.
    fn of_a_subgroup(&self) -> u64 {
        let lanes = (0..=SUBGROUP.ilog2()).map(|power| 1 << power);
        let runs = |lanes: u64| self.length.div_ceil(lanes * RUN);
        let possible = lanes.filter(|&lanes| runs(lanes) <= MOST_RUNS);
        let least = possible.min_by_key(|&lanes| (runs(lanes) * lanes, std::cmp::Reverse(lanes)));
        least.unwrap_or(SUBGROUP)
    }
}

impl Schedule {
    /// Returns the number of rows per workgroup.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.workgroup.checked_div(self.lanes).unwrap_or(1)
    }

    /// Returns this schedule and the others that fit the rows: with up to four times as many lanes
    /// and down to a quarter of them, and with workgroups of up to 512 lanes.
    #[must_use]
    pub fn others(&self, problem: &Problem) -> Vec<Self> {
        let runs = problem.length.div_ceil(RUN).max(1);
        let lanes = [1, 2, 4]
            .into_iter()
            .flat_map(|times| [self.lanes * times, self.lanes / times]);
        let pairs = lanes.flat_map(|lanes| [1, 2, 4, 8].map(|subgroups| (lanes, subgroups * SUBGROUP)));
        let mut all = vec![*self];
        for (lanes, workgroup) in pairs.filter(|&(lanes, workgroup)| 0 < lanes && lanes <= workgroup) {
            let runs = runs.div_ceil(lanes);
            let is_kept = runs * RUN * problem.read.max(1) <= KEPT[1];
            let schedule = Schedule {
                lanes,
                workgroup,
                runs,
                at_once: (!is_kept).then_some(AT_ONCE),
                each: self.each,
            };
            let is_possible = schedule.fits(problem) && (is_kept || self.each == 1);
            if is_possible && !all.contains(&schedule) {
                all.push(schedule);
            }
        }
        all
    }

    /// Returns the schedule's word in a kernel's name: `l64_w256_r3`, followed by `o4` if each pass
    /// loads the elements again, four runs at a time, or by `e8` if a lane has 8 rows.
    #[must_use]
    pub fn word(&self) -> String {
        let again = self.at_once.map(|count| format!("_o{count}")).unwrap_or_default();
        let each = if self.each > 1 {
            format!("_e{}", self.each)
        } else {
            String::new()
        };
        format!("l{}_w{}_r{}{again}{each}", self.lanes, self.workgroup, self.runs)
    }

    /// Returns the schedule with this [`word`](Self::word), if a kernel can have it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let mut fields = word.split('_').peekable();
        let mut number = |name| {
            let field = fields.next_if(|field| field.starts_with(name))?;
            field.strip_prefix(name)?.parse::<u64>().ok()
        };
        let schedule = Schedule {
            lanes: number('l')?,
            workgroup: number('w')?,
            runs: number('r')?,
            at_once: number('o').filter(|count| (1..=16).contains(count)),
            each: number('e').filter(|count| (2..=16).contains(count)).unwrap_or(1),
        };
        let Schedule { lanes, workgroup, .. } = schedule;
        let is_legal = lanes.is_power_of_two()
            && workgroup.is_power_of_two()
            && (SUBGROUP.max(lanes)..=MOST_LANES).contains(&workgroup)
            && (schedule.each == 1 || schedule.at_once.is_none())
            && schedule.word() == word;
        is_legal.then_some(schedule)
    }

    /// Returns whether the runs of the lanes cover a row with no run to spare, fewer than half of
    /// the lanes are without an element, and a lane that keeps its runs has at most 64.
    #[must_use]
    pub fn fits(&self, problem: &Problem) -> bool {
        let runs = problem.length.div_ceil(RUN);
        self.lanes < 2 * runs && self.runs == runs.div_ceil(self.lanes) && (self.at_once.is_some() || self.runs <= 64)
    }
}

#[cfg(test)]
mod tests {
    use super::{Problem, Schedule};
    use crate::Machine;

    fn of(rows: u64, length: u64) -> Schedule {
        let problem = Problem { rows, length, read: 1 };
        assert!(problem.is_possible(), "{problem:?}");
        let schedule = problem.schedule();
        let covered = schedule.lanes * schedule.runs * super::RUN;
        assert!(covered >= length, "{schedule:?} of {length}");
        assert!(
            schedule.lanes.is_power_of_two() && schedule.workgroup <= 1024,
            "{schedule:?}"
        );
        schedule
    }

    #[test]
    fn rows_of_all_lengths_are_covered() {
        for rows in [1, 7, 300, 4096, 100_003] {
            for length in [2, 3, 7, 64, 129, 300, 768, 1000, 1023, 4096, 8192, 50257, 65536] {
                of(rows, length);
            }
        }
    }

    #[test]
    fn short_rows_share_a_workgroup_and_long_ones_have_their_own() {
        assert_eq!(of(65536, 64).word(), "l16_w256_r1");
        assert_eq!(of(4096, 1023).word(), "l64_w64_r4");
        assert_eq!(of(8192, 8192).word(), "l512_w512_r4");
        assert_eq!(of(2048, 128_256).word(), "l1024_w1024_r32_o4");
    }

    #[test]
    fn a_word_says_all_of_a_schedule() {
        let machine = Machine::of("mi300x").expect("a known machine");
        let elements = Problem {
            rows: 200_704,
            length: 256,
            read: 1,
        };
        let elements = elements.of_elements(machine).expect("lanes keep them");
        assert_eq!(elements.word(), "l64_w256_r1_e8");
        for schedule in [of(65536, 64), of(2048, 128_256), of(8192, 8192), elements] {
            assert_eq!(Schedule::parse(&schedule.word()), Some(schedule));
        }
        for word in [
            "",
            "l3_w64_r1",
            "l64_w32_r1",
            "l64_w2048_r1",
            "l64_w64_r1_o0",
            "l64_w64_r1_o4_",
            "l64_w64_r1_x",
            "l64_w64_r1_e1",
            "l64_w64_r9_o4_e2",
        ] {
            assert_eq!(Schedule::parse(word), None, "{word}");
        }
    }

    #[test]
    fn long_rows_are_cut_where_there_are_few() {
        let machine = Machine::of("mi300x").expect("a known machine");
        let parts = |rows, length| Problem { rows, length, read: 1 }.parts(machine, true);
        assert_eq!(parts(1, 32768), [1, 32768]);
        assert_eq!(parts(1, 50257), [8, 6400]);
        assert_eq!(parts(32, 65536), [8, 8192]);
        assert_eq!(parts(152, 65536), [2, 32768]);
        assert_eq!(parts(153, 65536), [1, 65536]);
        assert_eq!(parts(1, 1 << 20), [64, 16384]);
        let sums = Problem {
            rows: 32,
            length: 65536,
            read: 1,
        };
        assert_eq!(sums.parts(machine, false), [1, 65536]);
        for rows in [1, 7, 33, 100, 152] {
            for length in 40960..42000 {
                let [parts, of_part] = parts(rows, length);
                assert!(
                    (parts - 1) * of_part < length && length <= parts * of_part,
                    "{rows}x{length}"
                );
            }
        }
    }
}
