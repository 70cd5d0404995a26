//! Helpers of the tests: the compilers of this machine and aligned memory.
#![allow(dead_code, reason = "each test crate uses its part")]

use std::{ffi::c_void, sync::OnceLock};

use rotini_iree::compiler::{CompileRequest, Compiled, Compiler, InProcess, Program, find_library, find_program};

/// Returns the flags for code of this machine's CPU.
pub(crate) fn cpu() -> Vec<String> {
    [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ]
    .map(String::from)
    .to_vec()
}

/// Returns the flags for AMD's MI300.
pub(crate) fn gfx942() -> Vec<String> {
    ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"]
        .map(String::from)
        .to_vec()
}

/// Returns the compiler program. Tests need a compiler: its absence is a failure, not a reason to
/// skip.
pub(crate) fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| Program::new(&find_program().unwrap()).unwrap())
}

/// Returns the compiler library.
pub(crate) fn library() -> &'static InProcess {
    static LIBRARY: OnceLock<InProcess> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let path = find_library().unwrap();
        // SAFETY: what was found is the compiler of the toolchain that the tests run with.
        unsafe { InProcess::open(&path) }.unwrap()
    })
}

/// Compiles a module, and panics if that fails.
pub(crate) fn compile(mlir: &str, flags: &[String]) -> Compiled {
    program()
        .compile(&CompileRequest {
            mlir,
            name: "test.mlir",
            flags,
            dump_executables: None,
        })
        .unwrap()
}

/// Elements at an address that is a multiple of 64 bytes.
pub(crate) struct Aligned<T> {
    storage: Vec<T>,
    offset: usize,
    length: usize,
}

impl<T: Copy + Default> Aligned<T> {
    pub(crate) fn new(length: usize, mut element: impl FnMut(usize) -> T) -> Self {
        let slack = 64 / size_of::<T>();
        let mut storage = vec![T::default(); length + slack];
        let offset = storage.as_ptr().align_offset(64);
        for index in 0..length {
            storage[offset + index] = element(index);
        }
        Self {
            storage,
            offset,
            length,
        }
    }

    pub(crate) fn pointer(&mut self) -> *mut c_void {
        self.storage[self.offset..].as_mut_ptr().cast()
    }

    pub(crate) fn get(&self) -> &[T] {
        &self.storage[self.offset..][..self.length]
    }
}
