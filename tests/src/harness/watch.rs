//! Compares each graph's compile time with others of its family. If one takes many times as long,
//! the compiler may not terminate for the same form with another size.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Largest allowed ratio of a graph's compile time to its family's median.
const TIMES: u32 = 10;
/// Time that is always allowed: on a busy machine a graph waits for others.
const FLOOR: Duration = Duration::from_secs(30);

/// The times of one run, by family: the first word of the name.
#[derive(Debug, Default)]
pub struct Watch(Mutex<BTreeMap<String, Vec<(Duration, String)>>>);

impl Watch {
    /// Records a graph's compile time.
    pub fn note(&self, name: &str, time: Duration) {
        let family = name.split(['_', ' ']).next().unwrap_or_default();
        let mut families = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = families.entry(family.to_owned()).or_default();
        times.push((time, name.to_owned()));
    }

    /// Returns the graphs that took too long.
    #[must_use]
    pub fn slow(&self) -> Vec<String> {
        let mut families = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut slow = Vec::new();
        for times in families.values_mut() {
            times.sort_unstable();
            let median = times[times.len() / 2].0;
            let limit = (median * TIMES).max(FLOOR);
            slow.extend(times.iter().filter(|(time, _)| *time > limit).map(|(time, name)| {
                let (time, median) = (time.as_secs_f64(), median.as_secs_f64());
                format!("{name} took {time:.1} s to compile, half of its family {median:.1} s at most")
            }));
        }
        slow
    }

    /// Fails if a graph took too long.
    ///
    /// # Panics
    ///
    /// If any did.
    pub fn expect_none_slow(&self) {
        let slow = self.slow();
        assert!(slow.is_empty(), "{}", slow.join("\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_much_longer_than_its_family_is_told() {
        let watch = Watch::default();
        for (name, seconds) in [
            ("layernorm_1", 2),
            ("layernorm_2", 3),
            ("layernorm_3", 29),
            ("conv_1", 70),
            ("conv_2", 70),
        ] {
            watch.note(name, Duration::from_secs(seconds));
        }
        assert!(watch.slow().is_empty());
        watch.note("layernorm_4", Duration::from_secs(31));
        assert_eq!(watch.slow().len(), 0, "29 s is half of the family's by now, or more");
        watch.note("layernorm_5", Duration::from_secs(3));
        assert_eq!(watch.slow().len(), 1);
    }
}
