//! Spreads a reduction over the lanes of a workgroup where the compiler does so badly or not at
//! all.
//!
//! IREE spreads a reduction if its innermost loop is a whole number of subgroups. It computes each
//! result of any other reduction in one thread, which is slow. If several such reductions and their
//! readers are one dispatch, IREE also unrolls them so far that it compiles for hours. So these
//! reductions carry a schedule in IREE's own attributes: each dimension is cut into tiles, lanes
//! and subgroups are powers of two whose product is the workgroup, and elements beyond the end are
//! masked.

use crate::quirks::{Quirk, Quirks};
use crate::target::Target;

/// The most terms that one thread sums, all of them unrolled.
const FEW: u64 = 32;

/// Elements that each lane takes in sequence before another subgroup is added.
const TURNS: u64 = 4;

/// Most partial sums of each lane if neighbouring lanes are along a kept axis.
const COLUMN_SUMS: u64 = 16;

/// The most subgroups in a workgroup.
const SUBGROUPS: u64 = 16;

/// The loops of a reduction in its operation's order, all of which have more than one step.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    /// Extents of the kept loops, in memory order.
    pub(crate) kept: Vec<u64>,
    /// Extents of the reduced loops, in memory order.
    pub(crate) reduced: Vec<u64>,
    /// True if the innermost axis in memory is reduced.
    pub(crate) ends_reduced: bool,
    /// True if the outermost axis in memory is kept.
    pub(crate) begins_kept: bool,
    /// Bits of an element of the narrowest operand.
    pub(crate) bits: u64,
    /// True if sums are carried in 64 bits.
    pub(crate) is_double: bool,
}

/// The tiling of one loop: its tile is the product of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    lanes: u64,
    subgroups: u64,
    /// Contiguous elements of a lane.
    thread: u64,
}

impl Cut {
    const WHOLE: Cut = Cut {
        lanes: 1,
        subgroups: 1,
        thread: 1,
    };

    fn tile(self) -> u64 {
        self.lanes * self.subgroups * self.thread
    }
}

impl Loops {
    /// Returns true if IREE would not spread the reduction well by itself
    /// ([`Quirk::UnspreadReductions`]). `merges`: whether the reduced loops become one in any case.
    pub(crate) fn need_help(&self, (target, quirks): (&Target, Quirks), merges: bool) -> bool {
        if !quirks.avoids(Quirk::UnspreadReductions) {
            return false;
        }
        let (Some(subgroup), Some(&last)) = (lanes(target), self.reduced.last()) else {
            return false;
        };
        let count = product(&self.reduced);
        let length = if merges { count } else { last };
        let is_spread = self.ends_reduced && self.begins_kept && length % subgroup == 0;
        !is_spread && count > FEW
    }

    /// Returns the attribute with the schedule.
    pub(crate) fn attribute(&self, target: &Target, quirks: Quirks) -> String {
        let lanes = lanes(target).expect("a target without subgroups");
        let (cuts, subgroups) = self.cuts(lanes, quirks);
        let list = |numbers: Vec<u64>| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("[{}]", numbers.join(", "))
        };
        let kept = self.kept.len();
        let of = |number: fn(&Cut) -> u64| cuts.iter().map(number).collect::<Vec<_>>();
        let only = |first: bool| {
            let cuts = cuts.iter().enumerate();
            cuts.map(|(position, cut)| if (position < kept) == first { cut.tile() } else { 0 })
                .collect::<Vec<_>>()
        };
        let positions = list((0..).zip(&cuts).map(|(position, _)| position).collect());
        format!(
            "#iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{{workgroup = {}, partial_reduction = {}, \
             thread = {}, lane_basis = [{}, {positions}], subgroup_basis = [{}, {positions}]}}>, \
             translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> \
             workgroup_size = [{}, 1, 1] subgroup_size = {lanes}, {{gpu_pipeline_options = #iree_gpu.pipeline_options<\
             no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = false>}}>>",
            list(only(true)),
            list(only(false)),
            list(of(|cut| cut.thread)),
            list(of(|cut| cut.lanes)),
            list(of(|cut| cut.subgroups)),
            lanes * subgroups,
        )
    }

    /// Returns the tiling of each loop, and the number of subgroups of a workgroup.
    fn cuts(&self, lanes: u64, quirks: Quirks) -> (Vec<Cut>, u64) {
        let mut kept = vec![Cut::WHOLE; self.kept.len()];
        let mut reduced = vec![Cut::WHOLE; self.reduced.len()];
        let mut lanes_left = lanes;
        // Neighbouring lanes should read contiguous elements. IREE has no 64-bit reduction over
        // lanes that are not neighbours.
        if !self.ends_reduced
            && !self.is_double
            && let (Some(cut), Some(&extent)) = (kept.last_mut(), self.kept.last())
        {
            // No lane may be beyond the end: IREE fails to distribute masks along a kept loop.
            cut.lanes = (1 << extent.trailing_zeros().min(32)).min(lanes_left);
            lanes_left /= cut.lanes;
        }
        let count = product(&self.reduced);
        let widest = (128 / self.bits.max(16)).max(1);
        let thread = match self.reduced.last() {
            // Rows whose length is no multiple of a 32-bit word are read element by element.
            Some(&last) if self.ends_reduced && (last * self.bits).is_multiple_of(32) => {
                let thread = power(last.div_ceil(lanes)).min(widest);
                // As in `column_sums`: whole tiles with several elements per lane do not always
                // distribute.
                if last.is_multiple_of(lanes * thread) { 1 } else { thread }
            }
            // Several partial sums per lane, which are added at the end: a single sum would
            // accumulate as many rounding errors as there are rows.
            Some(&last) if !self.ends_reduced && !self.is_double => column_sums(last, lanes_left),
            _ => 1,
        };
        let subgroups = if self.ends_reduced {
            let innermost = self.reduced.last().map_or(1, |last| power(last.div_ceil(thread)));
            // The compiler adds only the first of 16 subgroups if eight lanes are along the
            // innermost of several loops.
            let is_lost = self.reduced.len() > 1 && innermost == 8 && quirks.avoids(Quirk::LostSums);
            let most = if is_lost { SUBGROUPS / 2 } else { SUBGROUPS };
            power(count.div_ceil(lanes_left * thread * TURNS)).min(most)
        } else {
            1
        };
        let mut subgroups_left = subgroups;
        for (position, (cut, &extent)) in reduced.iter_mut().zip(&self.reduced).enumerate().rev() {
            if position + 1 == self.reduced.len() {
                cut.thread = thread;
            }
            let takes_all = self.is_double && position + 1 == self.reduced.len();
            if position == 0 || takes_all {
                // The outermost loop, or for doubles the innermost one, takes all that is left;
                // elements beyond the end are masked.
                (cut.lanes, cut.subgroups) = (lanes_left, subgroups_left);
            } else {
                cut.lanes = power(extent.div_ceil(cut.thread)).min(lanes_left);
                cut.subgroups = power(extent.div_ceil(cut.thread * cut.lanes)).min(subgroups_left);
            }
            lanes_left /= cut.lanes;
            subgroups_left /= cut.subgroups;
        }
        kept.append(&mut reduced);
        (kept, subgroups)
    }
}

/// Returns the number of partial sums that each lane has of a column. One tile has to be masked:
/// IREE fails to distribute a sum of products in whole tiles of several sums.
fn column_sums(length: u64, lanes: u64) -> u64 {
    let sums = power(length.div_ceil(lanes)).min(COLUMN_SUMS);
    let is_masked = |sums: &u64| !length.is_multiple_of(lanes * sums);
    (sums / 2 + 1..=sums).rev().find(is_masked).unwrap_or(1)
}

/// Returns the number of lanes of a subgroup.
fn lanes(target: &Target) -> Option<u64> {
    target.least_subgroup().and_then(|lanes| u64::try_from(lanes).ok())
}

/// Returns the least power of two that is not below a number.
fn power(number: u64) -> u64 {
    number.min(1 << 40).next_power_of_two()
}

fn product(extents: &[u64]) -> u64 {
    extents
        .iter()
        .fold(1_u64, |product, &extent| product.saturating_mul(extent))
}
