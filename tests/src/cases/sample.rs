//! Which of the cases a run takes.
//!
//! A case takes half a second to compile, on each device, and cases that differ in nothing but layout, float type or a stored statistic
//! mostly become the same loops. A run takes one variant of each such form (the next form's has another layout or type), and whichever
//! else prove something that no other does: a type, a layout, an attribute, a chain of operations ([`facts`], of which
//! `docs/operations.md` is made). `ROTINI_CASES=all` takes every case.

use super::{Case, all};
use crate::facts;
use std::collections::{BTreeMap, BTreeSet};

/// The words of a name in which the variants of a form differ.
const VARIES: [&str; 18] = [
    "nchw",
    "nhwc",
    "f32",
    "f16",
    "bf16",
    "stats",
    "f8e4m3",
    "f8e5m2",
    "f8e8m0",
    "f6e2m3",
    "f6e3m2",
    "f4e2m1",
    "e4m3",
    "e5m2",
    "f8e4m3fnuz",
    "f8e5m2fnuz",
    "e4m3fnuz",
    "e5m2fnuz",
];

/// The cases of a run.
///
/// # Panics
///
/// If `ROTINI_CASES` asks for something that there is not.
#[must_use]
#[expect(clippy::print_stdout, reason = "what is left out is told")]
pub fn of_a_run() -> Vec<Case> {
    let all = all();
    let value = |name: &str| std::env::var(name).unwrap_or_default();
    let extent = value("ROTINI_CASES");
    assert!(["", "all"].contains(&extent.as_str()), "ROTINI_CASES={extent}");
    if !extent.is_empty() || !value("ROTINI_CASE").is_empty() {
        return all;
    }
    let count = all.len();
    let some = sample(all);
    println!("{} of {count} cases; ROTINI_CASES=all runs every one", some.len());
    some
}

/// One variant of each form, and what else proves something, in order.
#[must_use]
pub fn sample(all: Vec<Case>) -> Vec<Case> {
    let mut forms: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, case) in all.iter().enumerate() {
        let form: Vec<&str> = case.name.split('_').filter(|word| !VARIES.contains(word)).collect();
        forms.entry(form.join("_")).or_default().push(index);
    }
    let mut chosen: BTreeSet<usize> = forms
        .values()
        .enumerate()
        .map(|(turn, variants)| variants[turn % variants.len()])
        .collect();
    let mut proven: BTreeSet<_> = chosen.iter().flat_map(|&index| facts::of_one(&all[index])).collect();
    for (index, case) in all.iter().enumerate() {
        let proves = facts::of_one(case);
        if !proves.is_subset(&proven) {
            proven.extend(proves);
            chosen.insert(index);
        }
    }
    let all = all.into_iter().enumerate();
    all.filter(|(index, _)| chosen.contains(index))
        .map(|(_, case)| case)
        .collect()
}
