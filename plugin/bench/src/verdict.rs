//! What a run says about each engine: how many graphs it did right, and how fast it was beside the
//! first.
//!
//! It says nothing about emulated times.

use crate::format::{self, count, interval};
use crate::rate::is_positive;
use crate::results::{Clock, Comparison, Outcome, Results, Row};

/// The names of the outcomes, in the order of [`Verdict::outcomes`].
pub const OUTCOMES: [&str; 7] = ["right", "not judged", "wrong", "declined", "failed", "crashed", "hung"];

/// The outcomes of an engine on all graphs.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The graphs with each outcome, in the order of [`OUTCOMES`].
    pub outcomes: [usize; 7],
    /// The first engine beside this one; absent for the first itself, and where times are emulated.
    pub against: Option<Against>,
}

/// The first engine beside another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Against {
    /// Graphs on which the first engine is faster.
    pub faster: usize,
    /// Graphs on which it is slower.
    pub slower: usize,
    /// Graphs whose interval holds 1.
    pub equal: usize,
    /// Graphs that cannot be compared.
    pub without: usize,
    /// The geometric mean of the ratios.
    pub mean: Option<Mean>,
}

/// A geometric mean of ratios, and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Above 1, the first engine is faster.
    pub ratio: f64,
    /// The interval that holds the true mean over these graphs with 95 % confidence.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The standard normal distribution has 95 % within this distance.
const WITHIN: f64 = 1.96;

/// Returns the outcomes of an engine, by its index.
#[must_use]
pub fn verdict(results: &Results, engine: usize) -> Verdict {
    let mut outcomes = [0; 7];
    for row in &results.rows {
        if let Some(measurement) = row.measurements.get(engine) {
            outcomes[place(&measurement.outcome)] += 1;
        }
    }
    let against = (engine != 0 && results.machine.clock != Clock::Emulated).then(|| against(results, engine));
    Verdict { outcomes, against }
}

/// An outcome's place in [`OUTCOMES`].
#[must_use]
pub fn place(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Right => 0,
        Outcome::Unjudged(_) => 1,
        Outcome::Wrong(_) => 2,
        Outcome::Declined(_) => 3,
        Outcome::Failed(_) => 4,
        Outcome::Crashed(_) => 5,
        Outcome::Hung(_) => 6,
    }
}

/// The comparison of a row with an engine: none if the results of either are wrong, and none of
/// figures that are no ratios.
#[must_use]
pub fn comparison(row: &Row, engine: usize) -> Option<&Comparison> {
    for one in [0, engine] {
        row.measurements
            .get(one)
            .filter(|measurement| measurement.outcome.times_count())?;
    }
    row.comparisons.iter().find(|comparison| {
        comparison.engine == engine
            && [comparison.low, comparison.ratio, comparison.high]
                .into_iter()
                .all(is_positive)
    })
}

fn against(results: &Results, engine: usize) -> Against {
    let mut against = Against::default();
    let (mut ratios, mut sum, mut variance) = (0.0, 0.0, 0.0);
    for row in &results.rows {
        let Some(comparison) = comparison(row, engine) else {
            against.without += 1;
            continue;
        };
        *if !comparison.is_difference() {
            &mut against.equal
        } else if comparison.low > 1.0 {
            &mut against.faster
        } else {
            &mut against.slower
        } += 1;
        ratios += 1.0;
        sum += comparison.ratio.ln();
        // The rows are measured apart from each other, so their variances add up.
        variance += ((comparison.high / comparison.low).ln() / (2.0 * WITHIN)).powi(2);
    }
    against.mean = (ratios > 0.0).then(|| {
        let (mean, deviation) = (sum / ratios, variance.sqrt() / ratios);
        Mean {
            ratio: mean.exp(),
            low: (mean - WITHIN * deviation).exp(),
            high: (mean + WITHIN * deviation).exp(),
        }
    });
    against
}

impl Verdict {
    /// The counts of the outcomes in words: `right on 9, declined 2, crashed on 1`.
    #[must_use]
    pub fn outcomes(&self) -> String {
        let parts: Vec<String> = OUTCOMES
            .iter()
            .zip(self.outcomes)
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| {
                let preposition = if ["declined", "not judged"].contains(name) {
                    ""
                } else {
                    "on "
                };
                format!("{name} {preposition}{count}")
            })
            .collect();
        if parts.is_empty() {
            "no graphs".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

impl Against {
    /// The comparison in words, for the first engine as the subject: `faster on 9 of 12 graphs,
    /// slower on 1, …`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let compared = self.faster + self.slower + self.equal;
        if compared == 0 {
            return "no graph can be compared".to_owned();
        }
        let mut sentence = format!(
            "faster on {} of {}, slower on {}, no difference on {}",
            self.faster,
            count(compared, "graph"),
            self.slower,
            self.equal
        );
        if let Some(mean) = self.mean {
            let ratio = format::ratio(mean.ratio);
            sentence += &format!(
                "; geometric mean {ratio}, 95 % interval {}",
                interval(mean.low, mean.high)
            );
        }
        if self.without > 0 {
            sentence += &format!("; {} cannot be compared", count(self.without, "graph"));
        }
        sentence
    }
}
