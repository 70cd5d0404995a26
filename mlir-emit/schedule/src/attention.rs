//! Owns how attention is cut: which rows of scores a workgroup has, in which steps it goes over the keys, and in how many parts.
//!
//! The compiler takes 64 queries and cuts the columns of v in two where one is 128 wide: all scores are then computed twice. And where
//! there is one query, 16 workgroups or fewer read all keys and values of a batch.

use crate::Half;
use crate::Machine;
use crate::gemm::INTRINSIC;

/// How attention is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Queries of a workgroup.
    pub rows: u64,
    /// Keys between two copies to LDS.
    pub keys: u64,
    /// Subgroups of a workgroup.
    pub subgroups: u64,
    /// Rows and columns of a matrix instruction: 16 or 32.
    pub intrinsic: u64,
}

/// The cut of attention with so many batches and heads, queries, keys, and columns of keys and values; `None` leaves it to the compiler,
/// also where there would be fewer workgroups than compute units: the compiler's form is a fifth faster there.
#[must_use]
pub fn cut(machine: &Machine, batches: u64, [queries, keys]: [u64; 2], columns: [u64; 2]) -> Option<Cut> {
    /// Where the compiler's own choice is a third slower at least.
    const COLUMNS: [u64; 2] = [128, 128];
    let cut = |rows, subgroups, intrinsic| Cut {
        rows,
        keys: 32,
        subgroups,
        intrinsic,
    };
    let cuts = [cut(128, 4, 32), cut(64, 2, 32), cut(32, 2, 16)];
    let fits = |cut: &&Cut| queries.is_multiple_of(cut.rows) && keys.is_multiple_of(cut.keys);
    let groups = |cut: &&Cut| batches.saturating_mul(queries / cut.rows);
    let enough = cuts.iter().filter(fits).find(|cut| groups(cut) >= machine.units);
    enough.filter(|_| columns == COLUMNS).copied()
}

/// How attention of many queries is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefill {
    /// Subgroups of a workgroup.
    pub subgroups: u64,
    /// Blocks of 16 queries of a subgroup.
    pub blocks: u64,
}

/// The cut of attention with so many batches and heads, and queries of each: as many queries in a workgroup as leave no compute unit without
/// one.
#[must_use]
pub fn prefill(machine: &Machine, batches: u64, queries: u64) -> Prefill {
    let [most, least] = [2, 1].map(|blocks| Prefill { subgroups: 4, blocks });
    let groups = batches.saturating_mul(queries.div_ceil(most.rows()));
    if groups >= machine.units { most } else { least }
}

impl Prefill {
    /// Queries of a workgroup.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.subgroups * self.blocks * INTRINSIC
    }

    /// What it takes in ns: of so many batches and heads, with so many rows each, of which the rows of a workgroup see so many in each of so many
    /// heads.
    #[must_use]
    pub fn time(&self, machine: &Machine, [batches, rows]: [u64; 2], [seen, heads]: [u64; 2]) -> u64 {
        /// Rows of a step, and what a step takes where a workgroup has a compute unit to itself: predicted for 1024 queries of 16 heads, and within
        /// a fifth of it for gradients.
        const ROWS: u64 = 64;
        const STEP: u64 = 2000;
        let groups = batches.saturating_mul(rows.div_ceil(self.rows()));
        let turns = groups.div_ceil(machine.units.max(1));
        let steps = seen.div_ceil(ROWS).saturating_mul(heads);
        turns.saturating_mul(steps).saturating_mul(STEP)
    }
}

/// What so many scores in memory take in ns, with so many kernels: for each score 12 bytes at 4 TB/s. That is less where few workgroups would go
/// over many keys, which the products of matrices share.
#[must_use]
pub fn time_of_scores(scores: u64, kernels: u64) -> u64 {
    const KERNEL: u64 = 2500;
    const SCORES_OF_3_NS: u64 = 1000;
    (scores / SCORES_OF_3_NS)
        .saturating_mul(3)
        .saturating_add(kernels.saturating_mul(KERNEL))
}

/// Keys that a subgroup of few queries multiplies at once.
pub const STEP: u64 = 32;

/// Parts that are loaded at once when they are added.
const MOST_PARTS: u64 = 32;

/// For at most 16 rows of scores, which one matrix instruction has, in each of so many batches: how many parts the keys have, and the keys
/// of a part; the last may have fewer. One subgroup goes over a part, and parts are added in a second kernel.
///
/// All SIMD units read at once, so what takes the longest is the SIMD with the most keys.
#[must_use]
pub fn parts(machine: &Machine, batches: u64, keys: u64) -> [u64; 2] {
    /// What a part costs beside its keys, as keys.
    const START: u64 = 32;
    const SIMDS: u64 = 4;
    let count = |each: u64| keys.div_ceil(each).max(1);
    let time = |each: u64| {
        let subgroups = batches.saturating_mul(count(each));
        subgroups
            .div_ceil(machine.units.saturating_mul(SIMDS).max(1))
            .saturating_mul(each.saturating_add(START))
    };
    let each = (1..=MOST_PARTS)
        .map(|parts| keys.div_ceil(parts).div_ceil(STEP).max(1).saturating_mul(STEP))
        .min_by_key(|&each| (time(each), count(each)))
        .unwrap_or(STEP);
    [count(each), each]
}

impl Cut {
    /// IREE's attributes of `iree_linalg_ext.online_attention` over so many loops of batches and heads, the queries, the keys, the columns
    /// of v and those of k.
    #[must_use]
    pub fn attributes(&self, half: Half, batches: usize, columns: u64) -> Vec<(&'static str, String)> {
        let Cut {
            rows,
            keys,
            subgroups,
            intrinsic,
        } = *self;
        let list = |first: &str, rest: &str| {
            let all = vec![first; batches];
            let separator = if batches == 0 { "" } else { ", " };
            format!("[{}{separator}{rest}]", all.join(", "))
        };
        let numbers = |axes: [usize; 3]| {
            let all = (0..batches).chain(axes.map(|axis| batches + axis));
            all.map(|axis| axis.to_string()).collect::<Vec<_>>().join(", ")
        };
        let name = match half {
            Half::F16 => "F16",
            Half::Bf16 => "BF16",
        };
        let depth = 256 / intrinsic;
        let promoted = "#iree_gpu.derived_thread_config";
        let basis = |axes| {
            format!(
                "subgroup_basis = [{}, [{}]]",
                list("1", &format!("{subgroups}, 1, 1, 1")),
                numbers(axes)
            )
        };
        let product = |kind: String, basis: String| {
            format!(
                "{{lowering_config = #iree_gpu.lowering_config<{{mma_kind = {kind}, promote_operands = [1], promotion_types = [{promoted}], \
                 {basis}}}>}}"
            )
        };
        let single = format!("#iree_gpu.mma_layout<MFMA_F32_{intrinsic}x{intrinsic}x{depth}_{name}, col_major = true>");
        // Two instructions whose operands are loaded at once: the compiler has them for f16.
        let double = format!(
            "#iree_gpu.virtual_mma_layout<VMFMA_F32_{intrinsic}x{intrinsic}x{}_F16, col_major = true>",
            2 * depth
        );
        let scores = if half == Half::F16 { double } else { single.clone() };
        let (scores, sums) = (product(scores, basis([0, 1, 3])), product(single, basis([0, 1, 2])));
        let tiles = format!(
            "#iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{{promote_operands = [1, 2], promotion_types = \
             [{promoted}, {promoted}], reduction = {}, workgroup = {}}}>, translation_info = #iree_codegen.translation_info<pipeline = \
             #iree_gpu.pipeline<VectorDistribute> workgroup_size = [{}, 1, 1] subgroup_size = 64, {{iree_codegen.denormal_fp_math_f32 = \
             #iree_codegen.denormal_fp_math<\"preserve-sign\">}}>>",
            list("0", &format!("0, {keys}, 0, 0")),
            list("1", &format!("{rows}, 0, {columns}, 0")),
            64 * subgroups,
        );
        vec![
            (
                "decomposition_config",
                format!("{{pv_attrs = {sums}, qk_attrs = {scores}}}"),
            ),
            ("compilation_info", tiles),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_workgroups_get_few_rows() {
        let machine = Machine::of("mi300x").unwrap();
        let rows = |batches, queries| cut(machine, batches, [queries, 4096], [128; 2]).map(|cut| cut.rows);
        assert_eq!(rows(16, 4096), Some(128));
        assert_eq!(rows(16, 2048), Some(64));
        assert_eq!(rows(16, 1024), Some(32));
        assert_eq!(rows(16, 512), None);
        assert_eq!(rows(16, 1000), None);
        assert_eq!(cut(machine, 16, [4096; 2], [64; 2]), None);
    }

    #[test]
    fn many_queries_fill_the_machine() {
        let machine = Machine::of("mi300x").unwrap();
        let rows = |batches, queries| prefill(machine, batches, queries).rows();
        assert_eq!(
            [rows(16, 4096), rows(16, 1024), rows(304, 20), rows(1, 64)],
            [128, 64, 128, 64]
        );
        let is_slower = |batches, queries, keys, seen| {
            let time = prefill(machine, batches, queries).time(machine, [batches, queries], [seen, 1]);
            time > time_of_scores(batches * queries * keys, 4)
        };
        assert!(!is_slower(16, 4096, 4096, 4096));
        assert!(!is_slower(16, 1024, 1024, 1024));
        assert!(!is_slower(16, 1024, 32768, 32768));
        assert!(is_slower(8, 20, 32768, 32768));
        assert!(is_slower(1, 2048, 2048, 2048));
        // A window.
        assert!(!is_slower(1, 2048, 2048, 127));
    }

    #[test]
    fn one_query_has_parts() {
        let machine = Machine::of("mi300x").unwrap();
        assert_eq!(parts(machine, 64, 4096), [19, 224]);
        assert_eq!(parts(machine, 64, 65536), [19, 3456]);
        assert_eq!(parts(machine, 1, 384), [12, 32]);
        assert_eq!(parts(machine, 8, 1000), [32, 32]);
        assert_eq!(parts(machine, 1 << 20, 7), [1, 32]);
    }
}
