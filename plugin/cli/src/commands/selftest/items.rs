//! The tests of `rotini selftest`: every conformance case, on default inputs and on special values;
//! random graphs; and some of the cases again from the cache, after unloading the plugin, in stream
//! order, by captured graphs, by several threads, on other GPUs, and after a fault of the compile
//! worker.

use anyhow::Result;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use rotini_graph::Graph;
use rotini_reference::{Buffers, Profile, ReferenceError};
use rotini_tests::{cases, random};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The group that a test belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Part {
    /// The conformance cases.
    Cases,
    /// Some cases with NaN, infinities, denormals and zeros of both signs among the inputs.
    SpecialValues,
    /// Functions with arguments of all magnitudes.
    Functions,
    /// Random graphs.
    Random,
    /// Code that another process compiled into the cache.
    FromCache,
    /// Cases after the plugin was unloaded and loaded again.
    Reload,
    /// Cases executed by captured graphs; GPUs only.
    Captured,
    /// Cases whose inputs are written by earlier work on the stream; GPUs only.
    Ordered,
    /// Cases executed by several threads at once.
    Threads,
    /// Cases on each GPU except the first.
    OtherGpus,
    /// Cases with a compile worker that answers nonsense, then with the real one.
    Faults,
}

impl Part {
    /// All parts with their labels, in the order of the report.
    pub(super) const ALL: [(Part, &str); 11] = [
        (Part::Cases, "conformance cases"),
        (Part::SpecialValues, "cases with special values"),
        (Part::Functions, "functions over all magnitudes"),
        (Part::Random, "random graphs"),
        (Part::FromCache, "code from the cache, in a new process"),
        (Part::Reload, "after unloading and loading again"),
        (Part::Captured, "executed by captured graphs (GPUs)"),
        (Part::Ordered, "inputs that the stream brings late (GPUs)"),
        (Part::Threads, "several threads at once"),
        (Part::OtherGpus, "on the other GPUs (several GPUs)"),
        (Part::Faults, "after a fault of the compile worker"),
    ];
}

/// A test.
pub(super) struct Item {
    /// Its part.
    pub(super) part: Part,
    /// Its name, unique in the part.
    pub(super) name: String,
    /// The graph, not validated yet.
    pub(super) graph: Graph,
    /// The index of the GPU that executes it.
    pub(super) gpu: usize,
    inputs: Inputs,
}

enum Inputs {
    Usual,
    Special,
    These(Buffers),
}

impl Item {
    fn new(part: Part, name: String, graph: Graph) -> Self {
        let inputs = if part == Part::SpecialValues {
            Inputs::Special
        } else {
            Inputs::Usual
        };
        Item {
            part,
            name,
            graph,
            gpu: 0,
            inputs,
        }
    }

    /// Returns the contents of all buffers before the execution.
    pub(super) fn inputs(&self, graph: &Graph, seed: u64) -> Result<Buffers, ReferenceError> {
        match &self.inputs {
            Inputs::Usual => rotini_reference::fill_all(graph, seed),
            Inputs::Special => rotini_reference::fill_all_with(graph, seed, Profile::FewEdges),
            Inputs::These(inputs) => Ok(inputs.clone()),
        }
    }

    /// Returns true if the plugin may decline the graph: only random graphs may contain what no
    /// engine supports.
    pub(super) fn may_be_declined(&self) -> bool {
        self.part == Part::Random
    }
}

/// Returns all items in a random order, so that a run that ends early has tested a fair sample.
///
/// # Errors
///
/// Fails if the buffers of a case cannot be filled: no case may be skipped silently.
pub(super) fn all(gpus: usize, seed: u64, random_graphs: u64) -> Result<Vec<Item>> {
    /// Every `EVERY`-th case is used in the parts that test something other than results.
    const EVERY: usize = 40;
    /// Number of cases in the part `Faults`, each of which starts three processes.
    const FAULTS: usize = 6;
    let is_on_cpu = gpus == 0;
    let cases = cases::all();
    let mut items = Vec::new();
    let mut parts = vec![Part::FromCache, Part::Reload, Part::Threads];
    if !is_on_cpu {
        parts.extend([Part::Captured, Part::Ordered]);
    }
    for case in cases.iter().step_by(EVERY) {
        let item = |part| Item::new(part, case.name.clone(), case.graph.clone());
        items.extend(parts.iter().copied().map(item));
        items.extend((1..gpus).map(|gpu| Item {
            name: format!("{} on GPU {gpu}", case.name),
            gpu,
            ..item(Part::OtherGpus)
        }));
    }
    let few = cases.iter().step_by(cases.len().div_ceil(FAULTS).max(1));
    items.extend(few.map(|case| Item::new(Part::Faults, case.name.clone(), case.graph.clone())));
    items.extend(
        cases
            .into_iter()
            .map(|case| Item::new(Part::Cases, case.name, case.graph)),
    );
    items.extend(
        cases::edges()
            .into_iter()
            .map(|case| Item::new(Part::SpecialValues, case.name, case.graph)),
    );
    let with_data = [
        (Part::Cases, cases::with_data()?),
        (Part::Functions, cases::functions(is_on_cpu)?),
    ];
    for (part, data) in with_data {
        // hipDNN does not define the results of the other cases.
        for data in data.into_iter().filter(|data| data.has_meaning) {
            items.push(Item {
                part,
                name: data.case.name,
                graph: data.case.graph,
                gpu: 0,
                inputs: Inputs::These(data.inputs),
            });
        }
    }
    for number in 0..random_graphs {
        let seed = seed.wrapping_add(number);
        items.push(Item::new(
            Part::Random,
            format!("seed {seed}"),
            random::recipe(seed).graph(),
        ));
    }
    items.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    // One item of each part comes first, so that even a short run covers all parts.
    let mut begun = HashSet::new();
    items.sort_by_cached_key(|item| !begun.insert(item.part));
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_items_of_its_own_names() {
        let items = all(2, 1, 10).unwrap();
        for (part, what) in Part::ALL {
            assert!(items.iter().any(|item| item.part == part), "{what}");
        }
        let mut names = HashSet::new();
        for item in &items {
            assert!(
                names.insert((item.part, &item.name)),
                "{:?}: two are called {}",
                item.part,
                item.name
            );
        }
        let first: HashSet<Part> = items.iter().take(Part::ALL.len()).map(|item| item.part).collect();
        assert_eq!(first.len(), Part::ALL.len());
        let of_gpus = [Part::Captured, Part::Ordered, Part::OtherGpus];
        assert!(!all(0, 1, 0).unwrap().iter().any(|item| of_gpus.contains(&item.part)));
    }
}
