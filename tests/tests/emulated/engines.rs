//! The plain engine on a GPU.

use crate::{contents, filled};
use rotini_host::DeviceBuffer;
use rotini_tests::engines::Other;
use rotini_tests::harness::{self, Runner};
use rotini_tests::{cases, process};

#[test]
fn the_plain_engine_works_in_a_gpus_memory() {
    let runner = Runner::gpu().unwrap_or_else(|error| panic!("{error:#}"));
    let plain = Other::load("reference").unwrap_or_else(|error| panic!("{error:#}"));
    for mut case in cases::all().into_iter().step_by(211) {
        let mut run = || -> anyhow::Result<()> {
            case.graph.validate()?;
            if plain.is_applicable(&case.graph)? {
                runner.judge(&case, &plain.context(&case.graph)?, 16)?;
            }
            Ok(())
        };
        run().unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
    }
}

/// Its inputs come from earlier work on the stream, and later work on the stream reads its results.
#[test]
fn the_plain_engine_keeps_the_order_of_a_stream() {
    const ELEMENTS: i64 = 1 << 12;
    let gpu = harness::gpu().unwrap();
    let plain = Other::load("reference").unwrap();
    let mut graph = process::small_graph(ELEMENTS);
    graph.validate().unwrap();
    let context = plain.context(&graph).unwrap();
    let stream = gpu.stream().unwrap();
    // SAFETY: the stream outlives what is sent to it here.
    unsafe { plain.handle.set_stream(stream.raw()) }.unwrap();
    let bytes = |value: f32| value.to_le_bytes().repeat(1 << 12);
    let memory = |value: f32| filled(&gpu, &bytes(value));
    let (x, b, y, result) = (memory(f32::NAN), memory(1.0), memory(f32::NAN), memory(f32::NAN));
    let pack: Vec<DeviceBuffer> = graph
        .tensors
        .iter()
        .filter_map(|tensor| {
            let memory = [("x", &x), ("b", &b), ("y", &y)]
                .into_iter()
                .find(|(name, _)| *name == tensor.name)?;
            Some(DeviceBuffer {
                uid: tensor.uid,
                ptr: memory.1.pointer(),
            })
        })
        .collect();
    for value in [1.0, 2.0, 3.0] {
        let source = memory(value);
        // SAFETY: everything lives until the stream is waited for; the buffers have the spans of
        // their tensors.
        unsafe {
            stream.copy(&x, &source, bytes(value).len()).unwrap();
            context.execute(std::ptr::null_mut(), &pack).unwrap();
            stream.copy(&result, &y, bytes(value).len()).unwrap();
        }
        stream.synchronize().unwrap();
        assert_eq!(contents(&result), bytes(value + 1.0));
    }
}
