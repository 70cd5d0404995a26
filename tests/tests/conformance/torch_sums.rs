//! The error of sums in f32 on the CPU is at most eight times PyTorch's.
//!
//! PyTorch's errors were measured with 2.15.0, one thread, AMD EPYC (Zen 4), on the elements of
//! [`element`], relative to numpy's sums in f64. An error below half of f32's last place counts as
//! none.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use rotini_graph::{DataType, Graph, GraphBuilder, Matmul, Reduction, ReductionMode, TensorId};
use rotini_host::{DeviceBuffer, engine_config};
use rotini_tests::harness::Runner;

/// Number of terms; PyTorch's relative error of their sum, their mean, their Euclidean norm and a
/// dot product.
const TORCH: [(usize, [f64; 4]); 14] = [
    (1, [0.0, 0.0, 0.0, 2.00e-8]),
    (7, [0.0, 1.75e-8, 1.38e-8, 2.77e-8]),
    (64, [3.70e-9, 3.70e-9, 5.36e-8, 4.78e-8]),
    (256, [4.01e-8, 4.01e-8, 1.53e-8, 3.42e-7]),
    (1023, [1.10e-7, 1.15e-7, 8.04e-8, 5.24e-7]),
    (1024, [9.08e-9, 9.08e-9, 1.31e-8, 5.79e-7]),
    (4096, [9.08e-9, 9.08e-9, 7.62e-8, 1.35e-6]),
    (16_384, [6.87e-8, 6.87e-8, 4.10e-8, 2.21e-6]),
    (65_535, [9.31e-9, 9.37e-9, 2.71e-7, 5.25e-8]),
    (262_144, [9.08e-9, 9.08e-9, 1.31e-7, 6.43e-7]),
    (1_048_575, [5.03e-8, 5.03e-8, 6.91e-7, 9.12e-5]),
    (1_048_576, [9.08e-9, 9.08e-9, 7.71e-7, 9.12e-5]),
    (4_194_304, [9.08e-9, 9.08e-9, 1.05e-5, 3.05e-4]),
    (33_554_432, [9.08e-9, 9.08e-9, 5.09e-5, 5.97e-2]),
];

/// Sums of equal terms: the mean of 33,554,432 times 3.7, and the sum of 1,048,576 times 0.1.
const TORCH_EQUAL: [f64; 2] = [7.73e-7, 1.49e-7];

/// Returns an element from 0.5 up to 1.5, with all digits of f32.
fn element(index: usize, salt: usize) -> f32 {
    let turned = (index + salt).wrapping_mul(2_654_435_761) & 0xffff_ffff;
    (0.5 + (turned >> 9) as f64 / f64::from(1 << 23)) as f32
}

fn reduction(mode: ReductionMode, terms: usize) -> Graph {
    let mut b = GraphBuilder::new("sum");
    let input = b.buffer("x", DataType::F32, &[1, terms as i64]);
    let output = b.buffer("y", DataType::F32, &[1, 1]);
    b.node("reduce", DataType::F32, Reduction::new(mode, input, output));
    b.build()
}

fn product(terms: usize) -> Graph {
    let mut builder = GraphBuilder::new("product");
    let a = builder.buffer("a", DataType::F32, &[1, terms as i64]);
    let b = builder.buffer("b", DataType::F32, &[terms as i64, 1]);
    let c = builder.buffer("c", DataType::F32, &[1, 1]);
    builder.node("matmul", DataType::F32, Matmul { a, b, c });
    builder.build()
}

/// Returns the only element of a graph's result.
fn compute(runner: &Runner, graph: &Graph, inputs: &[&[f32]]) -> f64 {
    let bytes = rotini_wire::encode(graph);
    let context = runner
        .handle()
        .context(&engine_config(runner.engine()), &bytes)
        .expect("the graph is supported");
    let mut workspace = vec![u8::MAX; context.workspace().expect("it is known") + 64];
    let mut result = [f32::NAN; 16];
    let place = result.as_ptr().align_offset(16);
    let uid = |index: usize| graph.tensor(TensorId(index as u32)).expect("it is there").uid;
    let mut buffers: Vec<DeviceBuffer> = inputs
        .iter()
        .enumerate()
        .map(|(index, input)| DeviceBuffer {
            uid: uid(index),
            ptr: input.as_ptr().cast_mut().cast(),
        })
        .collect();
    buffers.push(DeviceBuffer {
        uid: uid(inputs.len()),
        ptr: result[place..].as_mut_ptr().cast(),
    });
    let start = workspace.as_ptr().align_offset(64);
    // SAFETY: the inputs have the elements of their tensors and are only read, the result has one,
    // the workspace its size.
    unsafe { context.execute(workspace[start..].as_mut_ptr().cast(), &buffers) }.expect("it runs");
    f64::from(result[place])
}

#[test]
fn sums_err_at_most_eight_times_as_much_as_in_torch() {
    let runner = Runner::cpu().expect("the plugin loads");
    let mut worst = Vec::new();
    let mut judge = |name: &str, terms: usize, found: f64, exact: f64, torch: f64| {
        let error = ((found - exact) / exact).abs();
        let allowed = 8.0 * torch.max(0.5 * f64::from(f32::EPSILON));
        println!("{name} of {terms}: {error:.2e}, PyTorch {torch:.2e}");
        if error.is_nan() || error > allowed {
            worst.push(format!("{name} of {terms}: {error:.2e}, more than {allowed:.2e}"));
        }
    };
    let longest = TORCH.iter().map(|&(terms, _)| terms).max().expect("there are some");
    let [a, b]: [Vec<f32>; 2] = [1, 77].map(|salt| (0..longest).map(|index| element(index, salt)).collect());
    for (terms, [sum, mean, norm, dot]) in TORCH {
        let (a, b) = (&a[..terms], &b[..terms]);
        let exact = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
            let terms = a.iter().zip(b).map(|(&a, &b)| term(f64::from(a), f64::from(b)));
            terms.sum()
        };
        let (total, squares) = (exact(&|a, _| a), exact(&|a, _| a * a));
        for (mode, name, exact, torch) in [
            (ReductionMode::Add, "sum", total, sum),
            (ReductionMode::Avg, "mean", total / terms as f64, mean),
            (ReductionMode::Norm2, "norm", squares.sqrt(), norm),
        ] {
            judge(
                name,
                terms,
                compute(&runner, &reduction(mode, terms), &[a]),
                exact,
                torch,
            );
        }
        let found = compute(&runner, &product(terms), &[a, b]);
        judge("dot product", terms, found, exact(&|a, b| a * b), dot);
    }
    for ((mode, name, terms, value), torch) in [
        (ReductionMode::Avg, "mean of equal terms", 33_554_432, 3.7_f32),
        (ReductionMode::Add, "sum of equal terms", 1_048_576, 0.1),
    ]
    .into_iter()
    .zip(TORCH_EQUAL)
    {
        let exact = f64::from(value) * if mode == ReductionMode::Add { terms as f64 } else { 1.0 };
        let found = compute(&runner, &reduction(mode, terms), &[&vec![value; terms]]);
        judge(name, terms, found, exact, torch);
    }
    assert!(worst.is_empty(), "{}", worst.join("\n"));
}
