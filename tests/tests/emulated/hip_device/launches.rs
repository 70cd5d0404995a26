//! The number of HIP calls of an execution, alone and beside others.

use super::{Emulator, Subject, alone, config, plugin, relu, set_stream, with_handle};
use rotini_host::ShapeOverride;
use rotini_tests::{cases, shapes};
use rotini_wire::engine_details::BehaviorNote;

#[test]
fn an_execution_is_one_launch_per_kernel_and_nothing_else() {
    // Even a small workspace comes from the host.
    let environment = [("ROTINI_OWN_WORKSPACE", "0")];
    with_handle(&environment, |emulator, plugin, handle| {
        let streams = [emulator.gpu.stream().unwrap(), emulator.gpu.stream().unwrap()];
        // Every fused layer of ResNet-50 in f16, in both layouts.
        let mut layers = cases::resnet50(1);
        layers.retain(|case| case.name.ends_with("_f16"));
        assert_eq!(layers.len(), 48);
        layers.extend(["scalar_MUL_f64", "scalars_of_all_sizes"].map(|name| cases::named(name).unwrap()));
        layers.push(cases::named("two_convs_nhwc").unwrap());
        for case in layers {
            println!("{}", case.name);
            let subject = Subject::of_case(&emulator.gpu, &plugin, &handle, &case);
            if subject.context.workspace().unwrap() > 0 {
                // The location of a workspace is queried once.
                emulator.reset();
                subject.execute().unwrap();
                assert_eq!(emulator.calls("hipPointerGetAttributes"), 1);
            }
            emulator.reset();
            subject.execute().unwrap();
            let launches = emulator.calls("hipModuleLaunchKernel");
            // At most two copies, a product, and a split-K reduction.
            assert!((1..=4).contains(&launches), "{launches}");
            for _ in 0..3 {
                emulator.expect_only("hipModuleLaunchKernel", launches, || subject.execute().unwrap());
            }
            // With one GPU, even a change of the stream makes no HIP call.
            emulator.expect_only("hipModuleLaunchKernel", 2 * launches, || {
                for stream in &streams {
                    set_stream(&handle, stream.raw()).unwrap();
                    subject.execute().unwrap();
                }
                set_stream(&handle, std::ptr::null_mut()).unwrap();
            });
            emulator.gpu.synchronize().unwrap();
        }
    });
}

/// Other shapes cost the same as the declared ones, from the second execution on.
#[test]
fn an_execution_of_known_shapes_is_one_launch_too() {
    with_handle(&[], |emulator, plugin, handle| {
        let family = shapes::all()
            .into_iter()
            .find(|family| family.name == "scaled")
            .unwrap();
        let declared = family.declared();
        let subject = Subject::new(&emulator.gpu, &plugin, &handle, &rotini_wire::encode(&declared));
        let overrides: Vec<_> = family
            .executed()
            .map(|graph| shapes::overrides(&declared, &graph))
            .collect();
        let execute = |overrides: &[ShapeOverride]| {
            // SAFETY: no shape is larger than the declared one.
            let executed = unsafe {
                subject
                    .context
                    .execute_with_overrides(subject.workspace.pointer(), &subject.pack, overrides)
            };
            executed.unwrap();
        };
        overrides.iter().for_each(|overrides| execute(overrides));
        for overrides in &overrides {
            emulator.reset();
            execute(overrides);
            // Code of captured executions must stay loaded, so the capture state is queried first.
            for name in ["hipModuleLaunchKernel", "hipStreamGetCaptureInfo_v2"] {
                assert_eq!(emulator.calls(name), 1, "{name}: {}", emulator.summary());
            }
            // SAFETY: takes nothing.
            assert_eq!(unsafe { (emulator.calls_total)() }, 2, "{}", emulator.summary());
        }
        emulator.expect_only("hipModuleLaunchKernel", 1, || execute(&[]));
        emulator.gpu.synchronize().unwrap();
    });
}

#[test]
fn threads_with_streams_of_their_own_share_the_code() {
    with_handle(&[], |emulator, plugin, keep| {
        let first = Subject::relu(&emulator.gpu, &plugin, &keep, 4096);
        emulator.reset();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let handle = plugin.handle().unwrap();
                    let stream = emulator.stream_of(&handle);
                    let subject = Subject::relu(&emulator.gpu, &plugin, &handle, 4096);
                    for _ in 0..100 {
                        subject.execute().unwrap();
                    }
                    stream.synchronize().unwrap();
                });
            }
        });
        assert_eq!(emulator.calls("hipModuleLaunchKernel"), 800);
        assert_eq!(emulator.calls("hipModuleLoadDataEx"), 0, "the code was loaded again");
        first.execute().unwrap();
        emulator.gpu.synchronize().unwrap();
    });
}

#[test]
fn a_handle_costs_no_thread_and_no_memory() {
    with_handle(&[], |emulator, plugin, first| {
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let before = threads();
        let mut more = Vec::new();
        emulator.expect_none(|| more.extend((0..16).map(|_| plugin.handle().unwrap())));
        assert_eq!(threads(), before);
        drop((first, more));
    });
}

#[test]
fn the_engine_says_that_it_can_be_captured() {
    alone(&[], || {
        let _emulator = Emulator::new();
        let plugin = plugin();
        let engine = plugin.engine_ids().unwrap()[0];
        let details = plugin.handle().unwrap().details(engine, &relu(64)).unwrap();
        assert!(details.behavior_notes.contains(&BehaviorNote::GraphCapture));
    });
}

#[test]
fn contexts_can_be_created_while_a_stream_is_captured() {
    with_handle(&[], |emulator, plugin, handle| {
        let stream = emulator.stream_of(&handle);
        let captured = Subject::relu(&emulator.gpu, &plugin, &handle, 256);
        let mut other = None;
        let replay = stream.capture(|| -> Result<(), rotini_host::gpu::GpuError> {
            captured.execute().unwrap();
            other = Some(handle.context(&config(&plugin), &relu(257)).unwrap());
            captured.execute().unwrap();
            Ok(())
        });
        let replay = replay.unwrap();
        // SAFETY: what was captured is alive.
        unsafe { replay.launch(&stream) }.unwrap();
        stream.synchronize().unwrap();
        drop(other);
    });
}

#[test]
fn errors_have_hips_names() {
    with_handle(&[], |emulator, plugin, handle| {
        let subject = Subject::relu(&emulator.gpu, &plugin, &handle, 64);
        emulator.fail("hipModuleLaunchKernel=hipErrorLaunchOutOfResources");
        let error = subject.execute().unwrap_err().to_string();
        assert!(
            error.contains("hipModuleLaunchKernel") && error.contains("hipErrorLaunchOutOfResources"),
            "{error}"
        );
        emulator.fail("hipModuleLoadDataEx=hipErrorOutOfMemory");
        let error = handle.context(&config(&plugin), &relu(65)).err().unwrap().to_string();
        assert!(error.contains("hipErrorOutOfMemory"), "{error}");
    });
}
