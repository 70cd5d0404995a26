//! The worker's side: the code of `rotini-compile-worker`.

use std::{
    env,
    fs::{self, File},
    io::{self, Read, Write},
    os::fd::{FromRawFd, OwnedFd},
    path::PathBuf,
    process::ExitCode,
    ptr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Resource, Rlimit, Signal},
};

use super::{
    DIRECTORY_PREFIX,
    frame::{self, FrameError, Incoming},
    message::{Answer, Failure, Ready, Request, Setup},
};
use crate::compiler::{CompileError, CompileRequest, Compiled, Compiler, InProcess};

/// Stack in bytes of the thread that compiles. Eight times the usual size, since the compiler
/// recurses along its input.
const STACK: usize = 64 << 20;

/// Runs `rotini-compile-worker`: answers requests from its standard input, a socket, until the
/// other end is closed.
///
/// It takes over the whole process: it closes descriptors that the host has left open, sets limits,
/// and ends the process as soon as its host ends, even in the middle of a compilation.
#[must_use]
pub fn serve() -> ExitCode {
    let fail = |error: &dyn std::fmt::Display| {
        // The message is lost if nobody reads standard error.
        let _ = writeln!(io::stderr(), "rotini-compile-worker: {error}");
        ExitCode::FAILURE
    };
    let (channel, signals) = match prepare() {
        Ok(prepared) => prepared,
        Err(error) => return fail(&error),
    };
    let watched = match channel.try_clone() {
        Ok(watched) => watched,
        Err(error) => return fail(&error),
    };
    let started = thread::Builder::new()
        .name("watch".into())
        .spawn(move || watch(&watched, &signals))
        .and_then(|_| {
            thread::Builder::new()
                .name("compile".into())
                .stack_size(STACK)
                .spawn(move || session(channel))
        });
    match started.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => end(0),
        Ok(Ok(Err(error))) => {
            fail(&error);
            end(1)
        }
        // The panic has been reported already.
        Ok(Err(_panic)) => end(101),
        Err(error) => fail(&error),
    }
}

/// Turns this process into a worker. Returns the connection, and the descriptor on which the
/// parent's end is signalled.
fn prepare() -> io::Result<(File, OwnedFd)> {
    let stdin = io::stdin();
    if !rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&stdin)?.st_mode).is_socket() {
        return Err(io::Error::other(
            "this program is for rotini's plugin, which starts it with a socket as its standard input",
        ));
    }
    close_descriptors()?;
    if rustix::process::getpgrp() != rustix::process::getpid() {
        rustix::process::setpgid(None, None)?;
    }
    // SAFETY: no other thread runs yet; the set is initialised before it is used.
    let signals = unsafe {
        // The compiler runs a linker and waits for it, which fails if the host ignores this signal.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        // Replaces the signal mask of the thread that started this process.
        libc::sigprocmask(libc::SIG_SETMASK, &set, ptr::null_mut());
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC) {
            -1 => return Err(io::Error::last_os_error()),
            descriptor => OwnedFd::from_raw_fd(descriptor),
        }
    };
    // The worker normally ends with the connection. This signal is for a host whose forked children
    // keep the connection open.
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    // No core dump, not even to a program: dumping takes longer than compiling. If dumps go to a
    // program, a limit of 0 means no limit, and 1 means no dump.
    rustix::process::setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(1),
            maximum: Some(1),
        },
    )
    .or_else(|_| limit(Resource::Core, 0))?;
    // When memory runs out, the kernel kills this process before its host. A system without this
    // file has no such setting.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    env::set_current_dir("/")?;
    let channel = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok((File::from(channel), signals))
}

/// Closes all descriptors that the host has left open, except the standard three.
fn close_descriptors() -> io::Result<()> {
    // SAFETY: nothing in this process has opened any descriptor yet. It is a raw system call since
    // older C libraries lack the function.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } == 0 {
        return Ok(());
    }
    // The call is missing: Linux before 5.9, or a sandbox that does not know it.
    let open: Vec<_> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|&descriptor| descriptor > 2)
        .collect();
    for descriptor in open {
        // SAFETY: as above; the descriptor of the listing itself is closed already, and closing it
        // again does nothing.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

/// Lowers a resource limit to `bytes`, or to the host's hard limit if that is lower.
fn limit(resource: Resource, bytes: u64) -> rustix::io::Result<()> {
    let maximum = rustix::process::getrlimit(resource)
        .maximum
        .map_or(bytes, |maximum| maximum.min(bytes));
    rustix::process::setrlimit(
        resource,
        Rlimit {
            current: Some(maximum),
            maximum: Some(maximum),
        },
    )
}

/// Ends the process when the connection or the parent ends.
fn watch(channel: &File, signals: &OwnedFd) {
    loop {
        // A hang-up is reported even if no event is requested.
        let mut ready = [
            PollFd::new(channel, PollFlags::empty()),
            PollFd::new(signals, PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => {}
            _ => end(0),
        }
    }
}

/// Ends this process without running the exit handlers of the compiler's library, which is still in
/// use. With code 0, kills the whole process group.
fn end(code: i32) -> ! {
    let directory = env::temp_dir();
    if directory
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(DIRECTORY_PREFIX))
    {
        // The pool removes the directory too, if it still can.
        let _ = fs::remove_dir_all(directory);
    }
    if code == 0 {
        let _ = rustix::process::kill_current_process_group(Signal::KILL);
    }
    // SAFETY: ends the process, whatever its threads do.
    unsafe { libc::_exit(code) }
}

/// The reason why a session ended before the connection did.
#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
}

/// Answers messages until the connection ends.
fn session(mut channel: File) -> Result<(), SessionError> {
    let mut incoming = Incoming::default();
    let setup = match receive(&mut channel, &mut incoming) {
        Err(SessionError::Frame(error @ FrameError::Version(_))) => {
            // An empty frame shows this side's version, so that the other side can report it too.
            channel.write_all(&frame::empty())?;
            return Err(error.into());
        }
        result => result?,
    };
    let Some(setup) = setup else {
        return Ok(());
    };
    let compiler = match open(setup) {
        Ok(compiler) => compiler,
        Err(failure) => return Ok(channel.write_all(&frame::encode(&Ready::Err(failure))?)?),
    };
    channel.write_all(&frame::encode(&Ready::Ok(compiler.describe()))?)?;
    let compiler = Whole {
        compiler,
        is_bent: AtomicBool::new(false),
    };
    while let Some(request) = receive::<Request>(&mut channel, &mut incoming)? {
        let mut answer = request.compile(&compiler);
        answer.is_last = compiler.is_worn();
        let frame = match frame::encode(&answer) {
            Err(error @ FrameError::TooLong(_)) => frame::encode(&Answer {
                number: answer.number,
                is_last: answer.is_last,
                result: Err(Failure::Other(format!("has no answer: {error}"))),
            })?,
            result => result?,
        };
        channel.write_all(&frame)?;
        if answer.is_last {
            break;
        }
    }
    Ok(())
}

/// Sets the memory limit and opens the compiler.
fn open(setup: Setup) -> Result<InProcess, Failure> {
    // Limits data rather than the address space, since data is what was asked for: it counts
    // neither the library's few hundred megabytes nor what the allocator only reserves. It does
    // count stacks, with the full size that they may grow to, so their size is added.
    limit(Resource::Data, setup.memory_bytes.saturating_add(stacks()))
        .map_err(|error| Failure::Other(format!("cannot limit its memory: {error}")))?;
    // SAFETY: the host vouches for the library that its configuration names.
    let compiler = unsafe { InProcess::open(&PathBuf::from(setup.library)) }?;
    if compiler.identity() == setup.identity {
        Ok(compiler)
    } else {
        Err(Failure::Identity(compiler.identity().to_owned()))
    }
}

/// Returns the bytes of all stacks of this process: that of the compiling thread, and one of the
/// usual size for each processor, since the compiler has as many threads.
fn stacks() -> u64 {
    const USUAL: u64 = 8 << 20;
    // SAFETY: the call only reads a value.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u64::try_from(processors)
        .unwrap_or(1)
        .saturating_mul(USUAL)
        .saturating_add(STACK as u64)
}

/// Number of open descriptors from which on this process is replaced. A usual limit is 1024.
const DESCRIPTORS: usize = 256;

/// A compiler that also accepts those flags of the `iree-compile` program that apply to the whole
/// process. After such a flag it compiles nothing more.
struct Whole {
    compiler: InProcess,
    is_bent: AtomicBool,
}

impl Whole {
    /// Returns whether this process should be replaced by a new one.
    fn is_worn(&self) -> bool {
        // IREE 3.13 leaves the file of every code object that it links for AMD GPUs open.
        let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        self.is_bent.load(Ordering::Relaxed) || open > DESCRIPTORS
    }
}

impl Compiler for Whole {
    fn identity(&self) -> &str {
        self.compiler.identity()
    }

    fn describe(&self) -> String {
        self.compiler.describe()
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError> {
        let result = self.compiler.compile(request);
        // Unknown flags are reported before anything is compiled, so the request can be repeated.
        let is_unknown = matches!(&result, Err(error) if error.diagnostics().contains(InProcess::UNKNOWN_FLAG));
        if !is_unknown || self.is_bent.swap(true, Ordering::Relaxed) {
            return result;
        }
        let (mut own, mut global) = (Vec::new(), Vec::new());
        for flag in request.flags {
            let flags = if self.compiler.is_for_process(flag)? {
                &mut global
            } else {
                &mut own
            };
            flags.push(flag.clone());
        }
        self.compiler.set_global_flags(&global)?;
        self.compiler.compile(&CompileRequest {
            flags: &own,
            ..*request
        })
    }
}

/// Reads the next message; returns `None` if the connection ends instead.
fn receive<T: serde::de::DeserializeOwned>(
    channel: &mut File,
    incoming: &mut Incoming,
) -> Result<Option<T>, SessionError> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        if let Some(payload) = incoming.next()? {
            return Ok(Some(frame::decode(&payload)?));
        }
        match channel.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(count) => incoming.push(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}
