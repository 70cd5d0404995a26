//! Holds graphs of commands and launches them.

use crate::handle::{Handle, Kind};
use crate::scheduler::Scheduler;
use crate::status::Result;
use crate::stream::{Record, Recorded, Stream};
use crate::sys::{self, hipError_t, hipGraphNodeType};
use crate::work::Work;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A graph.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Mutex<Vec<Entry>>,
}

/// A node of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) work: Step,
    /// Indices of the nodes that this one depends on.
    pub(crate) after: Vec<usize>,
    pub(crate) handle: &'static Handle<Node>,
}

/// The action of a node.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Work(Work),
    /// A snapshot of another graph at the time it was added.
    Child(Arc<Plan>),
}

/// The target of a node's handle.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) graph: &'static Handle<Graph>,
    pub(crate) index: usize,
}

/// A graph that can be launched: its nodes in topological order, each with the indices of the nodes
/// that it depends on.
#[derive(Debug)]
pub(crate) struct Plan(Vec<(Step, Vec<usize>)>);

/// The result of `hipGraphInstantiate`.
#[derive(Debug)]
pub(crate) struct Executable {
    pub(crate) plan: Mutex<Option<Arc<Plan>>>,
}

impl Kind for Graph {
    const MAGIC: u64 = u64::from_le_bytes(*b"hipGraph");
    const INVALID: hipError_t = sys::hipErrorInvalidValue;
}

impl Kind for Node {
    const MAGIC: u64 = u64::from_le_bytes(*b"hipGNode");
    const INVALID: hipError_t = sys::hipErrorInvalidValue;
}

impl Kind for Executable {
    const MAGIC: u64 = u64::from_le_bytes(*b"hipGExec");
    const INVALID: hipError_t = sys::hipErrorInvalidValue;
}

impl Handle<Graph> {
    pub(crate) fn nodes(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node that depends on other nodes of this graph.
    pub(crate) fn add(&'static self, work: Step, after: &[usize]) -> &'static Handle<Node> {
        let mut nodes = self.nodes();
        let handle = Handle::new(Node {
            graph: self,
            index: nodes.len(),
        });
        let mut after = after.to_vec();
        after.sort_unstable();
        after.dedup();
        nodes.push(Entry { work, after, handle });
        handle
    }

    /// Returns the indices of nodes of this graph.
    ///
    /// # Errors
    ///
    /// If a node belongs to another graph.
    pub(crate) fn indices(&self, nodes: &[&'static Handle<Node>]) -> Result<Vec<usize>> {
        nodes
            .iter()
            .map(|node| {
                if std::ptr::eq(node.graph, self) {
                    Ok(node.index)
                } else {
                    Err(sys::hipErrorInvalidValue)
                }
            })
            .collect()
    }

    /// Returns a deep copy: a new graph with new nodes.
    pub(crate) fn copy(&self) -> &'static Handle<Graph> {
        let copy = Handle::new(Graph::default());
        for entry in self.nodes().iter() {
            copy.add(entry.work.clone(), &entry.after);
        }
        copy
    }

    /// Returns the nodes in topological order.
    ///
    /// # Errors
    ///
    /// If the graph has a cycle.
    pub(crate) fn plan(&self) -> Result<Arc<Plan>> {
        let nodes = self.nodes();
        let mut places: Vec<Option<usize>> = vec![None; nodes.len()];
        let mut plan: Vec<(Step, Vec<usize>)> = Vec::with_capacity(nodes.len());
        while plan.len() < nodes.len() {
            let before = plan.len();
            for (index, entry) in nodes.iter().enumerate() {
                if places.get(index).is_some_and(Option::is_some) {
                    continue;
                }
                let after: Option<Vec<usize>> = entry.after.iter().map(|other| *places.get(*other)?).collect();
                if let (Some(after), Some(place)) = (after, places.get_mut(index)) {
                    *place = Some(plan.len());
                    plan.push((entry.work.clone(), after));
                }
            }
            if plan.len() == before {
                return Err(sys::hipErrorInvalidValue);
            }
        }
        Ok(Arc::new(Plan(plan)))
    }

    /// Drops the nodes.
    pub(crate) fn destroy(&self) -> Result {
        self.retire()?;
        for entry in self.nodes().drain(..) {
            // A node is destroyed with its graph and never before, so it is alive here.
            entry.handle.retire()?;
        }
        Ok(())
    }
}

impl Entry {
    pub(crate) fn kind(&self) -> hipGraphNodeType {
        match &self.work {
            Step::Child(_) => sys::hipGraphNodeTypeGraph,
            Step::Work(work) => match work {
                Work::Kernel(_) => sys::hipGraphNodeTypeKernel,
                Work::Copy(_) => sys::hipGraphNodeTypeMemcpy,
                Work::Fill(_) => sys::hipGraphNodeTypeMemset,
                Work::Host(..) | Work::Callback(..) => sys::hipGraphNodeTypeHost,
                Work::Record(_) | Work::Event(_) => sys::hipGraphNodeTypeEventRecord,
                Work::Await(_) => sys::hipGraphNodeTypeWaitEvent,
                Work::Free(_) => sys::hipGraphNodeTypeMemFree,
                Work::Nothing => sys::hipGraphNodeTypeEmpty,
            },
        }
    }
}

impl Plan {
    /// Returns true if a predicate holds for all work, including that of child graphs.
    pub(crate) fn all(&self, holds: impl Fn(&Work) -> bool + Copy) -> bool {
        self.0.iter().all(|(step, _)| match step {
            Step::Work(work) => holds(work),
            Step::Child(plan) => plan.all(holds),
        })
    }

    /// Submits the nodes to a stream; in seeded mode in a random order that respects the edges.
    pub(crate) fn submit(&self, scheduler: &'static Scheduler, stream: &'static Stream) -> Result {
        let mut left: Vec<usize> = (0..self.0.len()).collect();
        let mut done = vec![false; self.0.len()];
        while !left.is_empty() {
            let ready: Vec<usize> = left
                .iter()
                .enumerate()
                .filter(|(_, node)| {
                    let after = self
                        .0
                        .get(**node)
                        .map(|(_, after)| after.as_slice())
                        .unwrap_or_default();
                    after.iter().all(|other| done.get(*other) == Some(&true))
                })
                .map(|(at, _)| at)
                .collect();
            let at = *ready
                .get(scheduler.choose(ready.len()))
                .ok_or(sys::hipErrorInvalidValue)?;
            let node = left.remove(at);
            if let Some(done) = done.get_mut(node) {
                *done = true;
            }
            match self.0.get(node) {
                Some((Step::Child(plan), _)) => plan.submit(scheduler, stream)?,
                Some((Step::Work(work), _)) => submit(work, scheduler, stream),
                None => {}
            }
        }
        Ok(())
    }
}

fn submit(work: &Work, scheduler: &'static Scheduler, stream: &'static Stream) {
    match work {
        Work::Record(event) => {
            let record = Record::new();
            event.set(Recorded::Stream(Arc::clone(&record)));
            scheduler.submit(stream, Work::Event(record), &[]);
        }
        Work::Await(event) => {
            if let Recorded::Stream(record) = event.recorded() {
                scheduler.submit(stream, Work::Nothing, record.point().as_slice());
            }
        }
        work => scheduler.submit(stream, work.clone(), &[]),
    }
}
