//! The memory of one graph's executions, and the judgement of its contents.

use crate::outcome::Verdict;
use anyhow::Result;
use rotini_bench::results::Error;
use rotini_bench::{Buffer, Judgement, Place, Reference, pack};
use rotini_graph::Graph;
use rotini_host::Context;
use rotini_host::gpu::GpuError;
use rotini_reference::{Buffers, UNTOUCHED};
use std::time::{Duration, Instant};

/// The memory of one graph's executions.
pub(crate) struct Memory<'a> {
    place: &'a Place,
    tensors: Vec<(i64, Buffer)>,
    workspace: Buffer,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(place: &'a Place, graph: &Graph, inputs: &Buffers, workspace: usize) -> Result<Self, GpuError> {
        Ok(Memory {
            place,
            tensors: place.tensors(graph, inputs)?,
            workspace: place.buffer(&vec![UNTOUCHED; workspace])?,
        })
    }

    /// Executes the graph `repeat` times, and returns the median time until the work is complete.
    pub(crate) fn execute(&mut self, context: &Context, repeat: u32) -> Result<Duration> {
        let buffers = pack(&mut self.tensors);
        let workspace = self.workspace.pointer();
        let mut times = Vec::new();
        for _ in 0..repeat {
            let (result, time) = timed(|| -> Result<()> {
                // SAFETY: every tensor with a buffer has one here, filled by `fill_all` over the
                // tensor's span, and the workspace has the size that the context reports. All of
                // them are in the memory of the plugin's device, by `Twin::place`, and outlive the
                // work.
                unsafe { context.execute(workspace, &buffers) }?;
                Ok(self.place.finish()?)
            });
            result?;
            times.push(time);
        }
        for buffer in self.tensors.iter_mut().map(|(_, buffer)| buffer) {
            buffer.fetch()?;
        }
        self.workspace.fetch()?;
        times.sort_unstable();
        Ok(times.get(times.len() / 2).copied().unwrap_or_default())
    }

    /// Compares the outputs with the reference, and checks that nothing else was written.
    pub(crate) fn judge(
        &self,
        graph: &Graph,
        inputs: &Buffers,
        errors: &mut Vec<Error>,
    ) -> Result<Option<(Verdict, String)>> {
        let wrong = |reason: String| Ok(Some((Verdict::Wrong, reason)));
        if !self.workspace.is_intact() {
            return wrong("memory around the workspace was written".to_owned());
        }
        for (uid, buffer) in &self.tensors {
            if !buffer.is_intact() {
                let tensor = graph.tensors.iter().find(|tensor| tensor.uid == *uid);
                let label = tensor.map_or_else(|| format!("tensor {uid}"), ToString::to_string);
                return wrong(format!("{label}: memory around it was written"));
            }
        }
        let reference = Reference::new(graph, inputs);
        let got = |uid: i64| {
            let found = self.tensors.iter().find(|(of, _)| *of == uid);
            found.map(|(_, buffer)| buffer.bytes())
        };
        let (judgement, found) = reference.judge(got)?;
        errors.extend(found);
        match judgement {
            Judgement::Right => Ok(None),
            Judgement::Wrong(reason) => wrong(reason),
            Judgement::Unchecked(reason) => Ok(Some((Verdict::Unchecked, reason))),
        }
    }
}

/// Returns a result and the time that computing it took.
pub(crate) fn timed<T>(body: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = body();
    (result, started.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_graph::{DataType, GraphBuilder, Matmul, PointwiseMode};

    /// Returns the verdict on y = max(x, 0) over 8 elements with correct results, after `spoil`
    /// changed the buffers of x and y.
    fn verdict(spoil: impl FnOnce(&mut Buffer, &mut Buffer)) -> Option<(Verdict, String)> {
        let mut builder = GraphBuilder::new("relu");
        let x = builder.buffer("x", DataType::F32, &[8]);
        let y = builder.buffer("y", DataType::F32, &[8]);
        builder.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[x], y);
        let mut graph = builder.build();
        graph.validate().unwrap();
        let inputs = rotini_reference::fill_all(&graph, 1).unwrap();
        let mut memory = Memory::new(&Place::Host, &graph, &inputs, 0).unwrap();
        memory.tensors.sort_by_key(|(uid, _)| *uid);
        let [(_, x), (_, y)] = memory.tensors.as_mut_slice() else {
            panic!("two tensors")
        };
        let result: Vec<u8> = x
            .bytes()
            .chunks_exact(4)
            .flat_map(|element| f32::from_le_bytes(element.try_into().unwrap()).max(0.0).to_le_bytes())
            .collect();
        *y = Buffer::new(&result);
        spoil(x, y);
        memory.judge(&graph, &inputs, &mut Vec::new()).unwrap()
    }

    fn flip(buffer: &mut Buffer, offset: isize) {
        // SAFETY: the offsets in the test below are within the buffer and its guards, which are one
        // allocation.
        unsafe { *buffer.pointer().cast::<u8>().offset(offset) ^= 0x40 };
    }

    #[test]
    fn right_results_are_right_and_any_stray_write_is_seen() {
        assert_eq!(verdict(|_, _| ()), None);
        let wrong = |spoil: fn(&mut Buffer, &mut Buffer), what: &str| {
            let (verdict, reason) = verdict(spoil).unwrap_or_else(|| panic!("{what}: not seen"));
            assert_eq!(verdict, Verdict::Wrong);
            assert!(reason.contains(what), "{reason}");
        };
        wrong(|_, y| flip(y, 3), "elements are wrong");
        wrong(|x, _| flip(x, 0), "is an input, but was written");
        wrong(|_, y| flip(y, -1), "memory around it was written");
        wrong(|x, _| flip(x, 32), "memory around it was written");
        wrong(|_, y| *y = Buffer::new(&[UNTOUCHED; 32]), "8 of 8 elements are wrong");
    }

    /// Returns the verdict on a dot product of x s and w in f32, whose terms cancel, after adding
    /// `error` to the result.
    fn moved(error: f32) -> Option<(Verdict, String)> {
        let mut builder = GraphBuilder::new("dot product");
        let [x, s] = ["x", "s"].map(|name| builder.buffer(name, DataType::F32, &[1, 768]));
        let w = builder.buffer("w", DataType::F32, &[768, 1]);
        let y = builder.buffer("y", DataType::F32, &[1, 1]);
        let product = builder.virtual_tensor("product", DataType::F32, &[1, 768]);
        builder.pointwise(DataType::F32, PointwiseMode::Mul, &[x, s], product);
        builder.node("sum", DataType::F32, Matmul { a: product, b: w, c: y });
        let mut graph = builder.build();
        graph.validate().unwrap();
        let inputs = rotini_reference::fill_all(&graph, 1).unwrap();
        let mut want = inputs.clone();
        rotini_reference::execute(&graph, &mut want).unwrap();
        let uid = graph.tensor(y).unwrap().uid;
        let sum = f32::from_le_bytes(want[&uid].as_slice().try_into().unwrap());
        let mut memory = Memory::new(&Place::Host, &graph, &inputs, 0).unwrap();
        for (_, buffer) in memory.tensors.iter_mut().filter(|(of, _)| *of == uid) {
            *buffer = Buffer::new(&(sum + error).to_le_bytes());
        }
        memory.judge(&graph, &inputs, &mut Vec::new()).unwrap()
    }

    #[test]
    fn what_a_right_kernel_may_make_is_right_beyond_hipdnns_tolerances() {
        let tolerances_alone_would_not_do = 1.0e-4;
        assert_eq!(moved(0.0), None);
        assert_eq!(moved(tolerances_alone_would_not_do), None);
        let (verdict, reason) = moved(1.0).unwrap();
        assert_eq!(verdict, Verdict::Wrong, "{reason}");
    }
}
