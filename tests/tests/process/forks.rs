//! Forks of a process that uses the plugin. A child gets results or clear errors, and does not wait
//! for its parent's threads.

use crate::{INTERNAL_ERROR, expect_status};
use rotini_host::{Context, DeviceBuffer, Handle, Plugin, engine_config};
use rotini_tests::plugin;
use rotini_tests::process::{command, part, run, small_graph};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Number of elements that is large enough for the thread pool.
const LARGE: i64 = 3 << 20;
const SMALL: i64 = 100;

fn load() -> (Plugin, i64) {
    // SAFETY: the file is the plugin that this workspace builds.
    let plugin = unsafe { Plugin::load(plugin::path().unwrap()) }.unwrap();
    let engine = plugin.engine_ids().unwrap()[0];
    (plugin, engine)
}

fn create(handle: &Handle, engine: i64, elements: i64) -> Context {
    let bytes = rotini_wire::encode(&small_graph(elements));
    handle.context(&engine_config(engine), &bytes).unwrap()
}

/// Executes `y = max(x + b, 0)`; returns whether the result is right.
fn execute(context: &Context, elements: i64) -> Result<bool, rotini_host::HostError> {
    let count = usize::try_from(elements).unwrap();
    let mut x: Vec<f32> = (0..count).map(|index| index as f32).collect();
    let mut b = vec![-10.0_f32; count];
    let mut y = vec![f32::NAN; count];
    let pack: Vec<DeviceBuffer> = [&mut x, &mut b, &mut y]
        .into_iter()
        // The builder counts tensors from 1, and `sum` is the third.
        .zip([1, 2, 4])
        .map(|(buffer, uid)| DeviceBuffer {
            uid,
            ptr: buffer.as_mut_ptr().cast(),
        })
        .collect();
    // SAFETY: the buffers have the sizes of the tensors.
    unsafe { context.execute(std::ptr::null_mut(), &pack)? };
    Ok(x.iter().zip(&y).all(|(x, y)| *y == (x - 10.0).max(0.0)))
}

/// Runs a body in a forked child with a time limit; returns whether it finished.
fn forked(body: impl FnOnce()) -> bool {
    // SAFETY: the child runs the body and ends.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: takes a number; kills this process if it hangs.
            unsafe { libc::alarm(60) };
            let done = catch_unwind(AssertUnwindSafe(body));
            // SAFETY: takes a number. Unlike `exit`, it runs none of the parent's handlers.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
        child => {
            let mut status = -1;
            // SAFETY: a child of this process, and valid memory for its status.
            let waited = unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(waited, child);
            status == 0
        }
    }
}

#[test]
fn a_child_gets_results_or_errors() {
    if part().is_none() {
        let cache = tempfile::tempdir().unwrap();
        println!("{}", run(&mut command("parent", cache.path()).unwrap()).unwrap());
        return;
    }
    let (plugin, engine) = load();
    let handle = plugin.handle().unwrap();
    let [small, large] = [SMALL, LARGE].map(|elements| create(&handle, engine, elements));
    assert!(execute(&small, SMALL).unwrap() && execute(&large, LARGE).unwrap());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // At any moment, some lock is held and the pool is busy.
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                assert!(execute(&large, LARGE).unwrap());
            }
        });
        scope.spawn(|| {
            let graph = rotini_wire::encode(&small_graph(SMALL));
            while !is_done.load(Ordering::Relaxed) {
                let other = plugin.handle().unwrap();
                other.applicable(&graph).unwrap();
                drop(create(&other, engine, SMALL));
            }
        });
        for round in 0..8 {
            let done = forked(|| {
                for context in [&small, &large] {
                    let text = expect_status(execute(context, SMALL), INTERNAL_ERROR);
                    assert!(text.contains("fork"), "{text}");
                }
                // No error: that would end the search in other plugins.
                assert!(
                    handle
                        .applicable(&rotini_wire::encode(&small_graph(SMALL)))
                        .unwrap()
                        .is_empty()
                );
                // Dropping the parent's objects does not wait for their threads. SAFETY: the child
                // is the only one to drop its copies, and ends without dropping them again.
                unsafe {
                    drop(std::ptr::read(&small));
                    drop(std::ptr::read(&large));
                    drop(std::ptr::read(&handle));
                }
                let new = plugin.handle().unwrap();
                // Loaded from disk and executed by a new pool; and compiled by a new worker.
                for elements in [SMALL, LARGE, 1000 + round] {
                    assert!(
                        execute(&create(&new, engine, elements), elements).unwrap(),
                        "{elements}"
                    );
                }
                drop(new);
            });
            assert!(done, "round {round}: the child has failed");
        }
        is_done.store(true, Ordering::Relaxed);
    });
    // The parent is unaffected.
    assert!(execute(&small, SMALL).unwrap() && execute(&large, LARGE).unwrap());
}

/// A driver's state from the parent is unusable in a child, and the CPU must not get the GPU's
/// memory.
#[test]
fn a_child_cannot_use_the_parents_gpus() {
    if part().is_none() {
        let cache = tempfile::tempdir().unwrap();
        for device in ["hip", "auto"] {
            let mut command = command("parent", cache.path()).unwrap();
            command
                .env("ROTINI_DEVICE", device)
                .env("ROTINI_HIP_LIBRARY", plugin::emulator().unwrap());
            run(&mut command).unwrap();
        }
        return;
    }
    let (plugin, _) = load();
    let handle = plugin.handle().unwrap();
    assert!(forked(|| {
        assert!(
            handle
                .applicable(&rotini_wire::encode(&small_graph(SMALL)))
                .unwrap()
                .is_empty()
        );
        assert!(expect_status(plugin.handle(), INTERNAL_ERROR).contains("fork"));
    }));
    let gpu = rotini_wire::encode(&small_graph(SMALL));
    assert_eq!(handle.applicable(&gpu).unwrap().len(), 1);
}

/// If a GPU library is installed and finds no GPU, there is no state of the parent's: the child
/// runs on the CPU too.
#[test]
fn without_gpus_a_child_has_the_cpu() {
    if part().is_none() {
        let cache = tempfile::tempdir().unwrap();
        for library in [plugin::emulator().unwrap().as_os_str(), "libnothing.so".as_ref()] {
            let mut command = command("parent", cache.path()).unwrap();
            command
                .env("ROTINI_DEVICE", "auto")
                .env("HIPEMU_DEVICES", "")
                .env("ROTINI_HIP_LIBRARY", library);
            run(&mut command).unwrap();
        }
        return;
    }
    let (plugin, engine) = load();
    let handle = plugin.handle().unwrap();
    assert!(execute(&create(&handle, engine, SMALL), SMALL).unwrap());
    assert!(forked(|| {
        let new = plugin.handle().unwrap();
        assert!(execute(&create(&new, engine, SMALL), SMALL).unwrap());
    }));
}

/// A measurement in the parent, which no thread of the child can finish, does not block the child.
#[test]
fn a_child_does_not_wait_for_a_measurement_of_its_parent() {
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        // The first run waits until the second has run.
        let text = format!(
            "#!/bin/sh\nif test -e {0}; then touch {1}; exit 1; fi\ntouch {0}\n\
             i=0; until test -e {1} || test $i = 1800; do i=$((i+1)); sleep 0.05; done\nexit 1\n",
            path("first").display(),
            path("second").display()
        );
        std::fs::write(path("program"), text).unwrap();
        std::fs::set_permissions(path("program"), Permissions::from_mode(0o700)).unwrap();
        let mut command = command("parent", &path("cache")).unwrap();
        command.env("ROTINI_TUNE", path("program"));
        run(&mut command).unwrap();
        return;
    }
    let (plugin, engine) = load();
    let handle = plugin.handle().unwrap();
    let program = std::env::var_os("ROTINI_TUNE").unwrap();
    let first = Path::new(&program).with_file_name("first");
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| assert!(execute(&create(&handle, engine, SMALL), SMALL).unwrap()));
        while !first.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(forked(|| {
            let new = plugin.handle().unwrap();
            assert!(execute(&create(&new, engine, LARGE), LARGE).unwrap());
        }));
        measured.join().unwrap();
    });
}
