//! Tests that the harness notices defects: the plugin passes, and each of these worse ones fails.
//!
//! | Mutant | A harness that lets it pass misses |
//! |---|---|
//! | reads the workspace before it writes it | data that an earlier execution left |
//! | reads an output before it writes it | the same |
//! | faults only while another execution is under way | a failure that does not recur |
//! | computes an f64 function in f32 | errors within f32's bounds, or within absolute ones |
//! | stores -0 for 0 | the sign of zeros |

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

use rotini_graph::{Graph, TensorId};
use rotini_host::{Context, DeviceBuffer, HostError, ShapeOverride, engine_config};
use rotini_tests::cases::{self, Case};
use rotini_tests::harness::{self, Runner, Subject};
use rotini_tests::plugin;
use rotini_tests::process::{command, part, run, wait_until};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A context, and the function that is executed instead.
struct Mutant<F> {
    context: Context,
    execute: F,
}

impl<F: Fn(&Context, *mut c_void, &[DeviceBuffer]) -> Result<(), HostError>> Subject for Mutant<F> {
    fn workspace(&self) -> Result<usize, HostError> {
        self.context.workspace()
    }

    unsafe fn execute(
        &self,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
        overrides: &[ShapeOverride],
    ) -> Result<(), HostError> {
        assert!(overrides.is_empty(), "no case here has other shapes");
        (self.execute)(&self.context, workspace, buffers)
    }
}

fn context(runner: &Runner, case: &Case) -> Context {
    let bytes = rotini_wire::encode(&case.graph);
    let context = runner.handle().context(&engine_config(runner.engine()), &bytes);
    context.unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

/// The plugin's own execution, with the harness's buffers.
fn execute(context: &Context, workspace: *mut c_void, buffers: &[DeviceBuffer]) -> Result<(), HostError> {
    // SAFETY: the harness's buffers have the spans of their tensors, and its workspace has the
    // context's size.
    unsafe { context.execute(workspace, buffers) }
}

/// Returns the bytes of a graph's first output, in the memory of this process.
#[expect(clippy::mut_from_ref, reason = "a buffer names memory, and does not own it")]
fn output<'a>(graph: &Graph, buffers: &'a [DeviceBuffer]) -> &'a mut [u8] {
    let stored = harness::stored(graph);
    let written = stored.iter().find(|(_, is_output)| *is_output);
    let &(TensorId(index), _) = written.expect("a graph writes something");
    let tensor = &graph.tensors[index as usize];
    let buffer = buffers.iter().find(|buffer| buffer.uid == tensor.uid);
    let pointer = buffer.expect("every tensor has a buffer").ptr.cast::<u8>();
    let elements: i64 = tensor.dims.iter().product();
    let bytes = usize::try_from(elements).expect("a size") * tensor.dtype.bytes().expect("a plain type") as usize;
    // SAFETY: the output of these cases has no gaps, and nobody else uses it before the execution
    // returns.
    unsafe { std::slice::from_raw_parts_mut(pointer, bytes) }
}

/// Changes each 4-byte float for which `change` returns another value, and returns their number.
fn change_f32(bytes: &mut [u8], change: impl Fn(usize, f32) -> f32) -> usize {
    let (words, []) = bytes.as_chunks_mut::<4>() else {
        panic!("no 4-byte elements")
    };
    let mut changed = 0;
    for (index, word) in words.iter_mut().enumerate() {
        let new = change(index, f32::from_le_bytes(*word)).to_le_bytes();
        changed += usize::from(new != *word);
        *word = new;
    }
    changed
}

/// Asserts that the harness passes a case as the plugin executes it on the CPU, and fails it as
/// `mutant` does; `mutant` returns the number of elements that it has changed.
fn is_seen(name: &str, mutant: impl Fn(&Graph, &Context, *mut c_void, &[DeviceBuffer]) -> usize) {
    let runner = Runner::cpu().expect("the plugin loads");
    let case = cases::named(name).expect("the case is there");
    let judged = runner.judge(&case, &context(&runner, &case), 64);
    assert!(judged.is_ok(), "{name}: {judged:?}");
    let changed = AtomicUsize::new(0);
    let subject = Mutant {
        context: context(&runner, &case),
        execute: |context: &Context, workspace, buffers: &[DeviceBuffer]| {
            let count = mutant(&case.graph, context, workspace, buffers);
            changed.fetch_add(count, Ordering::Relaxed);
            Ok(())
        },
    };
    let judged = runner.judge(&case, &subject, 64);
    assert!(changed.into_inner() > 0, "{name}: the mutant has nothing to change");
    assert!(judged.is_err(), "{name}: the mutant passes: {judged:?}");
}

/// A mutant that is right if the workspace already holds the final contents of the execution.
#[test]
fn a_workspace_that_is_read_first_is_seen() {
    is_seen("two_convs_nhwc", |graph, context, workspace, buffers| {
        let bytes = context.workspace().expect("it is known");
        assert!(bytes > 0, "the case needs a workspace");
        // SAFETY: the harness's workspace, which nobody else uses before the execution returns.
        let there = || unsafe { std::slice::from_raw_parts(workspace.cast::<u8>(), bytes) }.to_vec();
        let before = there();
        execute(context, workspace, buffers).expect("it executes");
        let is_stale = there() != before;
        let wrong = |index, y: f32| if index == 0 && is_stale { y + 1.0 } else { y };
        change_f32(output(graph, buffers), wrong)
    });
}

/// A mutant that is right if the output already holds the final contents of the execution.
#[test]
fn an_output_that_is_read_first_is_seen() {
    is_seen("pw_ADD_f32", |graph, context, workspace, buffers| {
        let before = output(graph, buffers).to_vec();
        execute(context, workspace, buffers).expect("it executes");
        let after = output(graph, buffers);
        let is_stale = after[4..] != before[4..];
        change_f32(after, |index, y| if index == 0 && is_stale { y + 1.0 } else { y })
    });
}

fn wait_for(flag: &AtomicBool) {
    wait_until("the other execution", || flag.load(Ordering::Acquire)).expect("the other execution comes");
}

/// The execution that faults has failed, though alone it would not; the one beside it has not.
#[test]
fn a_fault_that_needs_company_is_seen() {
    if part().is_none() {
        // This process is set up for the CPU, so a child uses the GPU.
        let cache = tempfile::tempdir().expect("there is a directory");
        let mut child = command("gpu", cache.path()).expect("this test can be started");
        child.env("ROTINI_DEVICE", "hip");
        child.env("ROTINI_HIP_LIBRARY", plugin::emulator().expect("the emulator is there"));
        run(&mut child).unwrap_or_else(|error| panic!("{error:#}"));
        return;
    }
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    let gpu = harness::gpu().expect("the GPU is there");
    let case = cases::named("pw_ADD_f32").expect("the case is there");
    let (is_there, has_faulted) = (AtomicBool::new(false), AtomicBool::new(false));
    let bystander = Mutant {
        context: context(&runner, &case),
        execute: |context: &Context, workspace, buffers: &[DeviceBuffer]| {
            is_there.store(true, Ordering::Release);
            wait_for(&has_faulted);
            is_there.store(false, Ordering::Release);
            execute(context, workspace, buffers)
        },
    };
    let culprit = Mutant {
        context: context(&runner, &case),
        execute: |context: &Context, workspace, buffers: &[DeviceBuffer]| {
            if has_faulted.load(Ordering::Acquire) {
                return execute(context, workspace, buffers);
            }
            wait_for(&is_there);
            let mut elsewhere = buffers.to_vec();
            elsewhere
                .iter_mut()
                .for_each(|buffer| buffer.ptr = buffer.ptr.wrapping_byte_add(1 << 40));
            let sent = execute(context, workspace, &elsewhere);
            assert!(gpu.synchronize().is_err(), "there is memory where none should be");
            has_faulted.store(true, Ordering::Release);
            sent
        },
    };
    let (beside, faulty) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| runner.judge(&case, &bystander, 64));
        let faulty = scope.spawn(|| runner.judge(&case, &culprit, 64));
        (beside.join().expect("no panic"), faulty.join().expect("no panic"))
    });
    assert!(beside.is_ok(), "{beside:?}");
    let told = format!("{:#}", faulty.expect_err("a fault is a failure"));
    assert!(
        told.contains("pw_ADD") || told.contains("allocation"),
        "the fault: {told}"
    );
    assert!(told.contains("alone it is right"), "{told}");
}

/// A function of f64 that is computed in f32, at every element.
#[test]
fn an_f64_function_in_f32_is_seen() {
    for mode in ["SQRT", "EXP", "LOG", "TANH_FWD", "SIGMOID_FWD", "RECIPROCAL", "DIV"] {
        is_seen(&format!("pw_{mode}_f64"), |graph, context, workspace, buffers| {
            execute(context, workspace, buffers).expect("it executes");
            let (elements, []) = output(graph, buffers).as_chunks_mut::<8>() else {
                panic!("no 8-byte elements")
            };
            let mut changed = 0;
            for element in elements {
                let exact = f64::from_le_bytes(*element);
                #[expect(clippy::cast_possible_truncation, reason = "this is the mutant")]
                let narrow = f64::from(exact as f32);
                changed += usize::from(narrow.to_bits() != exact.to_bits());
                *element = narrow.to_le_bytes();
            }
            changed
        });
    }
}

#[test]
fn the_other_zero_is_seen() {
    is_seen("pw_RELU_FWD_f32", |graph, context, workspace, buffers| {
        execute(context, workspace, buffers).expect("it executes");
        let other = |_, y: f32| if y.to_bits() == 0 { -0.0 } else { y };
        change_f32(output(graph, buffers), other)
    });
}
