//! Executions with buffers in every state that a host may pass, with several handles, contexts and
//! threads.

use super::{assert_fails, buffers, cpu, pack};
use crate::INVALID_VALUE;
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode, SlotRole, TensorId, TensorKind};
use rotini_host::{Context, DeviceBuffer, Handle, HostError, engine_config};
use rotini_reference::{Buffers, evaluate};
use rotini_tests::cases;
use rotini_tests::harness::{Memory, fill};
use rotini_tests::process;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Barrier;

/// Alignment that hipDNN guarantees for a pointer, in bytes.
const ALIGNMENT: usize = 16;

/// A graph that is ready to execute, with its buffers' initial contents.
struct Subject {
    graph: Graph,
    initial: Buffers,
    context: Context,
}

impl Subject {
    fn new(handle: &Handle, engine: i64, name: &str) -> Self {
        let bytes = rotini_wire::encode(&cases::named(name).unwrap().graph);
        let graph = rotini_wire::decode(&bytes).unwrap();
        let initial = fill(&graph).unwrap();
        let context = handle.context(&engine_config(engine), &bytes).unwrap();
        Subject {
            graph,
            initial,
            context,
        }
    }

    fn memories(&self) -> BTreeMap<i64, Memory> {
        self.initial
            .iter()
            .map(|(&uid, bytes)| (uid, Memory::new(bytes, ALIGNMENT)))
            .collect()
    }

    fn execute(&self, pack: &[DeviceBuffer]) -> Result<(), HostError> {
        let mut workspace = Memory::new(&vec![0; self.context.workspace().unwrap()], ALIGNMENT);
        // SAFETY: every pack in this file has memories with the spans of the graph's tensors.
        unsafe { self.context.execute(workspace.pointer().cast(), pack) }
    }

    /// Asserts that the outputs are right.
    #[track_caller]
    fn judge(&self, memories: &BTreeMap<i64, Memory>) {
        let evaluation = evaluate(&self.graph, &self.initial).unwrap();
        for (uid, id, role) in buffers(&self.graph) {
            if role == SlotRole::Output {
                evaluation
                    .judge(id, memories[&uid].bytes(), &self.initial[&uid])
                    .unwrap();
            }
            assert!(memories[&uid].is_guarded());
        }
    }
}

const CONV: &str = "conv_bias_relu_nhwc_f32";

#[test]
fn a_missing_buffer_is_named() {
    let (_plugin, handle, engine) = cpu();
    let subject = Subject::new(&handle, engine, CONV);
    let mut memories = subject.memories();
    let all = pack(&mut memories);
    assert_eq!(all.len(), 4);
    for missing in 0..all.len() {
        let tensor = subject
            .graph
            .tensors
            .iter()
            .find(|tensor| tensor.uid == all[missing].uid)
            .unwrap();
        let label = format!("'{}'", tensor.name);
        let mut without = all.clone();
        without.remove(missing);
        assert_fails(subject.execute(&without), INVALID_VALUE, &label);
        let mut null = all.clone();
        null[missing].ptr = std::ptr::null_mut();
        assert_fails(subject.execute(&null), INVALID_VALUE, &label);
    }
    assert_fails(subject.execute(&[]), INVALID_VALUE, "has no buffer");
    // The failures have not changed the context.
    subject.execute(&all).unwrap();
    subject.judge(&memories);
}

#[test]
fn buffers_are_found_by_uid() {
    let (_plugin, handle, engine) = cpu();
    let subject = Subject::new(&handle, engine, CONV);
    let used: Vec<i64> = subject.initial.keys().copied().collect();
    let mut order: Vec<usize> = (0..used.len()).collect();
    // Every rotation, forwards and backwards, with interspersed entries that the graph does not
    // use.
    for turn in 0..2 * order.len() {
        order.rotate_left(1);
        if turn == order.len() {
            order.reverse();
        }
        let mut memories = subject.memories();
        let all = pack(&mut memories);
        let mut mixed = Vec::new();
        for &index in &order {
            for (uid, ptr) in [
                (i64::MIN, std::ptr::null_mut()),
                (-5, std::ptr::dangling_mut()),
                (i64::MAX, all[0].ptr),
            ] {
                assert!(!used.contains(&uid));
                mixed.push(DeviceBuffer { uid, ptr });
            }
            mixed.push(all[index]);
        }
        subject.execute(&mixed).unwrap();
        subject.judge(&memories);
    }
}

#[test]
fn one_tensor_has_one_buffer() {
    let (_plugin, handle, engine) = cpu();
    let subject = Subject::new(&handle, engine, CONV);
    let mut memories = subject.memories();
    let mut twice = pack(&mut memories);
    twice.push(twice[0]);
    subject.execute(&twice).unwrap();
    subject.judge(&memories);
    let mut other = subject.memories();
    *twice.last_mut().unwrap() = pack(&mut other)[0];
    assert_fails(subject.execute(&twice), INVALID_VALUE, "two different buffers");
}

/// Graphs that need a workspace, and one that does not.
const WITH_WORKSPACE: [&str; 4] = ["two_convs_nchw", "two_convs_nhwc", "conv_stem_nchw", CONV];

fn execute_without(subject: &Subject, pack: &[DeviceBuffer]) -> Result<(), HostError> {
    // SAFETY: the buffers have the spans of their tensors, and no workspace is allowed.
    unsafe { subject.context.execute(std::ptr::null_mut::<c_void>(), pack) }
}

/// A host that passes no workspace gets memory of the plugin's, on each of its threads.
#[test]
fn little_workspace_need_not_be_given() {
    let (_plugin, handle, engine) = cpu();
    let subjects = WITH_WORKSPACE.map(|name| Subject::new(&handle, engine, name));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for subject in &subjects {
                    for _ in 0..5 {
                        let mut memories = subject.memories();
                        execute_without(subject, &pack(&mut memories)).unwrap();
                        subject.judge(&memories);
                    }
                }
            });
        }
    });
}

/// hipDNN's samples as shipped never query the workspace's size, and pass none.
#[test]
fn samples_run_without_a_workspace() {
    let (_plugin, handle, engine) = cpu();
    for (name, graph) in rotini_tests::samples::batchnorm() {
        println!("{name}");
        let bytes = rotini_wire::encode(&graph);
        assert_eq!(handle.applicable(&bytes).unwrap(), [engine]);
        let subject = Subject {
            graph: rotini_wire::decode(&bytes).unwrap(),
            initial: fill(&graph).unwrap(),
            context: handle.context(&engine_config(engine), &bytes).unwrap(),
        };
        let mut memories = subject.memories();
        execute_without(&subject, &pack(&mut memories)).unwrap();
        subject.judge(&memories);
    }
}

/// Runs a test again in a process where the plugin provides no workspace.
fn without_own_workspace(body: impl FnOnce()) {
    if process::part().is_some() {
        return body();
    }
    let cache = tempfile::tempdir().unwrap();
    let mut command = process::command("child", cache.path()).unwrap();
    process::run(command.env("ROTINI_OWN_WORKSPACE", "0")).unwrap();
}

#[test]
fn the_workspace_is_needed_beyond_the_limit() {
    without_own_workspace(the_workspace_is_needed);
}

#[test]
fn the_workspace_overlaps_nothing() {
    without_own_workspace(|| {
        let (_plugin, handle, engine) = cpu();
        let subject = Subject::new(&handle, engine, "two_convs_nhwc");
        let bytes = subject.context.workspace().unwrap();
        let mut memories = subject.memories();
        let all = pack(&mut memories);
        for buffer in &all {
            let length = subject.initial[&buffer.uid].len();
            // At the buffer's start, and in its last bytes.
            for (workspace, label) in [
                (buffer.ptr, "the workspace"),
                (
                    buffer.ptr.wrapping_byte_add(length).wrapping_byte_sub(16),
                    "the workspace",
                ),
                (buffer.ptr.wrapping_byte_add(16).wrapping_byte_sub(bytes), "overlap"),
            ] {
                // SAFETY: refused before any buffer is used.
                let result = unsafe { subject.context.execute(workspace, &all) };
                assert_fails(result, INVALID_VALUE, label);
            }
        }
        subject.execute(&all).unwrap();
        subject.judge(&memories);
    });
}

fn the_workspace_is_needed() {
    let (_plugin, handle, engine) = cpu();
    let mut needed = 0;
    for name in WITH_WORKSPACE {
        let subject = Subject::new(&handle, engine, name);
        let mut memories = subject.memories();
        let all = pack(&mut memories);
        let result = execute_without(&subject, &all);
        match subject.context.workspace().unwrap() {
            0 => result.unwrap(),
            bytes => {
                assert_fails(result, INVALID_VALUE, &format!("{bytes} bytes"));
                needed += 1;
            }
        }
        subject.execute(&all).unwrap();
        subject.judge(&memories);
    }
    assert!(needed > 0, "no graph needed a workspace");
}

/// hipDNN does not specify overlaps; frameworks execute activations in place.
#[test]
fn outputs_may_overlap_inputs() {
    let (_plugin, handle, engine) = cpu();
    for name in ["pw_RELU_FWD_f32", "pw_TANH_FWD_f16"] {
        let subject = Subject::new(&handle, engine, name);
        let [(x, _, SlotRole::Input), (y, y_id, SlotRole::Output)] = buffers(&subject.graph)[..] else {
            panic!("{name} is not of one input and one output")
        };
        let input = &subject.initial[&x];
        for shift in [0, ALIGNMENT, 4 * ALIGNMENT] {
            // The output begins `shift` bytes after the input.
            let mut memory = Memory::new(&vec![0; input.len() + shift], 64);
            let start = memory.pointer();
            // SAFETY: the memory has room for the input and `shift` bytes more.
            unsafe { std::slice::from_raw_parts_mut(start, input.len()) }.copy_from_slice(input);
            let pack = [
                DeviceBuffer {
                    uid: x,
                    ptr: start.cast(),
                },
                DeviceBuffer {
                    uid: y,
                    // SAFETY: as above.
                    ptr: unsafe { start.add(shift) }.cast(),
                },
            ];
            subject.execute(&pack).unwrap();
            let evaluation = evaluate(&subject.graph, &subject.initial).unwrap();
            evaluation
                .judge(y_id, &memory.bytes()[shift..], &subject.initial[&y])
                .unwrap();
            assert!(memory.is_guarded());
        }
    }
}

#[test]
fn outputs_must_not_overlap_each_other() {
    let (_plugin, handle, engine) = cpu();
    let subject = Subject::new(&handle, engine, "diamond_f32");
    let mut memories = subject.memories();
    let mut all = pack(&mut memories);
    let outputs: Vec<i64> = buffers(&subject.graph)
        .into_iter()
        .filter(|(_, _, role)| *role == SlotRole::Output)
        .map(|(uid, ..)| uid)
        .collect();
    let [first, second] = outputs[..] else {
        panic!("{outputs:?}")
    };
    let shared = all.iter().find(|buffer| buffer.uid == first).unwrap().ptr;
    let other = all.iter_mut().find(|buffer| buffer.uid == second).unwrap();
    let own = std::mem::replace(&mut other.ptr, shared);
    assert_fails(subject.execute(&all), INVALID_VALUE, "overlap");
    all.iter_mut().find(|buffer| buffer.uid == second).unwrap().ptr = own;
    subject.execute(&all).unwrap();
    subject.judge(&memories);
}

/// Earlier bindings must not matter: the same context runs on new buffers, and on the old ones
/// again.
#[test]
fn a_context_takes_other_buffers_each_time() {
    let (_plugin, handle, engine) = cpu();
    let subject = Subject::new(&handle, engine, CONV);
    let mut first = subject.memories();
    let mut second = subject.memories();
    for memories in [&mut first, &mut second] {
        subject.execute(&pack(memories)).unwrap();
        subject.judge(memories);
    }
    let before: Vec<u8> = second.values().flat_map(|memory| memory.bytes().to_vec()).collect();
    for uid in subject.initial.keys() {
        let bytes = &subject.initial[uid];
        first.insert(*uid, Memory::new(bytes, 64));
    }
    subject.execute(&pack(&mut first)).unwrap();
    subject.judge(&first);
    let after: Vec<u8> = second.values().flat_map(|memory| memory.bytes().to_vec()).collect();
    assert!(before == after, "buffers of an earlier execution were touched");
}

/// Eight threads, each with its own handle, create contexts of the same graphs at once and execute
/// them.
#[test]
fn threads_need_no_care() {
    const THREADS: usize = 8;
    let (plugin, handle, engine) = cpu();
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (plugin, handle, barrier) = (&plugin, &handle, &barrier);
            scope.spawn(move || {
                let own = plugin.handle().unwrap();
                // Half of the threads create the context on a shared handle.
                let handle = if thread % 2 == 0 { &own } else { handle };
                barrier.wait();
                for name in [CONV, "pw_ADD_f16", "conv_wide_nchw"] {
                    let subject = Subject::new(handle, engine, name);
                    let mut memories = subject.memories();
                    for _ in 0..3 {
                        subject.execute(&pack(&mut memories)).unwrap();
                    }
                    subject.judge(&memories);
                }
            });
        }
    });
}

#[test]
fn contexts_outlive_nothing_they_need() {
    let (plugin, handle, engine) = cpu();
    let maker = plugin.handle().unwrap();
    let bytes = rotini_wire::encode(&cases::named(CONV).unwrap().graph);
    let config = engine_config(engine);
    let kept = maker.context(&config, &bytes).unwrap();
    // Creating and dropping other contexts of the same graph does not affect this one.
    for _ in 0..3 {
        drop(handle.context(&config, &bytes).unwrap());
    }
    let graph = rotini_wire::decode(&bytes).unwrap();
    let subject = Subject {
        initial: fill(&graph).unwrap(),
        graph,
        context: kept,
    };
    drop(handle);
    let mut memories = subject.memories();
    subject.execute(&pack(&mut memories)).unwrap();
    subject.judge(&memories);
}

/// A result with gaps of 3 GiB, of which only the pages with elements are accessible: a kernel that
/// accesses a gap would crash the process.
#[test]
fn gaps_are_not_accessed() {
    const ROWS: usize = 4;
    const COLUMNS: usize = 300;
    const STRIDE: usize = 1 << 28;
    const PAGE: usize = 4096;
    const SPAN: usize = (ROWS - 1) * STRIDE * 4 + PAGE;
    let (_plugin, handle, engine) = cpu();
    let mut b = GraphBuilder::new("gaps");
    let dims = [ROWS as i64, COLUMNS as i64];
    let x = b.buffer("x", DataType::F32, &dims);
    let strides = [STRIDE as i64, 1];
    let spread = [true, false].map(|is_read| {
        let name = if is_read { "spread" } else { "y" };
        b.tensor(name, DataType::F32, &dims, &strides, TensorKind::Buffer)
    });
    b.pointwise(DataType::F32, PointwiseMode::Add, &[x, spread[0]], spread[1]);
    let graph = b.build();
    let uid = |id: TensorId| graph.tensors[id.index()].uid;
    let uids = [uid(x), uid(spread[0]), uid(spread[1])];
    let context = handle
        .context(&engine_config(engine), &rotini_wire::encode(&graph))
        .unwrap();

    // SAFETY: a new mapping at an unused address, not accessible yet.
    let spans: [*mut u8; 2] = std::array::from_fn(|_| unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let start = libc::mmap(std::ptr::null_mut(), SPAN, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        for row in 0..ROWS {
            let page = start.cast::<u8>().add(row * STRIDE * 4);
            let is_open = libc::mprotect(page.cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE);
            assert_eq!(is_open, 0);
        }
        start.cast()
    });
    // SAFETY: the rows are within the accessible pages, and no reference to them is kept.
    let row_of = |span: *mut u8, row: usize| unsafe {
        std::slice::from_raw_parts_mut(span.add(row * STRIDE * 4).cast::<f32>(), PAGE / 4)
    };
    let mut dense: Vec<f32> = (0_u16..1200).map(f32::from).collect();
    for row in 0..ROWS {
        row_of(spans[0], row).fill(0.5);
        row_of(spans[1], row).fill(-1.0);
    }
    let pointers = [dense.as_mut_ptr().cast(), spans[0].cast(), spans[1].cast()];
    let pack: Vec<DeviceBuffer> = uids
        .into_iter()
        .zip(pointers)
        .map(|(uid, ptr)| DeviceBuffer { uid, ptr })
        .collect();
    let mut workspace = Memory::new(&vec![0; context.workspace().unwrap()], ALIGNMENT);
    // SAFETY: the pack has the elements of each tensor.
    unsafe { context.execute(workspace.pointer().cast(), &pack).unwrap() };
    for (row, expected) in dense.chunks(COLUMNS).enumerate() {
        let (stored, behind) = row_of(spans[1], row).split_at(COLUMNS);
        assert!(stored.iter().zip(expected).all(|(stored, x)| *stored == x + 0.5));
        assert!(behind.iter().all(|&element| element.to_bits() == (-1.0_f32).to_bits()));
    }
    for span in spans {
        // SAFETY: unmapped with the length of the mapping, and no longer used.
        assert_eq!(unsafe { libc::munmap(span.cast(), SPAN) }, 0);
    }
}
