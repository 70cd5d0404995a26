//! Hosts that misbehave or die, played by other runs of this program.

use crate::setup::{CRASHING, MODULE, PROMPT, Place, assert_works, gfx942, long, options, request, wait_until};
use rotini_iree::compiler::{CompileError, Compiler, Worker};
use rustix::process::{Pid, Signal};
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Variable with the role that a run of this program plays.
const HOST: &str = "ROTINI_TEST_HOST";

/// Another run of this program, which plays a host.
struct Host(Child);

impl Host {
    fn start(role: &str, place: &Place) -> Self {
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "hosts::host", "--nocapture"])
            .env(HOST, role)
            .env("ROTINI_TEST_DIRECTORY", place.directory.path())
            .env("TMPDIR", place.directory.path())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Runs the role to its end.
    fn finish(mut self) {
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Not a test: the host that other runs of this program play.
#[test]
fn host() {
    let Ok(role) = env::var(HOST) else {
        return;
    };
    let directory = PathBuf::from(env::var_os("ROTINI_TEST_DIRECTORY").unwrap());
    let worker = Worker::new(options(&directory)).unwrap();
    match role.as_str() {
        // Compiles something that takes longer than the host lives.
        "compiles" | "forks" => {
            assert_works(&worker);
            if role == "forks" {
                // SAFETY: the child only waits.
                unsafe {
                    if libc::fork() == 0 {
                        loop {
                            libc::pause();
                        }
                    }
                }
            }
            println!("\nready");
            std::io::stdout().flush().unwrap();
            let _ = worker.compile(&request(&long(), &gfx942()));
            panic!("that was too short");
        }
        "exits" => {
            assert_works(&worker);
            println!("\nready");
            std::process::exit(0);
        }
        // Ignores `SIGCHLD`: the system reaps its children, so that their exit status is unknown.
        "ignores" => {
            // SAFETY: only affects this process, which this test has started.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
            assert_works(&worker);
            let error = worker.compile(&request(CRASHING, &gfx942())).unwrap_err();
            assert!(matches!(error, CompileError::Crashed { status: None, .. }), "{error:?}");
            assert!(error.to_string().contains("overflow"), "{error}");
            assert_works(&worker);
        }
        // A sandbox that refuses to start programs, or kills a process that tries to.
        "refused" | "ended" => {
            forbid_programs(role == "ended");
            for _ in 0..2 {
                let error = worker.compile(&request(MODULE, &gfx942())).unwrap_err();
                assert!(matches!(error, CompileError::Unavailable { .. }), "{error:?}");
                println!("{error}");
            }
        }
        other => panic!("no such role: {other}"),
    }
}

/// Installs a filter that makes `execve` fail in this process from now on, or kills the process
/// that calls it.
fn forbid_programs(end: bool) {
    let action = if end {
        libc::SECCOMP_RET_KILL_PROCESS
    } else {
        libc::SECCOMP_RET_ERRNO | libc::EPERM as u32
    };
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    // The number of the system call is the first word of the filter's input.
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_execve as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, action),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter outlives the calls, of which the second applies it to all threads of this
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

/// A worker ends with its host, even in the middle of a compilation, and leaves neither its linker
/// nor its directory behind.
#[test]
fn a_worker_ends_with_its_host() {
    // In the second role, a child of the host still holds the connection.
    for role in ["compiles", "forks", "exits"] {
        let place = Place::new();
        let mut host = Host::start(role, &place);
        let lines = BufReader::new(host.0.stdout.take().unwrap()).lines();
        assert!(
            lines.map_while(Result::ok).any(|line| line == "ready"),
            "{role}: no start"
        );
        if role != "exits" {
            assert_eq!(place.processes().len(), 1, "{role}");
            thread::sleep(Duration::from_millis(200));
            host.0.kill().unwrap();
        }
        host.0.wait().unwrap();
        wait_until("the worker outlives its host", PROMPT, || place.processes().is_empty());
        let left = || {
            let entries = fs::read_dir(place.directory.path()).unwrap().flatten();
            entries
                .map(|entry| entry.file_name())
                .filter(|name| name != "worker")
                .collect::<Vec<_>>()
        };
        wait_until("its directory is left", PROMPT, || left().is_empty());
    }
}

#[test]
fn a_host_that_ignores_its_children_is_served() {
    Host::start("ignores", &Place::new()).finish();
}

#[test]
fn a_sandbox_without_programs_is_reported() {
    Host::start("refused", &Place::new()).finish();
    Host::start("ended", &Place::new()).finish();
}
