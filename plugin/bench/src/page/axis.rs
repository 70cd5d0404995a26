//! Logarithmic axes: where a value lies, in percent of the plot, and which values are marked.

use crate::rate::is_positive;

/// A logarithmic axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that holds all values, with a margin; none if there are no values.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut range: Option<(f64, f64)> = None;
        for value in values.into_iter().filter(|value| is_positive(*value)) {
            let (low, high) = range.unwrap_or((value, value));
            range = Some((low.min(value), high.max(value)));
        }
        let (low, high) = range?;
        // A tenth of the range, and something where all values are the same.
        let margin = (high / low).powf(0.05).max(1.01);
        Some(Self {
            low: low / margin,
            high: high * margin,
        })
    }

    /// The lowest value.
    pub(super) fn low(&self) -> f64 {
        self.low
    }

    /// The highest value.
    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// Where a value lies, in percent from the low end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        100.0 * share.clamp(0.0, 1.0)
    }

    /// Round values along the axis, at most `most`.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let candidates: [&[f64]; 4] = [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
        for mantissas in candidates {
            let ticks = self.powers(mantissas, 1);
            if ticks.len() < 3 {
                break;
            }
            if ticks.len() <= most {
                return ticks;
            }
        }
        if decades > 2.0 {
            return (2..)
                .map(|step| self.powers(&[1.0], step))
                .find(|ticks| ticks.len() <= most)
                .unwrap_or_default();
        }
        self.steps(most)
    }

    /// Values of the form `mantissa · 10^n`, for every `step`th n.
    fn powers(&self, mantissas: &[f64], step: i32) -> Vec<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the exponents of floating-point numbers are small"
        )]
        let exponents = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        exponents
            .filter(|exponent| exponent % step == 0)
            .flat_map(|exponent| mantissas.iter().map(move |mantissa| mantissa * 10_f64.powi(exponent)))
            .filter(|value| self.holds(*value))
            .collect()
    }

    /// Multiples of a round step, for axes that are short.
    fn steps(&self, most: usize) -> Vec<f64> {
        let mut step = 10_f64.powf((self.high - self.low).log10().floor() - 1.0);
        for factor in [2.0, 2.5, 2.0, 2.0, 2.5, 2.0] {
            let first = (self.low / step).ceil();
            let ticks: Vec<f64> = (0..=most)
                .map(|index| (first + f64::from(u32::try_from(index).unwrap_or_default())) * step)
                .filter(|value| self.holds(*value))
                .collect();
            if ticks.len() <= most {
                return ticks;
            }
            step *= factor;
        }
        Vec::new()
    }

    fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// A position as an attribute.
pub(super) fn percent(position: f64) -> String {
    format!("{position:.2}%")
}

/// Which end of a tick's text is at the tick: near the edges, the text must not hang over them.
pub(super) fn anchor(position: f64) -> &'static str {
    match position {
        ..3.0 => "start",
        97.0.. => "end",
        _ => "middle",
    }
}

/// The value of a tick without the digits that it does not have.
pub(super) fn short(value: f64) -> String {
    if value.abs() < 1e-4 {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few_and_inside() {
        for (low, high, wanted) in [
            (0.4, 3.0, vec!["0.5", "1", "2"]),
            (0.95, 1.3, vec!["1", "1.1", "1.2", "1.3"]),
            (1.0, 5000.0, vec!["1", "10", "100", "1000"]),
            (101.0, 104.0, vec!["101", "102", "103", "104"]),
        ] {
            let axis = Axis::of([low, high]).expect("there are values");
            let ticks: Vec<String> = axis.ticks(6).into_iter().map(short).collect();
            for tick in &wanted {
                assert!(
                    ticks.iter().any(|found| found == tick),
                    "{low} to {high}: {ticks:?} lack {tick}"
                );
            }
            assert!(ticks.len() <= 6, "{ticks:?}");
        }
        let wide = Axis::of([1e-3, 1e15]).expect("there are values");
        assert!((3..=6).contains(&wide.ticks(6).len()), "{:?}", wide.ticks(6));
    }

    #[test]
    fn an_axis_of_one_value_has_it_in_the_middle() {
        let axis = Axis::of([7.0]).expect("there is a value");
        assert!((axis.at(7.0) - 50.0).abs() < 1e-9);
        assert_eq!(
            (short(1e-7), short(0.000_2), short(40.0)),
            ("1e-7".into(), "0.0002".into(), "40".into())
        );
        assert!(Axis::of([0.0, -1.0, f64::NAN]).is_none());
    }
}
