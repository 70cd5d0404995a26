//! Loading and unloading of code.

use super::{Subject, set_stream, with_handle};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

#[test]
fn code_stays_loaded_until_the_gpu_has_finished_with_it() {
    with_handle(&[], |emulator, plugin, handle| {
        let _stream = emulator.stream_of(&handle);
        emulator.reset();
        let subject = Subject::relu(&emulator.gpu, &plugin, &handle, 512);
        subject.execute().unwrap();
        // With work in flight, nothing waits and nothing is unloaded.
        let Subject {
            context, pack, memory, ..
        } = subject;
        emulator.expect_none(|| drop(context));
        // The same graph reuses its code.
        let again = Subject::relu(&emulator.gpu, &plugin, &handle, 512);
        assert_eq!(emulator.calls("hipModuleLoadDataEx"), 0);
        again.execute_on(&pack).unwrap();
        drop((again, memory));

        // Many graphs, and a GPU that cannot be synchronised: all code stays.
        emulator.fail("hipDeviceSynchronize=hipErrorStreamCaptureUnsupported");
        emulator.reset();
        for index in 0..64 {
            assert_eq!(emulator.calls("hipDeviceSynchronize"), 0);
            drop(Subject::relu(&emulator.gpu, &plugin, &handle, 1024 + index));
        }
        // With the graph above, the last one makes 65.
        emulator.wait_for("hipDeviceSynchronize", 1);
        assert_eq!(emulator.calls("hipModuleUnload"), 0);

        // Once synchronisation works again, one wait serves a whole batch.
        emulator.fail("");
        emulator.reset();
        // Creating or dropping a context triggers unloading, once the thread that was refused above
        // has ended.
        let unloaded = || {
            drop(Subject::relu(&emulator.gpu, &plugin, &handle, 2048));
            emulator.calls("hipModuleUnload") >= 65 - 32
        };
        rotini_tests::process::wait_until("code is unloaded", unloaded).unwrap();
        assert_eq!(emulator.calls("hipDeviceSynchronize"), 1);
        // SAFETY: a NUL-terminated string.
        let own = unsafe { (emulator.thread_calls)(c"hipDeviceSynchronize".as_ptr()) };
        assert_eq!(own, 0, "the host's thread waited for the GPU");
        // The most recent code is still loaded.
        drop(Subject::relu(&emulator.gpu, &plugin, &handle, 1024 + 63));
        assert_eq!(emulator.calls("hipModuleLoadDataEx"), 1);

        // Dropping the last handle unloads everything.
        drop(handle);
        assert_eq!(emulator.calls("hipModuleUnload"), 66);
    });
}

/// Whether the GPU may continue, and whether it has continued without permission.
static LEAVE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
static WENT_ON: AtomicBool = AtomicBool::new(false);

/// Keeps a GPU busy until it has permission, with a time limit: a test that waits for it fails
/// instead of hanging.
unsafe extern "C" fn keep_busy(_: *mut c_void) {
    let leave = LEAVE.0.lock().unwrap();
    let waited = LEAVE
        .1
        .wait_timeout_while(leave, Duration::from_secs(30), |leave| !*leave);
    WENT_ON.store(waited.unwrap().1.timed_out(), Ordering::Release);
}

/// The test does not depend on time: the GPU continues only after every operation that must not
/// wait for it has finished.
#[test]
fn nobody_waits_for_a_gpu_that_is_busy() {
    with_handle(&[], |emulator, plugin, handle| {
        let [busy, stream] = [(); 2].map(|()| emulator.gpu.stream().unwrap());
        set_stream(&handle, stream.raw()).unwrap();
        let known = Subject::relu(&emulator.gpu, &plugin, &handle, 512);
        let many: Vec<_> = (0..80)
            .map(|index| Subject::relu(&emulator.gpu, &plugin, &handle, 1024 + index))
            .collect();
        // SAFETY: HIP's header declares this signature, and the callback ignores its argument.
        let status = unsafe {
            let launch: unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int =
                emulator.driver().function("hipLaunchHostFunc").unwrap();
            launch(busy.raw(), keep_busy, std::ptr::null_mut())
        };
        assert_eq!(status, 0);
        // More code than stays loaded. The test's own memory is kept, because freeing it would
        // wait.
        let mut memory = Vec::new();
        for subject in many {
            subject.execute().unwrap();
            known.execute().unwrap();
            let Subject {
                context,
                memory: own,
                workspace,
                ..
            } = subject;
            drop(context);
            memory.push((own, workspace));
        }
        // A thread waits for the GPU, to unload excess code; meanwhile code is still loaded and
        // executed.
        emulator.wait_for("hipDeviceSynchronize", 1);
        let new = Subject::relu(&emulator.gpu, &plugin, &handle, 2048);
        new.execute().unwrap();
        known.execute().unwrap();
        assert_eq!(emulator.calls("hipModuleUnload"), 0);
        *LEAVE.0.lock().unwrap() = true;
        LEAVE.1.notify_all();
        emulator.gpu.synchronize().unwrap();
        assert!(!WENT_ON.load(Ordering::Acquire), "somebody waited for the GPU");
        let unloaded = || emulator.calls("hipModuleUnload") > 0;
        rotini_tests::process::wait_until("code is unloaded", unloaded).unwrap();
    });
}
