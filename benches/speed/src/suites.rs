//! The suites: those of known networks, and products, attentions, normalizations and reductions of
//! sizes that frameworks use.

use anyhow::{Result, bail};
use rotini_graph::{DataType, Graph, GraphBuilder, Matmul, ReductionMode, SdpaBackward, TensorId, TensorKind};
use rotini_workloads::blocks::{
    Direction, Layout, attention, batchnorm_inference, layernorm, reduction, rms_norm, softmax,
};
use rotini_workloads::suites::{SuiteOptions, suite};
use rotini_workloads::{Published, Workload};

const F16: DataType = DataType::F16;

/// A suite: its name and its graphs.
pub(crate) type Suite = (String, Vec<Workload>);

/// Rows, columns and depth of matrix products, from a single token to the largest published size.
const PRODUCTS: [[i64; 3]; 16] = [
    [1, 4096, 4096],
    [1, 14336, 4096],
    [8, 4096, 4096],
    [16, 4096, 14336],
    [64, 4096, 4096],
    [128, 4096, 4096],
    [256, 11008, 4096],
    [512, 4096, 1024],
    [1024, 1024, 1024],
    [2048, 768, 3072],
    [2048, 2048, 2048],
    [2048, 6144, 4096],
    [3000, 2000, 1000],
    [4096, 4096, 4096],
    [4096, 14336, 4096],
    [8192, 8192, 8192],
];

/// Rows and columns of normalizations and reductions, including odd numbers.
const ROWS: [[i64; 2]; 12] = [
    [1, 4096],
    [7, 333],
    [32, 65536],
    [197, 768],
    [512, 1000],
    [2048, 4096],
    [3072, 768],
    [4096, 1023],
    [8192, 8192],
    [16384, 256],
    [65536, 64],
    [100_003, 129],
];

/// Extents N, C, H, W of batch normalizations.
const IMAGES: [[i64; 4]; 12] = [
    [1, 64, 112, 112],
    [1, 2048, 7, 7],
    [8, 64, 56, 56],
    [8, 257, 13, 17],
    [16, 128, 28, 28],
    [32, 64, 112, 112],
    [32, 64, 56, 56],
    [32, 256, 56, 56],
    [32, 512, 28, 28],
    [32, 1024, 14, 14],
    [32, 2048, 7, 7],
    [64, 256, 56, 56],
];

/// Returns all suites, or a subset if `short` is set.
pub(crate) fn suites(short: bool) -> Result<Vec<Suite>> {
    let mut all = Vec::new();
    for (layout_name, layout) in [("NHWC", Layout::Last), ("NCHW", Layout::First)] {
        for (direction_name, direction) in [
            ("forward", Direction::Forward),
            ("dgrad", Direction::Dgrad),
            ("wgrad", Direction::Wgrad),
        ] {
            for batch in [32, 64] {
                for dtype in [F16, DataType::Bf16] {
                    if short && (direction, batch, dtype) != (Direction::Forward, 32, F16) {
                        continue;
                    }
                    let options = SuiteOptions {
                        batch: Some(batch),
                        layout: Some(layout),
                        dtype: Some(dtype),
                        direction: Some(direction),
                    };
                    let label = format!("resnet50 {direction_name} {layout_name} {batch} {dtype}");
                    let mut graphs = suite("resnet50", &options)?;
                    if dtype == F16 {
                        for graph in &mut graphs {
                            graph.published.extend(published(&graph.name, batch, direction_name));
                        }
                    }
                    all.push((label, graphs));
                }
            }
        }
    }
    for name in ["bert", "llama", "miopen"] {
        all.push((name.to_owned(), suite(name, &SuiteOptions::default())?));
    }
    for (name, turned) in [
        ("NN", [false, false]),
        ("NT", [false, true]),
        ("TN", [true, false]),
        ("TT", [true, true]),
    ] {
        let graphs = PRODUCTS.map(|shape| product(name, [F16; 2], shape, turned));
        all.push(of(&format!("matmul {name}"), graphs));
    }
    for (name, turned) in [("NN", [false, false]), ("NT", [false, true])] {
        let types = [DataType::F8E4M3Fnuz, DataType::Bf16];
        let graphs = PRODUCTS.map(|shape| product(name, types, shape, turned));
        all.push(of(&format!("FP8 matmul {name}"), graphs));
    }
    all.push(library("NN", F16, [false, false])?);
    all.push(library("NT", DataType::Bf16, [false, true])?);
    all.push(of("attention forward", attentions()));
    all.push(of("attention backward", [64, 128].map(|depth| backward(2048, depth))));
    let decode = [4096, 8192, 16384, 32768];
    all.push(of(
        "attention decode",
        decode.map(|keys| attention(&format!("decode_{keys}"), [8, 32, 1, 128], [8, keys], false, F16)),
    ));
    let named = |what: &str, [rows, columns]: [i64; 2]| format!("{what}_{rows}x{columns}");
    all.push(of(
        "layernorm",
        ROWS.map(|rows| layernorm(&named("layernorm", rows), rows, false, F16)),
    ));
    all.push(of(
        "RMSNorm",
        ROWS.map(|rows| rms_norm(&named("rms_norm", rows), rows, F16)),
    ));
    all.push(of(
        "softmax",
        ROWS.map(|rows| softmax(&named("softmax", rows), rows, F16)),
    ));
    all.push(of(
        "sum",
        ROWS.map(|rows| reduction(&named("sum", rows), rows, ReductionMode::Add, F16)),
    ));
    all.push(of(
        "batchnorm",
        IMAGES.map(|dims| {
            let [n, c, h, w] = dims;
            batchnorm_inference(&format!("batchnorm_{n}x{c}x{h}x{w}"), dims, Layout::Last, F16)
        }),
    ));
    if short {
        for (name, graphs) in &mut all {
            let every = match name.as_str() {
                "miopen" => 40,
                name if name.starts_with("resnet50") || matches!(name, "bert" | "llama") => 1,
                _ => 6,
            };
            *graphs = std::mem::take(graphs).into_iter().step_by(every).collect();
        }
    }
    Ok(all)
}

/// Number of occurrences of layers in ResNet-50, by the prefix of their names; other layers occur
/// once. The network has 3, 4, 6 and 3 blocks, with the stride in the 3×3 convolution.
const TIMES: [(&str, u32); 12] = [
    ("64to64_3x3", 3),
    ("64to256_1x1", 4),
    ("256to64_1x1", 2),
    ("128to512_1x1", 4),
    ("512to128_1x1", 3),
    ("128to128_3x3_s1", 3),
    ("256to1024_1x1", 6),
    ("1024to256_1x1", 5),
    ("256to256_3x3_s1", 5),
    ("512to2048_1x1", 3),
    ("2048to512_1x1", 2),
    ("512to512_3x3_s1", 2),
];

/// Returns the number of occurrences of a graph in its network.
pub(crate) fn times(suite: &str, graph: &str) -> u32 {
    let layer = TIMES.iter().find(|(layer, _)| graph.starts_with(layer));
    layer
        .filter(|_| suite.starts_with("resnet50"))
        .map_or(1, |&(_, times)| times)
}

/// Times in MIOpen's database (ROCm/MIOpen, `src/kernels/gfx942130.db`), which AMD measured on an
/// MI300X: f16, NCHW, convolutions only.
const RESNET50: &str = include_str!("resnet50.csv");

/// Returns the published time of a layer, found by the prefix of its graph's name.
fn published(graph: &str, images: i64, direction: &str) -> Option<Published> {
    let fields = RESNET50.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let mut found = fields.filter_map(|fields| match fields.as_slice() {
        [layer, n, of, solver, microseconds] => {
            let rest = graph.strip_prefix(layer)?.starts_with("_n");
            let is_it = rest && *of == direction && n.parse() == Ok(images);
            is_it.then(|| Some((*solver, microseconds.parse().ok()?))).flatten()
        }
        _ => None,
    });
    found.next().map(|(solver, microseconds)| Published {
        by: format!("MIOpen's database, MI300X, {solver}"),
        microseconds,
    })
}

fn of(name: &str, graphs: impl IntoIterator<Item = Graph>) -> Suite {
    let workload = |graph: Graph| Workload {
        name: graph.name.clone(),
        origin: format!("suite {name}, {}", graph.name),
        graph: rotini_wire::encode(&graph),
        published: Vec::new(),
    };
    (name.to_owned(), graphs.into_iter().map(workload).collect())
}

/// Returns a matrix product whose operands may be stored column-major, with the types of the
/// operands and of the result.
fn product(
    name: &str,
    [dtype, stored]: [DataType; 2],
    [rows, columns, depth]: [i64; 3],
    [left, right]: [bool; 2],
) -> Graph {
    let mut b = GraphBuilder::new(&format!("{name}_{rows}x{columns}x{depth}"));
    let operand = |b: &mut GraphBuilder, name: &str, [rows, columns]: [i64; 2], turned: bool| {
        let strides = if turned { [1, rows] } else { [columns, 1] };
        let strides = [rows * columns, strides[0], strides[1]];
        b.tensor(name, dtype, &[1, rows, columns], &strides, TensorKind::Buffer)
    };
    let left = operand(&mut b, "a", [rows, depth], left);
    let right = operand(&mut b, "b", [depth, columns], right);
    let c = b.buffer("c", stored, &[1, rows, columns]);
    let node = Matmul { a: left, b: right, c };
    b.node("matmul", DataType::F32, node);
    b.build()
}

/// Rates of hipBLASLt's kernels on gfx942, by AMD (ROCm/hipBLASLt, the tables of exact sizes
/// `aquavanjaram_Cijk_Ailk_Bljk_HHS_BH` and `aquavanjaram_Cijk_Alik_Bljk_BBS_BH_Bias`), in
/// row-major terms. The tables of the other transpositions contain no rates.
const LIBRARY: &str = include_str!("hipblaslt.csv");

/// Returns the products in hipBLASLt's table for one transposition.
fn library(form: &str, dtype: DataType, turned: [bool; 2]) -> Result<Suite> {
    let suite = format!("hipBLASLt {form}");
    let mut graphs = Vec::new();
    for line in LIBRARY.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [of_form, rows, columns, depth, rate] = fields.as_slice() else {
            bail!("a bad row of the library's table: {line}");
        };
        if *of_form != form {
            continue;
        }
        let shape = [rows.parse()?, columns.parse()?, depth.parse()?];
        let operations = 2.0 * shape.iter().map(|&size: &i64| size as f64).product::<f64>();
        let (_, mut made) = of(&suite, [product(form, [dtype; 2], shape, turned)]);
        for graph in &mut made {
            graph.published.push(Published {
                by: "hipBLASLt's table, gfx942".to_owned(),
                microseconds: operations / (1e3 * rate.parse::<f64>()?),
            });
        }
        graphs.append(&mut made);
    }
    Ok((suite, graphs))
}

/// Returns attentions with 16 heads and 1k to 16k rows.
fn attentions() -> Vec<Graph> {
    let mut all = Vec::new();
    for depth in [64, 128] {
        for rows in [1024, 2048, 4096, 8192, 16384] {
            for causal in [false, true] {
                let causal_name = if causal { "_causal" } else { "" };
                let name = format!("attention_{rows}x{depth}{causal_name}");
                all.push(attention(&name, [1, 16, rows, depth], [16, rows], causal, F16));
            }
        }
    }
    all
}

fn backward(rows: i64, depth: i64) -> Graph {
    let mut b = GraphBuilder::new(&format!("attention_backward_{rows}x{depth}"));
    let dims = [1, 16, rows, depth];
    let operands = ["q", "k", "v", "o", "do"].map(|name| b.buffer(name, F16, &dims));
    let [q, k, v, o, d_o]: [TensorId; 5] = operands;
    let stats = b.buffer("stats", DataType::F32, &[1, 16, rows, 1]);
    let made = ["dq", "dk", "dv"].map(|name| b.buffer(name, F16, &dims));
    let mut op = SdpaBackward::new([q, k, v, o, d_o, stats], made);
    op.attn_scale_value = Some(1.0 / (depth as f32).sqrt());
    b.node("attention", DataType::F32, Box::new(op));
    b.build()
}

#[cfg(test)]
mod tests {
    use super::{Published, suites, times};
    use std::collections::HashSet;

    #[test]
    fn every_graph_has_a_name_of_its_own_in_its_suite() {
        let all = suites(false).unwrap();
        for (name, graphs) in &all {
            let names: HashSet<&String> = graphs.iter().map(|graph| &graph.name).collect();
            assert_eq!(names.len(), graphs.len(), "{name}");
            for graph in graphs {
                rotini_wire::decode(&graph.graph).unwrap_or_else(|error| panic!("{}: {error}", graph.name));
            }
        }
        let layers = all
            .iter()
            .filter(|(name, _)| name.starts_with("resnet50") && name.ends_with(" f16"));
        for graph in layers.flat_map(|(_, graphs)| graphs) {
            // The gradient of the image is never needed, so it has no published time.
            let is_known = !(graph.name.starts_with("3to64") && graph.name.ends_with("dgrad"));
            assert_eq!(graph.published.len(), usize::from(is_known), "{}", graph.name);
        }
        // Sums over the network of the database's rows for 32 images.
        for (direction, sum) in [("forward", 3157.1), ("dgrad", 2861.4), ("wgrad", 3554.6)] {
            let suite = format!("resnet50 {direction} NHWC 32 f16");
            let (_, graphs) = all.iter().find(|(name, _)| *name == suite).unwrap();
            let weighed = graphs.iter().flat_map(|graph| {
                let of = |published: &Published| f64::from(times(&suite, &graph.name)) * published.microseconds;
                graph.published.iter().map(of)
            });
            let found: f64 = weighed.sum();
            assert!((found - sum).abs() < 0.1, "{suite}: {found}");
        }
        let count = |start: &str| all.iter().filter(|(name, _)| name.starts_with(start)).count();
        assert_eq!((count("resnet50"), count("matmul")), (24, 4));
        let normalized = ["layernorm", "RMSNorm", "softmax", "sum", "batchnorm"];
        let graphs = all.iter().filter(|(name, _)| normalized.contains(&name.as_str()));
        assert_eq!(graphs.map(|(_, graphs)| graphs.len()).sum::<usize>(), 60);
    }
}
