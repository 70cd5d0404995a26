//! The host time of an execution on a GPU: the time until a call returns, next to the driver call
//! that it needs.
//!
//! It runs on the emulated HIP library with kernels that do nothing, so it needs no GPU. The peer
//! is a loop over `hipModuleLaunchKernel` with the same kernel on the same stream. Batches of the
//! plugin's executions and of the peer's launches alternate; the difference of their times is the
//! plugin's cost. Each thread has its own handle, stream and context, as in hosts; the threads
//! share the loaded code. The program fails if a bar is missed.
//!
//! ```text
//! cargo build --release --package rotini-artifact --package rotini-hip-emulator \
//!     --package rotini-benches
//! target/release/rotini-hip-execute
//! ```

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use comfy_table::{Cell, CellAlignment, Table, presets};
use rotini_emit::Target;
use rotini_graph::{DataType, Graph, PointwiseMode};
use rotini_host::gpu::{Driver, Gpu, Stream};
use rotini_host::{Context, DeviceBuffer, Plugin, engine_config};
use rotini_iree::compiler::{CompileRequest, Compiler, Program, find_program};
use rotini_tests::cases::{Conv, Order};
use rotini_tests::harness::{self, Memory};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::io::Write as _;
use std::sync::Barrier;
use std::time::Instant;

/// Measures the host time of an execution with kernels that do nothing.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Executions per thread
    #[arg(long, default_value_t = 20_000)]
    samples: usize,
}

/// The numbers of threads that are measured; each thread has a stream.
const THREADS: [usize; 4] = [1, 2, 4, 8];

/// Limit of the median and of the 99th percentile of an execution's time, in µs.
const MEDIAN_BAR: f64 = 1.0;
const P99_BAR: f64 = 3.0;
/// Limit of the median with several threads, as a multiple of the median with one.
const FLAT_BAR: f64 = 1.5;

/// Number of successive calls of one kind. The stream is synchronized after each batch, so that no
/// queue fills up.
const BATCH: usize = 50;

/// `hipModuleLaunchKernel`.
type Launch = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;

fn main() -> Result<()> {
    let args = Args::parse();
    // SAFETY: nothing reads the environment yet: this is the only thread.
    unsafe { std::env::set_var("HIPEMU_NOOP", "1") };
    let gpu = harness::gpu()?;
    // SAFETY: the file is the plugin that this workspace builds, or another that the user named
    // instead.
    let plugin = unsafe { Plugin::load(rotini_tests::plugin::path()?) }?;
    let graph = Conv::new(1, 64, 64, 56, 3, 1, DataType::F16, Order::Last).fused(PointwiseMode::ReluFwd, false);
    let kernel = Kernel::load(gpu.driver(), &graph)?;

    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "threads and streams",
        "execute",
        "p99",
        "bare launch",
        "p99",
        "the plugin's own",
    ]);
    let right = |time: f64| Cell::new(format!("{time:.3} µs")).set_alignment(CellAlignment::Right);
    let (mut missed, mut alone) = (Vec::new(), None);
    for threads in THREADS {
        let (ours, peer) = measure(&gpu, &plugin, &kernel, &graph, threads, args.samples)?;
        let (median, p99) = (quantile(&ours, 0.5), quantile(&ours, 0.99));
        let alone = *alone.get_or_insert(median);
        if median > MEDIAN_BAR || p99 > P99_BAR || median > FLAT_BAR * alone {
            missed.push(threads);
        }
        table.add_row([
            Cell::new(threads).set_alignment(CellAlignment::Right),
            right(median),
            right(p99),
            right(quantile(&peer, 0.5)),
            right(quantile(&peer, 0.99)),
            right(median - quantile(&peer, 0.5)),
        ]);
    }
    writeln!(std::io::stdout(), "{table}")?;
    ensure!(missed.is_empty(), "the bar is missed with {missed:?} threads");
    Ok(())
}

/// Returns the times of executions and of bare launches in µs, over all threads, sorted.
fn measure(
    gpu: &Gpu,
    plugin: &Plugin,
    kernel: &Kernel,
    graph: &Graph,
    threads: usize,
    samples: usize,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let barrier = Barrier::new(threads);
    let results = std::thread::scope(|scope| {
        let work = || {
            let lane = Lane::new(gpu, plugin, graph);
            // Every thread waits here, even if its setup failed, so that none waits forever.
            barrier.wait();
            lane?.run(kernel, samples)
        };
        let lanes: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        lanes
            .into_iter()
            .map(|lane| lane.join().unwrap_or_else(|_| bail!("a thread panicked")))
            .collect::<Result<Vec<_>>>()
    })?;
    let (mut ours, mut peer): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for (of_thread, peer_of_thread) in results {
        ours.extend(of_thread);
        peer.extend(peer_of_thread);
    }
    ours.sort_by(f64::total_cmp);
    peer.sort_by(f64::total_cmp);
    Ok((ours, peer))
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// The execution state of a thread.
struct Lane {
    context: Context,
    stream: Stream,
    /// Keeps the buffers alive while executions use them.
    _memory: Vec<Memory>,
    pack: Vec<DeviceBuffer>,
}

impl Lane {
    fn new(gpu: &Gpu, plugin: &Plugin, graph: &Graph) -> Result<Self> {
        let engines = plugin.engine_ids()?;
        let &[engine] = engines.as_slice() else {
            bail!("{} engines, not one", engines.len())
        };
        gpu.select()?;
        let handle = plugin.handle()?;
        let stream = gpu.stream()?;
        // SAFETY: the stream is the GPU's, and outlives the work, which is synchronized with.
        unsafe { handle.set_stream(stream.raw()) }?;
        let context = handle.context(&engine_config(engine), &rotini_wire::encode(graph))?;
        ensure!(context.workspace()? == 0, "the graph is no single kernel");
        let (mut memory, mut pack) = (Vec::new(), Vec::new());
        for (uid, bytes) in harness::fill(graph)? {
            let mut buffer = Memory::on_gpu(gpu, &bytes, 256)?;
            pack.push(DeviceBuffer {
                uid,
                ptr: buffer.pointer().cast(),
            });
            memory.push(buffer);
        }
        Ok(Lane {
            context,
            stream,
            _memory: memory,
            pack,
        })
    }

    /// Returns the times of executions and of bare launches in µs.
    fn run(&self, kernel: &Kernel, samples: usize) -> Result<(Vec<f64>, Vec<f64>)> {
        let (mut ours, mut peer) = (Vec::with_capacity(samples), Vec::with_capacity(samples));
        let batches = samples.div_ceil(BATCH);
        // The first tenth is discarded as a warm-up.
        for batch in 0..batches + batches.div_ceil(10) {
            let mut execute = || {
                // SAFETY: the buffers have the spans of their tensors and outlive the work, which
                // is synchronized with.
                Ok(unsafe { self.context.execute(std::ptr::null_mut(), &self.pack) }?)
            };
            let mut launch = || kernel.launch(&self.stream, &self.pack);
            // The second of the two finds the caches as the first left them. Each is second in half
            // of the batches.
            if batch % 2 == 0 {
                time(&mut ours, &mut execute)?;
                self.stream.synchronize()?;
                time(&mut peer, &mut launch)?;
            } else {
                time(&mut peer, &mut launch)?;
                self.stream.synchronize()?;
                time(&mut ours, &mut execute)?;
            }
            self.stream.synchronize()?;
            if batch < batches.div_ceil(10) {
                ours.clear();
                peer.clear();
            }
        }
        Ok((ours, peer))
    }
}

/// Measures a batch of calls one by one, in µs.
fn time(times: &mut Vec<f64>, call: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    for _ in 0..BATCH {
        let started = Instant::now();
        call()?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(())
}

/// The graph's kernel, loaded without the plugin.
struct Kernel {
    function: *mut c_void,
    launch: Launch,
}

// SAFETY: HIP allows a function to be launched from any thread.
unsafe impl Sync for Kernel {}

impl Kernel {
    fn load(driver: &Driver, graph: &Graph) -> Result<Self> {
        let target = Target::parse("mi300x").context("no such target")?;
        let mut graph = graph.clone();
        graph.validate()?;
        let emitted = rotini_emit::emit(&graph.normalise().0, &target)?;
        let directory = tempfile::tempdir()?;
        Program::new(&find_program()?)?.compile(&CompileRequest {
            mlir: &emitted.mlir,
            name: "bench.mlir",
            flags: &emitted.flags,
            dump_executables: Some(directory.path()),
        })?;
        let kernels = rotini_tests::code_object::kernels(directory.path())?;
        let [kernel] = kernels.as_slice() else {
            bail!("{} kernels, not one", kernels.len())
        };
        let name = CString::new(kernel.name.as_str())?;
        let mut code = None;
        for entry in std::fs::read_dir(directory.path())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "hsaco") {
                code = Some(std::fs::read(path)?);
            }
        }
        let code = code.context("the compiler wrote no code object")?;
        // SAFETY: the types are those of HIP's header; the module is never unloaded.
        unsafe {
            type LoadData = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int;
            type GetFunction = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int;
            let load: LoadData = driver.function("hipModuleLoadData")?;
            let get: GetFunction = driver.function("hipModuleGetFunction")?;
            let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
            ensure!(load(&mut module, code.as_ptr().cast()) == 0, "hipModuleLoadData");
            ensure!(get(&mut function, module, name.as_ptr()) == 0, "hipModuleGetFunction");
            Ok(Kernel {
                function,
                launch: driver.function("hipModuleLaunchKernel")?,
            })
        }
    }

    fn launch(&self, stream: &Stream, pack: &[DeviceBuffer]) -> Result<()> {
        let mut values = [std::ptr::null_mut::<c_void>(); 8];
        for (value, buffer) in values.iter_mut().zip(pack) {
            *value = buffer.ptr;
        }
        let mut parameters = values
            .each_mut()
            .map(|value| std::ptr::from_mut(value).cast::<c_void>());
        // SAFETY: the kernel does nothing, and has at most eight parameters, all of them pointers.
        let status = unsafe {
            (self.launch)(
                self.function,
                7,
                1,
                1,
                256,
                1,
                1,
                0,
                stream.raw(),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        ensure!(status == 0, "hipModuleLaunchKernel returned {status}");
        Ok(())
    }
}
