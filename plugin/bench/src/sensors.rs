//! Clock and power of AMD GPUs under load, from the driver's files.

use crate::results::Load;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where the kernel lists graphics cards.
pub(crate) const CARDS: &str = "/sys/class/drm";
/// Time between two readings.
const BETWEEN: Duration = Duration::from_millis(20);

/// Calls a function, and returns its result with the medians of the sensors of the card that drew
/// the most power meanwhile. `None` without such a card.
pub(crate) fn during<T>(cards: &Path, work: impl FnOnce() -> T) -> (T, Option<Load>) {
    let cards = sensors(cards);
    if cards.is_empty() {
        return (work(), None);
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut readings = Vec::new();
            while !is_done.load(Ordering::Relaxed) {
                std::thread::sleep(BETWEEN);
                let most = |a: &Load, b: &Load| a.watts.unwrap_or(0.0).total_cmp(&b.watts.unwrap_or(0.0));
                readings.extend(cards.iter().filter_map(Sensors::read).max_by(most));
            }
            readings
        });
        let result = work();
        is_done.store(true, Ordering::Relaxed);
        (result, medians(&watcher.join().unwrap_or_default()))
    })
}

/// The files of a card's sensors.
#[derive(Debug)]
struct Sensors {
    clock: PathBuf,
    power: Option<PathBuf>,
}

impl Sensors {
    /// One reading. The kernel writes hertz and microwatts.
    fn read(&self) -> Option<Load> {
        Some(Load {
            megahertz: number(&self.clock)? / 1e6,
            watts: self.power.as_deref().and_then(number).map(|power| power / 1e6),
        })
    }
}

fn number(file: &Path) -> Option<f64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Returns the sensors of all cards that report their clock.
fn sensors(cards: &Path) -> Vec<Sensors> {
    let inside = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>()
    };
    let of = |directory: PathBuf| {
        let clock = directory.join("freq1_input");
        let power = ["power1_average", "power1_input"].map(|name| directory.join(name));
        let power = power.into_iter().find(|file| number(file).is_some());
        number(&clock).map(|_| Sensors { clock, power })
    };
    let monitors = |card: PathBuf| inside(&card.join("device/hwmon"));
    inside(cards).into_iter().flat_map(monitors).filter_map(of).collect()
}

/// The medians of the readings, less the first third, in which the clock settles.
fn medians(readings: &[Load]) -> Option<Load> {
    let settled = readings.get(readings.len() / 3..).unwrap_or_default();
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    Some(Load {
        megahertz: median(settled.iter().map(|reading| reading.megahertz).collect())?,
        watts: median(settled.iter().filter_map(|reading| reading.watts).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A card in a directory like the kernel's.
    fn card(cards: &Path, name: &str, hertz: &str, power: Option<(&str, &str)>) {
        let monitor = cards.join(name).join("device/hwmon/hwmon3");
        fs::create_dir_all(&monitor).unwrap();
        fs::write(monitor.join("freq1_input"), format!("{hertz}\n")).unwrap();
        if let Some((file, microwatts)) = power {
            fs::write(monitor.join(file), format!("{microwatts}\n")).unwrap();
        }
    }

    #[test]
    fn the_card_that_draws_most_is_read() {
        let cards = tempfile::tempdir().unwrap();
        card(
            cards.path(),
            "card0",
            "132000000",
            Some(("power1_average", "140000000")),
        );
        card(cards.path(), "card1", "1207000000", Some(("power1_input", "748000000")));
        card(cards.path(), "card2", "not a number", None);
        card(cards.path(), "card3", "2100000000", None);
        let (result, load) = during(cards.path(), || {
            std::thread::sleep(8 * BETWEEN);
            17
        });
        assert_eq!(result, 17);
        let wanted = Load {
            megahertz: 1207.0,
            watts: Some(748.0),
        };
        assert_eq!(load, Some(wanted));
    }

    #[test]
    fn without_sensors_the_work_is_done() {
        let cards = tempfile::tempdir().unwrap();
        assert_eq!(during(cards.path(), || 5), (5, None));
        assert_eq!(during(&cards.path().join("none"), || 6), (6, None));
        // Work that ends at once leaves no reading, or one.
        card(cards.path(), "card0", "900000000", None);
        let (_, load) = during(cards.path(), || ());
        assert!(load.is_none_or(|load| load.megahertz == 900.0));
    }

    #[test]
    fn the_clock_settles_first() {
        let reading = |megahertz| Load { megahertz, watts: None };
        let readings = [2100.0, 2050.0, 1200.0, 1210.0, 1190.0, 1200.0].map(reading);
        assert_eq!(medians(&readings), Some(reading(1200.0)));
        assert_eq!(medians(&[]), None);
    }
}
