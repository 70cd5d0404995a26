//! What launches are predicted to take on an MI300X, of a report that the emulator wrote with `HIPEMU_SAMPLE` and `HIPEMU_REPORT`:
//! `cargo run -p rotini-time --example predict -- REPORT`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for who changes schedules"
)]

use rotini_time::{MI300X, Parameters, Record, predict};

fn main() {
    let report = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    for line in report.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(record) = line.get("record") else { continue };
        let record: Record = serde_json::from_value(record.clone()).unwrap();
        let prediction = predict(&record, &MI300X, &Parameters::default());
        println!("{} workgroups of {}: {prediction}", record.workgroups, record.kernel);
    }
}
