//! Owns the schedules that were found by trying: `schedules/*.toml`, a file for each machine,
//! written by `scripts/schedules`.
//!
//! A schedule is in the file if its graph was predicted to take much less time with it than with
//! the one that the closed form chooses, and was executed strictly on the emulated GPU, at its real
//! size, with right results. For products that are not there the closed form decides. A product is
//! found by its sizes: f16 and bf16 share an entry, with any epilogue. Conformance cases prove the
//! kernels of both types; the entry's own execution was of its graph.

use crate::Machine;
use crate::gemm::{Problem, Schedule};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The tables, by the names of their machines.
const TABLES: [(&str, &str); 1] = [("mi300x", include_str!("../schedules/mi300x.toml"))];

/// A machine's file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Products.
    #[serde(default)]
    pub product: Vec<Found>,
}

/// A product, and the schedule that is predicted to be the fastest of those that were tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The suite and the graph of which it was a part.
    pub graph: String,
    /// The schedule's [word](Schedule::word).
    pub schedule: String,
    /// Microseconds that the graph is predicted to take with it.
    pub predicted_us: f64,
    /// The same with the schedule that the closed form chooses.
    pub estimated_us: f64,
    /// The product.
    #[serde(flatten)]
    pub problem: Problem,
}

impl Table {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The file's text.
    ///
    /// # Errors
    ///
    /// None for numbers that TOML has.
    pub fn text(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

/// The schedules of all tables. A test demands that each can be read, so what cannot be read is
/// nothing.
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

/// The schedule that was found for a product.
pub(crate) fn schedule(machine: &Machine, problem: &Problem) -> Option<Schedule> {
    KNOWN.get(&(machine.name, *problem)).copied()
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, TABLES, Table};
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
                assert!(found.predicted_us * 1.1 <= found.estimated_us, "{found:?}");
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
