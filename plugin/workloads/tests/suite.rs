//! Conversion of users' texts to graphs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

use proptest::prelude::*;
use rotini_workloads::suites::{SUITES, SuiteOptions, suite};
use rotini_workloads::{Workload, from_log, from_miopen};
use std::collections::HashSet;

/// Real command lines; a comment before each states its source.
const LINES: &str = include_str!("miopen_lines.txt");

/// Lines that no graph can express: a part of the line, and the error.
const NO_GRAPH: [(&str, &str); 4] = [
    ("MIOpenDriver lrn", "hipDNN has no operation for lrn"),
    ("MIOpenDriver rnn", "hipDNN has no operation for rnn"),
    ("-z 3", "the padding mode 3"),
    ("-O 3 -I 1", "IndicesUsed is 1"),
];

fn is_valid(workload: &Workload) {
    let graph = rotini_wire::decode(&workload.graph);
    graph.unwrap_or_else(|error| panic!("{}: {error}", workload.name));
}

#[test]
fn command_lines_of_miopen_are_graphs_or_say_why_not() {
    let lines: Vec<&str> = LINES.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() >= 60, "{} lines", lines.len());
    let mut graphs = 0;
    for line in &lines {
        let reason = NO_GRAPH.iter().find(|(part, _)| line.contains(part));
        match (from_miopen(line), reason) {
            (Ok(workloads), None) => {
                assert!(!workloads.is_empty(), "{line}");
                workloads.iter().for_each(is_valid);
                graphs += 1;
            }
            (Err(error), Some((_, why))) => assert!(error.to_string().contains(why), "{line}: {error}"),
            (Ok(_), Some((_, why))) => panic!("{line}: {why}?"),
            (Err(error), None) => panic!("{error}"),
        }
    }
    assert!(graphs >= 50, "{graphs} lines");
}

#[test]
fn what_a_line_says_is_in_the_graph() {
    let one = |line: &str| from_miopen(line).unwrap().remove(0);
    let graph = |line: &str| rotini_wire::decode(&one(line).graph).unwrap();
    let conv = graph("convfp16 -n 2 -c 8 -H 9 -W 7 -k 4 -y 3 -x 1 -p 1 -u 2 -g 2 -F 1 --in_layout NHWC");
    let dims: Vec<&[i64]> = conv.tensors.iter().map(|tensor| tensor.dims.as_slice()).collect();
    assert_eq!(dims, [&[2, 8, 9, 7][..], &[4, 4, 3, 1], &[2, 4, 5, 7]]);
    assert_eq!(conv.tensors[0].strides, [504, 1, 56, 8]);
    assert_eq!(conv.tensors[1].strides, [12, 3, 1, 1]);
    // Without -F all three directions; with it, those whose bits are set.
    assert_eq!(from_miopen("conv").unwrap().len(), 3);
    assert_eq!(from_miopen("conv -F 6").unwrap().len(), 2);
    // A transposed convolution's output is larger than its input.
    let transposed = graph("conv -n 1 -c 6 -H 5 -W 5 -k 4 -y 4 -x 4 -u 2 -v 2 -p 1 -q 1 -m trans -F 1");
    assert_eq!(transposed.tensors[2].dims, [1, 4, 10, 10]);
    let same = graph("conv -n 1 -c 1 -H 10 -W 10 -k 1 -y 3 -x 3 -z same -F 1");
    assert_eq!(same.tensors[2].dims, [1, 1, 10, 10]);
}

#[test]
fn a_log_has_each_problem_once() {
    let mut log = LINES.as_bytes().to_vec();
    log.extend(b"epoch 1 \xff\n");
    log.extend(LINES.as_bytes());
    let contents = from_log(log.as_slice()).unwrap();
    assert!(contents.problems.len() >= 50);
    assert!(contents.problems.iter().all(|problem| problem.occurrences >= 2));
    let graphs: HashSet<&[u8]> = contents
        .problems
        .iter()
        .map(|problem| problem.workload.graph.as_slice())
        .collect();
    assert_eq!(graphs.len(), contents.problems.len());
    assert_eq!(contents.not_understood.len(), 2 * NO_GRAPH.len());
    let (number, _) = &contents.not_understood[0];
    assert!(LINES.lines().nth(number - 1).unwrap().contains("lrn"));
}

#[test]
fn mistakes_are_named() {
    let error = |line: &str| from_miopen(line).unwrap_err().to_string();
    for (line, what) in [
        ("", "no driver"),
        ("convolve -n 1", "no driver convolve"),
        ("conv --frequency 3", "no option --frequency"),
        ("conv -n", "-n has no value"),
        ("conv -n many", "batchsize is many"),
        ("conv -n 0", "batchsize is 0"),
        ("conv -r 1", "pad_val is 1"),
        ("conv -y 40", "does not fit"),
        ("conv -c 3 -k 4 -g 2", "groups"),
        ("conv -I NCHWc8", "NCHWc8"),
        ("conv 'a", "quotes"),
        ("bnorm -m 0", "for each channel"),
        ("softmax -A 2", "alpha is 2"),
        ("reduce -R 9", "DimsToReduce has 9"),
        ("reduce -O 3 -N 1", "NanPropagation is 1"),
        ("conv -H 9223372036854775807 -p 9223372036854775807", ""),
    ] {
        let error = error(line);
        assert!(error.contains(what), "{line}: {error}");
    }
}

#[test]
fn suites_are_valid_and_have_a_name_for_each_graph() {
    for (name, _) in SUITES {
        let workloads = suite(name, &SuiteOptions::default()).unwrap();
        assert!(workloads.len() >= 10, "{name}: {}", workloads.len());
        let mut names = HashSet::new();
        for workload in &workloads {
            is_valid(workload);
            assert!(names.insert(&workload.name), "{name}: two are called {}", workload.name);
        }
    }
    let error = suite("vgg", &SuiteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("quick"), "{error}");
}

#[test]
fn miopens_times_are_those_of_its_own_problem() {
    let of = |options: SuiteOptions| suite("miopen", &options).unwrap();
    assert_eq!(of(SuiteOptions::default()).len(), 400);
    assert!(
        of(SuiteOptions::default())
            .iter()
            .all(|workload| workload.published.len() == 1)
    );
    let other = SuiteOptions {
        batch: Some(3),
        ..SuiteOptions::default()
    };
    assert!(of(other).iter().all(|workload| workload.published.is_empty()));
}

proptest! {
    #[test]
    fn no_line_is_too_much(line in ".{0,200}") {
        let _ = from_miopen(&line);
    }

    #[test]
    fn no_value_is_too_much(
        driver in prop::sample::select(vec!["conv", "convint8", "CBAInfer", "bnorm", "pool", "softmax", "reduce", "gemm", "layernorm"]),
        options in prop::collection::vec(("[a-zA-Z]", prop::sample::select(vec![
            "0", "1", "2", "3", "7", "-1", "9223372036854775807", "-9223372036854775808", "1e400", "NHWC", "1x2x3", "4294967296",
        ])), 0..12),
    ) {
        let words: Vec<String> = options.iter().map(|(letter, value)| format!("-{letter} {value}")).collect();
        if let Ok(workloads) = from_miopen(&format!("{driver} {}", words.join(" "))) {
            workloads.iter().for_each(is_valid);
        }
    }
}
