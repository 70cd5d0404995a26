#![allow(warnings)]
use iree_sys::compiler::*;
use std::time::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let memory: u64 = a[2].parse::<u64>().unwrap() << 20;
    let mlir = std::fs::read_to_string(&a[1]).unwrap();
    let target = a.get(3).map_or("gfx942", |s| s);
    let rounds: usize = a.get(4).map_or(8, |s| s.parse().unwrap());
    let mut flags: Vec<String> = [
        "--iree-input-type=none",
        "--iree-input-demote-f64-to-f32=false",
        "--iree-opt-const-expr-hoisting=false",
    ]
    .map(String::from)
    .to_vec();
    if target == "cpu" {
        flags.extend(
            [
                "--iree-hal-target-device=local",
                "--iree-hal-local-target-device-backends=llvm-cpu",
                "--iree-llvmcpu-target-cpu=host",
                "--iree-opt-data-tiling",
            ]
            .map(String::from),
        );
    } else {
        flags.extend(
            [
                "--iree-hal-target-device=hip",
                "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops",
            ]
            .map(String::from),
        );
        flags.push(format!("--iree-rocm-target={target}"));
    }
    if let Ok(extra) = std::env::var("EXTRA") {
        flags.extend(extra.split_whitespace().map(String::from));
    }
    let request = CompileRequest {
        mlir: &mlir,
        name: "m.mlir",
        flags: &flags,
        dump_executables: None,
    };
    let program = Program::new(&find_program().unwrap()).unwrap();
    let worker = Worker::new(WorkerOptions {
        program: find_worker().unwrap(),
        library: find_library().unwrap(),
        workers: 2,
        timeout: Duration::from_secs(60),
        memory_bytes: memory,
        idle: Duration::from_secs(20),
    })
    .unwrap();
    let t = Instant::now();
    println!("{}", worker.describe());
    println!("start {:?}", t.elapsed());
    let mut p = vec![];
    let mut w = vec![];
    for i in 0..rounds {
        let t = Instant::now();
        let r = worker.compile(&request);
        let e = t.elapsed();
        match &r {
            Ok(c) => {
                if i == 0 {
                    println!("first {e:?}")
                } else {
                    w.push(e)
                }
                for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                    if std::fs::read_to_string(entry.path().join("comm")).is_ok_and(|c| c.starts_with("rotini-compile"))
                        && i + 1 == rounds
                    {
                        for l in std::fs::read_to_string(entry.path().join("status"))
                            .unwrap()
                            .lines()
                            .filter(|l| {
                                ["VmPeak", "VmData", "VmHWM", "Threads", "SigBlk", "SigIgn"]
                                    .iter()
                                    .any(|n| l.starts_with(n))
                            })
                        {
                            print!("{l}; ")
                        }
                        println!();
                    }
                }
            }
            Err(error) => {
                println!(
                    "{e:?} {error}\n{}",
                    error.diagnostics().chars().take(1500).collect::<String>()
                );
                if i > 2 {
                    return;
                }
                continue;
            }
        }
        let t = Instant::now();
        let c = program.compile(&request);
        let e = t.elapsed();
        p.push(e);
        if let (Ok(a), Ok(b)) = (&r, &c) {
            assert!(a.vmfb == b.vmfb);
        }
    }
    p.sort();
    w.sort();
    println!(
        "program median {:?} min {:?}; worker median {:?} min {:?}",
        p[p.len() / 2],
        p[0],
        w[w.len() / 2],
        w[0]
    );
    let t = Instant::now();
    drop(worker);
    println!("drop {:?}", t.elapsed());
}
