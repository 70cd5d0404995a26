//! Owns the schedules that were found by trying: `schedules/*.toml`, one file per machine, written
//! by `scripts/schedules`.
//!
//! A schedule is in the file if its graph was predicted to be much faster with it than with the
//! schedule that the closed form chooses, and if the graph was executed strictly on the emulated
//! GPU, at its real size, with correct results. For products that are not in the file, the closed
//! form decides. A product is looked up by its sizes: f16 and bf16 share an entry, with any
//! epilogue. Conformance cases prove the kernels of both types; the execution of an entry was of
//! its own graph.

use crate::Machine;
use crate::gemm::{Problem, Schedule};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Factors by which a graph must be predicted to be faster than in its usual form to be lowered
/// differently: for graphs like those that the model was compared with on hardware, and for others.
/// Smaller differences are within the model's error.
pub const FASTER: [f64; 2] = [1.1, 1.25];

/// The tables, by the names of their machines.
const TABLES: [(&str, &str); 1] = [("mi300x", include_str!("../schedules/mi300x.toml"))];

/// The schedules that were found for one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The products, each with its schedule.
    #[serde(default)]
    pub product: Vec<Found>,
}

/// A product, and the schedule that is predicted to be the fastest of those that were tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The suite and the graph that the product is part of.
    pub graph: String,
    /// The schedule's [word](Schedule::word).
    pub schedule: String,
    /// Predicted microseconds of the graph with this schedule.
    pub predicted_us: f64,
    /// Predicted microseconds of the graph with the schedule that the closed form chooses.
    pub estimated_us: f64,
    /// The sizes by which the product is looked up.
    #[serde(flatten)]
    pub problem: Problem,
}

impl Table {
    /// Parses the text of a file.
    ///
    /// # Errors
    ///
    /// The parser's error, if the text is not such a table.
    pub fn read(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns the text of the file.
    ///
    /// # Errors
    ///
    /// Only for a number that TOML cannot represent.
    pub fn text(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

/// The schedules of all tables. A test demands that each entry can be parsed; an entry that cannot
/// be is skipped.
static KNOWN: LazyLock<HashMap<(&'static str, Problem), Schedule>> = LazyLock::new(|| {
    let tables = TABLES
        .iter()
        .filter_map(|&(machine, text)| Some((machine, Table::read(text).ok()?)));
    let found = tables.flat_map(|(machine, table)| table.product.into_iter().map(move |found| (machine, found)));
    found
        .filter_map(|(machine, found)| {
            let schedule = Schedule::parse(&found.schedule)?;
            schedule
                .can_be_launched(&found.problem)
                .then_some(((machine, found.problem), schedule))
        })
        .collect()
});

/// Returns the schedule that was found for a product on a machine.
pub(crate) fn schedule(machine: &Machine, problem: &Problem) -> Option<Schedule> {
    KNOWN.get(&(machine.name, *problem)).copied()
}

#[cfg(test)]
mod tests {
    use super::{FASTER, KNOWN, TABLES, Table};
    use crate::gemm::{Schedule, choose, estimated};
    use crate::{Machine, gemm};

    #[test]
    fn tables_have_schedules_that_are_possible_and_much_better() {
        let mut entries = 0;
        for (name, text) in TABLES {
            let machine = Machine::of(name).expect("a known machine");
            assert_eq!(machine.name, name);
            for found in Table::read(text).expect("a table can be read").product {
                let schedule = Schedule::parse(&found.schedule).expect("a legal schedule");
                assert!(schedule.can_be_launched(&found.problem), "{found:?}");
                assert!(found.predicted_us * FASTER[0] <= found.estimated_us, "{found:?}");
                assert_ne!(estimated(machine, &found.problem), Some(schedule), "{found:?}");
                assert_eq!(choose(machine, &found.problem), Some(schedule), "{found:?}");
                entries += 1;
            }
        }
        assert_eq!(KNOWN.len(), entries, "no product is there twice");
    }

    #[test]
    fn what_is_not_in_the_table_is_estimated() {
        let machine = Machine::of("mi300x").expect("a known machine");
        let problem = gemm::Problem {
            count: 3,
            rows: 17,
            columns: 19,
            depth: 202,
            element: 2,
            stored: 2,
            reuse: 1,
            adjacent: [true, false],
        };
        assert_eq!(choose(machine, &problem), estimated(machine, &problem));
    }
}
