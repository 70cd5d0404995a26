//! Owns how workgroups with different work spread over the compute units.
//!
//! Workgroups go to the dies in turn, and on a die, in order, to the compute unit that has room
//! first. A workgroup that is alone on its unit runs faster than one beside others.
//!
//! The work of a few workgroups is known. If it follows from one axis of the grid, such as the tile
//! of a causal mask, that axis is found, and with it which die gets which work: where eight tiles
//! lie side by side, the last die has nothing but the longest.

use std::collections::BTreeMap;

use crate::Machine;

/// Workgroups above which the launch is so long that its end does not matter.
const MANY: u64 = 1 << 15;

/// The work of each workgroup of a launch, relative to the one whose path is kept.
#[derive(Clone, Debug)]
pub(crate) struct Work<'a> {
    /// Known work by workgroup number, sorted
    known: &'a [(u64, f32)],
    workgroups: u64,
    axis: Option<Axis>,
}

impl<'a> Work<'a> {
    /// The work of a launch whose workgroups differ, and are few enough for their differences to
    /// matter.
    pub(crate) fn of(known: &'a [(u64, f32)], workgroups: u64) -> Option<Self> {
        (!known.is_empty() && workgroups <= MANY).then(|| Self {
            known,
            workgroups,
            axis: Axis::find(known, workgroups),
        })
    }

    /// A workgroup's work: by its place on the axis that decides, else that of the nearest known
    /// one.
    fn at(&self, group: u64) -> f64 {
        if let Some(axis) = &self.axis {
            return axis.work(group);
        }
        let after = self.known.partition_point(|&(number, _)| number < group);
        let near = self
            .known
            .get(after.saturating_sub(1)..)
            .unwrap_or_default()
            .iter()
            .take(2);
        let nearest = near.min_by_key(|(number, _)| number.abs_diff(group));
        nearest.map_or(1.0, |&(_, work)| f64::from(work))
    }

    /// How much longer the launch takes than one of the same workgroups with equal work of 1.
    /// `clocks[k]` is what a workgroup of work 1 takes where k + 1 run at once.
    pub(crate) fn stretch(&self, machine: &Machine, clocks: &[f64]) -> f64 {
        let dies = u64::from(machine.dies);
        let units = (machine.units / machine.dies) as usize;
        let longest = |work: &dyn Fn(u64) -> f64| {
            let of_die = |die: u64| {
                let groups = (die..self.workgroups).step_by(dies as usize).map(work);
                makespan(groups, units, clocks)
            };
            (0..dies).map(of_die).fold(0.0, f64::max)
        };
        longest(&|group| self.at(group)) / longest(&|_| 1.0).max(f64::MIN_POSITIVE)
    }
}

/// An axis of the grid from which the work of a workgroup follows.
#[derive(Clone, Debug, PartialEq)]
struct Axis {
    /// Workgroups from one place on the axis to the next
    inner: u64,
    /// Number of places
    extent: u64,
    /// Mean of the known work by place, sorted
    places: Vec<(u64, f64)>,
}

impl Axis {
    /// Share of the variation of the known work that an axis may leave unexplained.
    const UNEXPLAINED: f64 = 0.02;
    /// Known places below which a long axis may fit by chance.
    const FEWEST: usize = 6;

    /// The axis that explains the known work best, if there is one.
    fn find(known: &[(u64, f32)], workgroups: u64) -> Option<Self> {
        let count = known.len() as f64;
        let mean = known.iter().map(|&(_, work)| f64::from(work)).sum::<f64>() / count;
        let squares = |of: f64| known.iter().map(move |&(_, work)| (f64::from(work) - of).powi(2));
        let variation = squares(mean).sum::<f64>();
        let divisors: Vec<u64> = (1..=workgroups).filter(|n| workgroups.is_multiple_of(*n)).collect();
        let pairs = divisors
            .iter()
            .flat_map(|&inner| divisors.iter().map(move |&extent| (inner, extent)));
        let axes = pairs
            .filter(|(inner, extent)| *extent > 1 && workgroups.is_multiple_of(inner * extent))
            .map(|(inner, extent)| Self::of(known, inner, extent))
            .filter(|axis| axis.places.len() >= Self::FEWEST.min(axis.extent as usize));
        let (error, axis) = axes
            .map(|axis| (axis.unexplained(known), axis))
            .min_by(|a, b| a.0.total_cmp(&b.0))?;
        (error <= Self::UNEXPLAINED * variation).then_some(axis)
    }

    /// An axis with what is known of it.
    fn of(known: &[(u64, f32)], inner: u64, extent: u64) -> Self {
        let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for &(group, work) in known {
            let (sum, count) = sums.entry(group / inner % extent).or_default();
            *sum += f64::from(work);
            *count += 1.0;
        }
        let places = sums.into_iter().map(|(place, (sum, count))| (place, sum / count));
        Self {
            inner,
            extent,
            places: places.collect(),
        }
    }

    fn work(&self, group: u64) -> f64 {
        let place = group / self.inner % self.extent;
        let after = self.places.partition_point(|&(at, _)| at < place);
        let first = after.saturating_sub(1).min(self.places.len().saturating_sub(2));
        match self.places.get(first..) {
            Some(&[before, behind, ..]) => on_line(before, behind, place).max(0.0),
            Some(&[(_, only)]) => only,
            _ => 1.0,
        }
    }

    /// Sum of the squares of what the axis does not explain: how far each known work is from the
    /// mean of its place, and each place from the line between its neighbours.
    fn unexplained(&self, known: &[(u64, f32)]) -> f64 {
        let inside = known.iter().map(|&(group, work)| f64::from(work) - self.work(group));
        let between = self.places.windows(3).map(|three| match *three {
            [before, (place, work), behind] => work - on_line(before, behind, place),
            _ => 0.0,
        });
        inside.chain(between).map(|error| error * error).sum()
    }
}

/// The value at a place of the line through two points.
fn on_line((a, before): (u64, f64), (b, behind): (u64, f64), place: u64) -> f64 {
    before + (place as f64 - a as f64) / (b as f64 - a as f64) * (behind - before)
}

/// Clocks until the last of some workgroups ends that start in order on a die's compute units.
fn makespan(work: impl Iterator<Item = f64>, units: usize, clocks: &[f64]) -> f64 {
    let mut work = work;
    // The work that is left to each workgroup of each unit, and when that was so.
    let mut running: Vec<(Vec<f64>, f64)> = vec![(Vec::new(), 0.0); units];
    for _ in 0..clocks.len() {
        for (groups, _) in &mut running {
            groups.extend(work.next());
        }
    }
    let ends = |(groups, since): &(Vec<f64>, f64)| -> Option<f64> {
        let least = groups.iter().copied().reduce(f64::min)?;
        Some(since + least * clocks[groups.len() - 1])
    };
    let mut last = 0.0;
    loop {
        let next = running
            .iter()
            .enumerate()
            .filter_map(|(unit, state)| Some((ends(state)?, unit)));
        let Some((time, unit)) = next.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return last;
        };
        last = time;
        let (groups, since) = &mut running[unit];
        let done = (time - *since) / clocks[groups.len() - 1];
        groups.iter_mut().for_each(|left| *left -= done);
        groups.retain(|&left| left > 1e-9);
        *since = time;
        while groups.len() < clocks.len()
            && let Some(fresh) = work.next()
        {
            groups.push(fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MI300X;

    #[test]
    fn the_longest_workgroup_decides_where_all_run_at_once() {
        // Half of the time would be the mean's.
        let known: Vec<(u64, f32)> = (0..512)
            .map(|group| (group, 2.0 * (511 - group) as f32 / 511.0))
            .collect();
        let work = Work::of(&known, 512).unwrap();
        let alone = work.stretch(&MI300X, &[100.0, 100.0]);
        assert!((alone - 2.0).abs() < 0.01, "{alone}");
        // Beside another one each is slower, so the longest gains when its neighbour ends.
        let beside = work.stretch(&MI300X, &[100.0, 200.0]);
        assert!(beside > 1.2 && beside < 1.8, "{beside}");
    }

    #[test]
    fn many_rounds_even_out() {
        let known: Vec<(u64, f32)> = (0..16)
            .map(|n| (n * 2048 + 1024, 2.0 * (15 - n) as f32 / 15.0))
            .collect();
        let work = Work::of(&known, 32768).unwrap();
        let stretch = work.stretch(&MI300X, &[100.0, 150.0]);
        assert!((stretch - 1.0).abs() < 0.06, "{stretch}");
    }

    /// Known work of causal attention: some heads' tiles, at numbers without a pattern.
    fn causal(tiles: u64, workgroups: u64) -> Vec<(u64, f32)> {
        let numbers = (0..workgroups).filter(|number| number * 7919 % 23 == 0);
        numbers
            .map(|number| (number, 2.0 * (number % tiles + 1) as f32 / (tiles + 1) as f32))
            .collect()
    }

    #[test]
    fn a_die_that_has_the_longest_tiles_decides() {
        for (tiles, wanted) in [(8, 16.0 / 9.0), (16, 24.0 / 17.0), (64, 72.0 / 65.0)] {
            let known = causal(tiles, 256 * tiles);
            let work = Work::of(&known, 256 * tiles).unwrap();
            let of_sixth = work.at(tiles * 3 + 5) * (tiles + 1) as f64;
            assert!((of_sixth - 12.0).abs() < 1e-4, "{tiles}: {of_sixth}");
            let stretch = work.stretch(&MI300X, &[100.0, 150.0]);
            assert!((stretch / wanted - 1.0).abs() < 0.05, "{tiles}: {stretch}, {wanted}");
        }
        // Heads side by side and tiles behind each other: each die has all tiles.
        let known: Vec<(u64, f32)> = (0..2048)
            .filter(|number| number * 7919 % 23 == 0)
            .map(|number| (number, 2.0 * (number / 32 % 8 + 1) as f32 / 9.0))
            .collect();
        let stretch = Work::of(&known, 2048).unwrap().stretch(&MI300X, &[100.0, 150.0]);
        assert!(stretch < 1.25, "{stretch}");
    }

    #[test]
    fn work_without_an_axis_has_none() {
        let known: Vec<(u64, f32)> = (0..64_u64)
            .map(|number| (number * 31, (number * number * 7919 % 101) as f32))
            .collect();
        assert_eq!(Axis::find(&known, 2048), None);
    }

    #[test]
    fn equal_work_stretches_nothing() {
        let known = [(0, 1.0), (700, 1.0)];
        let work = Work::of(&known, 701).unwrap();
        assert_eq!(work.stretch(&MI300X, &[10.0]), 1.0);
        assert!(Work::of(&[], 701).is_none());
        assert!(Work::of(&known, MANY + 1).is_none());
    }
}
