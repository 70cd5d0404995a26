//! Owns how a product is cut into tiles of workgroups, subgroups and matrix instructions.
//!
//! The compiler takes large tiles, of which a compute unit holds one workgroup: while that waits, nothing else runs. Small tiles let two
//! to four workgroups share a unit. They were found by predicting a dozen tiles for each of several layers; the rule here picks among those.

use crate::Machine;

/// Rows and columns of a matrix instruction.
const INTRINSIC: u64 = 16;
/// Terms of the sums that a matrix instruction of 16-bit floats adds.
const DEPTH: u64 = 16;
/// Images that lie side by side in a tile.
const IMAGES: u64 = 32;
/// A tile is small enough if there are so many workgroups for each compute unit.
const GROUPS: u64 = 2;

/// Products of more results are left to the compiler's larger tiles, which read less.
const FEW_RESULTS: u64 = 3072 * 3072;

/// How a product of 16-bit floats is cut, in IREE's counting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Elements of a workgroup's tile along each loop of the result.
    pub workgroup: Vec<u64>,
    /// Matrix instructions of a subgroup along each of these.
    pub subgroup: Vec<u64>,
    /// Matrix instructions along the sum between two copies to LDS.
    pub steps: u64,
    /// Subgroups of a workgroup.
    pub subgroups: u64,
    /// Loops that are summed over, which are one where windows are read as patches.
    pub summed: usize,
    /// Whether tiles reach beyond the end, where zeros are added.
    pub overlaps: bool,
    /// Whether windows are read as patches.
    pub implicit: bool,
}

/// The type of the factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Of the IEEE.
    F16,
    /// With eight bits of exponent.
    Bf16,
}

impl Tiles {
    /// IREE's attribute.
    #[must_use]
    pub fn attribute(&self, half: Half) -> String {
        let list = |numbers: &[u64]| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            numbers.join(", ")
        };
        let loops = |inner: &[u64], sum: u64| list(&[inner, &[sum]].concat());
        let zeros = vec![0; self.workgroup.len()];
        let padding = if self.overlaps {
            let all = loops(&self.workgroup, self.steps * DEPTH);
            let summed = list(&vec![0; self.summed]);
            let windows = format!("padding_conv = [{}, {summed}], ", list(&self.workgroup));
            format!(
                "padding = [{all}], {}",
                if self.implicit { windows.as_str() } else { "" }
            )
        } else {
            String::new()
        };
        let intrinsic = match half {
            Half::F16 => "MFMA_F32_16x16x16_F16",
            Half::Bf16 => "MFMA_F32_16x16x16_BF16",
        };
        format!(
            "#iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{{mma_kind = #iree_gpu.mma_layout<{intrinsic}>, \
             {padding}promote_operands = [0, 1], reduction = [{}], subgroup = [{}], workgroup = [{}]}}>, translation_info = \
             #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [{}, 1, 1] subgroup_size = 64, \
             {{gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 2, no_reduce_shared_memory_bank_conflicts = false, \
             use_igemm_convolution = {}>}}>>",
            loops(&zeros, self.steps),
            loops(&self.subgroup, 0),
            loops(&self.workgroup, 0),
            64 * self.subgroups,
            self.implicit,
        )
    }
}

/// A convolution with its channels innermost, over rows, columns, images and filters in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Rows of the result.
    pub rows: u64,
    /// Columns of the result.
    pub columns: u64,
    /// Images.
    pub images: u64,
    /// Filters.
    pub filters: u64,
    /// Channels.
    pub channels: u64,
    /// Axes along which the window has several taps.
    pub windows: usize,
}

/// The tiles of a convolution; `None` leaves it to the compiler.
#[must_use]
pub fn convolution(machine: &Machine, problem: &Convolution) -> Option<Tiles> {
    let images = if problem.images.is_multiple_of(IMAGES) {
        IMAGES
    } else {
        INTRINSIC
    };
    if !problem.images.is_multiple_of(images) {
        return None;
    }
    // Columns, images, filters; steps along the sum. The largest that gives each unit enough to do, else the smallest.
    let shapes = [(64 / images, 64, 4), (32 / images, 64, 4), (32 / images, 32, 8)];
    let fits = |&(_, filters, steps): &(u64, u64, u64)| {
        problem.filters.is_multiple_of(filters) && problem.channels.is_multiple_of(steps * DEPTH)
    };
    let groups = |&(columns, filters, _): &(u64, u64, u64)| {
        problem.rows * problem.columns.div_ceil(columns) * (problem.images / images) * (problem.filters / filters)
    };
    let fitting = || shapes.iter().filter(|shape| fits(shape));
    let enough = fitting().find(|shape| groups(shape) >= GROUPS * machine.units);
    let &(columns, filters, steps) = enough.or_else(|| fitting().next_back())?;
    let [across, down] = subgroups(columns * images / INTRINSIC, filters / INTRINSIC)?;
    // Subgroups lie along the columns first, then along the images.
    let along = if columns.is_multiple_of(across) { across } else { 1 };
    Some(Tiles {
        workgroup: vec![1, columns, images, filters],
        subgroup: vec![
            1,
            columns / along,
            images / INTRINSIC / (across / along),
            filters / INTRINSIC / down,
        ],
        steps,
        subgroups: across * down,
        summed: problem.windows + 1,
        overlaps: !problem.columns.is_multiple_of(columns),
        implicit: true,
    })
}

/// The tiles of one product of matrices; `None` leaves it to the compiler, as what has too few results for two workgroups a unit.
#[must_use]
pub fn matrices(machine: &Machine, rows: u64, columns: u64, terms: u64) -> Option<Tiles> {
    let tiles = product(machine, rows, columns, terms)?;
    let is_large = tiles.workgroup.iter().product::<u64>() >= 32 * 64;
    let is_few = rows.saturating_mul(columns) <= FEW_RESULTS;
    (is_large && is_few).then_some(tiles)
}

/// The tiles of the product that a convolution with one tap is; `None` leaves it to the compiler.
#[must_use]
pub fn product(machine: &Machine, rows: u64, columns: u64, terms: u64) -> Option<Tiles> {
    let shapes = [(64, 64, 4), (32, 64, 4), (32, 32, 8)];
    let fits = |&(tall, wide, steps): &(u64, u64, u64)| {
        rows.is_multiple_of(tall) && columns.is_multiple_of(wide) && terms.is_multiple_of(steps * DEPTH)
    };
    let groups = |&(tall, wide, _): &(u64, u64, u64)| (rows / tall) * (columns / wide);
    let fitting = || shapes.iter().filter(|shape| fits(shape));
    let enough = fitting().find(|shape| groups(shape) >= GROUPS * machine.units);
    let &(tall, wide, steps) = enough.or_else(|| fitting().next_back())?;
    let [across, down] = subgroups(tall / INTRINSIC, wide / INTRINSIC)?;
    Some(Tiles {
        workgroup: vec![tall, wide],
        subgroup: vec![tall / INTRINSIC / across, wide / INTRINSIC / down],
        steps,
        subgroups: across * down,
        summed: 1,
        overlaps: false,
        implicit: false,
    })
}

/// The tiles of a product for each image: of all filters by the image's pixels, which may end inside a tile.
#[must_use]
pub fn per_image(machine: &Machine, [images, filters, pixels, channels]: [u64; 4]) -> Option<Tiles> {
    let shapes = [(64, 64, 4), (32, 64, 4), (32, 32, 8)];
    let fits =
        |&(tall, _, steps): &(u64, u64, u64)| filters.is_multiple_of(tall) && channels.is_multiple_of(steps * DEPTH);
    let groups = |&(tall, wide, _): &(u64, u64, u64)| images * (filters / tall) * pixels.div_ceil(wide);
    let fitting = || shapes.iter().filter(|shape| fits(shape));
    let enough = fitting().find(|shape| groups(shape) >= GROUPS * machine.units);
    let &(tall, wide, steps) = enough.or_else(|| fitting().next_back())?;
    let [across, down] = subgroups(tall / INTRINSIC, wide / INTRINSIC)?;
    Some(Tiles {
        workgroup: vec![1, tall, wide],
        subgroup: vec![1, tall / INTRINSIC / across, wide / INTRINSIC / down],
        steps,
        subgroups: across * down,
        summed: 1,
        overlaps: !pixels.is_multiple_of(wide),
        implicit: false,
    })
}

/// Four subgroups along the two sides of a tile of so many matrix instructions.
fn subgroups(tall: u64, wide: u64) -> Option<[u64; 2]> {
    (tall.is_multiple_of(2) && wide.is_multiple_of(2)).then_some([2, 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_what_their_subgroups_multiply() {
        let machine = Machine::of("mi300x").expect("it is known");
        for (rows, images, filters, channels) in [
            (7, 32, 512, 512),
            (14, 64, 256, 256),
            (28, 16, 128, 128),
            (56, 32, 64, 64),
        ] {
            let problem = Convolution {
                rows,
                columns: rows,
                images,
                filters,
                channels,
                windows: 2,
            };
            let tiles = convolution(machine, &problem).expect("it is regular");
            let elements: u64 = tiles.workgroup.iter().product();
            let instructions: u64 = tiles.subgroup.iter().product();
            assert_eq!(
                elements,
                instructions * INTRINSIC * INTRINSIC * tiles.subgroups,
                "{tiles:?}"
            );
        }
        assert_eq!(product(machine, 1000, 300, 64), None);
    }

    #[test]
    fn few_results_get_small_tiles() {
        let machine = Machine::of("mi300x").expect("it is known");
        let tiles = |rows, columns| product(machine, rows, columns, 1024).map(|tiles| tiles.workgroup);
        assert_eq!(tiles(25_088, 128), Some(vec![64, 64]));
        assert_eq!(tiles(1568, 512), Some(vec![32, 32]));
        assert_eq!(matrices(machine, 1568, 512, 1024), None);
        assert_eq!(matrices(machine, 8192, 8192, 1024), None);
        assert!(matrices(machine, 1024, 3072, 768).is_some());
    }
}
