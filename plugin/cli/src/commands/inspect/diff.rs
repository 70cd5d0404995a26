//! The differences between two graphs' kernels.

use super::document::{Document, Kernel};
use super::text;
use crate::commands::answer::Answer;
use crate::output::Output;
use crate::report::{self, plain};
use anyhow::Result;
use comfy_table::Cell;
use serde::Serialize;
use std::collections::BTreeMap;

/// A value that differs.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Difference {
    /// The kernel's number; absent for the whole graph
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<usize>,
    what: String,
    before: String,
    after: String,
}

#[derive(Serialize)]
struct Differences<'a> {
    ok: bool,
    before: &'a str,
    after: &'a str,
    differences: Vec<Difference>,
}

pub(super) fn tell(before: &Document, after: &Document, output: &Output) -> Result<Answer> {
    let differences = differences(before, after);
    if output.json {
        output.document(&Differences {
            ok: true,
            before: &before.graph,
            after: &after.graph,
            differences,
        })?;
        return Ok(Answer::Yes);
    }
    output.line(&plain(&format!("before: {} ({})", before.graph, text::about(before))))?;
    output.line(&plain(&format!("after:  {} ({})", after.graph, text::about(after))))?;
    if differences.is_empty() {
        output.line("nothing differs")?;
        return Ok(Answer::Yes);
    }
    let mut table = report::table(&["kernel", "what", "before", "after"]);
    for Difference {
        kernel,
        what,
        before,
        after,
    } in differences
    {
        table.add_row([
            Cell::new(kernel.map(|number| number.to_string()).unwrap_or_default()),
            Cell::new(what),
            Cell::new(plain(&before)),
            Cell::new(plain(&after)),
        ]);
    }
    output.line(&table.to_string())?;
    Ok(Answer::Yes)
}

/// Returns all differences. Kernels are matched by their numbers, because their names contain
/// shapes.
fn differences(before: &Document, after: &Document) -> Vec<Difference> {
    let mut all = compare(None, &of_graph(before), &of_graph(after));
    for number in 0..before.kernels.len().max(after.kernels.len()) {
        let facts = |document: &Document| document.kernels.get(number).map(of_kernel).unwrap_or_default();
        all.extend(compare(Some(number), &facts(before), &facts(after)));
    }
    all
}

type Facts = BTreeMap<String, String>;

fn compare(kernel: Option<usize>, before: &Facts, after: &Facts) -> Vec<Difference> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of = |facts: &Facts, name: &String| facts.get(name).cloned().unwrap_or_else(|| "–".to_owned());
    let both = names.into_iter().map(|name| (name, of(before, name), of(after, name)));
    both.filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| Difference {
            kernel,
            what: name.clone(),
            before,
            after,
        })
        .collect()
}

fn of_graph(document: &Document) -> Facts {
    let fact = |name: &str, text: String| (name.to_owned(), text);
    let mut facts = Facts::from([
        fact("kernels", document.kernels.len().to_string()),
        fact("least", text::least(document)),
        fact("target", document.target.clone()),
        fact("compiler", document.compiler.clone()),
    ]);
    if let Some(device) = &document.constants_of {
        facts.insert("constants of".to_owned(), device.clone());
    }
    if let Some(launches) = &document.launches {
        facts.insert("launches".to_owned(), launches.len().to_string());
    }
    if let Some(time) = document.time() {
        facts.insert("time".to_owned(), time.to_string());
    }
    if let Some(bytes) = document.bytes() {
        facts.insert("bytes loaded and stored".to_owned(), bytes.to_string());
    }
    facts
}

fn of_kernel(kernel: &Kernel) -> Facts {
    let mut facts: Facts = Facts::new();
    let mut tiles = Vec::new();
    for (name, text) in text::facts(kernel) {
        if name == "tiles" {
            tiles.push(text);
        } else {
            facts.insert(name.to_owned(), text);
        }
    }
    facts.insert("tiles".to_owned(), tiles.join("; "));
    for (class, all, hottest) in text::rows(kernel) {
        let hottest = hottest.map_or_else(String::new, |count| format!(" ({count} in the hottest loop)"));
        facts.insert(format!("instructions: {class}"), format!("{all}{hottest}"));
    }
    facts
}
