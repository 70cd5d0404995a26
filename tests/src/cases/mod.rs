//! The conformance cases: graphs over operation, type, layout and edge.
//!
//! | Module | Cases |
//! |---|---|
//! | `convolution` | convolutions, alone and with what is fused behind them |
//! | `grouped` | convolutions in groups, depthwise ones among them, and their gradients |
//! | `stressed`, `unpacked` | convolutions of shapes that stress a form, and of operands that need no packing |
//! | `cropped` | convolutions with padding below zero, in all directions |
//! | `bare` | convolutions and gradients with nothing behind them, of shapes that stress the kernels of CPUs |
//! | `gradients` | dgrad and wgrad, alone and with what is fused around them |
//! | `matmul` | transposes, batches that repeat, types, epilogues |
//! | `moe` | matmuls grouped by expert, forward and backward |
//! | `reduction` | modes, axes, types, what is fused before and after |
//! | `unequal` | matmuls of unequal ranks, axes of one element, rows of NaN alone |
//! | `pooling` | forward, with and without an index, and backward |
//! | `functions` | pointwise modes over all magnitudes |
//! | `pointwise` | modes, types, parameters, broadcasting |
//! | `norm` | batch, layer and RMS normalization, forward and backward |
//! | `fusions` | what the engine is for, at the shapes of known networks, and small |
//! | `attention`, `decode`, `prefill`, `hidden` | scaled dot-product attention: forward and backward, of few queries, of many; what queries do not see |
//! | `layout` | orders that differ between tensors, gaps, repeated elements, whatever the operation |
//! | `boolean` | truth values: masks, comparisons, selections, conversions, reductions, scalars |
//! | `low_precision` | types of eight bits and less: conversions, storage, operations on them |
//! | `block_scale` | scales of blocks, quantised and back, and matmul on what is scaled |
//! | `custom` | bodies in MLIR that the caller wrote |
//! | `bodies` | such bodies that meet a defect of the compiler |
//! | `quotients` | elements of rows divided by what there is one of for each row |
//! | `sums` | long sums |
//! | `structure` | graphs of several nodes |
//! | `found` | graphs that random ones were shrunk to |
//! | `uncompiled` | graphs that random ones were shrunk to, which did not compile for gfx942 |
//! | `peers` | chains that other engines say they run |
//! | `scalar` | scalars that are passed at execution |
//! | `second` | graphs that a second encoder made, of every family |
//! | `declined` | what is not run, with the reason |
//! | `resnet50` | layers of a known network, apart from the rest because they are larger |
//!
//! A family of operations has a module of its own here as it has in the lowering; [`all`] lists
//! them.

mod attention;
mod bare;
mod block_scale;
mod bodies;
mod boolean;
mod case;
mod convolution;
mod cropped;
mod custom;
mod declined;
mod decode;
mod found;
mod functions;
mod fusions;
mod gradients;
mod grouped;
mod hidden;
mod layout;
mod low_precision;
mod matmul;
mod moe;
mod norm;
mod peers;
mod pointwise;
mod pooling;
mod prefill;
mod quotients;
mod reduction;
mod resnet50;
mod scalar;
mod second;
mod stressed;
mod structure;
mod sums;
mod uncompiled;
mod unequal;
mod unpacked;

pub(crate) use norm::graph::Norm;
pub(crate) use reduction::{softmax, spread};

pub use attention::flash_attention;
pub use case::{Case, Data, Order};
pub use convolution::Conv;
pub use declined::declined;
pub use fusions::{conv_gradients, fusions, residual_layernorms};
pub use pointwise::WITHOUT_F64;
pub use resnet50::resnet50;
pub use second::{Encoded, second, second_random};

use anyhow::{Context as _, Result};
use case::Cases;
use rotini_graph::DataType;

/// Cases on buffers of their own.
///
/// # Errors
///
/// Those of filling the buffers.
pub fn with_data() -> Result<Vec<Data>> {
    let mut data = moe::routings()?;
    data.extend(pooling::edges()?);
    data.extend(pointwise::edges()?);
    data.extend(gradients::edges()?);
    data.extend(unequal::rows_of_nan()?);
    data.extend(matmul::rounded()?);
    data.extend(block_scale::edges()?);
    data.extend(low_precision::halves()?);
    data.extend(boolean::edges()?);
    data.extend(custom::extremes()?);
    data.extend(prefill::unusual()?);
    data.extend(hidden::partly()?);
    data.extend(quotients::all(false)?);
    Ok(data)
}

/// Rows divided by what there is one of for each, over all magnitudes.
///
/// # Errors
///
/// If the reference cannot fill them.
pub fn quotients() -> Result<Vec<Data>> {
    quotients::all(true)
}

/// The kinds of normalizations, as nodes are named in messages.
pub const NORMS: [&str; 8] = [
    "batchnorm inference",
    "batchnorm inference with variance",
    "batchnorm training",
    "batchnorm backward",
    "layernorm",
    "layernorm backward",
    "RMSNorm",
    "RMSNorm backward",
];

/// Every case, also those that come with data; in these the graph alone.
///
/// # Errors
///
/// Those of filling the buffers.
pub fn all_graphs() -> Result<Vec<Case>> {
    let mut all = self::all();
    all.extend(with_data()?.into_iter().map(|data| data.case));
    Ok(all)
}

/// Pointwise modes on arguments of all magnitudes, in f32 and f64; without those that the CPU
/// declines if it is to run them.
///
/// # Errors
///
/// Those of filling the buffers.
pub fn functions(on_cpu: bool) -> Result<Vec<Data>> {
    let mut data = functions::functions(DataType::F32)?;
    data.extend(functions::functions(DataType::F64)?);
    let is_declined = |name: &str| {
        WITHOUT_F64
            .iter()
            .any(|mode| name == format!("function_{}_f64", mode.name()))
    };
    data.retain(|data| !(on_cpu && is_declined(&data.case.name)));
    Ok(data)
}

/// Sums of enough terms that the error has to grow more slowly than their number.
///
/// # Errors
///
/// Those of filling the buffers.
pub fn long_sums() -> Result<Vec<Data>> {
    sums::long()
}

/// Every case.
#[must_use]
pub fn all() -> Vec<Case> {
    let mut cases = Cases(Vec::new());
    convolution::alone(&mut cases);
    convolution::many(&mut cases);
    unpacked::unpacked(&mut cases);
    stressed::stressed(&mut cases);
    bare::bare(&mut cases);
    convolution::turned(&mut cases);
    convolution::fused(&mut cases);
    gradients::alone(&mut cases);
    gradients::many(&mut cases);
    gradients::fused(&mut cases);
    matmul::alone(&mut cases);
    matmul::fused(&mut cases);
    matmul::in_half(&mut cases);
    moe::experts(&mut cases);
    moe::fused(&mut cases);
    reduction::modes(&mut cases);
    reduction::axes(&mut cases);
    reduction::around(&mut cases);
    reduction::fused(&mut cases);
    reduction::natural(&mut cases);
    pooling::forward(&mut cases);
    pooling::index(&mut cases);
    pooling::backward(&mut cases);
    pooling::types(&mut cases);
    pooling::fused(&mut cases);
    norm::batchnorm(&mut cases);
    norm::layernorm(&mut cases);
    norm::everyday(&mut cases);
    norm::many(&mut cases);
    norm::short_parameters(&mut cases);
    norm::read::sums(&mut cases);
    attention::forward(&mut cases);
    decode::forward(&mut cases);
    prefill::forward(&mut cases);
    fusions::small(&mut cases);
    attention::backward(&mut cases);
    prefill::backward(&mut cases);
    layout::mixed(&mut cases);
    pointwise::modes(&mut cases);
    pointwise::types(&mut cases);
    pointwise::parameters(&mut cases);
    pointwise::broadcasts(&mut cases);
    layout::strided(&mut cases);
    custom::bodies(&mut cases);
    custom::layouts(&mut cases);
    custom::fused(&mut cases);
    for (name, graph) in bodies::bodies() {
        cases.add(name, graph);
    }
    structure::several_nodes(&mut cases);
    structure::declared_otherwise(&mut cases);
    scalar::scalars(&mut cases);
    boolean::all(&mut cases);
    low_precision::conversions(&mut cases);
    low_precision::tensors(&mut cases);
    low_precision::operations(&mut cases);
    low_precision::bytes(&mut cases);
    low_precision::layers(&mut cases);
    low_precision::matmuls(&mut cases);
    block_scale::dequantize(&mut cases);
    block_scale::matmuls(&mut cases);
    block_scale::quantize(&mut cases);
    block_scale::chains(&mut cases);
    found::found(&mut cases);
    uncompiled::uncompiled(&mut cases);
    peers::miopen(&mut cases);
    peers::hipblaslt(&mut cases);
    peers::fusilli(&mut cases);
    cropped::cropped(&mut cases);
    unequal::ranks(&mut cases);
    unequal::single(&mut cases);
    grouped::depthwise(&mut cases);
    grouped::tiled(&mut cases);
    grouped::small(&mut cases);
    cases.0
}

/// How the names of cases begin whose inputs have NaN, infinities, denormals and zeros of both
/// signs among them, and how many of such a family there is one of: enough of each mode and type.
const EDGES: [(&str, usize); 18] = [
    ("reduce_", 8),
    ("matmul", 10),
    ("conv_", 25),
    ("dgrad", 6),
    ("wgrad", 6),
    ("bn_", 7),
    ("layernorm", 5),
    ("rmsnorm", 5),
    ("read_sums_of_", 1),
    ("sdpa_stats_", 8),
    ("sdpa_mask", 2),
    ("sdpa_empty_rows", 1),
    ("diamond", 1),
    ("lp_matmul_e4m3fnuz_to_bf16", 5),
    ("lp_matmul_e5m2fnuz_to_f32", 5),
    ("depthwise_", 9),
    ("tiled_groups_", 9),
    ("small_groups_", 9),
];

/// Cases to be run with special values among their inputs' elements.
#[must_use]
pub fn edges() -> Vec<Case> {
    let all = all();
    let family = |&(prefix, step): &(&str, usize)| {
        let is_of_family = |case: &&Case| case.name.starts_with(prefix) && !order_counts(&case.name);
        let of_family: Vec<&Case> = all.iter().filter(is_of_family).collect();
        of_family.into_iter().step_by(step).cloned().collect::<Vec<_>>()
    };
    EDGES.iter().flat_map(family).collect()
}

/// Whether infinities meet zeros in a case or not by the order in which a kernel multiplies, and by
/// where it rounds: with x subnormal and a sum infinite, x times its factors is zero or not;
/// gradients that were computed are no weights, which stay finite; and of a row of one element, dy
/// or dy scale, which devices take for zero if it is subnormal, is multiplied by an x̂ that may be
/// infinite.
fn order_counts(name: &str) -> bool {
    const THEIR: [&str; 2] = ["rmsnorm_backward", "conv_relu_backward"];
    let of_one_element = [
        "read_sums_of_layernorm_backward_72x6x1",
        "layernorm_backward_one_column",
    ];
    let is_of_one_element = of_one_element.iter().any(|prefix| name.starts_with(prefix)) && name.ends_with("_f32");
    let name = name.trim_start_matches("read_sums_of_");
    is_of_one_element || THEIR.iter().any(|prefix| name.starts_with(prefix))
}

/// The case of a name.
///
/// # Errors
///
/// If there is none.
pub fn named(name: &str) -> Result<Case> {
    all()
        .into_iter()
        .find(|case| case.name == name)
        .with_context(|| format!("there is no case {name}"))
}
