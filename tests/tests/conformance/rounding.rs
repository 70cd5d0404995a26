//! An f16 or bf16 graph with f32 intermediates rounds once, when it stores. The judge of these
//! tests is strict: the last test shows that it notices a bias that is added after rounding to f16.

use rotini_graph::{DataType, PointwiseMode, TensorKind};
use rotini_reference::{Options, evaluate, execute_with, fill_all};
use rotini_tests::cases::{Case, Conv, Order};
use rotini_tests::harness::Runner;

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for order in Order::BOTH {
        for dtype in [DataType::F16, DataType::Bf16] {
            // Long sums: the intermediate is large relative to the bias, so that rounding it loses
            // bits of the result.
            let conv = Conv::new(1, 32, 16, 9, 3, 1, dtype, order);
            let name = format!("{}_{dtype}", order.name());
            cases.push(Case {
                name,
                graph: conv.fused(PointwiseMode::ReluFwd, true),
            });
        }
    }
    cases
}

#[test]
fn half_precision_graphs_round_once() {
    let runner = Runner::cpu().expect("the plugin loads");
    for case in cases() {
        if let Err(error) = runner.run(&case, 64) {
            panic!("{}: {error:#}", case.name);
        }
    }
}

#[test]
fn rounding_before_the_bias_would_be_seen() {
    for case in cases() {
        let mut graph = case.graph;
        graph.validate().expect("cases are valid");
        let inputs = fill_all(&graph, 7).expect("known types");
        let (index, output) = (0..)
            .zip(&graph.tensors)
            .find(|(_, tensor)| tensor.name == "y" && tensor.kind == TensorKind::Buffer)
            .expect("y");
        let mut mutant = inputs.clone();
        let options = Options {
            round_intermediates: Some(output.dtype),
            ..Options::default()
        };
        execute_with(&graph, &mut mutant, &options).expect("the reference runs it");
        let judged = evaluate(&graph, &inputs).expect("the reference runs it").judge(
            rotini_graph::TensorId(index),
            &mutant[&output.uid],
            &inputs[&output.uid],
        );
        assert!(judged.is_err(), "{}: a result that was rounded twice passes", case.name);
    }
}
