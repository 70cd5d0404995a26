//! The shared library as a program uses it, and a kernel to run on it.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(non_snake_case, reason = "HIP's names")]
#![allow(clippy::too_many_arguments, reason = "HIP's functions")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

pub(crate) mod code;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

pub(crate) type Handle = *mut c_void;
pub(crate) type Callback = unsafe extern "C" fn(Handle, u32, *mut c_void);
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const INVALID_VALUE: u32 = 1;
pub(crate) const OUT_OF_MEMORY: u32 = 2;
pub(crate) const NOT_INITIALIZED: u32 = 3;
pub(crate) const NO_DEVICE: u32 = 100;
pub(crate) const INVALID_DEVICE: u32 = 101;
pub(crate) const NO_BINARY: u32 = 209;
pub(crate) const INVALID_HANDLE: u32 = 400;
pub(crate) const NOT_READY: u32 = 600;
pub(crate) const ILLEGAL_ADDRESS: u32 = 700;
pub(crate) const CAPTURE_UNSUPPORTED: u32 = 900;
pub(crate) const CAPTURE_INVALIDATED: u32 = 901;
pub(crate) const CAPTURE_UNJOINED: u32 = 904;
pub(crate) const CAPTURE_ISOLATION: u32 = 905;
pub(crate) const CAPTURE_IMPLICIT: u32 = 906;
pub(crate) const CAPTURED_EVENT: u32 = 907;

pub(crate) const HOST_TO_DEVICE: c_int = 1;
pub(crate) const DEVICE_TO_HOST: c_int = 2;
pub(crate) const DEVICE_TO_DEVICE: c_int = 3;
pub(crate) const DEFAULT: c_int = 4;

pub(crate) const NON_BLOCKING: c_uint = 1;

/// One instance of the library: a copy of the file, which the loader takes for another library with
/// a state of its own.
pub(crate) struct Emulator {
    library: Library,
}

macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        impl Emulator {$(
            /// The function of this name; its arguments keep HIP's contract, as the tests see to.
            pub(crate) fn $name(&self, $($arg: $ty),*) -> $result {
                // SAFETY: the type is that of HIP's header, which the library itself is compared
                // with when it is compiled.
                unsafe {
                    let function = self.library.get::<unsafe extern "C" fn($($ty),*) -> $result>(stringify!($name)).unwrap();
                    function($($arg),*)
                }
            }
        )*}
    };
}

functions! {
    hipInit(flags: c_uint) -> u32;
    hipGetDeviceCount(count: *mut c_int) -> u32;
    hipSetDevice(device: c_int) -> u32;
    hipGetDevice(device: *mut c_int) -> u32;
    hipDeviceSynchronize() -> u32;
    hipDeviceReset() -> u32;
    hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) -> u32;
    hipGetDevicePropertiesR0600(properties: *mut c_void, device: c_int) -> u32;
    hipDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: c_int) -> u32;
    hipGetLastError() -> u32;
    hipPeekAtLastError() -> u32;
    hipGetErrorName(error: u32) -> *const c_char;
    hipGetErrorString(error: u32) -> *const c_char;
    hipMalloc(pointer: *mut *mut c_void, bytes: usize) -> u32;
    hipFree(pointer: *mut c_void) -> u32;
    hipMallocAsync(pointer: *mut *mut c_void, bytes: usize, stream: Handle) -> u32;
    hipFreeAsync(pointer: *mut c_void, stream: Handle) -> u32;
    hipHostMalloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) -> u32;
    hipHostFree(pointer: *mut c_void) -> u32;
    hipPointerGetAttributes(attributes: *mut c_void, pointer: *const c_void) -> u32;
    hipMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) -> u32;
    hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int, stream: Handle) -> u32;
    hipMemcpy2D(to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_int) -> u32;
    hipMemsetAsync(to: *mut c_void, value: c_int, bytes: usize, stream: Handle) -> u32;
    hipMemsetD32Async(to: *mut c_void, value: c_int, count: usize, stream: Handle) -> u32;
    hipMemsetD16Async(to: *mut c_void, value: u16, count: usize, stream: Handle) -> u32;
    hipStreamCreateWithFlags(stream: *mut Handle, flags: c_uint) -> u32;
    hipStreamDestroy(stream: Handle) -> u32;
    hipStreamQuery(stream: Handle) -> u32;
    hipStreamSynchronize(stream: Handle) -> u32;
    hipStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> u32;
    hipStreamGetDevice(stream: Handle, device: *mut c_int) -> u32;
    hipLaunchHostFunc(stream: Handle, function: HostFunction, data: *mut c_void) -> u32;
    hipStreamAddCallback(stream: Handle, callback: Callback, data: *mut c_void, flags: c_uint) -> u32;
    hipEventCreateWithFlags(event: *mut Handle, flags: c_uint) -> u32;
    hipEventRecord(event: Handle, stream: Handle) -> u32;
    hipEventQuery(event: Handle) -> u32;
    hipEventSynchronize(event: Handle) -> u32;
    hipEventElapsedTime(milliseconds: *mut f32, start: Handle, stop: Handle) -> u32;
    hipEventDestroy(event: Handle) -> u32;
    hipModuleLoadData(module: *mut Handle, image: *const c_void) -> u32;
    hipModuleUnload(module: Handle) -> u32;
    hipModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> u32;
    hipModuleLaunchKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
    ) -> u32;
    hipStreamBeginCapture(stream: Handle, mode: c_uint) -> u32;
    hipStreamEndCapture(stream: Handle, graph: *mut Handle) -> u32;
    hipStreamIsCapturing(stream: Handle, status: *mut c_uint) -> u32;
    hipThreadExchangeStreamCaptureMode(mode: *mut c_uint) -> u32;
    hipGraphInstantiate(executable: *mut Handle, graph: Handle, node: *mut Handle, log: *mut c_char, bytes: usize) -> u32;
    hipGraphLaunch(executable: Handle, stream: Handle) -> u32;
    hipGraphExecDestroy(executable: Handle) -> u32;
    hipGraphDestroy(graph: Handle) -> u32;
    hipGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) -> u32;
    hipGraphGetEdges(graph: Handle, from: *mut Handle, to: *mut Handle, count: *mut usize) -> u32;
    hipGraphNodeGetType(node: Handle, kind: *mut c_uint) -> u32;
    hipemu_set(name: *const c_char, value: *const c_char) -> c_int;
    hipemu_calls_reset() -> ();
    hipemu_calls(name: *const c_char) -> u64;
    hipemu_calls_total() -> u64;
    hipemu_thread_calls(name: *const c_char) -> u64;
    hipemu_thread_calls_total() -> u64;
    hipemu_last_fault() -> *const c_char;
    hipemu_take_thread_fault() -> *const c_char;
    hipemu_clear_fault() -> ();
    hipemu_set_seed(seed: u64) -> ();
    hipemu_clear_seed() -> ();
    hipemu_order() -> u64;
    hipemu_set_noop(noop: c_int) -> ();
    hipemu_fail(failures: *const c_char) -> c_int;
}

/// The library that Cargo built for these tests lies beside them.
fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.with_file_name("libamdhip64.so")
}

impl Emulator {
    /// An instance with these settings.
    pub(crate) fn open(settings: &[(&str, &str)]) -> Emulator {
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("libamdhip64.so");
        std::fs::copy(library(), &copy).unwrap();
        // SAFETY: what the library does when it is loaded is nothing. It stays when its file goes.
        let library = unsafe { Library::open(Some(&copy), RTLD_NOW | RTLD_LOCAL) }.unwrap();
        let emulator = Emulator { library };
        for (name, value) in settings {
            let [name, value] = [name, value].map(|text| CString::new(*text).unwrap());
            assert_eq!(emulator.hipemu_set(name.as_ptr(), value.as_ptr()), 0, "{name:?}");
        }
        emulator
    }

    pub(crate) fn malloc(&self, bytes: usize) -> *mut c_void {
        let mut pointer = null_mut();
        assert_eq!(self.hipMalloc(&raw mut pointer, bytes), SUCCESS);
        pointer
    }

    /// Pinned memory of the host.
    pub(crate) fn pinned<T>(&self, count: usize) -> *mut T {
        let mut pointer = null_mut();
        assert_eq!(self.hipHostMalloc(&raw mut pointer, count * size_of::<T>(), 0), SUCCESS);
        pointer.cast()
    }

    /// Device memory with these words.
    pub(crate) fn words(&self, words: &[u32]) -> *mut c_void {
        let pointer = self.malloc(size_of_val(words));
        assert_eq!(
            self.hipMemcpy(pointer, words.as_ptr().cast(), size_of_val(words), HOST_TO_DEVICE),
            SUCCESS
        );
        pointer
    }

    pub(crate) fn read(&self, pointer: *const c_void, count: usize) -> Vec<u32> {
        let mut words = vec![0u32; count];
        assert_eq!(
            self.hipMemcpy(words.as_mut_ptr().cast(), pointer, count * 4, DEVICE_TO_HOST),
            SUCCESS
        );
        words
    }

    pub(crate) fn stream(&self, flags: c_uint) -> Handle {
        let mut stream = null_mut();
        assert_eq!(self.hipStreamCreateWithFlags(&raw mut stream, flags), SUCCESS);
        stream
    }

    pub(crate) fn event(&self) -> Handle {
        let mut event = null_mut();
        assert_eq!(self.hipEventCreateWithFlags(&raw mut event, 0), SUCCESS);
        event
    }

    /// A module of the test kernel and its function.
    pub(crate) fn add_one(&self) -> (Handle, Handle) {
        let image = code::add_one("amdgcn-amd-amdhsa--gfx942");
        let (mut module, mut function) = (null_mut(), null_mut());
        assert_eq!(self.hipModuleLoadData(&raw mut module, image.as_ptr().cast()), SUCCESS);
        assert_eq!(
            self.hipModuleGetFunction(&raw mut function, module, c"add_one".as_ptr()),
            SUCCESS
        );
        (module, function)
    }

    /// Launches the test kernel on groups of 64 words.
    pub(crate) fn launch(
        &self,
        function: Handle,
        groups: u32,
        from: *mut c_void,
        to: *mut c_void,
        stream: Handle,
    ) -> u32 {
        let (mut from, mut to) = (from, to);
        let mut parameters = [(&raw mut from).cast::<c_void>(), (&raw mut to).cast()];
        self.hipModuleLaunchKernel(
            function,
            groups,
            1,
            1,
            64,
            1,
            1,
            0,
            stream,
            parameters.as_mut_ptr(),
            null_mut(),
        )
    }

    pub(crate) fn fault(&self) -> String {
        Self::text(self.hipemu_last_fault())
    }

    pub(crate) fn take_thread_fault(&self) -> String {
        Self::text(self.hipemu_take_thread_fault())
    }

    fn text(text: *const c_char) -> String {
        // SAFETY: a C string until the thread's next such call.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    }

    pub(crate) fn calls(&self, name: &CStr) -> u64 {
        self.hipemu_calls(name.as_ptr())
    }
}

/// A function of the host that a stream calls: it lets the stream wait until the test says so.
pub(crate) struct Gate(Sender<()>, Box<Mutex<Receiver<()>>>);

unsafe extern "C" fn pass(data: *mut c_void) {
    // SAFETY: `Gate::close` gave the receiver, which the gate keeps.
    let gate = unsafe { &*data.cast::<Mutex<Receiver<()>>>() };
    gate.lock().unwrap().recv().unwrap();
}

impl Gate {
    /// Closes a stream: what is submitted to it from now on waits.
    pub(crate) fn close(emulator: &Emulator, stream: Handle) -> Gate {
        let (sender, receiver) = channel();
        let receiver = Box::new(Mutex::new(receiver));
        let data: *const _ = receiver.as_ref();
        assert_eq!(
            emulator.hipLaunchHostFunc(stream, pass, data.cast_mut().cast()),
            SUCCESS
        );
        Gate(sender, receiver)
    }

    /// Lets it go on. The gate stays until the stream has passed it.
    pub(crate) fn open(&self) {
        self.0.send(()).unwrap();
    }
}
