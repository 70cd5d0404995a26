//! Judges executions: every output must be within the tolerance, and every input unchanged.

use crate::results::Error;
use rotini_graph::{Graph, TensorId, TensorKind};
use rotini_reference::{Buffers, Mismatch, ReferenceError, Report};
use std::collections::HashSet;

/// The judgement of an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// Right results.
    Right,
    /// Wrong results.
    Wrong(String),
    /// Not judged: the reference lacks an operation or a type.
    Unchecked(String),
}

/// A graph's inputs and expected results, for any number of judgements.
pub struct Reference<'a> {
    graph: &'a Graph,
    inputs: &'a Buffers,
    outputs: HashSet<TensorId>,
    wanted: Result<Buffers, ReferenceError>,
}

impl<'a> Reference<'a> {
    /// Returns a judge that expects the results of the reference.
    #[must_use]
    pub fn new(graph: &'a Graph, inputs: &'a Buffers) -> Self {
        let mut wanted = inputs.clone();
        let done = rotini_reference::execute(graph, &mut wanted);
        Reference {
            wanted: done.map(|()| wanted),
            ..Reference::unknown(graph, inputs)
        }
    }

    /// Returns a judge without expected results: outputs are held against the reference's bounds
    /// when they are judged, which takes as long as computing them. Inputs must be unchanged.
    #[must_use]
    pub fn unknown(graph: &'a Graph, inputs: &'a Buffers) -> Self {
        Reference {
            graph,
            inputs,
            outputs: outputs(graph),
            wanted: Ok(Buffers::default()),
        }
    }

    /// Returns a judge that expects the results of another engine.
    #[must_use]
    pub fn of_results(graph: &'a Graph, inputs: &'a Buffers, results: Buffers) -> Self {
        Reference {
            wanted: Ok(results),
            ..Reference::unknown(graph, inputs)
        }
    }

    /// Compares the buffers after an execution, by uid, with the expected ones.
    ///
    /// # Errors
    ///
    /// If the reference fails for another reason than a missing operation.
    pub fn judge<'b>(&self, got: impl Fn(i64) -> Option<&'b [u8]>) -> Result<(Judgement, Vec<Error>), ReferenceError> {
        let mut errors = Vec::new();
        let mut wrongs = Vec::new();
        for (id, tensor) in (0..).map(TensorId).zip(&self.graph.tensors) {
            if !matches!(tensor.kind, TensorKind::Buffer | TensorKind::RuntimeScalar) {
                continue;
            }
            let Some(got) = got(tensor.uid) else {
                wrongs.push(format!("{tensor} got no buffer"));
                continue;
            };
            if !self.outputs.contains(&id) {
                if self.inputs.get(&tensor.uid).is_none_or(|bytes| bytes != got) {
                    wrongs.push(format!("{tensor} is an input, but was written"));
                }
                continue;
            }
            let Ok(wanted) = &self.wanted else { continue };
            let want = wanted.get(&tensor.uid).map(Vec::as_slice).unwrap_or_default();
            let allowed = rotini_reference::tolerance(self.graph, id)?;
            let compared = rotini_reference::compare(tensor, got, want, allowed);
            match compared.or_else(|mismatch| self.in_bounds(id, got).ok_or(mismatch)) {
                Ok(report) => errors.push(Error::new(tensor.to_string(), &report)),
                Err(mismatch) => {
                    if let Mismatch::Values { tensor, report } = &mismatch {
                        errors.push(Error::new(tensor.clone(), report));
                    }
                    wrongs.push(mismatch.to_string());
                }
            }
        }
        if !wrongs.is_empty() {
            return Ok((Judgement::Wrong(wrongs.join("; ")), errors));
        }
        match &self.wanted {
            Ok(_) => Ok((Judgement::Right, errors)),
            Err(error @ (ReferenceError::Unsupported { .. } | ReferenceError::UnsupportedTensor { .. })) => {
                Ok((Judgement::Unchecked(error.to_string()), errors))
            }
            Err(error) => Err(error.clone()),
        }
    }

    /// A second opinion on an output that is beyond hipDNN's tolerances, which know neither the
    /// number of a sum's terms nor that they cancel: the report of the reference's own bounds, if
    /// every element lies within what a right kernel can make of it.
    fn in_bounds(&self, output: TensorId, got: &[u8]) -> Option<Report> {
        let before = self.inputs.get(&self.graph.tensor(output)?.uid)?;
        let evaluation = rotini_reference::evaluate(self.graph, self.inputs).ok()?;
        let report = evaluation.judge(output, got, before).ok()?;
        // Bounds that say nothing are no reason to call a result right.
        (report.blunt == 0).then_some(report)
    }
}

/// Compares results with the sharpest bounds of the reference: every element must be a value that
/// some right kernel can compute.
#[must_use]
pub fn judge_sharply(graph: &Graph, inputs: &Buffers, results: &Buffers) -> Judgement {
    let evaluation = match rotini_reference::evaluate(graph, inputs) {
        Ok(evaluation) => evaluation,
        Err(error) => return Judgement::Unchecked(error.to_string()),
    };
    let outputs = outputs(graph);
    let mut wrongs = Vec::new();
    let (mut elements, mut blunt) = (0, 0);
    for (id, tensor) in (0..).map(TensorId).zip(&graph.tensors) {
        if !matches!(tensor.kind, TensorKind::Buffer | TensorKind::RuntimeScalar) {
            continue;
        }
        let (Some(before), Some(got)) = (inputs.get(&tensor.uid), results.get(&tensor.uid)) else {
            wrongs.push(format!("{tensor} got no buffer"));
            continue;
        };
        if outputs.contains(&id) {
            match evaluation.judge(id, got, before) {
                Ok(report) => {
                    elements += report.elements;
                    blunt += report.blunt;
                }
                Err(mismatch) => wrongs.push(mismatch.to_string()),
            }
        } else if before != got {
            wrongs.push(format!("{tensor} is an input, but was written"));
        }
    }
    if !wrongs.is_empty() {
        Judgement::Wrong(wrongs.join("; "))
    } else if blunt == elements {
        Judgement::Unchecked("the reference's bounds say nothing about any element".to_owned())
    } else {
        Judgement::Right
    }
}

/// The tensors that nodes write.
fn outputs(graph: &Graph) -> HashSet<TensorId> {
    let mut outputs = HashSet::new();
    for node in &graph.nodes {
        node.op.for_each_output(&mut |_, id| _ = outputs.insert(id));
    }
    outputs
}

impl Error {
    fn new(tensor: String, report: &Report) -> Self {
        Error {
            tensor,
            max_absolute: report.max_absolute,
            ratio: report.ratio,
        }
    }
}
