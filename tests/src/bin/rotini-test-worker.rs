//! `rotini-compile-worker` for tests: misbehaves on demand. Otherwise it forwards everything to the
//! real program and back.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `ROTINI_TEST_WORKER` | the real program |
//! | `ROTINI_TEST_WORKER_FAULTS` | `MARKER=FAULT,…`; without a marker, a fault at once |
//!
//! Faults are `segv`, `abort`, `killed`, `hang`, `garbage`, `truncated` (the real answer without
//! its last byte) and `version` (an answer of a future version).

#![expect(clippy::print_stderr, reason = "compilers write there")]

use anyhow::{Context as _, Result, bail};
use std::io::{Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, exit};
use std::time::Duration;

fn main() -> Result<()> {
    // SAFETY: the parent passes the connection as this program's standard input, and nothing else
    // here uses that descriptor.
    let mut host = UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) });
    let faults = std::env::var("ROTINI_TEST_WORKER_FAULTS").unwrap_or_default();
    let faults: Vec<(&str, &str)> = faults.split(',').filter_map(|fault| fault.split_once('=')).collect();
    if let [("", fault)] = faults[..] {
        misbehave(fault, &mut host)?;
    }
    let (mut worker, theirs) = UnixStream::pair()?;
    let program = std::env::var_os("ROTINI_TEST_WORKER").context("ROTINI_TEST_WORKER is not set")?;
    let _child = Command::new(program).stdin(OwnedFd::from(theirs)).spawn()?;
    // Bytes received since the last answer.
    let mut message = Vec::new();
    loop {
        let mut ready = [&host, &worker].map(|stream| libc::pollfd {
            fd: std::os::fd::AsRawFd::as_raw_fd(stream),
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the array has the given length.
        unsafe { libc::poll(ready.as_mut_ptr(), 2, -1) };
        let mut buffer = [0; 1 << 16];
        if ready[0].revents != 0 {
            let count = host.read(&mut buffer)?;
            if count == 0 {
                exit(0);
            }
            message.extend_from_slice(&buffer[..count]);
            let contains = |marker: &str| message.windows(marker.len()).any(|part| part == marker.as_bytes());
            let fault = faults.iter().find(|(marker, _)| contains(marker));
            match fault {
                Some((_, fault)) if *fault != "truncated" => misbehave(fault, &mut host)?,
                _ => worker.write_all(&buffer[..count])?,
            }
            if fault.is_some() {
                truncate(&mut worker, &mut host)?;
            }
        }
        if ready[1].revents != 0 {
            message.clear();
            match worker.read(&mut buffer)? {
                0 => exit(1),
                count => host.write_all(&buffer[..count])?,
            }
        }
    }
}

/// Performs a fault that sends no valid answer.
fn misbehave(fault: &str, host: &mut UnixStream) -> Result<()> {
    match fault {
        "segv" => end(libc::SIGSEGV),
        "abort" => {
            eprintln!("LLVM ERROR: this test cannot go on");
            end(libc::SIGABRT);
        }
        "killed" => end(libc::SIGKILL),
        "hang" => std::thread::sleep(Duration::from_secs(100)),
        "garbage" => host.write_all(b"Segmentation fault, they say\n")?,
        "version" => host.write_all(b"rtcw\x63\0\0\0\0\0\0\0\0\0\0\0")?,
        other => bail!("no such fault: {other}"),
    }
    // Sleeps until the parent ends this process.
    std::thread::sleep(Duration::from_secs(100));
    Ok(())
}

/// Forwards an answer without its last byte, then ends.
fn truncate(worker: &mut UnixStream, host: &mut UnixStream) -> Result<()> {
    let mut header = [0; 16];
    worker.read_exact(&mut header)?;
    let length = u64::from_le_bytes(header[8..].try_into()?);
    let mut payload = vec![0; usize::try_from(length)?];
    worker.read_exact(&mut payload)?;
    host.write_all(&header)?;
    host.write_all(&payload[..payload.len() - 1])?;
    exit(0);
}

/// Ends this process by a signal, even if the parent's signal mask or handlers block it.
fn end(signal: i32) {
    // SAFETY: only this process is affected; the set is initialised before it is used.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
