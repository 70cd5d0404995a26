//! Owns the decision how many workgroups share a sum.
//!
//! A product with few results and long sums keeps few compute units busy. If several workgroups each sum a part, a second kernel has to add
//! the parts, which are written to memory and read again.

use crate::Machine;

/// Products of matrices of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// How many there are.
    pub count: u64,
    /// Rows of a result.
    pub rows: u64,
    /// Columns of a result.
    pub columns: u64,
    /// Terms of each sum.
    pub terms: u64,
}

/// Rows and columns of a workgroup's tile, about what the compiler takes where there is little to do.
const TILE: u64 = 64;
/// Microseconds for a term of all sums of such a tile, if one workgroup is on a compute unit.
const TERM: f64 = 0.0055;
/// Bytes of a part's sum.
const PART: u64 = 4;
/// What more than one split loop costs: the second kernel then adds along two axes.
const SECOND: f64 = 8.0;
/// A split has to be estimated to be so much faster.
const GAIN: f64 = 0.9;
/// The terms of a part are a multiple of this where the last loop is split.
const STEP: u64 = 32;
/// No loop is cut into more parts: with 64 the second kernel has a subgroup for each result. If the second loop is cut, the first is cut
/// into all of its steps.
const PARTS: u64 = 63;
/// Lanes of a subgroup. Of two axes of parts that fill subgroups together the compiler may leave out some (the quirk `LostSums`).
const SUBGROUP: u64 = 64;
/// Parts have no fewer terms than this.
const FEWEST: u64 = 256;

impl Product {
    fn results(&self) -> u64 {
        self.count.saturating_mul(self.rows).saturating_mul(self.columns)
    }

    /// The estimated time with the sums in so many parts, in microseconds.
    fn time(&self, machine: &Machine, parts: u64) -> f64 {
        let tiles = self
            .count
            .saturating_mul(self.rows.div_ceil(TILE))
            .saturating_mul(self.columns.div_ceil(TILE));
        let rounds = tiles.saturating_mul(parts).div_ceil(machine.units);
        let busy = rounds as f64 * self.terms.div_ceil(parts) as f64 * TERM;
        if parts == 1 {
            return busy;
        }
        let partial = self.results().saturating_mul(PART).saturating_mul(parts);
        busy + machine.launch + machine.moving(partial.saturating_mul(2))
    }
}

/// How much of each summed loop a workgroup takes, if it should not take all. `loops` are their extents, the outermost first.
#[must_use]
pub fn split(machine: &Machine, product: &Product, loops: &[u64]) -> Option<Vec<u64>> {
    let whole = product.time(machine, 1);
    let (tile, time) = candidates(loops)
        .into_iter()
        .filter(|(_, parts)| product.terms / parts >= FEWEST)
        .map(|(tile, parts)| {
            let axes = tile.iter().zip(loops).filter(|(tile, extent)| tile != extent).count();
            let second = if axes > 1 { SECOND } else { 0.0 };
            let time = product.time(machine, parts) + second;
            (tile, time)
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    (time < GAIN * whole).then_some(tile)
}

/// All splits, with the number of their parts: of the first loop, or of all of it and of the second. Parts are equal.
fn candidates(loops: &[u64]) -> Vec<(Vec<u64>, u64)> {
    let mut all = Vec::new();
    let mut before = 1_u64;
    for (position, &extent) in loops.iter().enumerate().take(2) {
        let is_last = position + 1 == loops.len();
        for parts in 2..=extent.min(PARTS) {
            let tile = extent / parts;
            if !extent.is_multiple_of(parts) || (is_last && !tile.is_multiple_of(STEP)) {
                continue;
            }
            let mut tiles = loops.to_vec();
            for (slot, tile) in tiles.iter_mut().zip(std::iter::repeat_n(1, position).chain([tile])) {
                *slot = tile;
            }
            let whole = before.saturating_mul(parts);
            if position == 0 || !whole.is_multiple_of(SUBGROUP) {
                all.push((tiles, whole));
            }
        }
        before = before.saturating_mul(extent);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(product: [u64; 4], loops: &[u64]) -> Option<Vec<u64>> {
        let machine = Machine::of("mi300x").expect("it is known");
        let [count, rows, columns, terms] = product;
        split(
            machine,
            &Product {
                count,
                rows,
                columns,
                terms,
            },
            loops,
        )
    }

    #[test]
    fn few_results_are_shared_and_many_are_not() {
        // The gradient of a 3×3 filter of 64 channels at 56×56: nine tiles.
        let split = of([9, 64, 64, 100_352], &[56, 56, 32]).expect("nine workgroups leave the machine empty");
        assert!(split.first().is_some_and(|rows| (1..=4).contains(rows)), "{split:?}");
        assert_eq!(split.get(1..), Some(&[56, 32][..]));
        assert_eq!(of([1, 4096, 4096, 4096], &[4096]), None);
        assert_eq!(of([1, 64, 64, 64], &[64]), None);
    }

    #[test]
    fn parts_are_equal_and_end_with_a_step() {
        for terms in [1000, 1024, 50_257, 100_352, 4099] {
            let Some(split) = of([1, 16, 16, terms], &[terms]) else {
                continue;
            };
            let [tile] = split.as_slice() else { panic!("one loop") };
            assert!(terms % tile == 0 && tile % STEP == 0, "{terms} in {tile}");
        }
    }
}
