//! The CSV file, read back by the same crate's reader.

use crate::generated::{DECLINED, WRONG, results};
use rotini_bench::csv::csv;
use rotini_bench::results::Clock;
use std::collections::BTreeMap;

/// The lines by the names of their columns.
fn lines(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    reader
        .deserialize()
        .map(|line| line.expect("a line of columns"))
        .collect()
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

#[test]
fn each_graph_and_engine_has_a_line_with_its_figures() {
    let mut results = results(Clock::Gpu);
    results.rows[0].graph = "a \"quoted\" name,\nof two lines".to_owned();
    let lines = lines(&csv(&results).expect("it is written"));
    assert_eq!(lines.len(), 36);
    for (index, line) in lines.iter().enumerate() {
        let (row, engine) = (index / 3, index % 3);
        let (row, place) = (&results.rows[row], (row, engine));
        assert_eq!(
            (&line["graph"], &line["engine"]),
            (&row.graph, &results.engines[engine].label)
        );
        assert_eq!(line["clock"], "GPU");
        let hot = &row.measurements[engine].hot;
        match hot {
            Some(hot) => assert_eq!(number(&line["hot_us"]), hot.median),
            None => assert_eq!(line["hot_us"], ""),
        }
        let outcome = match place {
            DECLINED => "declined",
            WRONG => "wrong",
            _ if hot.is_none() => "crashed",
            _ => "right",
        };
        assert_eq!(line["outcome"], outcome);
        assert_eq!(line["gb_per_s"].is_empty(), outcome != "right");
    }
    // 7.55 GFLOP and 36.2 MB, against 5.3 TB/s and 1307 TFLOP/s: at 209 operations per byte, the
    // memory is the limit.
    let seconds = number(&lines[0]["rotating_us"]) * 1e-6;
    assert!((number(&lines[0]["tflop_per_s"]) - 7.55e-3 / seconds).abs() < 1e-6);
    assert!((number(&lines[0]["gb_per_s"]) - 36.2e-3 / seconds).abs() < 1e-6);
    assert!((number(&lines[0]["roofline_percent"]) - 100.0 * 36.2e6 / 5.3e12 / seconds).abs() < 1e-6);
    assert!((number(&lines[1]["times_first_engine"]) - results.rows[0].comparisons[0].ratio).abs() < 1e-9);
}

#[test]
fn emulated_times_have_no_rates() {
    for line in lines(&csv(&results(Clock::Emulated)).expect("it is written")) {
        assert_eq!(line["clock"], "emulated");
        for column in ["tflop_per_s", "gb_per_s", "roofline_percent", "times_first_engine"] {
            assert_eq!(line[column], "", "{column}");
        }
    }
}
