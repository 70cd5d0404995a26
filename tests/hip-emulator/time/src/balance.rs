//! The distribution of workgroups with different work over the compute units.
//!
//! Workgroups are dispatched to the dies (XCDs) in turn, and on a die, in order, to the first
//! compute unit with room. A workgroup alone on its unit runs faster than one that shares the unit.
//!
//! The work is known for only a few workgroups. If it depends on one axis of the grid, such as the
//! tile of a causal mask, that axis is detected, and with it the work that each die gets: for
//! example, if the eight tiles of a head have consecutive numbers, the last die gets only the
//! longest tiles.

use std::collections::BTreeMap;

use crate::Machine;

/// Number of workgroups above which the launch is so long that imbalance at its end does not
/// matter.
const MANY: u64 = 1 << 15;

/// The work of each workgroup of a launch, relative to the workgroup whose path was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Work<'a> {
    /// Known work by workgroup number, sorted by that number
    known: &'a [(u64, f32)],
    workgroups: u64,
    axis: Option<Axis>,
}

impl<'a> Work<'a> {
    /// Returns the work of a launch; `None` if all workgroups have the same, or if they are too
    /// many for differences to matter.
    pub(crate) fn of(known: &'a [(u64, f32)], workgroups: u64) -> Option<Self> {
        (!known.is_empty() && workgroups <= MANY).then(|| Self {
            known,
            workgroups,
            axis: Axis::find(known, workgroups),
        })
    }

    /// Returns a workgroup's work: interpolated along the deciding axis if there is one, else that
    /// of the nearest known workgroup.
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

    /// Returns the launch's time divided by that of the same launch with work 1 in every workgroup.
    /// `clocks[k]` is the time of a workgroup of work 1 when k + 1 workgroups share the unit.
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

/// An axis of the grid that determines the work of a workgroup.
#[derive(Clone, Debug, PartialEq)]
struct Axis {
    /// Distance in workgroup numbers between neighbouring positions on the axis
    inner: u64,
    /// Number of positions
    extent: u64,
    /// Mean of the known work by position, sorted by position
    places: Vec<(u64, f64)>,
}

impl Axis {
    /// Largest share of the known work's variation that an axis may leave unexplained.
    const UNEXPLAINED: f64 = 0.02;
    /// Minimum number of known positions: with fewer, a long axis may fit by chance.
    const FEWEST: usize = 6;

    /// Returns the axis that explains the known work best, if any explains enough of it.
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

    /// Returns an axis with the mean known work at each of its positions.
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

    /// Returns the sum of the squared residuals of the axis: of each known work against the mean of
    /// its position, and of each position against the line between its neighbours.
    fn unexplained(&self, known: &[(u64, f32)]) -> f64 {
        let inside = known.iter().map(|&(group, work)| f64::from(work) - self.work(group));
        let between = self.places.windows(3).map(|three| match *three {
            [before, (place, work), behind] => work - on_line(before, behind, place),
            _ => 0.0,
        });
        inside.chain(between).map(|error| error * error).sum()
    }
}

/// Returns the value at `place` of the line through two points.
fn on_line((a, before): (u64, f64), (b, behind): (u64, f64), place: u64) -> f64 {
    before + (place as f64 - a as f64) / (b as f64 - a as f64) * (behind - before)
}

/// Returns the clocks until the last workgroup ends, if workgroups start in order on the compute
/// units of one die.
fn makespan(work: impl Iterator<Item = f64>, units: usize, clocks: &[f64]) -> f64 {
    let mut work = work;
    // For each unit: the remaining work of its workgroups, and the time for which that was
    // computed.
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
        // With the mean work, the time would be half of that.
        let known: Vec<(u64, f32)> = (0..512)
            .map(|group| (group, 2.0 * (511 - group) as f32 / 511.0))
            .collect();
        let work = Work::of(&known, 512).unwrap();
        let alone = work.stretch(&MI300X, &[100.0, 100.0]);
        assert!((alone - 2.0).abs() < 0.01, "{alone}");
        // A workgroup that shares its unit is slower, so the longest one speeds up when its
        // neighbour ends.
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

    /// Returns the known work of causal attention: the tiles of some heads, at numbers without a
    /// pattern.
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
        // If neighbouring numbers are different heads of the same tile, each die gets all tiles.
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
