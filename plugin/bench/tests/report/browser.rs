//! The page in a real browser: headless Chromium, as `scripts/setup --test` installs it.
//!
//! Chromium's own options are enough, and no driver is needed: a page of the test puts the page
//! under test into frames of the widths of a phone and of a desktop, measures it and leaves what it
//! found as text, which `--dump-dom` prints. The page under test is unchanged. A window of Chromium
//! is never as narrow as a phone; a frame can be.

use crate::generated::results;
use rotini_bench::page::page;
use rotini_bench::results::{Clock, Results};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What is measured in each frame. Text that hangs over the edge of an SVG counts, as far as it
/// makes the page scroll.
const MEASURE: &str = include_str!("browser.js");

#[derive(Debug, Deserialize)]
struct Measured {
    width: u32,
    scroll_width: u32,
    speedups: usize,
    roofline: usize,
    dots: usize,
    empty: usize,
    untitled: usize,
    unenclosed: usize,
    outside: usize,
    colours: usize,
    shapes: usize,
    engines: usize,
    bare_tables: usize,
}

/// Chromium, or nothing if the machine has none and a test may be skipped.
fn chromium() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|directory| directory.join("chromium"))
        .find(|program| program.is_file());
    let required = env::var_os("ROTINI_TEST_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(
        found.is_some() || !required,
        "chromium is missing: scripts/setup --test installs it"
    );
    if found.is_none() {
        eprintln!("skipped: chromium is missing, scripts/setup --test installs it");
    }
    found
}

/// What Chromium prints about a file: its standard output, and what it logs.
fn browse(chromium: &Path, file: &Path, options: &[&str]) -> (String, String) {
    /// Times that it is started: in a machine without a display one of its processes crashes now
    /// and then, whatever the page is.
    const TRIES: usize = 3;
    let mut log = String::new();
    for _ in 0..TRIES {
        let profile = tempfile::tempdir().expect("a directory for Chromium");
        let output = Command::new(chromium)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args([
                "--enable-logging=stderr",
                "--force-device-scale-factor=1",
                "--virtual-time-budget=2000",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(options)
            .arg(format!("file://{}", file.display()))
            .output()
            .expect("Chromium starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        log = text(&output.stderr);
        if output.status.success() {
            return (text(&output.stdout), log);
        }
    }
    panic!("Chromium failed {TRIES} times:\n{log}")
}

/// The page in frames of such widths, measured. Also fails on anything that the page writes to the
/// console.
fn measure(chromium: &Path, name: &str, results: &Results, widths: &[u32]) -> Vec<Measured> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let page = page(results);
    fs::write(directory.join(format!("{name}.html")), &page).expect("the page is written");
    // Within a script, only this could end it.
    let page = serde_json::to_string(&page).expect("a string").replace('<', "\\u003c");
    let test = format!(
        r#"<!doctype html><title>test</title><body><script>{MEASURE}
        const page = {page}, found = [], widths = {widths:?};
        const add = (width) => new Promise((done) => {{
          const frame = document.createElement("iframe");
          frame.style = `width: ${{width}}px; height: 800px; border: 0`;
          frame.scrolling = "no";
          frame.onload = () => done(measure(frame));
          frame.srcdoc = page;
          document.body.append(frame);
        }});
        (async () => {{
          for (const width of widths) found.push(await add(width));
          document.body.replaceChildren(Object.assign(document.createElement("pre"), {{ textContent: JSON.stringify(found) }}));
        }})();
        </script>"#
    );
    let file = directory.join(format!("{name}-test.html"));
    fs::write(&file, test).expect("the test is written");
    let (dom, log) = browse(chromium, &file, &["--dump-dom", "--window-size=1400,900"]);
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:#?}");
    let found = dom.split_once("<pre>").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (found, _) = found.unwrap_or_else(|| panic!("nothing was measured:\n{log}"));
    serde_json::from_str(found).unwrap_or_else(|error| panic!("{error}: {found}"))
}

#[test]
fn a_browser_shows_every_mark_on_a_phone_and_on_a_desktop() {
    let Some(chromium) = chromium() else { return };
    let results = results(Clock::Gpu);
    let widths = [390, 320, 1280];
    let measured = measure(&chromium, "gpu", &results, &widths);
    assert_eq!(measured.len(), widths.len());
    let comparisons: usize = results.rows.iter().map(|row| row.comparisons.len()).sum();
    for (found, width) in measured.iter().zip(widths) {
        assert_eq!(found.width, width, "{found:?}");
        assert!(found.scroll_width <= width, "the page scrolls sideways: {found:?}");
        assert_eq!(
            (found.speedups, found.roofline, found.dots),
            (comparisons, 33 - 6, 33 * 2 * 40),
            "{found:?}"
        );
        assert_eq!((found.empty, found.untitled, found.unenclosed), (0, 0, 0), "{found:?}");
        assert_eq!((found.outside, found.bare_tables), (0, 0), "{found:?}");
        assert_eq!(found.shapes, 3, "{found:?}");
        // One for each engine, and that of paper in hollow marks.
        assert_eq!(found.colours, 4, "{found:?}");
    }
}

#[test]
fn a_browser_shows_an_emulated_run_without_plots() {
    let Some(chromium) = chromium() else { return };
    for found in measure(&chromium, "emulated", &results(Clock::Emulated), &[390, 1280]) {
        assert!(found.scroll_width <= found.width, "{found:?}");
        assert_eq!(
            (found.speedups, found.roofline, found.dots, found.empty),
            (0, 0, 0, 0),
            "{found:?}"
        );
    }
}

#[test]
fn a_browser_runs_nothing_that_a_name_brings_along() {
    let Some(chromium) = chromium() else { return };
    let mut results = results(Clock::Cpu);
    for row in &mut results.rows {
        row.graph =
            "</title><script>console.error('run')</script><img src=x onerror=\"console.error('run')\">".repeat(3);
        row.origin = "a_name_without_a_place_to_break_".repeat(20);
    }
    for found in measure(&chromium, "hostile", &results, &[390]) {
        assert!(found.scroll_width <= found.width, "{found:?}");
        assert_eq!(found.empty, 0, "{found:?}");
    }
}

#[test]
fn a_browser_shows_many_engines_and_graphs_that_differ_by_orders_of_magnitude() {
    let Some(chromium) = chromium() else { return };
    let mut results = results(Clock::Cpu);
    for measurement in results.rows.iter_mut().flat_map(|row| &mut row.measurements) {
        // The samples are looked at elsewhere, and take their time.
        measurement.hot.iter_mut().for_each(|times| times.samples.truncate(3));
        measurement.rotating = None;
    }
    let rows = results.rows.clone();
    for factor in [1e-3, 1e3] {
        results.rows.extend(rows.iter().cloned().map(|mut row| {
            row.comparisons.iter_mut().for_each(|one| {
                (one.low, one.ratio, one.high) = (one.low * factor, one.ratio * factor, one.high * factor);
            });
            row
        }));
    }
    // One more than there are colours and shapes.
    for copy in 3..7 {
        let mut engine = results.engines[0].clone();
        engine.label = format!("rotini with other settings {copy}");
        results.engines.push(engine);
        for row in &mut results.rows {
            row.measurements.push(row.measurements[0].clone());
            let mut comparison = row.comparisons[0].clone();
            comparison.engine = copy;
            row.comparisons.push(comparison);
        }
    }
    let comparisons: usize = results.rows.iter().map(|row| row.comparisons.len()).sum();
    for found in measure(&chromium, "many", &results, &[390, 1280]) {
        assert!(found.scroll_width <= found.width, "{found:?}");
        assert_eq!(
            (found.speedups, found.empty, found.unenclosed, found.outside),
            (comparisons, 0, 0, 0),
            "{found:?}"
        );
        assert_eq!(found.engines, 7, "two engines look the same: {found:?}");
    }
}
