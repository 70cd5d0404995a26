//! Executions with other shapes than the graph was declared with.

use super::{assert_fails, cpu};
use rotini_host::{Context, DeviceBuffer, Handle, HostError, ShapeOverride, engine_config};
use rotini_tests::harness::Runner;
use rotini_tests::shapes::{self, Family};
use std::sync::Barrier;

const INVALID_VALUE: i32 = 2;

fn family(name: &str) -> Family {
    shapes::all().into_iter().find(|family| family.name == name).unwrap()
}

fn context(handle: &Handle, engine: i64, family: &Family) -> Context {
    let bytes = rotini_wire::encode(&family.declared());
    handle.context(&engine_config(engine), &bytes).unwrap()
}

#[test]
fn other_shapes_are_executed() {
    let runner = Runner::cpu().unwrap();
    for family in shapes::all() {
        let judged = family.judge(&runner);
        judged.unwrap_or_else(|error| panic!("{}: {error:#}", family.name));
    }
}

/// New shapes arrive at once from several threads.
#[test]
fn threads_need_no_care() {
    const THREADS: u64 = 4;
    let runner = Runner::cpu().unwrap();
    let family = family("convs");
    let context = context(runner.handle(), runner.engine(), &family);
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (runner, family, context, barrier) = (&runner, &family, &context, &barrier);
            scope.spawn(move || {
                barrier.wait();
                family.judge_others(runner, context, thread).unwrap();
            });
        }
    });
}

/// Known code for other shapes is serialized with the context; unknown shapes are compiled again.
#[test]
fn serialized_contexts_have_other_shapes() {
    let runner = Runner::cpu().unwrap();
    for name in ["matmul", "scaled"] {
        let family = family(name);
        let made = context(runner.handle(), runner.engine(), &family);
        let without = made.serialize(None).unwrap();
        family.judge_others(&runner, &made, 1).unwrap();
        let with = made.serialize(None).unwrap();
        assert!(with.len() > without.len());
        for bytes in [with.clone(), without] {
            let loaded = runner.handle().context_from_serialized(&bytes).unwrap();
            assert_eq!(loaded.workspace().unwrap(), made.workspace().unwrap());
            assert_eq!(loaded.serialize(None).unwrap(), bytes);
            runner.judge_shapes(&family.declared(), &loaded, &[], 2).unwrap();
            family.judge_others(&runner, &loaded, 3).unwrap();
            assert_eq!(loaded.serialize(None).unwrap(), with);
        }
    }
}

/// Hosts before API 1.1 cannot pass other shapes, and execute the declared ones.
#[test]
fn old_hosts_execute_the_declared_shapes() {
    let runner = Runner::cpu().unwrap();
    let family = family("chain");
    let context = context(runner.handle(), runner.engine(), &family);
    runner.judge_shapes(&family.declared(), &context, &[], 1).unwrap();
}

/// Executes on memory with arbitrary contents.
fn execute(context: &Context, overrides: &[ShapeOverride]) -> Result<(), HostError> {
    let mut memory = vec![0.0_f32; 4096];
    let mut place = |start: usize| memory[start..].as_mut_ptr().cast();
    let pack = [(1, place(0)), (2, place(2048))].map(|(uid, ptr)| DeviceBuffer { uid, ptr });
    let mut workspace = vec![0_u8; context.workspace().unwrap()];
    // SAFETY: no shape in this file has more than 2048 elements.
    unsafe { context.execute_with_overrides(workspace.as_mut_ptr().cast(), &pack, overrides) }
}

#[test]
fn wrong_overrides_are_refused_by_name() {
    let (_plugin, handle, engine) = cpu();
    // x of 8 rows of 16, y of 8 rows of 20.
    let context = context(&handle, engine, &family("rows"));
    let shape = |uid, dims: &[i64], strides: &[i64]| ShapeOverride {
        uid,
        dims: dims.to_vec(),
        strides: strides.to_vec(),
    };
    let x = |dims: &[i64], strides: &[i64]| vec![shape(1, dims, strides)];
    let (label, order) = (
        "tensor 'x' (uid 1)",
        "are not in the memory order of the declared [16, 1]",
    );
    for (overrides, text) in [
        (
            vec![shape(7, &[1, 1], &[1, 1])],
            "the graph has no tensor with uid 7".to_owned(),
        ),
        (
            x(&[8], &[1]),
            format!("{label} has rank 2, and is given 1 extents and 1 strides"),
        ),
        (
            x(&[8, 16, 1], &[16, 1, 1]),
            format!("{label} has rank 2, and is given 3 extents and 3 strides"),
        ),
        (
            vec![shape(1, &[1; 100], &[1; 100])],
            format!("{label} has rank 2, and is given 100 extents and 100 strides"),
        ),
        (x(&[], &[]), format!("{label} has rank 2, and is given 0 extents")),
        (
            x(&[9, 16], &[16, 1]),
            format!("{label}: extent 9 along axis 0 is not from 1 to the declared 8"),
        ),
        (
            x(&[8, 0], &[16, 1]),
            format!("{label}: extent 0 along axis 1 is not from 1 to the declared 16"),
        ),
        (x(&[-1, 16], &[16, 1]), format!("{label}: extent -1 along axis 0")),
        (x(&[i64::MIN, 1], &[1, 1]), format!("{label}: extent {}", i64::MIN)),
        (
            x(&[4, 8], &[8, 0]),
            format!("{label}: stride 0 along axis 1 is not positive"),
        ),
        (
            x(&[4, 8], &[-8, 1]),
            format!("{label}: stride -8 along axis 0 is not positive"),
        ),
        (x(&[4, 8], &[1, 4]), format!("{label}: strides [1, 4] {order}")),
        (
            [x(&[4, 8], &[8, 1]), x(&[4, 8], &[8, 1])].concat(),
            format!("{label} is given two shapes"),
        ),
        // Consistent with the declared shape only.
        (
            x(&[4, 8], &[8, 1]),
            "with these shapes the graph is not valid".to_owned(),
        ),
        (
            vec![shape(1, &[4, 8], &[8, 1]), shape(2, &[4, 8], &[1, 1])],
            "with these shapes the graph is not valid".to_owned(),
        ),
        (
            x(&[8, 16], &[i64::MAX, 1]),
            "with these shapes the graph is not valid".to_owned(),
        ),
    ] {
        assert_fails(execute(&context, &overrides), INVALID_VALUE, &text);
    }
    // No override means the declared shape; and the errors have not changed the context.
    execute(&context, &[]).unwrap();
    execute(&context, &[shape(1, &[4, 8], &[8, 1]), shape(2, &[4, 8], &[9, 1])]).unwrap();
}

#[test]
fn tensors_without_a_buffer_have_no_other_shape() {
    let (_plugin, handle, engine) = cpu();
    let family = family("scaled");
    let context = context(&handle, engine, &family);
    let overrides = [ShapeOverride {
        uid: 2,
        dims: vec![1],
        strides: vec![1],
    }];
    assert_fails(
        execute(&context, &overrides),
        INVALID_VALUE,
        "tensor 's' (uid 2) is in no buffer",
    );
}

/// A graph that was not declared for other shapes refuses them, even if the host has forgotten
/// that.
#[test]
fn other_shapes_have_to_be_declared() {
    let (_plugin, handle, engine) = cpu();
    let mut graph = family("rows").declared();
    graph.override_shapes = false;
    let context = handle
        .context(&engine_config(engine), &rotini_wire::encode(&graph))
        .unwrap();
    let overrides = [ShapeOverride {
        uid: 1,
        dims: vec![1, 1],
        strides: vec![1, 1],
    }];
    assert_fails(execute(&context, &overrides), INVALID_VALUE, "its own shapes alone");
    execute(&context, &[]).unwrap();
}
