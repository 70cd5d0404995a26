//! How a reduction is spread over the lanes of a workgroup, where the compiler does it badly or not
//! at all.
//!
//! IREE spreads a reduction if its innermost loop is a whole number of subgroups. It gives any
//! other to one thread per result. That is slow. If several such reductions and their readers are
//! one dispatch, IREE also unrolls them so far that it compiles for hours. So these reductions
//! carry a schedule in IREE's own attributes: each dimension is cut into tiles, lanes and subgroups
//! are powers of two whose product is the workgroup, and elements beyond the end are masked.

use crate::quirks::{Quirk, Quirks};
use crate::target::Target;

/// What one thread may sum up one after the other, all of it unrolled.
const FEW: u64 = 32;

/// How many elements each lane takes one after the other before there is another subgroup for them.
const TURNS: u64 = 4;

/// How many sums each lane has where lanes lie along what stays.
const COLUMN_SUMS: u64 = 16;

/// The most subgroups in a workgroup.
const SUBGROUPS: u64 = 16;

/// The loops of a reduction in its operation's order, all of which have more than one step.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    /// Extents of the loops that stay, in memory order.
    pub(crate) kept: Vec<u64>,
    /// Extents of those that are reduced, in memory order.
    pub(crate) reduced: Vec<u64>,
    /// Whether the innermost axis in memory is reduced.
    pub(crate) ends_reduced: bool,
    /// Whether the outermost axis in memory stays.
    pub(crate) begins_kept: bool,
    /// Bits of an element of the narrowest operand.
    pub(crate) bits: u64,
    /// Whether sums are carried in 64 bits.
    pub(crate) is_double: bool,
}

/// How one loop is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    lanes: u64,
    subgroups: u64,
    /// Elements of a lane that lie side by side.
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
    /// Whether IREE would not spread it well by itself ([`Quirk::UnspreadReductions`]). `merges`:
    /// whether the reduced loops become one in any case.
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

    /// The attribute that says how, for the operation.
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

    /// How each loop is cut, and into how many subgroups all of them.
    fn cuts(&self, lanes: u64, quirks: Quirks) -> (Vec<Cut>, u64) {
        let mut kept = vec![Cut::WHOLE; self.kept.len()];
        let mut reduced = vec![Cut::WHOLE; self.reduced.len()];
        let mut lanes_left = lanes;
        // Lanes beside each other read what lies side by side. IREE has no reduction of 64 bits
        // over lanes that are not neighbours.
        if !self.ends_reduced
            && !self.is_double
            && let (Some(cut), Some(&extent)) = (kept.last_mut(), self.kept.last())
        {
            // None of them beyond the end: IREE fails to distribute what is masked along a loop
            // that stays.
            cut.lanes = (1 << extent.trailing_zeros().min(32)).min(lanes_left);
            lanes_left /= cut.lanes;
        }
        let count = product(&self.reduced);
        let widest = (128 / self.bits.max(16)).max(1);
        let thread = match self.reduced.last() {
            // Rows that do not end with a word are read element by element.
            Some(&last) if self.ends_reduced && (last * self.bits).is_multiple_of(32) => {
                let thread = power(last.div_ceil(lanes)).min(widest);
                // As in columns: whole tiles of several elements a lane do not always distribute.
                if last.is_multiple_of(lanes * thread) { 1 } else { thread }
            }
            // Sums of a lane side by side, which meet at the end: one alone would be off by as many
            // roundings as there are rows.
            Some(&last) if !self.ends_reduced && !self.is_double => column_sums(last, lanes_left),
            _ => 1,
        };
        let subgroups = if self.ends_reduced {
            let innermost = self.reduced.last().map_or(1, |last| power(last.div_ceil(thread)));
            // The compiler adds up the first of 16 subgroups alone if eight lanes lie along the
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
                // All that is left; beyond the end is masked.
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

/// How many sums each lane has of a column. One tile has to be masked: IREE fails to distribute a
/// sum of products in whole tiles of several sums.
fn column_sums(length: u64, lanes: u64) -> u64 {
    let sums = power(length.div_ceil(lanes)).min(COLUMN_SUMS);
    let is_masked = |sums: &u64| !length.is_multiple_of(lanes * sums);
    (sums / 2 + 1..=sums).rev().find(is_masked).unwrap_or(1)
}

/// The lanes of a subgroup.
fn lanes(target: &Target) -> Option<u64> {
    target.least_subgroup().and_then(|lanes| u64::try_from(lanes).ok())
}

/// The least power of two that is not below a number.
fn power(number: u64) -> u64 {
    number.min(1 << 40).next_power_of_two()
}

fn product(extents: &[u64]) -> u64 {
    extents
        .iter()
        .fold(1_u64, |product, &extent| product.saturating_mul(extent))
}
