//! When code is loaded and unloaded.

use super::{Emulator, Subject, alone, plugin, set_stream};
use std::time::Duration;

#[test]
fn code_stays_loaded_until_the_gpu_has_finished_with_it() {
    alone(&[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        let stream = emulator.gpu.stream().unwrap();
        set_stream(&handle, stream.raw()).unwrap();
        emulator.reset();
        let subject = Subject::relu(&emulator.gpu, &plugin, &handle, 512);
        subject.execute().unwrap();
        // In flight: nothing waits, nothing is unloaded.
        let Subject {
            context, pack, memory, ..
        } = subject;
        emulator.expect_none(|| drop(context));
        // The same graph again finds its code.
        let again = Subject::relu(&emulator.gpu, &plugin, &handle, 512);
        assert_eq!(emulator.calls("hipModuleLoadDataEx"), 0);
        again.execute_on(&pack).unwrap();
        drop((again, memory));

        // Many graphs, and a GPU that cannot be waited for: all stay.
        emulator.fail("hipDeviceSynchronize=hipErrorStreamCaptureUnsupported");
        emulator.reset();
        for index in 0..64 {
            assert_eq!(emulator.calls("hipDeviceSynchronize"), 0);
            drop(Subject::relu(&emulator.gpu, &plugin, &handle, 1024 + index));
        }
        // With the one above, that makes 65 with the last.
        emulator.wait_for("hipDeviceSynchronize", 1);
        assert_eq!(emulator.calls("hipModuleUnload"), 0);

        // When it can be again: one wait for a whole batch of them.
        emulator.fail("");
        emulator.reset();
        // The thread that was refused above may not have ended: then the next program is the occasion.
        let Subject { context, .. } = Subject::relu(&emulator.gpu, &plugin, &handle, 2048);
        std::thread::sleep(Duration::from_millis(100));
        drop(context);
        emulator.wait_for("hipModuleUnload", 66 - 32);
        assert_eq!(emulator.calls("hipDeviceSynchronize"), 1);
        // SAFETY: a terminated text.
        let own = unsafe { (emulator.thread_calls)(c"hipDeviceSynchronize".as_ptr()) };
        assert_eq!(own, 0, "the host's thread waited for the GPU");
        // The youngest are still there.
        drop(Subject::relu(&emulator.gpu, &plugin, &handle, 1024 + 63));
        assert_eq!(emulator.calls("hipModuleLoadDataEx"), 1);

        // The last handle takes everything with it.
        drop(handle);
        assert_eq!(emulator.calls("hipModuleUnload"), 66);
    });
}
