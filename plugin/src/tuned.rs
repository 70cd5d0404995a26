//! Measured choices: the form of a graph that `rotini tune` found to be the fastest on this device.
//!
//! A [`Record`] is a note in the cache directory, under the hash of the graph, the device with its
//! driver, the compiler's build and the lowering's fingerprint: a change to any of them makes the
//! record unreachable. Contexts are created with the winner's [`Choices`], without a measurement. A
//! record that cannot be read is treated as missing.

use crate::compile::tuned_keys;
use crate::device::Device;
use crate::error::Error;
use crate::runtime::Runtime;
use rotini_cache::Key;
use rotini_emit::{Choices, FASTER};
use rotini_graph::NormalGraph;
use serde::{Deserialize, Serialize};

/// Version of the record format.
pub const FORMAT: u32 = 1;

/// The source of a record's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Measured on the device.
    Measured,
    /// Predicted from what an emulator counted.
    Predicted,
}

/// The results of tuning one graph on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The graph's name, for people.
    pub graph: String,
    /// The target that was compiled for.
    pub target: String,
    /// The device, as reported by [`Device::measured_on`].
    pub device: String,
    /// The compiler's build.
    pub compiler: String,
    /// rotini's version.
    pub rotini: String,
    /// Time of the last change, in seconds since 1970.
    pub changed_unix: u64,
    /// The source of the times.
    pub clock: Clock,
    /// Whether results were compared with the reference. If not, they were compared with those of
    /// the usual form, because the reference would take too long.
    pub by_reference: bool,
    /// Operations of one execution, where counting them makes sense; a multiply-add is two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<f64>,
    /// Whether the times are predictions for kernels that are unlike those that were compared with
    /// hardware.
    #[serde(default)]
    pub is_extrapolated: bool,
    /// The candidates, the usual form first.
    pub tried: Vec<Tried>,
    /// The choices of the fastest candidate with right results; `None` until all are measured.
    pub winner: Option<String>,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The choices, as text.
    pub choices: String,
    /// The result of trying it.
    pub outcome: Outcome,
    /// Microseconds by the closed form, if there is one for the schedules of these choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_us: Option<f64>,
    /// The time of an execution, if it was measured or predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}

/// The time of one execution, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// The median over the turns.
    pub median_us: f64,
    /// The 95 % interval of the median.
    pub interval_us: [f64; 2],
    /// The number of turns.
    pub turns: u32,
    /// Whether it is slower than the fastest candidate with 95 % confidence, compared turn by turn.
    #[serde(default)]
    pub is_beaten: bool,
}

/// The result of trying a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Not tried yet.
    Untried,
    /// It emits the same code as this earlier candidate.
    Same(String),
    /// The results are right.
    Right,
    /// The results are wrong: the candidate is never used.
    Wrong(String),
    /// The candidate does not compile, or does not run.
    Failed(String),
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// A description of what is wrong: text that cannot be parsed, another format version, choices
    /// that do not exist, or a winner without right results.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let record: Record = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if record.format != FORMAT {
            return Err(format!("a record of form {}, and this is {FORMAT}", record.format));
        }
        for tried in &record.tried {
            Choices::parse(&tried.choices).map_err(|error| error.to_string())?;
        }
        let is_right = |winner: &String| {
            let won = record.tried.iter().find(|tried| tried.choices == *winner);
            won.is_some_and(|won| won.outcome == Outcome::Right)
        };
        if !record.winner.iter().all(is_right) {
            return Err("its winner is none of its right candidates".to_owned());
        }
        Ok(record)
    }

    /// Returns the record as it is stored: as JSON.
    ///
    /// # Errors
    ///
    /// If a number cannot be represented in JSON.
    pub fn text(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| Error::Internal(error.to_string()))
    }

    /// Merges two records of the same problem. A candidate that either of them found wrong stays
    /// wrong. Times are those of the record with a winner, or else of the more recent one.
    #[must_use]
    pub fn merged(self, other: Record) -> Record {
        let (mut later, earlier) =
            if (self.winner.is_some(), self.changed_unix) >= (other.winner.is_some(), other.changed_unix) {
                (self, other)
            } else {
                (other, self)
            };
        for tried in earlier.tried {
            match later.tried.iter_mut().find(|own| own.choices == tried.choices) {
                None => later.tried.push(tried),
                Some(own) if matches!(tried.outcome, Outcome::Wrong(_)) => {
                    *own = Tried { time: None, ..tried };
                }
                Some(own) if own.outcome == Outcome::Untried => *own = tried,
                Some(_) => {}
            }
        }
        let is_wrong = |tried: &Tried| matches!(tried.outcome, Outcome::Wrong(_));
        if later
            .tried
            .iter()
            .any(|tried| is_wrong(tried) && Some(&tried.choices) == later.winner.as_ref())
        {
            later.winner = later.best().map(|tried| tried.choices.clone());
        }
        later
    }

    /// Returns the factor by which a candidate must be faster than the usual form to be chosen,
    /// unless it is faster with 95 % confidence. Of predicted times it is the same as in
    /// `scripts/schedules`.
    #[must_use]
    pub fn margin(&self) -> f64 {
        let [inside, outside] = FASTER;
        match self.clock {
            Clock::Measured => 1.03,
            Clock::Predicted if self.is_extrapolated => outside,
            Clock::Predicted => inside,
        }
    }

    /// Returns the right candidate with the shortest time. The first one, which is the usual form,
    /// is preferred if the other is not faster by the [`margin`](Self::margin) and the first is not
    /// slower with 95 % confidence.
    #[must_use]
    pub fn best(&self) -> Option<&Tried> {
        let right = self.tried.iter().filter(|tried| tried.outcome == Outcome::Right);
        let timed = right.filter_map(|tried| Some((tried, tried.time?.median_us)));
        let (fastest, least) = timed.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let is_as_fast = |first: &&Tried| {
            let is_near = |time: Time| !time.is_beaten && time.median_us <= least * self.margin();
            first.outcome == Outcome::Right && first.time.is_some_and(is_near)
        };
        Some(self.tried.first().filter(is_as_fast).unwrap_or(fastest))
    }
}

/// Returns the choices that were measured to be the fastest for a graph on a device. The usual
/// choices if nothing was measured, or if they were the fastest.
pub fn winner(runtime: &Runtime, graph: &NormalGraph, device: &dyn Device) -> Choices {
    let Ok(keys) = tuned_keys(runtime, graph, device) else {
        return Choices::default();
    };
    let Some(first) = keys.first() else {
        return Choices::default();
    };
    if let Some(known) = runtime.winners.get(first) {
        return known;
    }
    let found = keys.iter().find_map(|key| read(runtime, key));
    let choices = found.and_then(|record| Choices::parse(&record.winner?).ok());
    let choices = choices.filter(|choices| !choices.is_usual()).unwrap_or_default();
    runtime.winners.insert(*first, choices.clone());
    choices
}

/// Returns the record under a key, or `None` if there is none that can be read.
#[must_use]
pub fn read(runtime: &Runtime, key: &Key) -> Option<Record> {
    let note = runtime.cache.note(key)?;
    Record::read(&note)
        .inspect_err(|reason| tracing::warn!(%key, "measured choices are not used: {reason}"))
        .ok()
}

/// Stores a record. Returns whether the next process will find it.
///
/// # Errors
///
/// If a number cannot be represented in JSON.
pub fn store(runtime: &Runtime, key: &Key, record: &Record) -> Result<bool, Error> {
    Ok(runtime.cache.keep_note(key, &record.text()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(choices: &str, outcome: Outcome, median_us: Option<f64>) -> Tried {
        Tried {
            choices: choices.to_owned(),
            outcome,
            estimated_us: None,
            time: median_us.map(|median_us| Time {
                median_us,
                interval_us: [median_us; 2],
                turns: 3,
                is_beaten: false,
            }),
        }
    }

    fn record(changed_unix: u64, tried: Vec<Tried>, winner: Option<&str>) -> Record {
        Record {
            format: FORMAT,
            graph: "graph".to_owned(),
            target: "cpu".to_owned(),
            device: "CPU, 2 threads".to_owned(),
            compiler: "iree".to_owned(),
            rotini: "0".to_owned(),
            changed_unix,
            clock: Clock::Measured,
            by_reference: true,
            flops: Some(2e9),
            is_extrapolated: false,
            tried,
            winner: winner.map(str::to_owned),
        }
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let all = vec![
            tried("usual", Outcome::Right, Some(2.5)),
            tried("iree", Outcome::Wrong("far off".to_owned()), None),
            tried("rows=lanes", Outcome::Right, Some(2.0)),
        ];
        let own = record(5, all, Some("rows=lanes"));
        assert_eq!(Record::read(&own.text().unwrap()), Ok(own.clone()));
        for winner in ["iree", "conv0=panels"] {
            let other = Record {
                winner: Some(winner.to_owned()),
                ..own.clone()
            };
            assert!(Record::read(&other.text().unwrap()).is_err(), "{winner}");
        }
        let newer = Record { format: 2, ..own };
        assert!(Record::read(&newer.text().unwrap()).is_err());
        assert!(Record::read(b"{").is_err());
    }

    #[test]
    fn the_usual_form_stays_unless_it_is_beaten() {
        let of = |usual: f64, is_beaten: bool| {
            let mut all = vec![
                tried("usual", Outcome::Right, Some(usual)),
                tried("iree", Outcome::Right, Some(100.0)),
                tried("rows=lanes", Outcome::Wrong("off".to_owned()), Some(1.0)),
            ];
            if let Some(time) = &mut all[0].time {
                time.is_beaten = is_beaten;
            }
            record(1, all, None).best().map(|best| best.choices.clone())
        };
        assert_eq!(of(102.0, false).as_deref(), Some("usual"));
        assert_eq!(of(102.0, true).as_deref(), Some("iree"));
        assert_eq!(of(104.0, false).as_deref(), Some("iree"));
        assert_eq!(of(99.0, false).as_deref(), Some("usual"));
    }

    #[test]
    fn predictions_differ_by_more_than_the_error_of_the_model() {
        let of = |usual: f64, is_extrapolated: bool| {
            let all = vec![
                tried("usual", Outcome::Right, Some(usual)),
                tried("iree", Outcome::Right, Some(100.0)),
            ];
            let record = Record {
                clock: Clock::Predicted,
                is_extrapolated,
                ..record(1, all, None)
            };
            record.best().map(|best| best.choices.clone())
        };
        assert_eq!(of(109.0, false).as_deref(), Some("usual"));
        assert_eq!(of(111.0, false).as_deref(), Some("iree"));
        assert_eq!(of(124.0, true).as_deref(), Some("usual"));
        assert_eq!(of(126.0, true).as_deref(), Some("iree"));
    }

    #[test]
    fn a_wrong_candidate_stays_wrong_whoever_found_it() {
        let right = record(
            9,
            vec![
                tried("usual", Outcome::Right, Some(3.0)),
                tried("iree", Outcome::Right, Some(1.0)),
            ],
            Some("iree"),
        );
        let wrong = record(
            1,
            vec![
                tried("usual", Outcome::Right, Some(4.0)),
                tried("iree", Outcome::Wrong("off".to_owned()), None),
            ],
            Some("usual"),
        );
        for merged in [right.clone().merged(wrong.clone()), wrong.merged(right)] {
            assert_eq!(merged.winner.as_deref(), Some("usual"));
            assert_eq!(merged.tried[0].time.map(|time| time.median_us), Some(3.0));
            assert_eq!(merged.tried[1].outcome, Outcome::Wrong("off".to_owned()));
        }
    }
}
