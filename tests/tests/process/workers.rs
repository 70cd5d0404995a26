//! Compile workers that fail while the host runs. The host survives, gets the reason, and its next
//! graph works.

use crate::{INTERNAL_ERROR, bytes, create, expect_right, expect_status, small};
use crate::{logged, logging, logging_on, warnings};
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode};
use rotini_tests::cases::{Case, Conv, Order};
use rotini_tests::harness::Runner;
use rotini_tests::process::{command, part, run};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Time that a fault may take beyond its limit. On an idle machine it takes 2 s, most of it for a
/// new worker.
const PROMPT: Duration = Duration::from_secs(20);
/// Time limit of a worker in these tests, in seconds.
const LIMIT: u64 = 10;

fn real_worker() -> PathBuf {
    rotini_iree::compiler::find_worker().expect("cargo build -p rotini-compile-worker makes it")
}

/// Returns a command whose workers have these faults.
fn faulty(part: &str, cache: &Path, faults: &str) -> Command {
    let mut command = command(part, cache).unwrap();
    command
        .env("ROTINI_COMPILE_WORKER", env!("CARGO_BIN_EXE_rotini-test-worker"))
        .env("ROTINI_TEST_WORKER", real_worker())
        .env("ROTINI_TEST_WORKER_FAULTS", faults)
        .env("ROTINI_COMPILE_TIMEOUT", LIMIT.to_string());
    command
}

/// Faults and their consequences: the extent that triggers the fault, its name, the expected text,
/// the time it may take in seconds, and whether the module is to blame.
const FAULTS: [(i64, &str, &str, u64, bool); 6] = [
    (71, "segv", "SIGSEGV", 0, true),
    (72, "abort", "LLVM ERROR: this test cannot go on", 0, true),
    (73, "killed", "from outside", 0, false),
    (74, "garbage", "`Segmentation fault, they say", 0, true),
    (75, "truncated", "its answer breaks off", 0, true),
    (76, "hang", "took longer than 10 s", LIMIT, true),
];

#[test]
fn a_fault_is_told_and_the_next_graph_works() {
    if part().is_none() {
        let cache = tempfile::tempdir().unwrap();
        let faults = FAULTS.map(|(elements, fault, ..)| format!("1x{elements}xf32={fault}"));
        println!(
            "{}",
            run(&mut faulty("faults", cache.path(), &faults.join(","))).unwrap()
        );
        return;
    }
    let runner = logging();
    for (good, (elements, fault, said, limit, is_blamed)) in (30..).zip(FAULTS) {
        let bad = small(elements);
        let start = Instant::now();
        let text = expect_status(create(&runner, &bad), INTERNAL_ERROR);
        let elapsed = start.elapsed();
        println!("{fault}: {elapsed:?}: {text}");
        assert!(text.contains(said), "{fault}: {text}");
        assert!(elapsed < PROMPT + Duration::from_secs(limit), "{fault}: {elapsed:?}");
        let applicable = runner.handle().applicable(&bytes(&bad)).unwrap();
        assert_eq!(applicable.is_empty(), is_blamed, "{fault}");
        expect_right(&runner, &small(good));
    }
    // None of these faults makes rotini switch to another way of compiling.
    assert!(logged("from now on").is_empty(), "{:?}", logged("from now on"));
}

/// The real compiler recurses endlessly on this convolution, and succeeds when it is run again in
/// another way.
#[test]
fn a_real_crash_of_the_compiler_ends_a_worker_alone() {
    if part().is_none() {
        let cache = tempfile::tempdir().unwrap();
        let mut command = command("crash", cache.path()).unwrap();
        command
            .env("ROTINI_DEVICE", "hip")
            .env("ROTINI_HIP_LIBRARY", rotini_tests::plugin::emulator().unwrap())
            // With one of rotini's kernels it would not crash.
            .env("ROTINI_SCHEDULES", "compiler");
        run(&mut command).unwrap();
        return;
    }
    let runner = logging_on(Runner::gpu);
    let conv = Conv::new(1, 8, 12, 7, 3, 1, DataType::F32, Order::First).groups(2);
    expect_right(
        &runner,
        &Case {
            name: "conv_that_crashes_the_compiler".to_owned(),
            graph: conv.alone(),
        },
    );
    let crashes = logged("the compiler crashed");
    assert!(crashes.len() == 1 && crashes[0].1.contains("overflow"), "{crashes:?}");
    expect_right(&runner, &small(5));
}

/// Returns the case `y = x + b + b + …`, whose compile time and memory grow with its length.
fn long(nodes: usize) -> Case {
    let mut builder = GraphBuilder::new("long");
    let b = builder.buffer("b", DataType::F32, &[1, 64]);
    let mut last = builder.buffer("x", DataType::F32, &[1, 64]);
    for node in 1..nodes {
        let next = builder.virtual_tensor(&format!("t{node}"), DataType::F32, &[1, 64]);
        builder.pointwise(DataType::F32, PointwiseMode::Add, &[last, b], next);
        last = next;
    }
    let y = builder.buffer("y", DataType::F32, &[1, 64]);
    builder.pointwise(DataType::F32, PointwiseMode::Add, &[last, b], y);
    let graph: Graph = builder.build();
    Case {
        name: format!("long_{nodes}"),
        graph,
    }
}

#[test]
fn too_much_memory_is_told_and_the_next_graph_works() {
    if part().is_none() {
        let cache = tempfile::tempdir().unwrap();
        let mut command = command("memory", cache.path()).unwrap();
        println!("{}", run(command.env("ROTINI_COMPILE_MEMORY", "32 MiB")).unwrap());
        return;
    }
    let runner = logging();
    expect_right(&runner, &small(30));
    let large = long(4000);
    let start = Instant::now();
    let text = expect_status(create(&runner, &large), INTERNAL_ERROR);
    println!("{:?}: {text}", start.elapsed());
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
    assert!(
        text.contains("ran out of memory, of which it may have 32 MiB"),
        "{text}"
    );
    assert!(runner.handle().applicable(&bytes(&large)).unwrap().is_empty());
    expect_right(&runner, &small(31));
    assert!(logged("from now on").is_empty(), "{:?}", logged("from now on"));
}

/// Returns a directory with the compiler's files, some of which a test may remove.
fn installation() -> (tempfile::TempDir, PathBuf) {
    let library = rotini_iree::compiler::find_library().unwrap();
    let source = library.parent().unwrap();
    let directory = tempfile::Builder::new()
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .unwrap();
    for name in ["libIREECompiler.so", "iree-lld", "iree-compile"] {
        let place = directory.path().join(name);
        // A copy takes a few hundred megabytes, if the directory is on another file system.
        fs::hard_link(source.join(name), &place)
            .or_else(|_| fs::copy(source.join(name), &place).map(drop))
            .unwrap();
    }
    let library = directory.path().join("libIREECompiler.so");
    (directory, library)
}

/// Copies a library with another build id, as if from another build.
fn another_build(library: &Path, place: &Path) {
    let mut bytes = fs::read(library).unwrap();
    let note = bytes.windows(4).position(|name| name == b"GNU\0").unwrap();
    bytes[note + 4] ^= 0xff;
    fs::write(place, bytes).unwrap();
}

#[test]
fn a_library_that_goes_away_or_changes_is_told() {
    let Some(part) = part() else {
        let cache = tempfile::tempdir().unwrap();
        let (_directory, library) = installation();
        for part in ["away", "another", "replaced"] {
            let mut command = command(part, cache.path()).unwrap();
            command.env("ROTINI_IREE_COMPILER_LIB", &library);
            if part != "replaced" {
                command.env("ROTINI_IREE_COMPILE", "/nonexistent");
            }
            println!("{}", run(&mut command).unwrap());
        }
        return;
    };
    let library = PathBuf::from(std::env::var_os("ROTINI_IREE_COMPILER_LIB").unwrap());
    let away = library.with_extension("away");
    let runner = logging();
    let engine = [runner.engine()];
    // From here on the library's build is known.
    let case = small(i64::try_from(part.len()).unwrap());
    assert_eq!(runner.handle().applicable(&bytes(&case)).unwrap(), engine);
    fs::rename(&library, &away).unwrap();
    if part == "another" {
        another_build(&away, &library);
    }
    let result = create(&runner, &case);
    fs::rename(&away, &library).unwrap();
    if part == "replaced" {
        // Compiled by the program of the same build, which has its own copy of the library.
        drop(result.unwrap());
        let warnings = warnings();
        assert!(
            matches!(&warnings[..], [one] if one.contains("cannot use the compiler library")),
            "{warnings:?}"
        );
    } else {
        let text = expect_status(result, INTERNAL_ERROR);
        println!("{text}");
        let said = match part.as_str() {
            "away" => ["cannot use the compiler library", "No such file"],
            _ => ["its library is build-id:", "at first"],
        };
        assert!(said.iter().all(|said| text.contains(said)), "{text}");
    }
    // The graph is not to blame.
    assert_eq!(runner.handle().applicable(&bytes(&case)).unwrap(), engine);
    expect_right(&runner, &case);
}

/// Workers that fail for every graph are replaced by the program, with one warning.
#[test]
fn a_worker_that_does_not_start_is_replaced() {
    let Some(part) = part() else {
        let directory = tempfile::tempdir().unwrap();
        let broken = directory.path().join("broken");
        fs::write(&broken, "#!/nonexistent/interpreter\n").unwrap();
        fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
        for part in ["version 99", "cannot start"] {
            let cache = directory.path().join(part);
            let mut command = faulty(part, &cache, "=version");
            if part == "cannot start" {
                command.env("ROTINI_COMPILE_WORKER", &broken);
            }
            run(&mut command).unwrap();
        }
        return;
    };
    let runner = logging();
    for elements in 30..32 {
        expect_right(&runner, &small(elements));
    }
    let warnings = warnings();
    assert!(
        matches!(&warnings[..], [one] if one.contains(&part) && one.contains("iree-compile")),
        "{warnings:?}"
    );
}

/// Makes the system refuse `execve` to this process from now on, as some sandboxes do.
fn forbid_programs() {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt,
        jf,
        k,
    };
    let execve = u32::try_from(libc::SYS_execve).unwrap();
    let refusal = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::EPERM).unwrap();
    // The first word is the number of the system call.
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, execve),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, refusal),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap(),
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter outlives the calls; the second call applies it to all threads of this
    // process.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const filter,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// If no program can be started, uncached graphs cannot be compiled. That is an error which is not
/// recorded against the graph, and the compiler is not loaded into this process instead.
#[test]
fn a_sandbox_without_programs_is_told() {
    let Some(part) = part() else {
        let directory = tempfile::tempdir().unwrap();
        for (part, device) in [("fill", "cpu"), ("cpu", "cpu"), ("hip", "hip")] {
            let mut command = command(part, &directory.path().join(device)).unwrap();
            command
                .env("ROTINI_DEVICE", device)
                .env("ROTINI_HIP_LIBRARY", rotini_tests::plugin::emulator().unwrap());
            run(&mut command).unwrap();
        }
        return;
    };
    let runner = logging_on(if part == "hip" { Runner::gpu } else { Runner::cpu });
    let cached = small(29);
    if part == "fill" {
        return expect_right(&runner, &cached);
    }
    forbid_programs();
    for elements in 30..32 {
        let text = expect_status(create(&runner, &small(elements)), INTERNAL_ERROR);
        assert!(
            text.contains("cannot start") && text.contains("not permitted"),
            "{text}"
        );
        let applicable = runner.handle().applicable(&bytes(&small(elements))).unwrap();
        assert_eq!(applicable, [runner.engine()]);
    }
    if part == "cpu" {
        expect_right(&runner, &cached);
    }
    assert!(logged("from now on").is_empty(), "{:?}", logged("from now on"));
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("libIREECompiler"), "the compiler is in the host");
}

/// Creates a directory with the plugin and, as the worker, a program that leaves a trace and then
/// acts as the worker.
fn plugin_with_worker(directory: &Path) -> PathBuf {
    let plugin = directory.join("librotini_plugin.so");
    let source = rotini_tests::plugin::path().unwrap();
    fs::hard_link(&source, &plugin)
        .or_else(|_| fs::copy(&source, &plugin).map(drop))
        .unwrap();
    let worker = directory.join("rotini-compile-worker");
    let script = format!("#!/bin/sh\n: >${{0%/*}}/trace\nexec '{}'\n", real_worker().display());
    fs::write(&worker, script).unwrap();
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).unwrap();
    plugin
}

#[test]
fn a_worker_that_others_can_replace_is_not_run() {
    const STRANGER: u32 = 54_321;
    if let Some(part) = part() {
        let runner = logging();
        expect_right(&runner, &small(30));
        let warnings = warnings();
        match part.as_str() {
            "run" => assert!(warnings.is_empty(), "{warnings:?}"),
            said => assert!(
                matches!(&warnings[..], [one] if one.contains("rotini-compile-worker") && one.contains(said)),
                "{warnings:?}"
            ),
        }
        return;
    }
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    // Whether the worker is found or named, the change to it, and the expected message. The first
    // step shows that it would be run.
    type Step<'a> = (bool, &'a dyn Fn(&Path, &Path), &'a str);
    let steps: [Step<'_>; 6] = [
        (false, &|_, _| (), "run"),
        (true, &|_, _| (), "run"),
        (false, &|directory, _| mode(directory, 0o777), "(mode 0777)"),
        (true, &|directory, _| mode(directory, 0o777), "(mode 0777)"),
        (true, &|_, worker| mode(worker, 0o757), "(mode 0757)"),
        (
            false,
            &|_, worker| chown(worker, Some(STRANGER), None).unwrap(),
            "who is not trusted",
        ),
    ];
    for (is_named, change, said) in steps {
        if said == "who is not trusted" && fs::metadata("/proc/self").unwrap().uid() != 0 {
            println!("skipped: only root can give files away");
            continue;
        }
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("plugin");
        fs::create_dir(&directory).unwrap();
        mode(&directory, 0o755);
        let plugin = plugin_with_worker(&directory);
        let worker = directory.join("rotini-compile-worker");
        change(&directory, &worker);
        let mut command = command(said, &parent.path().join("cache")).unwrap();
        command.env("ROTINI_PLUGIN", plugin);
        match is_named {
            true => command.env("ROTINI_COMPILE_WORKER", &worker),
            false => command.env_remove("ROTINI_COMPILE_WORKER"),
        };
        run(&mut command).unwrap();
        assert_eq!(directory.join("trace").exists(), said == "run", "{said}");
    }
}

/// Returns the worker processes below a process: workers and their children.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|children| {
            children
                .split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    let below: Vec<u32> = children.iter().flat_map(|&pid| descendants(pid)).collect();
    [children, below].concat()
}

pub(crate) fn wait_until(what: &str, limit: Duration, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_worker_goes_with_its_killed_host() {
    if part().is_some() {
        let runner = Runner::cpu().unwrap();
        drop(create(&runner, &long(3000)));
        panic!("it was not killed");
    }
    let directory = tempfile::tempdir().unwrap();
    let temporary = directory.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut command = command("host", &directory.path().join("cache")).unwrap();
    let mut host = command.env("TMPDIR", &temporary).spawn().unwrap();
    wait_until("there is no worker", Duration::from_secs(60), || {
        !descendants(host.id()).is_empty()
    });
    // Long enough to be in the middle of its work.
    std::thread::sleep(Duration::from_millis(500));
    let workers = descendants(host.id());
    host.kill().unwrap();
    let killed = Instant::now();
    host.wait().unwrap();
    // A zombie counts as gone: in some containers the init process does not reap it.
    let is_gone = |pid: &u32| match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'),
        Err(_) => true,
    };
    wait_until("a worker outlives its host", PROMPT, || workers.iter().all(is_gone));
    println!("{} processes were gone after {:?}", workers.len(), killed.elapsed());
    wait_until("temporary files are left", PROMPT, || {
        fs::read_dir(&temporary).unwrap().next().is_none()
    });
}
