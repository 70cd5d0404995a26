//! Calls LLVM's AMDGPU disassembler: bytes of one instruction in, its assembler text and length
//! out.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr::{self, NonNull},
    sync::Once,
};

// Declarations of llvm-c/Disassembler.h and llvm-c/Target.h, LLVM 22.
unsafe extern "C" {
    fn LLVMInitializeAMDGPUTargetInfo();
    fn LLVMInitializeAMDGPUTargetMC();
    fn LLVMInitializeAMDGPUDisassembler();
    fn LLVMCreateDisasmCPU(
        triple: *const c_char,
        cpu: *const c_char,
        info: *mut c_void,
        tag: c_int,
        operand: *const c_void,
        symbol: *const c_void,
    ) -> *mut c_void;
    fn LLVMDisasmInstruction(
        context: *mut c_void,
        bytes: *mut u8,
        size: u64,
        pc: u64,
        out: *mut c_char,
        out_size: usize,
    ) -> usize;
    fn LLVMDisasmDispose(context: *mut c_void);
}

/// A disassembler for one processor.
pub(crate) struct Disassembler {
    context: NonNull<c_void>,
}

impl Disassembler {
    /// Creates a disassembler for `cpu` (`"gfx942"`); `None` if this LLVM does not support it.
    pub(crate) fn new(cpu: &str) -> Option<Self> {
        static INITIALISE: Once = Once::new();
        INITIALISE.call_once(|| {
            // SAFETY: the three functions register the target, take nothing and may run once before
            // any other use.
            unsafe {
                LLVMInitializeAMDGPUTargetInfo();
                LLVMInitializeAMDGPUTargetMC();
                LLVMInitializeAMDGPUDisassembler();
            }
        });
        let cpu = CString::new(cpu).ok()?;
        // SAFETY: both strings end in NUL and outlive the call; the callbacks and their data may be
        // null.
        let context = unsafe {
            LLVMCreateDisasmCPU(
                c"amdgcn-amd-amdhsa".as_ptr(),
                cpu.as_ptr(),
                ptr::null_mut(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        Some(Self {
            context: NonNull::new(context)?,
        })
    }

    /// Returns the text of the first instruction of `bytes` and its length in bytes; `None` if the
    /// bytes are no instruction.
    pub(crate) fn next(&mut self, bytes: &[u8], pc: u64) -> Option<(String, usize)> {
        // The longest gfx9 instruction has 12 bytes; LLVM's interface takes a mutable pointer.
        let mut window = [0_u8; 16];
        let taken = bytes.len().min(window.len());
        window[..taken].copy_from_slice(&bytes[..taken]);
        let mut text = [0 as c_char; 512];
        // SAFETY: context is live until drop; window holds at least `taken` bytes and text its own
        // length.
        let length = unsafe {
            LLVMDisasmInstruction(
                self.context.as_ptr(),
                window.as_mut_ptr(),
                taken as u64,
                pc,
                text.as_mut_ptr(),
                text.len(),
            )
        };
        if length == 0 || length > taken {
            return None;
        }
        // SAFETY: LLVM wrote a NUL-terminated string of at most text.len() bytes; the array was
        // zeroed before.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        Some((text.to_string_lossy().trim().to_owned(), length))
    }
}

impl Drop for Disassembler {
    fn drop(&mut self) {
        // SAFETY: created by LLVMCreateDisasmCPU and disposed of once.
        unsafe { LLVMDisasmDispose(self.context.as_ptr()) }
    }
}
