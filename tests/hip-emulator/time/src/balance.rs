//! Owns how workgroups with different work spread over the compute units.
//!
//! Workgroups go to the dies in turn, and on a die, in order, to the compute unit that has room first. A workgroup that is alone on
//! its unit runs faster than one beside others.

use crate::Machine;

/// Workgroups above which the launch is so long that its end does not matter.
const MANY: u64 = 1 << 15;

/// The work of each workgroup of a launch, relative to the one whose path is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work<'a> {
    /// Known work by workgroup number, sorted
    known: &'a [(u64, f32)],
    workgroups: u64,
}

impl<'a> Work<'a> {
    /// The work of a launch whose workgroups differ, and are few enough for their differences to matter.
    pub(crate) fn of(known: &'a [(u64, f32)], workgroups: u64) -> Option<Self> {
        (!known.is_empty() && workgroups <= MANY).then_some(Self { known, workgroups })
    }

    /// A workgroup's work: that of the nearest known one.
    fn at(&self, group: u64) -> f64 {
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

    /// How much longer the launch takes than one of the same workgroups with equal work of 1. `clocks[k]` is what a workgroup of work 1
    /// takes where k + 1 run at once.
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

    #[test]
    fn equal_work_stretches_nothing() {
        let known = [(0, 1.0), (700, 1.0)];
        let work = Work::of(&known, 701).unwrap();
        assert_eq!(work.stretch(&MI300X, &[10.0]), 1.0);
        assert!(Work::of(&[], 701).is_none());
        assert!(Work::of(&known, MANY + 1).is_none());
    }
}
