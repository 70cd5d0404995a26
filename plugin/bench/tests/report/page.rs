//! The text of the page.

use crate::generated::{CRASHED, DECLINED, WRONG, results};
use rotini_bench::page::page;
use rotini_bench::results::{Clock, Comparison, Outcome, Results};

/// The part of the page with this id.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let start = format!("<section id=\"{id}\">");
    let (_, rest) = page
        .split_once(&start)
        .unwrap_or_else(|| panic!("the page has no section {id}"));
    rest.split_once("</section>").expect("a section ends").0
}

/// The values of an attribute of the tags that begin so, in percent.
fn percents(text: &str, tag: &str, attribute: &str) -> Vec<f64> {
    let tags = text
        .split(tag)
        .skip(1)
        .map(|rest| rest.split_once('>').expect("a tag ends").0);
    tags.map(|tag| {
        let (_, value) = tag
            .split_once(&format!(" {attribute}=\""))
            .expect("the tag has the attribute");
        value
            .split_once("%\"")
            .expect("a position in percent")
            .0
            .parse()
            .expect("a number")
    })
    .collect()
}

/// The measurements whose times count and which the filter takes.
fn measured(results: &Results, filter: impl Fn(&rotini_bench::results::Row) -> bool) -> usize {
    let rows = results.rows.iter().filter(|row| filter(row));
    rows.flat_map(|row| &row.measurements)
        .filter(|one| one.hot.is_some() && matches!(one.outcome, Outcome::Right | Outcome::Unjudged(_)))
        .count()
}

#[test]
fn plots_have_a_mark_for_each_row_that_counts() {
    let results = results(Clock::Gpu);
    let page = page(&results);

    let speedups = section(&page, "speedups");
    let comparisons: usize = results.rows.iter().map(|row| row.comparisons.len()).sum();
    assert_eq!(comparisons, 12 * 2 - 3, "the generated run has three that did not work");
    assert_eq!(speedups.matches("<use class=\"mark ").count(), comparisons);

    let marks = percents(speedups, "<use class=\"mark ", "x");
    let lows = percents(speedups, "<line class=\"whisker ", "x1");
    let highs = percents(speedups, "<line class=\"whisker ", "x2");
    assert_eq!(
        (marks.len(), lows.len(), highs.len()),
        (comparisons, comparisons, comparisons)
    );
    for ((mark, low), high) in marks.iter().zip(&lows).zip(&highs) {
        assert!(
            0.0 <= *low && low <= mark && mark <= high && *high <= 100.0,
            "{low} {mark} {high}"
        );
    }
    let hollow = speedups.matches(" hollow\"").count();
    let without_difference = results
        .rows
        .iter()
        .flat_map(|row| &row.comparisons)
        .filter(|one| !one.is_difference())
        .count();
    assert!(without_difference > 0);
    assert_eq!(hollow, without_difference);

    let roofline = section(&page, "roofline");
    assert_eq!(
        roofline.matches("<use class=\"mark ").count(),
        measured(&results, |row| row.flops.is_some())
    );
    assert!(
        roofline.contains("5.30 TB/s") && roofline.contains("1.31 PFLOP/s for f16"),
        "{roofline}"
    );

    let samples = section(&page, "samples");
    assert_eq!(
        samples.matches("<circle").count(),
        measured(&results, |_| true) * 2 * 40
    );
    assert_eq!(samples.matches("<details").count(), 12);
}

#[test]
fn speed_ups_are_sorted_by_the_first_other_engine() {
    let results = results(Clock::Cpu);
    let page = page(&results);
    let mut ratios: Vec<(f64, &str)> = results
        .rows
        .iter()
        .filter_map(|row| Some((row.comparisons.first()?.ratio, row.graph.as_str())))
        .collect();
    ratios.sort_by(|a, b| b.0.total_cmp(&a.0));
    let speedups = section(&page, "speedups");
    let chart = speedups.split_once("<ol").expect("there is a chart").1;
    let places: Vec<usize> = ratios
        .iter()
        .map(|(_, graph)| {
            chart
                .find(&format!("aria-label=\"{graph}: "))
                .expect("the graph is there")
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn verdicts_count_and_say_how_sure_they_are() {
    let mut results = results(Clock::Cpu);
    for (index, row) in results.rows.iter_mut().enumerate() {
        let (low, ratio, high) = match index {
            0..=8 => (1.9, 2.0, 2.1),
            9 => (0.45, 0.5, 0.55),
            _ => (0.9, 1.0, 1.1),
        };
        row.measurements[1].outcome = Outcome::Right;
        row.comparisons = vec![Comparison {
            engine: 1,
            ratio,
            low,
            high,
        }];
    }
    results.rows[8].measurements[1].outcome = Outcome::Declined("no".to_owned());
    results.rows[8].comparisons.clear();
    let page = page(&results);
    let verdict = section(&page, "verdict");
    // The logarithms, by hand: the mean is ln 2 · (8 - 1) / 11 = 0.441; half the widths of the
    // intervals are 8 × 0.0500 and 3 × 0.1003, the root of the sum of their squares is 0.2241, and
    // an eleventh of that 0.0204.
    let wanted = "faster on 8 of 11 graphs, slower on 1, no difference on 2; geometric mean 1.55 ×, 95 % interval 1.52–1.59; \
        1 graph cannot be compared.";
    let verdict = verdict.replace('\u{a0}', " ");
    assert!(verdict.contains(wanted), "{verdict}");
    assert!(verdict.contains("right on 10, wrong on 1, crashed on 1"), "{verdict}");
}

#[test]
fn what_did_not_work_is_told_and_its_times_do_not_count() {
    let results = results(Clock::Gpu);
    let page = page(&results);
    let table = section(&page, "table");
    for (row, engine) in [DECLINED, WRONG, CRASHED] {
        let reason = results.rows[row].measurements[engine]
            .outcome
            .reason()
            .expect("there is a reason");
        assert!(
            table.contains(reason) && section(&page, "speedups").contains(reason),
            "{reason}"
        );
    }
    assert_eq!(table.matches("<tr class=\"void\">").count(), 3);
    assert_eq!(table.matches("scope=\"row\"").count(), 36);
    // A comparison that should not be there is not believed.
    let mut lied = results.clone();
    lied.rows[WRONG.0].comparisons.push(Comparison {
        engine: WRONG.1,
        ratio: 50.0,
        low: 49.0,
        high: 51.0,
    });
    assert_eq!(
        section(&page, "speedups"),
        section(&rotini_bench::page::page(&lied), "speedups")
    );
}

#[test]
fn emulated_times_are_no_speed() {
    let page = page(&results(Clock::Emulated));
    let body = page.split_once("<body>").expect("there is a body").1;
    for word in [
        "FLOP/s",
        "GB/s",
        "geometric",
        "class=\"mark ",
        "<circle c",
        "faster",
        "roofline</h2>",
        " CPU",
    ] {
        let found = body
            .split_once("<section id=\"machine\">")
            .expect("facts of the machine follow")
            .0;
        assert!(!found.contains(word), "{word} in a page about the emulator");
    }
    let table = section(&page, "table");
    let times = table.matches("<span class=\"time\">").count();
    assert!(times > 200, "{times}");
    assert_eq!(table.matches("</span><small>emulated</small>").count(), times);
    assert!(page.contains("they are not speed"));
}

#[test]
fn clocks_are_named_beside_times() {
    for (clock, word) in [(Clock::Cpu, "CPU"), (Clock::Gpu, "GPU")] {
        let page = page(&results(clock));
        assert!(page.contains(&format!("<b>{word} times.</b>")));
        let table = section(&page, "table");
        assert!(table.contains(&format!("hot<small>{word}</small>")) && table.contains("host p50<small>CPU</small>"));
        assert!(section(&page, "samples").contains(&format!("in {word} time")));
    }
}

#[test]
fn names_from_outside_are_text() {
    let mut results = results(Clock::Gpu);
    let hostile = "\"><script>alert('x')</script><img src=x onerror=alert(1)>&amp;' onload='";
    for row in &mut results.rows {
        for text in [&mut row.graph, &mut row.origin, &mut row.summary, &mut row.dtype] {
            *text = hostile.to_owned();
        }
        row.published
            .iter_mut()
            .for_each(|published| published.by = hostile.to_owned());
    }
    results.rows[0].measurements[1].outcome = Outcome::Wrong(hostile.to_owned());
    for engine in &mut results.engines {
        for text in [
            &mut engine.label,
            &mut engine.plugin,
            &mut engine.name,
            &mut engine.version,
            &mut engine.engine,
        ] {
            *text = hostile.to_owned();
        }
        engine.settings = vec![(hostile.to_owned(), hostile.to_owned())];
        engine.unusable = Some(hostile.to_owned());
    }
    results.machine.device = hostile.to_owned();
    results.machine.facts = vec![(hostile.to_owned(), hostile.to_owned())];
    results.machine.peaks.iter_mut().for_each(|peak| {
        peak.dtype = hostile.to_owned();
        peak.source = hostile.to_owned();
    });
    results.command.push(hostile.to_owned());
    results.started = hostile.to_owned();
    let page = page(&results);
    for tag in ["<script", "<img"] {
        assert!(!page.contains(tag), "{tag}");
    }
    assert!(page.contains("&lt;script&gt;alert("));
    // Within a tag, a quote would end an attribute.
    for tag in page.split('<').skip(1) {
        let inside = tag.split('>').next().expect("the first part");
        assert_eq!(inside.matches('"').count() % 2, 0, "<{inside}>");
    }
}

#[test]
fn nothing_comes_from_the_network() {
    let page = page(&results(Clock::Gpu));
    for word in ["http://", "https://", "src=", "@import", "url(", "<script", "<link"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("width=device-width"));
    assert!(page.len() < 400_000, "{} bytes", page.len());
}

#[test]
fn what_is_not_known_is_left_out_with_a_sentence() {
    let mut results = results(Clock::Cpu);
    results.machine.memory_bandwidth = None;
    assert!(section(&page(&results), "roofline").contains("bandwidth of this device is not known"));
    results.machine.memory_bandwidth = Some(1e11);
    results.machine.peaks.clear();
    assert!(section(&page(&results), "roofline").contains("peak rate of this device is not known"));
    results.engines.truncate(1);
    for row in &mut results.rows {
        row.measurements.truncate(1);
        row.comparisons.clear();
    }
    assert!(section(&page(&results), "speedups").contains("nothing to compare it with"));
    results.rows.clear();
    assert!(section(&page(&results), "roofline").contains("No graph was measured"));
    results.engines.clear();
    assert!(page(&results).contains("</html>"));
}
