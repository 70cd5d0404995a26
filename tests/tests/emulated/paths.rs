//! One convolution, compiled in ways that share little of the compiler. The results agree bit for
//! bit on the emulated MI300.
//!
//! The inputs are small integers, so every sum is exact in any order. A defect of the emulator goes
//! unnoticed only if it is the same in an implicit GEMM with MFMA and in plain loops with vector
//! arithmetic.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use crate::{contents, filled};
use rotini_cache::{CompiledFor, Key, KeyInputs};
use rotini_emit::{Signature, Target, emit, signature};
use rotini_graph::{DataType, PointwiseMode, SlotRole};
use rotini_host::gpu::Gpu;
use rotini_iree::compiler::{CompileRequest, Compiler, Program, find_program};
use rotini_iree::runtime::Instance;
use rotini_plugin::config::Config;
use rotini_plugin::device::{Buffers, Device, Stream, Work, gpu};
use rotini_tests::cases::{Conv, Order};
use rotini_tests::harness;
use std::sync::Arc;

/// The compilation paths: name, removed flags, added flags.
const WAYS: [(&str, &str, &[&str]); 5] = [
    ("as shipped: implicit GEMM, padding fused", "", &[]),
    ("padding apart", "fuse-padding", &[]),
    ("no implicit GEMM", "", &["--iree-codegen-llvmgpu-use-igemm=false"]),
    (
        "direct convolution",
        "",
        &[
            "--iree-codegen-llvmgpu-use-igemm=false",
            "--iree-codegen-llvmgpu-use-direct-convolution",
        ],
    ),
    (
        "one dispatch of everything",
        "",
        &["--iree-preprocessing-pass-pipeline=builtin.module(util.func(iree-preprocessing-make-single-dispatch))"],
    ),
];

/// Compiled code, and the instructions that it uses.
struct Way {
    name: &'static str,
    vmfb: Vec<u8>,
    dispatches: u64,
}

fn compile(mlir: &str, target: &Target) -> Vec<Way> {
    let program = find_program().expect("the compiler is there");
    let program = Program::new(&program).expect("the compiler is one");
    WAYS.iter()
        .map(|&(name, without, with)| {
            let mut flags = target.flags();
            flags.retain(|flag| without.is_empty() || !flag.contains(without));
            flags.extend(with.iter().map(|&flag| flag.to_owned()));
            let compiled = program
                .compile(&CompileRequest {
                    mlir,
                    name: "paths.mlir",
                    flags: &flags,
                    dump_executables: None,
                })
                .expect(name);
            Way {
                name,
                vmfb: compiled.vmfb,
                dispatches: compiled.statistics.dispatches,
            }
        })
        .collect()
}

/// Executes code on the GPU and returns the bytes of the output. Arguments are numbered as in the
/// signature.
fn execute(gpu: &Gpu, device: &Arc<dyn Device>, way: &Way, signature: &Signature, inputs: &[Vec<u8>]) -> Vec<u8> {
    let key = Key::of(&KeyInputs {
        graph: b"paths",
        compiled_for: &CompiledFor::from(way.name.to_owned()),
        emitter: "",
        flags: &[],
        compiler: "",
    });
    // SAFETY: the compiler made it just now, for this device.
    let code = unsafe { device.load(&key, &way.vmfb, signature, Work { operations: 0 }) }.expect(way.name);
    let memory: Vec<_> = inputs.iter().map(|bytes| filled(gpu, bytes)).collect();
    let workspace = usize::try_from(code.workspace_bytes()).expect("it fits");
    let workspace = gpu.allocate(workspace).expect("there is memory");
    let pointers: Vec<_> = memory.iter().map(|memory| memory.pointer()).collect();
    let stream = Stream {
        pointer: std::ptr::null_mut(),
        ordinal: 0,
    };
    let buffers = Buffers {
        pointers: &pointers,
        scalars: &[],
        workspace: workspace.pointer(),
    };
    // SAFETY: the buffers have their arguments' sizes and live until the work is done, which is
    // waited for below.
    unsafe { code.execute(stream, &buffers) }.expect(way.name);
    gpu.synchronize().expect(way.name);
    let output = signature
        .arguments
        .iter()
        .position(|argument| argument.role == SlotRole::Output)
        .expect("there is an output");
    contents(&memory[output])
}

/// Returns small integers of both signs as f16.
fn integers(elements: usize, step: usize) -> Vec<u8> {
    (0..elements)
        .flat_map(|at| half::f16::from_f32((at * step % 7) as f32 - 3.0).to_le_bytes())
        .collect()
}

#[test]
fn ways_of_compiling_a_convolution_agree() {
    let gpu = harness::gpu().expect("the emulator is there");
    let instance = Instance::new().expect("the runtime");
    let gpus = gpu::hip(&Config::from_env(), &instance).expect("the emulated GPU is there");
    let device = gpus.device(0).expect("it can be used");
    for order in Order::BOTH {
        let mut graph = Conv::new(1, 32, 48, 11, 3, 1, DataType::F16, order).fused(PointwiseMode::ReluFwd, true);
        graph.validate().expect("the graph is valid");
        let normal = graph.normalise().0;
        let signature = signature(&normal).expect("the graph has a signature");
        // The compiler's own form: rotini's kernel has only one.
        let target = &device.compiled_for().target;
        let target = target.unscheduled().expect("an MI300 has schedules");
        let ways = compile(&emit(&normal, &target).expect("it lowers").mlir, &target);
        // The codes must not all be the same under different names.
        let mut codes: Vec<&[u8]> = ways.iter().map(|way| way.vmfb.as_slice()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert!(codes.len() >= 4, "{} of {} ways are different", codes.len(), ways.len());
        assert!(ways.iter().any(|way| way.dispatches > 1));

        let inputs: Vec<Vec<u8>> = signature
            .arguments
            .iter()
            .zip([3, 5, 11, 13, 17])
            .map(|(argument, step)| {
                let elements = argument.shape.iter().product::<i64>();
                integers(usize::try_from(elements).expect("it fits"), step)
            })
            .collect();
        let results: Vec<Vec<u8>> = ways
            .iter()
            .map(|way| execute(&gpu, &device, way, &signature, &inputs))
            .collect();
        let expected = &results[0];
        assert!(expected.iter().any(|&byte| byte != 0), "all results are zero");
        for (way, result) in ways.iter().zip(&results) {
            assert!(result == expected, "{order:?}: '{}' differs from the first", way.name);
        }
    }
}
