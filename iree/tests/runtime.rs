//! Tests of the runtime with modules from the real compiler, on the host devices.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use std::{sync::Arc, thread};

use common::{Aligned, compile, cpu, gfx942};
use rotini_iree::{
    result::Code,
    runtime::{
        Buffer, ElementType, Error, GpuOptions, HOST_ALIGNMENT, HalDevice, Instance, Invocation, Module, Parameter,
        Session, TaskOptions, TensorType,
    },
};

const MODULE: &str = include_str!("shell.mlir");
/// Workspace bytes of `shell.mlir`: its intermediate 16×32 f32 tensor.
const WORKSPACE: usize = 16 * 32 * 4;

fn tensor(element: ElementType, shape: &[i64]) -> Parameter {
    Parameter::Tensor(TensorType::new(element, shape).unwrap())
}

fn parameters() -> Vec<Parameter> {
    let f32 = |shape| tensor(ElementType::F32, shape);
    vec![
        f32(&[16, 24]),
        f32(&[24, 32]),
        f32(&[32, 8]),
        f32(&[16, 8]),
        Parameter::Workspace,
        Parameter::WaitFence,
        Parameter::SignalFence,
    ]
}

fn load(instance: &Instance, vmfb: Vec<u8>) -> Module {
    // SAFETY: the compiler has just made it.
    unsafe { Module::load(instance, vmfb.into()) }.unwrap()
}

fn host_devices(instance: &Instance) -> [HalDevice; 3] {
    let task = |workers| {
        let options = TaskOptions {
            workers,
            ..TaskOptions::default()
        };
        HalDevice::local_task(instance, &options).unwrap()
    };
    [HalDevice::local_sync(instance).unwrap(), task(1), task(2)]
}

fn matmul(a: &[f32], b: &[f32], [m, k, n]: [usize; 3]) -> Vec<f32> {
    let element = |row: usize, column: usize| (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum();
    (0..m)
        .flat_map(|row| (0..n).map(move |column| element(row, column)))
        .collect()
}

/// Memory of one call, filled with small integers, so that every sum is exact in f32 in any order.
struct Call {
    inputs: [Aligned<f32>; 3],
    output: Aligned<f32>,
    workspace: Aligned<u8>,
}

impl Call {
    fn new(seed: usize) -> Self {
        let input = |length, factor: usize| Aligned::new(length, |i| ((i * factor + seed) % 7) as f32 - 3.0);
        Self {
            inputs: [input(16 * 24, 3), input(24 * 32, 5), input(32 * 8, 11)],
            output: Aligned::new(16 * 8, |_| f32::NAN),
            workspace: Aligned::new(WORKSPACE, |_| 0xff),
        }
    }

    fn bind(&mut self, invocation: &mut Invocation) {
        // SAFETY: every call's memory outlives the use of its bindings in these tests, and has the
        // declared sizes.
        unsafe {
            for (index, input) in self.inputs.iter_mut().enumerate() {
                invocation.bind(index, input.pointer()).unwrap();
            }
            invocation.bind(3, self.output.pointer()).unwrap();
            invocation.bind_workspace(self.workspace.pointer(), WORKSPACE).unwrap();
        }
    }

    fn expected(&self) -> Vec<f32> {
        let [a, b, c] = self.inputs.each_ref().map(Aligned::get);
        matmul(&matmul(a, b, [16, 24, 32]), c, [16, 32, 8])
    }
}

#[test]
fn two_stages_run_in_place_with_the_callers_workspace() {
    let instance = Instance::new().unwrap();
    let executable = load(&instance, compile(MODULE, &cpu()).vmfb);
    assert_eq!(executable.workspace_bytes("main").unwrap(), WORKSPACE);
    for device in host_devices(&instance) {
        let session = Session::new(&device, &executable).unwrap();
        let mut invocation = Invocation::new(session, "main", parameters()).unwrap();
        assert_eq!(invocation.workspace_bytes(), WORKSPACE);
        // One argument list with other memory at each call, and once with the same memory again.
        let mut calls = [0, 1, 2].map(Call::new);
        for index in [0, 1, 1, 2, 0] {
            let call = &mut calls[index];
            call.output = Aligned::new(16 * 8, |_| f32::NAN);
            call.bind(&mut invocation);
            invocation.invoke_blocking().unwrap();
            assert_eq!(call.output.get(), call.expected(), "{} {index}", device.kind());
            // The intermediate result is in the caller's workspace.
            let intermediate: Vec<_> = call
                .workspace
                .get()
                .chunks_exact(4)
                .map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap()))
                .collect();
            let [a, b, _] = call.inputs.each_ref().map(Aligned::get);
            assert_eq!(intermediate, matmul(a, b, [16, 24, 32]), "{}", device.kind());
        }
    }
}

#[test]
fn local_sync_is_done_when_invoke_returns() {
    let instance = Instance::new().unwrap();
    let executable = load(&instance, compile(MODULE, &cpu()).vmfb);
    let session = Session::new(&HalDevice::local_sync(&instance).unwrap(), &executable).unwrap();
    let mut invocation = Invocation::new(session, "main", parameters()).unwrap();
    for seed in 0..100 {
        let mut call = Call::new(seed);
        call.bind(&mut invocation);
        invocation.invoke().unwrap();
        assert_eq!(call.output.get(), call.expected());
    }
}

#[test]
fn threads_share_device_and_module() {
    let instance = Instance::new().unwrap();
    let executable = load(&instance, compile(MODULE, &cpu()).vmfb);
    for device in host_devices(&instance) {
        thread::scope(|scope| {
            for thread in 0..4 {
                let (device, executable) = (&device, &executable);
                scope.spawn(move || {
                    let session = Session::new(device, executable).unwrap();
                    let mut invocation = Invocation::new(session, "main", parameters()).unwrap();
                    for seed in 0..50 {
                        let mut call = Call::new(thread * 50 + seed);
                        call.bind(&mut invocation);
                        invocation.invoke_blocking().unwrap();
                        assert_eq!(call.output.get(), call.expected(), "{}", device.kind());
                    }
                });
            }
        });
    }
}

/// Values may be dropped in any order: an object that is still needed stays alive underneath.
#[test]
fn an_invocation_keeps_what_it_needs() {
    let mut invocation = {
        let instance = Instance::new().unwrap();
        let executable = load(&instance, compile(MODULE, &cpu()).vmfb);
        let device = HalDevice::local_sync(&instance).unwrap();
        Invocation::new(Session::new(&device, &executable).unwrap(), "main", parameters()).unwrap()
    };
    let mut call = Call::new(5);
    call.bind(&mut invocation);
    invocation.invoke().unwrap();
    assert_eq!(call.output.get(), call.expected());
}

#[test]
fn the_bytes_are_freed_with_the_last_user() {
    let instance = Instance::new().unwrap();
    let bytes: Arc<[u8]> = compile(MODULE, &cpu()).vmfb.into();
    // SAFETY: the compiler has just made them.
    let executable = unsafe { Module::load(&instance, bytes.clone()) }.unwrap();
    let session = Session::new(&HalDevice::local_sync(&instance).unwrap(), &executable).unwrap();
    drop(executable);
    assert_eq!(Arc::strong_count(&bytes), 2);
    drop(session);
    assert_eq!(Arc::strong_count(&bytes), 1);
}

#[test]
fn buffers_of_the_device_can_be_arguments() {
    let instance = Instance::new().unwrap();
    let executable = load(&instance, compile(MODULE, &cpu()).vmfb);
    let device = HalDevice::local_sync(&instance).unwrap();
    let session = Session::new(&device, &executable).unwrap();
    let mut invocation = Invocation::new(session, "main", parameters()).unwrap();
    let mut call = Call::new(3);
    call.bind(&mut invocation);
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>();
    let input = Buffer::allocate(&device, 16 * 24 * 4).unwrap();
    let output = Buffer::allocate(&device, 16 * 8 * 4).unwrap();
    let mut result = vec![0; output.bytes()];
    // SAFETY: the invocation works on this thread alone, and nobody else has the buffers.
    unsafe {
        input.write(0, &bytes(&[0.5; 16 * 24])).unwrap();
        invocation.bind_buffer(0, &input).unwrap();
        invocation.bind_buffer(3, &output).unwrap();
        invocation.invoke().unwrap();
        output.read(0, &mut result).unwrap();
    }
    let [_, b, c] = call.inputs.each_ref().map(Aligned::get);
    assert_eq!(
        result,
        bytes(&matmul(&matmul(&[0.5; 16 * 24], b, [16, 24, 32]), c, [16, 32, 8]))
    );
    // A range outside of the buffer is an error.
    // SAFETY: as above.
    let read = unsafe { output.read(1, &mut result) };
    assert!(matches!(read, Err(Error::Buffer { .. })));
    // A buffer that is too small is refused, and the previous binding stays.
    let small = Buffer::allocate(&device, 64).unwrap();
    // SAFETY: as above.
    let bound = unsafe { invocation.bind_buffer(3, &small) };
    assert!(matches!(bound, Err(Error::Buffer { .. })));
    invocation.invoke().unwrap();
}

/// One dispatch for each element type: the view's type has to be the one that the compiled function
/// asserts.
#[test]
fn every_element_type_passes() {
    let instance = Instance::new().unwrap();
    let device = HalDevice::local_sync(&instance).unwrap();
    for (element, name) in [
        (ElementType::I1, "i1"),
        (ElementType::I8, "i8"),
        (ElementType::I32, "i32"),
        (ElementType::I64, "i64"),
        (ElementType::F16, "f16"),
        (ElementType::Bf16, "bf16"),
        (ElementType::F32, "f32"),
        (ElementType::F64, "f64"),
    ] {
        let module = format!(
            "module @transpose {{
  util.func public @main(%in: !hal.buffer_view, %out: !hal.buffer_view, %ws: !hal.buffer, %wait: !hal.fence,
                         %signal: !hal.fence) {{
    %i = hal.tensor.import wait(%wait) => %in : !hal.buffer_view -> tensor<2x3x{name}>
    %e = tensor.empty() : tensor<3x2x{name}>
    %r = linalg.transpose ins(%i : tensor<2x3x{name}>) outs(%e : tensor<3x2x{name}>) permutation = [1, 0]
    %a = hal.tensor.alias wait(%wait) => %r : tensor<3x2x{name}> to %out : !hal.buffer_view
    %t = hal.tensor.transients %a : tensor<3x2x{name}> from %ws : !hal.buffer
    %b = hal.tensor.barrier join(%t : tensor<3x2x{name}>) => %signal : !hal.fence
    util.return
  }}
}}"
        );
        let flags = [cpu(), vec!["--iree-input-demote-f64-to-f32=false".into()]].concat();
        let executable = load(&instance, compile(&module, &flags).vmfb);
        assert_eq!(executable.workspace_bytes("main").unwrap(), 0);
        let parameters = vec![
            tensor(element, &[2, 3]),
            tensor(element, &[3, 2]),
            Parameter::Workspace,
            Parameter::WaitFence,
            Parameter::SignalFence,
        ];
        let session = Session::new(&device, &executable).unwrap();
        let mut invocation = Invocation::new(session, "main", parameters).unwrap();
        let bytes = element.bytes();
        // These bits are a valid value of every type; an i1 is 0 or 1.
        let mut input = Aligned::new(6 * bytes, |i| if name == "i1" { u8::from(i % 4 == 1) } else { i as u8 });
        let mut output = Aligned::new(6 * bytes, |_| 0xffu8);
        // SAFETY: both outlive the invocation's use and have the tensors' sizes. No workspace is
        // needed, so none is read.
        unsafe {
            invocation.bind(0, input.pointer()).unwrap();
            invocation.bind(1, output.pointer()).unwrap();
            invocation.bind_workspace(std::ptr::null_mut(), 0).unwrap();
        }
        invocation.invoke().unwrap();
        let expected: Vec<u8> = [0, 3, 1, 4, 2, 5]
            .iter()
            .flat_map(|&i| input.get()[i * bytes..][..bytes].to_vec())
            .collect();
        assert_eq!(output.get(), expected, "{name}");
        // A view of another type is refused.
        let wrong = if name == "f32" {
            ElementType::I32
        } else {
            ElementType::F32
        };
        let other = Buffer::allocate(&device, 64).unwrap();
        let session = Session::new(&device, &executable).unwrap();
        let parameters = [wrong, element].map(|element| tensor(element, &[2, 3]));
        let fences = [Parameter::Workspace, Parameter::WaitFence, Parameter::SignalFence];
        let mut invocation = Invocation::new(session, "main", [&parameters[..], &fences].concat()).unwrap();
        // SAFETY: the invocation is refused before anything uses them.
        unsafe {
            invocation.bind_buffer(0, &other).unwrap();
            invocation.bind_buffer(1, &other).unwrap();
        }
        let error = invocation.invoke().unwrap_err();
        assert!(
            matches!(&error, Error::Invoke { source, .. } if source.code() == Code::InvalidArgument),
            "{error}"
        );
    }
}

#[test]
fn garbage_is_refused() {
    let instance = Instance::new().unwrap();
    // By default the container is also a ZIP archive, and the runtime does not read the ZIP
    // directory at its end.
    let flags = [cpu(), vec!["--iree-vm-emit-polyglot-zip=false".into()]].concat();
    let good = compile(MODULE, &flags).vmfb;
    // SAFETY: none of these has machine code that would run: loading only verifies.
    let load = |bytes: &[u8]| unsafe { Module::load(&instance, bytes.into()) };
    for bytes in [
        &[][..],
        &[0],
        &[0xff; 64],
        &[1; 100],
        b"PK\x03\x04 not a zip",
        &good[..40],
    ] {
        assert!(matches!(load(bytes), Err(Error::Load(_))), "{} bytes", bytes.len());
    }
    // Truncations are refused at every length.
    for length in (0..good.len()).step_by(97) {
        assert!(
            load(&good[..length]).is_err(),
            "the first {length} of {} bytes",
            good.len()
        );
    }
    load(&good).unwrap();
}

#[test]
fn a_module_for_another_device_does_not_start() {
    let instance = Instance::new().unwrap();
    let executable = load(&instance, compile(MODULE, &gfx942()).vmfb);
    for device in host_devices(&instance) {
        let error = Session::new(&device, &executable).unwrap_err();
        assert!(matches!(error, Error::Session { .. }), "{error}");
    }
    let other = Instance::new().unwrap();
    let device = HalDevice::local_sync(&other).unwrap();
    assert!(matches!(
        Session::new(&device, &executable),
        Err(Error::ForeignInstance)
    ));
}

#[test]
fn misuse_is_an_error() {
    let instance = Instance::new().unwrap();
    let executable = load(&instance, compile(MODULE, &cpu()).vmfb);
    let device = HalDevice::local_sync(&instance).unwrap();
    let session = || Session::new(&device, &executable).unwrap();
    assert!(matches!(executable.workspace_bytes("nothing"), Err(Error::NoFunction(name)) if name == "nothing"));
    assert_eq!(executable.attribute("main", "nothing").unwrap(), None);
    // The function that computes the workspace's size has no such attribute, and returns a number.
    assert!(matches!(
        executable.workspace_bytes("main_transients_size"),
        Err(Error::WorkspaceUnknown { .. })
    ));
    let mut short = parameters();
    short.pop();
    for (function, parameters) in [("main", short), ("main_transients_size", vec![])] {
        let error = Invocation::new(session(), function, parameters).unwrap_err();
        assert!(matches!(error, Error::Signature { .. }), "{error}");
    }

    let mut invocation = Invocation::new(session(), "main", parameters()).unwrap();
    let mut call = Call::new(0);
    assert!(matches!(invocation.invoke(), Err(Error::Unbound(0))));
    // SAFETY: refused pointers are not kept, and the others outlive their use.
    unsafe {
        let aligned = call.inputs[0].pointer();
        for offset in [1, 4, 16, 32, 63] {
            let pointer = aligned.wrapping_byte_add(offset);
            let error = invocation.bind(0, pointer).unwrap_err();
            assert!(
                matches!(error, Error::Misaligned { address, required: HOST_ALIGNMENT } if address == pointer.addr()),
                "{error}"
            );
            assert!(matches!(
                Buffer::import(&device, pointer, 64),
                Err(Error::Misaligned { .. })
            ));
        }
        assert!(matches!(
            invocation.bind(0, std::ptr::null_mut()),
            Err(Error::Null(1536))
        ));
        for index in [4, 5, 6, 7, usize::MAX] {
            assert!(
                matches!(invocation.bind(index, aligned), Err(Error::Parameter { .. })),
                "{index}"
            );
        }
        assert!(matches!(
            invocation.bind_workspace(call.workspace.pointer(), WORKSPACE - 1),
            Err(Error::WorkspaceTooSmall { needed: WORKSPACE, given }) if given == WORKSPACE - 1
        ));
        for (index, input) in call.inputs.iter_mut().enumerate() {
            invocation.bind(index, input.pointer()).unwrap();
        }
        invocation.bind(3, call.output.pointer()).unwrap();
    }
    assert!(
        matches!(invocation.invoke(), Err(Error::Unbound(4))),
        "the workspace is still missing"
    );
    // The invocation still works after these errors.
    call.bind(&mut invocation);
    invocation.invoke().unwrap();
    assert_eq!(call.output.get(), call.expected());

    for shape in [&[-1][..], &[i64::MAX, 2], &[1 << 40, 1 << 40]] {
        assert!(
            matches!(TensorType::new(ElementType::F32, shape), Err(Error::Shape(_))),
            "{shape:?}"
        );
    }
}

/// Without a GPU, or with a broken library, creating a HIP device fails with an error that names
/// the missing part, and nothing else stops working.
#[test]
fn hip_without_a_gpu_is_an_error() {
    let instance = Instance::new().unwrap();
    match HalDevice::hip(&instance, &GpuOptions::default()) {
        Ok(_) => eprintln!("skipped: this machine has an AMD GPU"),
        Err(error) => {
            let Error::Device { driver: "hip", source } = &error else {
                panic!("{error:?}");
            };
            let library_missing = source.code() == Code::Unavailable && error.to_string().contains("libamdhip64.so");
            let no_gpu = matches!(source.code(), Code::FailedPrecondition | Code::NotFound);
            assert!(library_missing || no_gpu, "{error}");
        }
    }
    HalDevice::local_sync(&instance).unwrap();
}

/// Returns the CPUs that each worker of this process may run on, in the system's notation.
fn cpus_of_workers() -> Vec<String> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end meanwhile.
    let read = |thread: &std::fs::DirEntry, file: &str| std::fs::read_to_string(thread.path().join(file)).ok();
    threads
        .filter_map(|thread| {
            let thread = thread.ok()?;
            let status = read(&thread, "comm")
                .filter(|name| name.starts_with("iree-worker"))
                .and_then(|_| read(&thread, "status"))?;
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            list.map(|list| list.trim().to_owned())
        })
        .collect()
}

#[test]
fn each_worker_stays_on_a_cpu_if_there_are_as_many() {
    let instance = Instance::new().unwrap();
    let count = rustix::thread::sched_getaffinity(None).unwrap().count() as usize;
    // Threads set their names and CPUs when they start.
    let are_soon = |workers: usize, is_right: fn(&[String]) -> bool| {
        let options = TaskOptions {
            workers,
            ..TaskOptions::default()
        };
        let _pool = HalDevice::local_task(&instance, &options).unwrap();
        let is_soon = (0..1000).any(|_| {
            thread::sleep(std::time::Duration::from_millis(10));
            let mut cpus = cpus_of_workers();
            cpus.sort();
            cpus.dedup_by(|a, b| a == b && a.parse::<usize>().is_ok());
            cpus.len() == workers && is_right(&cpus)
        });
        assert!(is_soon, "{workers} workers on {:?}", cpus_of_workers());
    };
    are_soon(count, |cpus| cpus.iter().all(|cpu| cpu.parse::<usize>().is_ok()));
    if count > 1 {
        are_soon(count - 1, |cpus| cpus.iter().all(|cpus| cpus.contains(['-', ','])));
    }
}
