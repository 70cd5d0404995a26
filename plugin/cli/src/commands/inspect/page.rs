//! A graph's kernels on one HTML page, which needs neither network nor scripts.

use super::document::{Document, Kernel};
use super::text;
use maud::{Markup, html};

pub(super) fn page(document: &Document) -> String {
    let title = format!("rotini inspect: {}", document.graph);
    let body = html! {
        main {
            header {
                p.kicker { "rotini inspect" }
                h1 { (document.graph) }
                p.facts { (text::about(document)) " · rotini " (document.rotini) " with " (document.compiler) }
                p.clock.emulated {
                    b { "Predicted, not measured. " } "Instructions are those of the machine code. Times are a model's, from what an emulator \
                        counted; none of them was measured on a GPU."
                }
                nav {
                    @for (index, kernel) in document.kernels.iter().enumerate() {
                        a href={ "#kernel" (index) } { (kernel.name) }
                    }
                }
            }
            section {
                h2 { "The graph" }
                table.facts {
                    tbody {
                        (fact("at least", &text::least(document)))
                        @if let Some(whole) = text::whole(document) { (fact("all launches", &whole)) }
                        @if let Some(device) = &document.constants_of { (fact("constants", &format!("measured on {device}"))) }
                        @for product in &document.products { (fact("product", &text::schedules(product))) }
                    }
                }
                @if document.launches.is_none() { p.note { "Nothing was executed, so no time is predicted." } }
            }
            @for (index, kernel) in document.kernels.iter().enumerate() {
                section id={ "kernel" (index) } { (one(document, kernel)) }
            }
        }
    };
    rotini_bench::page::sheet(&title, &body)
}

fn fact(name: &str, value: &str) -> Markup {
    html! { tr { th scope="row" { (name) } td { (value) } } }
}

fn one(document: &Document, kernel: &Kernel) -> Markup {
    html! {
        h2 { (kernel.name) }
        table.facts {
            tbody {
                @for (name, value) in text::facts(kernel) { (fact(name, &value)) }
                @for launch in text::launches(document, kernel) { (fact("launch", &launch)) }
            }
        }
        h3 { "Instructions" }
        div.scroll tabindex="0" role="region" aria-label="Instructions" {
            table {
                thead { tr { th scope="col" { "class" } th.number scope="col" { "code" } th.number scope="col" { "hottest loop" } } }
                tbody {
                    @for (class, all, hottest) in text::rows(kernel) {
                        tr {
                            th scope="row" { (class) }
                            td.number { (all) }
                            td.number { @if let Some(count) = hottest { (count) } }
                        }
                    }
                }
            }
        }
    }
}
