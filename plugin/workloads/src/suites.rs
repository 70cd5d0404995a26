//! Suites: graphs of known networks.
//!
//! | Suite | Contents |
//! |---|---|
//! | `quick` | 17 small graphs, at least one of each family |
//! | `resnet50` | the layers of ResNet-50, fused; or their gradients |
//! | `bare` | convolutions without epilogue, and their gradients: both layouts, N 1 to 32, f32 |
//! | `everyday` | nearly 400 small graphs, f32: convolutions, products, rows, pooling |
//! | `unet` | layers of the UNet of Stable Diffusion 1.5, at 64 × 64 |
//! | `bert` | a layer of BERT base: products, attention, normalization |
//! | `llama` | a layer of Llama 3 8B, prompt and next token |
//! | `miopen` | convolutions of MIOpen's database for MI300X, with the times in it |
//! | `constants` | graphs whose times determine the constants of the model of an MI300X |

mod bare;
pub mod constants;
mod everyday;
mod miopen;

use crate::blocks::{
    Convolution, Direction, Epilogue, Layout, attention, batchnorm_inference, gated, layernorm, pooling, product,
    reduction, rms_norm, softmax,
};
use crate::{Workload, WorkloadError};
use rotini_graph::{DataType, Graph, PointwiseMode, ReductionMode, ResampleMode};

/// The options of a suite. An option that is not set has the suite's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuiteOptions {
    /// Number of images or sequences.
    pub batch: Option<i64>,
    /// The layout of activations and filters.
    pub layout: Option<Layout>,
    /// The type of all tensors in buffers.
    pub dtype: Option<DataType>,
    /// The direction of the convolutions.
    pub direction: Option<Direction>,
}

/// The names and descriptions of the suites.
pub const SUITES: [(&str, &str); 9] = [
    ("quick", "small graphs of all families"),
    ("resnet50", "the layers of ResNet-50, fused; or their gradients"),
    ("bare", "convolutions without an epilogue, and their gradients"),
    ("everyday", "many small graphs of ordinary extents"),
    ("unet", "layers of the UNet of Stable Diffusion 1.5"),
    ("bert", "a layer of BERT base"),
    ("llama", "a layer of Llama 3 8B, prompt and next token"),
    ("miopen", "convolutions of MIOpen's database for MI300X, with its times"),
    (
        "constants",
        "graphs that measure the constants of the MI300X's time model",
    ),
];

/// Returns the graphs of a suite.
///
/// # Errors
///
/// [`WorkloadError::Suite`] if no suite has this name, or the options are inconsistent.
pub fn suite(name: &str, options: &SuiteOptions) -> Result<Vec<Workload>, WorkloadError> {
    let graphs = match name {
        "quick" => quick(options),
        "resnet50" => resnet50(options),
        "bare" => {
            let layouts = [Layout::First, Layout::Last];
            let directions = [Direction::Forward, Direction::Dgrad, Direction::Wgrad];
            bare::bare(
                options.dtype.unwrap_or(DataType::F32),
                options.batch,
                options.layout.as_ref().map_or(&layouts, std::slice::from_ref),
                options.direction.as_ref().map_or(&directions, std::slice::from_ref),
            )
        }
        "everyday" => everyday::everyday(
            options.dtype.unwrap_or(DataType::F32),
            options.batch,
            options
                .layout
                .as_ref()
                .map_or(&[Layout::First, Layout::Last], std::slice::from_ref),
        ),
        "unet" => unet(options),
        "bert" => bert(options),
        "llama" => llama(options),
        "constants" => constants::constants(),
        "miopen" => return miopen::miopen(options),
        _ => {
            let known: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
            return Err(WorkloadError::Suite(format!("{name}: known are {}", known.join(", "))));
        }
    };
    let graphs = graphs.ok_or_else(|| WorkloadError::Suite(format!("{name}: the numbers make no sense together")))?;
    Ok(graphs.into_iter().map(|graph| workload(name, &graph)).collect())
}

fn workload(suite: &str, graph: &Graph) -> Workload {
    Workload {
        name: graph.name.clone(),
        origin: format!("suite {suite}, {}", graph.name),
        graph: rotini_wire::encode(graph),
        published: Vec::new(),
    }
}

fn dtype_name(dtype: DataType) -> String {
    dtype.to_string()
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::First => "nchw",
        Layout::Last => "nhwc",
    }
}

/// Returns graphs that are small enough for the reference and large enough to measure.
fn quick(options: &SuiteOptions) -> Option<Vec<Graph>> {
    let dtype = options.dtype.unwrap_or(DataType::F32);
    let n = options.batch.unwrap_or(1);
    let relu = Epilogue::Activation(PointwiseMode::ReluFwd);
    let conv =
        |c, k, extent, filter, stride, layout| Convolution::square(n, c, k, extent, filter, stride, layout, dtype);
    let mut graphs = Vec::new();
    for layout in [Layout::First, Layout::Last] {
        if options.layout.is_none_or(|only| only == layout) {
            let name = format!("conv3x3_bias_relu_{}", layout_name(layout));
            graphs.push(conv(64, 64, 28, 3, 1, layout).graph(&name, Direction::Forward, relu)?);
        }
    }
    let layout = options.layout.unwrap_or(Layout::First);
    let residual = Epilogue::Residual(PointwiseMode::ReluFwd);
    graphs.push(conv(64, 256, 28, 1, 1, layout).graph("conv1x1_bias_add_relu", Direction::Forward, residual)?);
    graphs.push(conv(64, 128, 28, 3, 2, layout).graph("conv3x3_stride2", Direction::Forward, Epilogue::None)?);
    let depthwise = Convolution {
        groups: 96,
        ..conv(96, 96, 28, 3, 1, layout)
    };
    graphs.push(depthwise.graph("depthwise3x3_bias_relu", Direction::Forward, relu)?);
    graphs.push(conv(32, 32, 28, 3, 1, layout).graph("conv3x3_dgrad", Direction::Dgrad, Epilogue::None)?);
    graphs.push(conv(32, 32, 28, 3, 1, layout).graph("conv3x3_wgrad", Direction::Wgrad, Epilogue::None)?);
    let gelu = Epilogue::Activation(PointwiseMode::GeluFwd);
    graphs.push(product("matmul_bias_gelu", [1, 64, 768, 384], true, dtype, gelu));
    graphs.push(product(
        "matmul_one_row",
        [1, 1, 1024, 768],
        true,
        dtype,
        Epilogue::None,
    ));
    graphs.push(attention("attention", [1, 4, 128, 64], [4, 128], false, dtype));
    graphs.push(layernorm("residual_layernorm", [256, 768], true, dtype));
    graphs.push(rms_norm("rms_norm", [256, 1024], dtype));
    graphs.push(softmax("softmax", [256, 1000], dtype));
    graphs.push(batchnorm_inference("batchnorm_relu", [n, 64, 56, 56], layout, dtype));
    graphs.push(pooling(
        "maxpool3x3",
        [n, 64, 56],
        [3, 2, 1],
        ResampleMode::Maxpool,
        layout,
        dtype,
    )?);
    graphs.push(reduction("mean", [512, 1024], ReductionMode::Avg, dtype));
    graphs.push(gated("silu_mul", [128, 4096], dtype));
    Some(graphs)
}

/// The distinct convolutions of ResNet-50: input channels, filters, extent of the input, extent of
/// the filter, stride, and whether a residual is added.
const RESNET50: [(i64, i64, i64, i64, i64, bool); 23] = [
    (3, 64, 224, 7, 2, false),
    (64, 64, 56, 1, 1, false),
    (64, 64, 56, 3, 1, false),
    (64, 256, 56, 1, 1, true),
    (256, 64, 56, 1, 1, false),
    (256, 128, 56, 1, 1, false),
    (128, 128, 56, 3, 2, false),
    (128, 512, 28, 1, 1, true),
    (256, 512, 56, 1, 2, false),
    (512, 128, 28, 1, 1, false),
    (128, 128, 28, 3, 1, false),
    (512, 256, 28, 1, 1, false),
    (256, 256, 28, 3, 2, false),
    (256, 1024, 14, 1, 1, true),
    (512, 1024, 28, 1, 2, false),
    (1024, 256, 14, 1, 1, false),
    (256, 256, 14, 3, 1, false),
    (1024, 512, 14, 1, 1, false),
    (512, 512, 14, 3, 2, false),
    (512, 2048, 7, 1, 1, true),
    (1024, 2048, 14, 1, 2, false),
    (2048, 512, 7, 1, 1, false),
    (512, 512, 7, 3, 1, false),
];

fn resnet50(options: &SuiteOptions) -> Option<Vec<Graph>> {
    let dtype = options.dtype.unwrap_or(DataType::F16);
    let layout = options.layout.unwrap_or(Layout::Last);
    let n = options.batch.unwrap_or(32);
    let direction = options.direction.unwrap_or(Direction::Forward);
    let graph = |(c, k, extent, filter, stride, residual)| {
        let conv = Convolution::square(n, c, k, extent, filter, stride, layout, dtype);
        let epilogue = if residual {
            Epilogue::Residual(PointwiseMode::ReluFwd)
        } else {
            Epilogue::Activation(PointwiseMode::ReluFwd)
        };
        let what = match direction {
            Direction::Forward => "",
            Direction::Dgrad => "_dgrad",
            Direction::Wgrad => "_wgrad",
        };
        let order = layout_name(layout);
        let dtype = dtype_name(dtype);
        let name = format!("{c}to{k}_{filter}x{filter}_s{stride}_at{extent}_n{n}_{order}_{dtype}{what}");
        conv.graph(&name, direction, epilogue)
    };
    RESNET50.into_iter().map(graph).collect()
}

fn unet(options: &SuiteOptions) -> Option<Vec<Graph>> {
    /// Channels and spatial extent of the four levels.
    const LEVELS: [(i64, i64); 4] = [(320, 64), (640, 32), (1280, 16), (1280, 8)];
    /// Number of tokens of a prompt.
    const PROMPT: i64 = 77;
    const HEADS: i64 = 8;
    let dtype = options.dtype.unwrap_or(DataType::F16);
    let layout = options.layout.unwrap_or(Layout::Last);
    // A batch of 2: with and without the prompt.
    let n = options.batch.unwrap_or(2);
    let mut graphs = Vec::new();
    for (channels, extent) in LEVELS {
        let conv = Convolution::square(n, channels, channels, extent, 3, 1, layout, dtype);
        let silu = Epilogue::Activation(PointwiseMode::SwishFwd);
        graphs.push(conv.graph(&format!("conv3x3_{channels}_at{extent}"), Direction::Forward, silu)?);
        let wide = Convolution::square(n, 2 * channels, channels, extent, 3, 1, layout, dtype);
        let name = format!("conv3x3_{}to{channels}_at{extent}", 2 * channels);
        graphs.push(wide.graph(&name, Direction::Forward, Epilogue::Bias)?);
        let rows = extent * extent;
        let depth = channels / HEADS;
        let heads = [n, HEADS, rows, depth];
        graphs.push(attention(
            &format!("self_attention_{rows}_d{depth}"),
            heads,
            [HEADS, rows],
            false,
            dtype,
        ));
        graphs.push(attention(
            &format!("cross_attention_{rows}_d{depth}"),
            heads,
            [HEADS, PROMPT],
            false,
            dtype,
        ));
        graphs.push(layernorm(
            &format!("layernorm_{}x{channels}", n * rows),
            [n * rows, channels],
            false,
            dtype,
        ));
        let projection = [1, n * rows, channels, channels];
        let name = format!("projection_{}x{channels}", n * rows);
        graphs.push(product(&name, projection, true, dtype, Epilogue::Bias));
    }
    Some(graphs)
}

fn bert(options: &SuiteOptions) -> Option<Vec<Graph>> {
    const HIDDEN: i64 = 768;
    const HEADS: i64 = 12;
    let dtype = options.dtype.unwrap_or(DataType::F16);
    let n = options.batch.unwrap_or(8);
    let gelu = Epilogue::Activation(PointwiseMode::GeluFwd);
    let mut graphs = Vec::new();
    for sequence in [128, 384] {
        let rows = n.checked_mul(sequence)?;
        let projection = |name: &str, columns, depth, epilogue| {
            let name = format!("{name}_{rows}x{columns}x{depth}");
            product(&name, [1, rows, columns, depth], true, dtype, epilogue)
        };
        graphs.push(projection("qkv", 3 * HIDDEN, HIDDEN, Epilogue::Bias));
        graphs.push(projection("output", HIDDEN, HIDDEN, Epilogue::Bias));
        graphs.push(projection("up_gelu", 4 * HIDDEN, HIDDEN, gelu));
        graphs.push(projection("down", HIDDEN, 4 * HIDDEN, Epilogue::Bias));
        let heads = [n, HEADS, sequence, HIDDEN / HEADS];
        graphs.push(attention(
            &format!("attention_{sequence}"),
            heads,
            [HEADS, sequence],
            false,
            dtype,
        ));
        graphs.push(layernorm(
            &format!("residual_layernorm_{rows}"),
            [rows, HIDDEN],
            true,
            dtype,
        ));
    }
    Some(graphs)
}

fn llama(options: &SuiteOptions) -> Option<Vec<Graph>> {
    const HIDDEN: i64 = 4096;
    const INNER: i64 = 14336;
    const HEADS: i64 = 32;
    const GROUPS: i64 = 8;
    const DEPTH: i64 = 128;
    let dtype = options.dtype.unwrap_or(DataType::Bf16);
    let n = options.batch.unwrap_or(1);
    let mut graphs = Vec::new();
    // A prompt of 2048 tokens, then the next token, which attends to 2048 keys.
    for (phase, new, keys) in [("prompt", 2048, 2048), ("token", 1, 2048)] {
        let rows = n.checked_mul(new)?;
        let projection = |name: &str, columns, depth| {
            let name = format!("{phase}_{name}_{rows}x{columns}x{depth}");
            product(&name, [1, rows, columns, depth], true, dtype, Epilogue::None)
        };
        graphs.push(rms_norm(&format!("{phase}_rms_norm_{rows}"), [rows, HIDDEN], dtype));
        graphs.push(projection("qkv", HIDDEN + 2 * GROUPS * DEPTH, HIDDEN));
        let heads = [n, HEADS, new, DEPTH];
        graphs.push(attention(
            &format!("{phase}_attention"),
            heads,
            [GROUPS, keys],
            new > 1,
            dtype,
        ));
        graphs.push(projection("output", HIDDEN, HIDDEN));
        graphs.push(projection("gate", INNER, HIDDEN));
        graphs.push(gated(&format!("{phase}_silu_mul_{rows}"), [rows, INNER], dtype));
        graphs.push(projection("down", HIDDEN, INNER));
    }
    Some(graphs)
}
