//! The conformance cases: graphs over operation, type, layout and edge.
//!
//! | Module | Cases |
//! |---|---|
//! | `convolution` | convolutions, alone and with a fused epilogue |
//! | `grouped` | grouped and depthwise convolutions, and their gradients |
//! | `stressed`, `unpacked` | convolutions that stress a form; operands that need no packing |
//! | `cropped` | convolutions with negative padding, in all directions |
//! | `bare` | convolutions and gradients without epilogue that stress the kernels of CPUs |
//! | `gradients` | dgrad and wgrad, alone and fused |
//! | `matmul` | transposes, broadcast batches, types, epilogues |
//! | `moe` | matmuls grouped by expert, forward and backward |
//! | `reduction` | modes, axes, types, fused producers and consumers |
//! | `unequal` | matmuls of unequal ranks, axes of one element, rows of only NaN |
//! | `pooling` | forward, with and without an index, and backward |
//! | `functions` | pointwise modes over all magnitudes |
//! | `pointwise` | modes, types, parameters, broadcasting |
//! | `norm` | batch, layer and RMS normalization, forward and backward |
//! | `fusions` | the engine's main fusions, at the shapes of known networks and small |
//! | `attention` | scaled dot-product attention, forward and backward |
//! | `decode`, `prefill`, `hidden` | attention of few and of many queries; masked NaN |
//! | `layout` | orders that differ between tensors, gaps, repeated elements |
//! | `boolean` | truth values: masks, comparisons, selections, conversions, reductions, scalars |
//! | `low_precision` | types of eight bits and fewer: conversions, storage, operations |
//! | `block_scale` | block scales: quantization, dequantization, and matmul on scaled operands |
//! | `custom` | bodies in MLIR that the caller wrote |
//! | `bodies` | such bodies that trigger a defect of the compiler |
//! | `quotients` | rows divided by one number per row |
//! | `sums` | long sums |
//! | `structure` | graphs of several nodes |
//! | `found` | minimised random graphs that gave wrong results |
//! | `uncompiled` | minimised random graphs that did not compile for gfx942 |
//! | `peers` | chains that other engines claim to support |
//! | `scalar` | scalars that are passed at execution |
//! | `second` | graphs of every family from a second encoder |
//! | `declined` | graphs that are not run, with the reason |
//! | `resnet50` | layers of a known network, separate because they are larger |
//!
//! Each family of operations has a module here, as it has in the lowering; [`all`] lists them.

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

/// Returns the cases with custom buffers.
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

/// Returns rows divided by one number per row, over all magnitudes.
///
/// # Errors
///
/// If the reference cannot fill them.
pub fn quotients() -> Result<Vec<Data>> {
    quotients::all(true)
}

/// The kinds of normalizations, by the names that messages use for nodes.
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

/// Returns every graph, including those of the cases with custom buffers.
///
/// # Errors
///
/// Those of filling the buffers.
pub fn all_graphs() -> Result<Vec<Case>> {
    let mut all = self::all();
    all.extend(with_data()?.into_iter().map(|data| data.case));
    Ok(all)
}

/// Returns pointwise modes on arguments of all magnitudes, in f32 and f64; if `on_cpu`, without
/// those that the CPU declines.
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

/// Returns sums with enough terms that the error must grow more slowly than their number.
///
/// # Errors
///
/// Those of filling the buffers.
pub fn long_sums() -> Result<Vec<Data>> {
    sums::long()
}

/// Returns every case.
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

/// Name prefixes of the families that also run with NaN, infinities, denormals and zeros of both
/// signs among their inputs, and the sampling interval of each: small enough to cover each mode and
/// type.
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

/// Returns the cases that run with special values among their inputs' elements.
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

/// Returns true if it depends on a kernel's order of multiplications and on where it rounds whether
/// infinities meet zeros: with x subnormal and a sum infinite, x times its factors is zero or not;
/// computed gradients are not weights, which stay finite; and in a row of one element, dy or
/// dy·scale, which devices flush to zero if subnormal, is multiplied by an x̂ that may be infinite.
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

/// Returns the case with this name.
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
