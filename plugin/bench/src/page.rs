//! The page in HTML: one file that needs no network and runs no script, so that it can be sent to a
//! colleague and opened years later.
//!
//! HTML and SVG are written with `maud`, which escapes every text that it is given. The plots are
//! our own few lines: the crates for plots that work without JavaScript (`plotters`, `poloto`) draw
//! pictures of a fixed size, whose text is too small on a phone, and their marks carry neither
//! titles nor classes. Here positions are percentages of the plot's width and lengths are pixels,
//! so that a plot fits into any width while text and marks keep their size.

mod axis;
mod labels;
mod marks;
mod roofline;
mod samples;
mod speedup;
mod table;

use crate::format::{self, count};
use crate::protocol::Values;
use crate::results::{Clock, Engine, Results};
use crate::verdict::{Mean, Verdict, verdict};
use marks::key;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page/style.css");

/// Nothing is loaded and nothing is executed, whatever a name of a graph tries.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// One self-contained page about a run.
#[must_use]
pub fn page(results: &Results) -> String {
    let title = format!("rotini bench: {}", names(results).join(" and "));
    let emulated = results.machine.clock == Clock::Emulated;
    let body = html! {
        (marks::definitions())
        main {
            (header(results))
            (verdicts(results))
            @if emulated {
                section #speedups {
                    h2 { "Speed" }
                    p { "The graphs ran on an emulator. Its times say nothing about speed, so there are no speed-ups, no rates, no \
                        roofline and no distributions here." }
                }
            } @else {
                (speedup::section(results))
                (roofline::section(results))
                (samples::section(results))
            }
            (table::section(results))
            (machine(results))
            (engines(results))
            (repeat(results))
        }
    };
    sheet(&title, &body)
}

/// A self-contained page with this project's style.
#[must_use]
pub fn sheet(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

fn names(results: &Results) -> Vec<String> {
    results.engines.iter().map(|engine| engine.label.clone()).collect()
}

fn header(results: &Results) -> Markup {
    html! {
        header {
            p.kicker { "rotini bench" }
            h1 {
                @for (index, engine) in results.engines.iter().enumerate() {
                    @if index > 0 { span.versus { " against " } }
                    span.engine { (key(index)) (engine.label) }
                }
            }
            p.facts {
                (count(results.rows.len(), "graph")) " on " b { (results.machine.device) }
                " · began " time datetime=(results.started) { (format::moment(&results.started)) }
                " · took " (format::duration(results.seconds))
            }
            p.clock.emulated[results.machine.clock == Clock::Emulated] {
                @match results.machine.clock {
                    Clock::Cpu => { b { "CPU times." } " The graphs ran on the processor, and its own clock measured them." }
                    Clock::Gpu => { b { "GPU times." } " Events on the device measured the graphs; creating and calling are the host’s CPU times." }
                    Clock::Emulated => { b { "Emulated times." } " An emulator of the device ran the graphs. Results are judged as on the \
                        device, but the times are how long the emulator took: they are not speed." }
                }
            }
            nav {
                a href="#verdict" { "Verdict" }
                a href="#speedups" { @if results.machine.clock == Clock::Emulated { "Speed" } @else { "Speed-ups" } }
                @if results.machine.clock != Clock::Emulated {
                    a href="#roofline" { "Roofline" }
                    a href="#samples" { "Samples" }
                }
                a href="#table" { "Table" }
                a href="#machine" { "Machine" }
                a href="#repeat" { "Repeat" }
            }
        }
    }
}

fn verdicts(results: &Results) -> Markup {
    let first = results.engines.first().map_or("", |engine| engine.label.as_str());
    html! {
        section #verdict {
            h2 { "Verdict" }
            @for (index, engine) in results.engines.iter().enumerate() {
                @let verdict = verdict(results, index);
                div.card.alarm[engine.unusable.is_some() || has_alarm(&verdict)] {
                    (figure(&verdict))
                    p {
                        @if let Some(against) = &verdict.against {
                            b { (first) } " against " b { (key(index)) (engine.label) } ": " (glued(&against.sentence())) "." br;
                        }
                        b { @if verdict.against.is_none() { (key(index)) } (engine.label) } " by the reference: " (verdict.outcomes()) "."
                        @if let Some(reason) = &engine.unusable { " It takes no part: " (reason) }
                    }
                }
            }
        }
    }
}

/// The figure that matters most, large: the geometric mean with a word for those who do not read
/// on, else how many graphs are right.
fn figure(verdict: &Verdict) -> Markup {
    let mean = verdict.against.as_ref().and_then(|against| against.mean);
    let (figure, word) = match mean {
        Some(Mean { ratio, low, .. }) if low > 1.0 => (format::ratio(ratio), "faster"),
        Some(Mean { ratio, high, .. }) if high < 1.0 => (format::ratio(ratio), "slower"),
        Some(Mean { ratio, .. }) => (format::ratio(ratio), "no difference"),
        None => {
            let [right, ..] = verdict.outcomes;
            (
                format!("{right} of {}", verdict.outcomes.iter().sum::<usize>()),
                "right",
            )
        }
    };
    html! { p.figure { (glued(&figure)) " " small { (word) } } }
}

/// Returns true if an engine crashed, hung, failed or computed wrong results.
fn has_alarm(verdict: &Verdict) -> bool {
    let [_right, _unjudged, wrong, _declined, failed, crashed, hung] = verdict.outcomes;
    wrong + failed + crashed + hung > 0
}

/// Returns a text whose numbers are not separated from their signs by a line break.
fn glued(text: &str) -> String {
    text.replace(" ×", "\u{a0}×").replace(" %", "\u{a0}%")
}

fn machine(results: &Results) -> Markup {
    let machine = &results.machine;
    html! {
        section #machine {
            h2 { "Machine" }
            div.scroll tabindex="0" role="region" aria-label="Facts about the machine" {
                table.facts {
                    tbody {
                        (fact("device", &machine.device))
                        @for (name, value) in &machine.facts { (fact(name, value)) }
                        @for peak in &machine.peaks {
                            (fact(&format!("peak, {}", peak.dtype), &format!("{}FLOP/s ({})", format::large(peak.flops, 3), peak.source)))
                        }
                        @if let Some(bandwidth) = machine.memory_bandwidth {
                            (fact("memory bandwidth", &format!("{}B/s", format::large(bandwidth, 3))))
                        }
                        @if let Some(cache) = machine.last_cache { (fact("last cache", &format::bytes(cache))) }
                    }
                }
            }
        }
    }
}

fn fact(name: &str, value: &str) -> Markup {
    html! { tr { th scope="row" { (name) } td { (value) } } }
}

fn engines(results: &Results) -> Markup {
    html! {
        section #engines {
            h2 { "Engines" }
            div.scroll tabindex="0" role="region" aria-label="The engines" {
                table {
                    thead {
                        tr {
                            @for name in ["Engine", "Plugin", "Name", "Version", "Engine API", "Engine in hipDNN", "Settings"] {
                                th scope="col" { (name) }
                            }
                        }
                    }
                    tbody {
                        @for (index, engine) in results.engines.iter().enumerate() {
                            tr {
                                th scope="row" { (key(index)) (engine.label) }
                                td { (engine.plugin) }
                                td { (engine.name) }
                                td { (engine.version) }
                                td { (engine.api_version) }
                                td { (engine.engine) }
                                td { (settings(engine)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn settings(engine: &Engine) -> Markup {
    html! {
        @if engine.settings.is_empty() { span.none { "none" } }
        @for (name, value) in &engine.settings { code { (name) "=" (value) } " " }
    }
}

fn repeat(results: &Results) -> Markup {
    let words = results.command.iter().map(String::as_str);
    // Only a zero byte cannot be quoted, and no command line holds one.
    let command = shlex::try_join(words).unwrap_or_else(|_| results.command.join(" "));
    html! {
        section #repeat {
            h2 { "How to repeat it" }
            pre.scroll tabindex="0" { code { (command) } }
            p { "Seed of the inputs and of the order of turns: " code { (results.seed) } "." }
            @if results.values == Values::Gaussian { p { "Inputs of timed executions are normally distributed." } }
            h3 { "How to read it" }
            ul {
                li { "Engines take turns in changing order, in processes of their own, with the same inputs." }
                li { "Times are medians; the interval beside one holds the true median with 95 % confidence." }
                li { b { "hot" } ": the same buffers each time. " b { "rotating" } ": buffers take turns that do not fit into the last cache together." }
                @if results.machine.clock != Clock::Emulated {
                    li { "A ratio is the other engine’s hot time divided by that of the first engine. It is a difference only if its interval does not hold 1." }
                    li { "The interval of the geometric mean is about these graphs: how exactly they were measured, not how other graphs would do." }
                    li { "Rates and the share of the roofline use the rotating time where there is one, else the hot time. GB/s count the least that a graph must move." }
                }
                li { "The times of wrong results do not count: they are struck out in the table and in no plot or mean." }
            }
        }
    }
}
