//! The marks of engines: each has a unique colour and shape, so that no reader needs to tell
//! colours apart.

use super::axis::percent;
use maud::{Markup, html};

/// How many colours and shapes there are. Engines beyond share a colour with an earlier one, and
/// have another shape.
const KINDS: usize = 6;

/// The shapes, drawn once and used by their ids.
pub(super) fn definitions() -> Markup {
    html! {
        svg.definitions width="0" height="0" aria-hidden="true" {
            defs {
                line #cap y1="-7" y2="7" {}
                circle #m0 r="4.6" {}
                rect #m1 x="-4.2" y="-4.2" width="8.4" height="8.4" {}
                path #m2 d="M0-5.4L5.2 4H-5.2Z" {}
                path #m3 d="M0-6L6 0L0 6L-6 0Z" {}
                path #m4 d="M0 5.4L5.2-4H-5.2Z" {}
                path #m5 d="M-1.7-5.2H1.7V-1.7H5.2V1.7H1.7V5.2H-1.7V1.7H-5.2V-1.7H-1.7Z" {}
            }
        }
    }
}

/// The class that gives an engine its colour.
pub(super) fn colour(engine: usize) -> String {
    format!("e{}", engine % KINDS)
}

fn shape(engine: usize) -> String {
    format!("#m{}", (engine + engine / KINDS) % KINDS)
}

/// The sign of an engine beside its name.
pub(super) fn key(engine: usize) -> Markup {
    html! {
        svg.key width="14" height="14" aria-hidden="true" {
            use class=(colour(engine)) href=(shape(engine)) x="7" y="7" {}
        }
    }
}

/// A graph's name, which may be broken after the signs that people put between words.
pub(super) fn name(graph: &str) -> Markup {
    html! { @for part in graph.split_inclusive(['.', '_', '/', ':', ',']) { (part) wbr; } }
}

/// A mark in a plot. A hollow one stands for no difference.
pub(super) fn mark(engine: usize, x: f64, y: &str, hollow: bool, title: &str) -> Markup {
    html! {
        use class={ "mark " (colour(engine)) @if hollow { " hollow" } } href=(shape(engine)) x=(percent(x)) y=(y) {
            title { (title) }
        }
    }
}
