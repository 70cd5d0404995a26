//! How rows are spread over lanes: a kernel that combines the elements of each row, and makes
//! others of them.
//!
//! A lane takes four elements of its row, then four others as many lanes further on. If they fit
//! into its registers, each is loaded once however often the row is passed; if not, each pass loads
//! them again.

use crate::Machine;
use crate::gemm::LANES as SUBGROUP;

/// Elements of a row that a lane takes at once.
pub const RUN: u64 = 4;
/// The most lanes of a workgroup.
const MOST_LANES: u64 = 1024;
/// Runs that a lane of a long row takes before there is another subgroup for them.
const RUNS: u64 = 4;
/// Most runs of a lane of a short row: more than others where that leaves fewer lanes without an
/// element.
const MOST_RUNS: u64 = 5;
/// Elements that a lane keeps: as 32 bits each, half of the registers of a lane of the largest
/// workgroup, and of others.
const KEPT: [u64; 2] = [64, 96];
/// Runs that a lane has on their way, where it does not keep them.
const AT_ONCE: u64 = 4;
/// Runs that a lane has on their way of several rows.
const MOST_TOGETHER: u64 = 8;
/// Workgroups for each unit, below which lanes have no more rows.
const GROUPS: u64 = 4;
/// Rows of at least this length are cut into parts if there are two compute units or more for each
/// row, because most units would be idle else. The first length is for rows that are only reduced.
/// The second is for other rows, for which more kernel launches pay earlier. By prediction, in f16:
/// 32 rows of 65536 elements take 16.2 µs whole and 12.1 in parts (layernorm), 21.6 and 13.6
/// (softmax), 4.5 and 6.0 (sum).
const LONG: [u64; 2] = [1 << 17, 40960];
/// Elements of a part, at least; the parts of a row, at most; and what elements of a part are a
/// multiple of.
const PART: u64 = 1 << 12;
const MOST_PARTS: u64 = 64;
const WHOLE: u64 = SUBGROUP * RUN;
/// Elements of any row, so that a lane does not combine too many one after the other.
const LONGEST: u64 = 1 << 20;

/// Rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How many there are.
    pub rows: u64,
    /// Elements of each.
    pub length: u64,
    /// Tensors that have all of these elements and are read.
    pub read: u64,
}

/// How rows are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Lanes of a row: a power of two.
    pub lanes: u64,
    /// Lanes of a workgroup, which has one row or several.
    pub workgroup: u64,
    /// Runs of each lane, the last of which may be beyond the row.
    pub runs: u64,
    /// Runs that are loaded before the first is used, where each pass loads them again; `None` if a
    /// lane keeps all.
    pub at_once: Option<u64>,
    /// Rows that a lane has, one after the other.
    pub each: u64,
}

impl Problem {
    /// Whether there is a kernel for rows.
    #[must_use]
    pub const fn is_possible(&self) -> bool {
        self.length > 1 && self.length <= LONGEST
    }

    /// Into how many parts a row is cut, and the elements of each but the last: one part if there
    /// are enough rows, or if they are short. `has_elements`: whether the kernel also computes
    /// outputs with an element for each element of a row.
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

    /// How rows are spread. Which numbers are better was seen in predictions for rows of 64 to 8192
    /// elements.
    #[must_use]
    pub fn schedule(&self) -> Schedule {
        let runs = self.length.div_ceil(RUN).max(1);
        let lanes = if runs <= SUBGROUP * RUNS {
            self.of_a_subgroup()
        } else {
            runs.div_ceil(RUNS).next_power_of_two().min(MOST_LANES)
        };
        // Small workgroups wait for fewer others, but take time to launch where there are many.
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

    /// How rows are spread of which nothing is combined; `None` if a lane could not keep its
    /// elements. Lanes have several rows, so that what rows have in common is loaded once for all
    /// of them, as long as there are enough workgroups.
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

    /// The lanes of a short row: those that have the fewest elements beyond it, and of these the
    /// most.
    fn of_a_subgroup(&self) -> u64 {
        let lanes = (0..=SUBGROUP.ilog2()).map(|power| 1 << power);
        let runs = |lanes: u64| self.length.div_ceil(lanes * RUN);
        let possible = lanes.filter(|&lanes| runs(lanes) <= MOST_RUNS);
        let least = possible.min_by_key(|&lanes| (runs(lanes) * lanes, std::cmp::Reverse(lanes)));
        least.unwrap_or(SUBGROUP)
    }
}

impl Schedule {
    /// Rows of a workgroup.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.workgroup.checked_div(self.lanes).unwrap_or(1)
    }

    /// This schedule, and others that the rows fit: up to four times as many lanes and a quarter of
    /// them, and workgroups of up to 512 lanes.
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

    /// Its word in a kernel's name: `l64_w256_r3`, with `o4` behind it if each pass loads the
    /// elements again, or `e8` if a lane has 8 rows.
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

    /// The schedule of a [`word`](Self::word), if a kernel can have it.
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

    /// Whether all elements of a row have a lane, and no lane is without one.
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
