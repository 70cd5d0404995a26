//! Quantities as people read them: significant digits and a unit that fits.

use crate::results::Clock;
use bytesize::ByteSize;

/// Formats a number with `digits` significant digits, never in the form `1e5`.
#[must_use]
pub fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // The exponent after rounding: 9.996 with three digits is 10.0, not 10.00.
    let exponent = format!("{value:.*e}", usize::try_from(digits - 1).unwrap_or_default())
        .rsplit_once('e')
        .and_then(|(_, exponent)| exponent.parse::<i32>().ok())
        .unwrap_or_default();
    let decimals = usize::try_from(digits - 1 - exponent).unwrap_or_default();
    format!("{value:.decimals$}")
}

/// A small number that may be far from 1: an error, a tolerance.
#[must_use]
pub fn small(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 {
        format!("{value:.1e}")
    } else {
        significant(value, 2)
    }
}

/// A unit of time: its name and how many microseconds it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// `µs`.
    pub name: &'static str,
    /// In microseconds.
    pub microseconds: f64,
}

impl Unit {
    /// The unit in which a time has one to four digits before the point.
    #[must_use]
    pub fn of(microseconds: f64) -> Self {
        let (name, microseconds) = match microseconds.abs() {
            time if time >= 1e6 => ("s", 1e6),
            time if time >= 1e3 => ("ms", 1e3),
            time if time >= 0.1 || time == 0.0 => ("µs", 1.0),
            _ => ("ns", 1e-3),
        };
        Self { name, microseconds }
    }
}

/// A time with its unit: `12.3 µs`.
#[must_use]
pub fn time(microseconds: f64, digits: i32) -> String {
    let unit = Unit::of(microseconds);
    format!(
        "{} {}",
        significant(microseconds / unit.microseconds, digits),
        unit.name
    )
}

/// A ratio: `1.31 ×`.
#[must_use]
pub fn ratio(value: f64) -> String {
    format!("{} ×", significant(value, 3))
}

/// An interval of ratios: `1.25–1.38`, with more digits where it is narrow.
#[must_use]
pub fn interval(low: f64, high: f64) -> String {
    let with = |digits| (significant(low, digits), significant(high, digits));
    let (low, high) = (3..5)
        .map(with)
        .find(|(low, high)| low != high)
        .unwrap_or_else(|| with(5));
    format!("{low}–{high}")
}

/// Bytes: `1.2 MiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    ByteSize(count).to_string()
}

/// A large number with a prefix, for a unit to follow: `1.3 T`.
#[must_use]
pub fn large(value: f64, digits: i32) -> String {
    let (scale, prefix) = match value.abs() {
        value if value >= 1e15 => (1e15, "P"),
        value if value >= 1e12 => (1e12, "T"),
        value if value >= 1e9 => (1e9, "G"),
        value if value >= 1e6 => (1e6, "M"),
        value if value >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{} {prefix}", significant(value / scale, digits))
}

/// How long something took: `1 min 52 s`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if !(60.0..1e9).contains(&seconds) {
        return format!("{} s", significant(seconds, 3));
    }
    let minutes = (seconds / 60.0).floor();
    format!("{minutes} min {:.0} s", (seconds - 60.0 * minutes).floor())
}

/// A moment in RFC 3339, with a space and the zone's name.
#[must_use]
pub fn moment(rfc3339: &str) -> String {
    match rfc3339.strip_suffix('Z').and_then(|moment| moment.split_once('T')) {
        Some((day, time)) => format!("{day} {} UTC", time.split('.').next().unwrap_or_default()),
        None => rfc3339.to_owned(),
    }
}

/// A count and its noun: `1 graph`, `2 graphs`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The words of a list: `a, b and c`.
#[must_use]
pub fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The word that stands beside each time that the device took.
#[must_use]
pub fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Cpu => "CPU",
        Clock::Gpu => "GPU",
        Clock::Emulated => "emulated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_short_and_have_their_unit() {
        for (value, digits, wanted) in [
            (9.996, 3, "10.0"),
            (1234.5, 3, "1234"),
            (0.001_234, 2, "0.0012"),
            (-5.678, 2, "-5.7"),
            (0.0, 3, "0"),
        ] {
            assert_eq!(significant(value, digits), wanted);
        }
        assert_eq!(time(0.012, 3), "12.0 ns");
        assert_eq!(time(12.345, 3), "12.3 µs");
        assert_eq!(time(1_234.0, 3), "1.23 ms");
        assert_eq!(time(2_500_000.0, 3), "2.50 s");
        assert_eq!(large(1.634e15, 3), "1.63 P");
        assert_eq!(small(0.000_012), "1.2e-5");
        assert_eq!(duration(112.4), "1 min 52 s");
        assert_eq!(duration(2.0), "2.00 s");
        assert_eq!(moment("2026-11-23T06:22:19.5Z"), "2026-11-23 06:22:19 UTC");
        assert_eq!(moment("yesterday"), "yesterday");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!(
            (interval(1.251, 1.379), interval(1.3381, 1.3412)),
            ("1.25–1.38".into(), "1.338–1.341".into())
        );
        assert_eq!(count(1, "graph"), "1 graph");
    }
}
