//! Creates, executes and destroys contexts ten thousand times.

use crate::{bytes, small};
use rotini_graph::TensorKind;
use rotini_host::{DeviceBuffer, engine_config};
use rotini_tests::cases::Case;
use rotini_tests::harness::Runner;
use rotini_tests::process::{command, part, run};
use std::fs;
use std::path::Path;
use std::time::Instant;

const ROUNDS: usize = 10_000;
/// Number of rounds after which all caches and pools have reached their final size.
const WARM: usize = 2_000;
/// Distance between tensors, in floats; all tensors are shorter.
const APART: usize = 256;

/// Returns two hundred graphs of ten lengths. Graphs of one length differ in the alignment of their
/// buffers, so each has its own entry and loaded code; only the compiler's work is shared, and
/// takes half a second per length.
fn graphs() -> Vec<Case> {
    let alignments = [4, 8, 16, 32, 64];
    let pairs = alignments.iter().flat_map(|a| alignments.map(|b| (*a, b)));
    let lengths = (1..=10).map(|n| 20 * n);
    lengths
        .flat_map(|elements| {
            pairs.clone().take(20).map(move |(first, second)| {
                let mut case = small(elements);
                let buffers = case.graph.tensors.iter_mut();
                let mut buffers = buffers.filter(|tensor| tensor.kind == TensorKind::Buffer);
                buffers.next().unwrap().alignment = first;
                buffers.next().unwrap().alignment = second;
                case
            })
        })
        .collect()
}

/// Returns the resident bytes of this process.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn memory_and_descriptors_stay_flat() {
    let Some(_) = part() else {
        let cache = tempfile::tempdir().unwrap();
        let mut command = command("rounds", cache.path()).unwrap();
        println!("{}", run(&mut command).unwrap());
        return;
    };
    let runner = Runner::cpu().unwrap();
    let config = engine_config(runner.engine());
    let graphs: Vec<Vec<u8>> = graphs().iter().map(bytes).collect();
    assert_eq!(graphs.len(), 200);
    let uids: Vec<i64> = small(1).graph.tensors.iter().map(|tensor| tensor.uid).collect();
    let mut memory = vec![0.5_f32; 5 * APART];
    let mut after_warm_up = (0, 0);
    let start = Instant::now();
    for round in 0..ROUNDS {
        if round == graphs.len() {
            println!("all graphs were compiled after {:?}", start.elapsed());
            let cache = std::env::var_os("ROTINI_CACHE_DIR").unwrap();
            assert_eq!(crate::files(Path::new(&cache), ".entry").len(), graphs.len());
        }
        if round == WARM {
            after_warm_up = (resident(), descriptors());
        }
        let context = runner.handle().context(&config, &graphs[round % graphs.len()]).unwrap();
        assert_eq!(context.workspace().unwrap(), 0);
        memory.fill(0.5);
        let start = memory.as_mut_ptr();
        let start = start.wrapping_add(start.align_offset(64));
        let buffers: Vec<DeviceBuffer> = (0..)
            .zip(&uids)
            .map(|(place, &uid)| DeviceBuffer {
                uid,
                ptr: start.wrapping_add(APART * place).cast(),
            })
            .collect();
        // SAFETY: every tensor has at most 200 elements, and more room.
        unsafe { context.execute(std::ptr::null_mut(), &buffers) }.unwrap();
        assert!(memory.contains(&1.0), "round {round}: nothing was computed");
    }
    let (bytes, open) = after_warm_up;
    println!(
        "{} KiB after round {WARM}, {} KiB after round {ROUNDS}, {:?} in all",
        bytes / 1024,
        resident() / 1024,
        start.elapsed()
    );
    assert!(
        resident() < bytes + bytes / 20,
        "memory grew from {bytes} to {} bytes",
        resident()
    );
    // A worker that has been idle for a minute closes its own descriptors.
    assert!(
        descriptors() <= open,
        "{} descriptors, and {open} before",
        descriptors()
    );
}
