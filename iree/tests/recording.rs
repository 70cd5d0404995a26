//! Recordings of launches, on the emulated HIP library with kernels that do nothing: they are
//! compared with the programs that are written here.
//!
//! `ROTINI_HIP_EMULATOR` names the library, else it is searched beside this test. Without it all
//! tests here are skipped, and say so.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed"
)]

mod common;

use std::{
    ffi::{c_int, c_void},
    path::PathBuf,
    sync::OnceLock,
};

use common::{compile, gfx942};
use rotini_iree::runtime::{
    Address, Command, ElementType, GpuOptions, HalDevice, Instance, KernelArgument, Launch, Module, Parameter,
    Recording, Session, TensorType, Word,
};

/// Returns the emulated library, if it was built.
fn emulator() -> Option<PathBuf> {
    let path = std::env::var_os("ROTINI_HIP_EMULATOR").map(PathBuf::from).or_else(|| {
        let executable = std::env::current_exe().unwrap();
        let places = executable.ancestors().skip(1).take(2);
        places
            .map(|directory| directory.join("libamdhip64.so"))
            .find(|path| path.is_file())
    });
    if path.is_none() {
        eprintln!("skipped: there is no libamdhip64.so; cargo build -p rotini-hip-emulator makes it");
    }
    path
}

/// Returns a GPU that all tests share.
fn device() -> Option<&'static HalDevice> {
    static DEVICE: OnceLock<Option<HalDevice>> = OnceLock::new();
    DEVICE
        .get_or_init(|| {
            let path = emulator()?;
            // SAFETY: runs once, before the library is loaded; no test reads the environment
            // meanwhile.
            unsafe { std::env::set_var("HIPEMU_NOOP", "1") };
            let options = GpuOptions {
                library: Some(path.to_str().unwrap().to_owned()),
                ..GpuOptions::default()
            };
            Some(HalDevice::hip(&Instance::new().unwrap(), &options).unwrap())
        })
        .as_ref()
}

fn tensor(shape: &[i64]) -> Parameter {
    Parameter::Tensor(TensorType::new(ElementType::F32, shape).unwrap())
}

/// Records `@main` of a program, with the workspace and fence parameters after its tensors.
fn record(device: &HalDevice, mlir: &str, tensors: &[&[i64]]) -> Result<Recording, String> {
    let rest = [Parameter::Workspace, Parameter::WaitFence, Parameter::SignalFence];
    let parameters = tensors.iter().map(|shape| tensor(shape)).chain(rest).collect();
    record_with(device, mlir, parameters)
}

fn record_with(device: &HalDevice, mlir: &str, parameters: Vec<Parameter>) -> Result<Recording, String> {
    let code = compile(mlir, &gfx942()).vmfb;
    // SAFETY: the compiler has just made it.
    let executable = unsafe { Module::load(device.instance(), code.into()) }.unwrap();
    let session = Session::new(device, &executable).map_err(|error| error.to_string())?;
    Recording::new(session, "main", parameters).map_err(|error| error.to_string())
}

/// The tensors of a [`program`].
const SQUARES: [&[i64]; 2] = [&[64, 64]; 2];

/// Returns a function of one input and one output, both 64 × 64, around a body that computes `%r`
/// from `%x`.
fn program(body: &str) -> String {
    format!(
        "module @program {{
  util.func public @main(%in: !hal.buffer_view, %out: !hal.buffer_view, %ws: !hal.buffer, %wait: !hal.fence,
                         %signal: !hal.fence) attributes {{iree.abi.stub}} {{
    %x = hal.tensor.import wait(%wait) => %in : !hal.buffer_view -> tensor<64x64xf32>
    {body}
    %a = hal.tensor.alias wait(%wait) => %r : tensor<64x64xf32> to %out : !hal.buffer_view
    %t = hal.tensor.transients %a : tensor<64x64xf32> from %ws : !hal.buffer
    %b = hal.tensor.barrier join(%t : tensor<64x64xf32>) => %signal : !hal.fence
    util.return
  }}
}}"
    )
}

fn launch(command: &Command) -> &Launch {
    match command {
        Command::Launch(launch) => launch,
        other => panic!("{other:?} is no launch"),
    }
}

/// Returns the addresses among the arguments of a launch.
fn addresses(command: &Command) -> Vec<Address> {
    launch(command)
        .parameters
        .iter()
        .filter_map(|value| match value {
            KernelArgument::Address(address) => Some(*address),
            KernelArgument::Word(_) => None,
        })
        .collect()
}

fn parameter(index: usize) -> Address {
    Address::Parameter { index, offset: 0 }
}

#[test]
fn two_matmuls_are_two_launches_with_the_workspace_between() {
    let Some(device) = device() else { return };
    let shapes: [&[i64]; 4] = [&[16, 24], &[24, 32], &[32, 8], &[16, 8]];
    let recording = record(device, include_str!("shell.mlir"), &shapes).unwrap();
    let [first, second] = recording.commands() else {
        panic!("{:?}", recording.commands())
    };
    assert_eq!(addresses(first), [parameter(0), parameter(1), parameter(4)]);
    assert_eq!(addresses(second), [parameter(4), parameter(2), parameter(3)]);
    for command in [first, second] {
        let launch = launch(command);
        assert!(!launch.function.0.is_null());
        assert!(launch.grid.iter().chain(&launch.block).all(|&extent| extent > 0));
        // Workgroups consist of whole wavefronts.
        assert_eq!(launch.block.iter().product::<u32>() % 64, 0, "{launch:?}");
    }
    assert_ne!(launch(first).function, launch(second).function);
}

#[test]
fn one_operation_is_one_launch() {
    let Some(device) = device() else { return };
    let mlir = program("%r = arith.mulf %x, %x : tensor<64x64xf32>");
    let recording = record(device, &mlir, &SQUARES).unwrap();
    let [command] = recording.commands() else {
        panic!("{:?}", recording.commands())
    };
    assert_eq!(addresses(command), [parameter(0), parameter(1)]);
}

#[test]
fn what_is_no_kernel_is_a_copy_or_a_fill() {
    let Some(device) = device() else { return };
    let bytes = 64 * 64 * 4;
    let recording = record(
        device,
        &program("%r = util.optimization_barrier %x : tensor<64x64xf32>"),
        &SQUARES,
    );
    let copy = Command::Copy {
        source: parameter(0),
        target: parameter(1),
        bytes,
    };
    assert_eq!(recording.unwrap().commands(), [copy]);
    let recording = record(
        device,
        &program("%r = arith.constant dense<1.5> : tensor<64x64xf32>"),
        &SQUARES,
    );
    let fill = Command::Fill {
        target: parameter(1),
        pattern: Word::Constant(1.5_f32.to_bits()),
        pattern_bytes: 4,
        count: bytes / 4,
    };
    assert_eq!(recording.unwrap().commands(), [fill]);
}

/// Numbers that are passed by value are found among the kernels' arguments; a function that
/// calculates with them on the host is refused.
#[test]
fn numbers_are_words_of_kernels() {
    let Some(device) = device() else { return };
    // %r is %x times %p, which `before` and, in the loop, `inside` compute from %n and %d.
    let program = |before: &str, inside: &str| {
        let map = "affine_map<(a, b) -> (a, b)>";
        program(&format!(
            "{before}
    %e = tensor.empty() : tensor<64x64xf32>
    %r = linalg.generic {{indexing_maps = [{map}, {map}], iterator_types = [\"parallel\", \"parallel\"]}}
        ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {{
    ^bb0(%element: f32, %old: f32):
      {inside}
      %product = arith.mulf %element, %p : f32
      linalg.yield %product : f32
    }} -> tensor<64x64xf32>"
        ))
        .replace("%out: !hal.buffer_view,", "%out: !hal.buffer_view, %n: i32, %d: i64,")
    };
    let record = |mlir: &str| {
        let parameters = [
            tensor(&[64, 64]),
            tensor(&[64, 64]),
            Parameter::Number { bytes: 4 },
            Parameter::Number { bytes: 8 },
            Parameter::Workspace,
            Parameter::WaitFence,
            Parameter::SignalFence,
        ];
        record_with(device, mlir, parameters.to_vec())
    };
    let words = |recording: &Recording| {
        let [command] = recording.commands() else {
            panic!("{:?}", recording.commands())
        };
        let words = launch(command).parameters.iter().filter_map(|value| match value {
            KernelArgument::Word(word) => Some(*word),
            KernelArgument::Address(_) => None,
        });
        words.collect::<Vec<_>>()
    };
    let number = |index, high| Word::Number { index, high };
    let recording = record(&program("%p = arith.bitcast %n : i32 to f32", "")).unwrap();
    assert_eq!(words(&recording), [number(2, false)]);
    let converted = program("", "%p = arith.sitofp %d : i64 to f32");
    assert_eq!(words(&record(&converted).unwrap()), [number(3, false), number(3, true)]);
    // The barrier keeps the product out of the kernel.
    let calculated =
        "%m = arith.muli %n, %n : i32 %k = util.optimization_barrier %m : i32 %p = arith.bitcast %k : i32 to f32";
    let error = record(&program(calculated, "")).unwrap_err();
    assert!(error.contains("does not do the same thing every time"), "{error}");
}

/// Constants are uploaded when the session is created, in several chunks, and all of them are
/// complete afterwards.
#[test]
fn constants_have_a_place_of_their_own() {
    let Some(device) = device() else { return };
    let side = 256;
    let values: Vec<f32> = (0..side * side).map(|index| index as f32 * 0.5 - 7.0).collect();
    let hex: String = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .map(|byte| format!("{byte:02X}"))
        .collect();
    let mlir = program(&format!(
        "%c = arith.constant dense<\"0x{hex}\"> : tensor<64x64xf32>\n    %r = arith.addf %x, %c : tensor<64x64xf32>"
    ))
    .replace("64x64", &format!("{side}x{side}"));
    let shape: &[i64] = &[side, side];
    let recording = record(device, &mlir, &[shape; 2]).unwrap();
    let [command] = recording.commands() else {
        panic!("{:?}", recording.commands())
    };
    let [input, Address::Fixed(constant), output] = addresses(command)[..] else {
        panic!("{command:?}")
    };
    assert_eq!((input, output), (parameter(0), parameter(1)));

    type Download = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> c_int;
    let mut found = vec![0.0_f32; values.len()];
    // SAFETY: HIP's header declares the function with this type; the constant has this many bytes.
    let status = unsafe {
        let library = libloading::Library::new(emulator().unwrap()).unwrap();
        let download = library.get::<Download>("hipMemcpyDtoH").unwrap();
        let source = std::ptr::without_provenance_mut(constant as usize);
        download(found.as_mut_ptr().cast(), source, values.len() * 4)
    };
    assert_eq!(status, 0);
    // Not `assert_eq`, which would print thousands of numbers on failure.
    assert!(found == values, "the first are {:?}", &found[..4]);
}

#[test]
fn what_a_plan_cannot_have_is_refused() {
    let Some(device) = device() else { return };
    // The intermediate tensor between the two matmuls has no workspace, so the function allocates
    // it in each invocation.
    let mlir = include_str!("shell.mlir")
        .replace(
            "    %t0 = hal.tensor.transients %a0 : tensor<16x8xf32> from %ws : !hal.buffer\n",
            "",
        )
        .replace("join(%t0 :", "join(%a0 :");
    let code = compile(&mlir, &gfx942()).vmfb;
    // SAFETY: the compiler has just made it.
    let executable = unsafe { Module::load(device.instance(), code.into()) }.unwrap();
    let session = Session::new(device, &executable).unwrap();
    let shapes: [&[i64]; 4] = [&[16, 24], &[24, 32], &[32, 8], &[16, 8]];
    let mut parameters: Vec<_> = shapes.iter().map(|shape| tensor(shape)).collect();
    // The workspace is declared as a fence, since the function does not state how large it is.
    parameters.extend([Parameter::WaitFence, Parameter::WaitFence, Parameter::SignalFence]);
    let error = Recording::new(session, "main", parameters).unwrap_err().to_string();
    assert!(error.contains("queue_alloca"), "{error}");
}

#[test]
fn host_devices_have_no_plans() {
    let instance = Instance::new().unwrap();
    let device = HalDevice::local_sync(&instance).unwrap();
    let mlir = program("%r = arith.mulf %x, %x : tensor<64x64xf32>");
    let code = compile(&mlir, &common::cpu()).vmfb;
    // SAFETY: the compiler has just made it.
    let executable = unsafe { Module::load(&instance, code.into()) }.unwrap();
    let session = Session::new(&device, &executable).unwrap();
    assert!(Recording::new(session, "main", Vec::new()).is_err());
}
