//! Calls LLVM's AMDGPU assembler: text in, bytes of code out.
//!
//! It checks decoded texts against the bytes that they came from ([`crate::Kernel::reassemble`]),
//! and assembles kernels for tests.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::Once,
};

use object::{Object, ObjectSection, read::elf::ElfFile64};

// Declarations of llvm-c/{Core,Target,TargetMachine}.h, LLVM 22.
unsafe extern "C" {
    fn LLVMInitializeAMDGPUTargetInfo();
    fn LLVMInitializeAMDGPUTarget();
    fn LLVMInitializeAMDGPUTargetMC();
    fn LLVMInitializeAMDGPUAsmParser();
    fn LLVMInitializeAMDGPUAsmPrinter();
    fn LLVMContextCreate() -> *mut c_void;
    fn LLVMContextDispose(context: *mut c_void);
    fn LLVMContextSetDiagnosticHandler(
        context: *mut c_void,
        handler: extern "C" fn(*mut c_void, *mut c_void),
        data: *mut c_void,
    );
    fn LLVMGetDiagInfoDescription(info: *mut c_void) -> *mut c_char;
    fn LLVMGetDiagInfoSeverity(info: *mut c_void) -> c_int;
    fn LLVMDisposeMessage(message: *mut c_char);
    fn LLVMModuleCreateWithNameInContext(name: *const c_char, context: *mut c_void) -> *mut c_void;
    fn LLVMDisposeModule(module: *mut c_void);
    fn LLVMSetTarget(module: *mut c_void, triple: *const c_char);
    fn LLVMSetModuleInlineAsm2(module: *mut c_void, text: *const c_char, length: usize);
    fn LLVMGetTargetFromTriple(triple: *const c_char, target: *mut *mut c_void, error: *mut *mut c_char) -> c_int;
    fn LLVMCreateTargetMachine(
        target: *mut c_void,
        triple: *const c_char,
        cpu: *const c_char,
        features: *const c_char,
        level: c_int,
        relocation: c_int,
        model: c_int,
    ) -> *mut c_void;
    fn LLVMDisposeTargetMachine(machine: *mut c_void);
    fn LLVMTargetMachineEmitToMemoryBuffer(
        machine: *mut c_void,
        module: *mut c_void,
        kind: c_int,
        error: *mut *mut c_char,
        buffer: *mut *mut c_void,
    ) -> c_int;
    fn LLVMGetBufferStart(buffer: *mut c_void) -> *const u8;
    fn LLVMGetBufferSize(buffer: *mut c_void) -> usize;
    fn LLVMDisposeMemoryBuffer(buffer: *mut c_void);
}

/// `LLVMDSError`
const ERROR: c_int = 0;
/// `LLVMObjectFile`
const OBJECT: c_int = 1;

/// Assembles lines of gfx942 code into bytes.
///
/// # Errors
///
/// The assembler's messages about lines that it does not accept.
pub(crate) fn assemble(text: &str) -> Result<Vec<u8>, String> {
    static INITIALISE: Once = Once::new();
    INITIALISE.call_once(|| {
        // SAFETY: the functions register the target, take nothing and may run more than once.
        unsafe {
            LLVMInitializeAMDGPUTargetInfo();
            LLVMInitializeAMDGPUTarget();
            LLVMInitializeAMDGPUTargetMC();
            LLVMInitializeAMDGPUAsmParser();
            LLVMInitializeAMDGPUAsmPrinter();
        }
    });
    // A section other than .text: its end would be padded for the instruction prefetch.
    let text = format!("\t.section .code,\"ax\",@progbits\n{text}\n");
    let triple = c"amdgcn-amd-amdhsa";
    let mut errors = Vec::<String>::new();
    let (mut target, mut message, mut buffer) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: strings end in NUL (the assembly has its length instead) and outlive the calls;
    // context, module, machine and buffer are used while they live and disposed of once; `errors`
    // outlives the context whose handler writes to it.
    let bytes = unsafe {
        if LLVMGetTargetFromTriple(triple.as_ptr(), &raw mut target, &raw mut message) != 0 {
            return Err(take(message));
        }
        let machine = LLVMCreateTargetMachine(target, triple.as_ptr(), c"gfx942".as_ptr(), c"".as_ptr(), 0, 0, 0);
        let context = LLVMContextCreate();
        LLVMContextSetDiagnosticHandler(context, collect, (&raw mut errors).cast());
        let module = LLVMModuleCreateWithNameInContext(c"assembly".as_ptr(), context);
        LLVMSetTarget(module, triple.as_ptr());
        LLVMSetModuleInlineAsm2(module, text.as_ptr().cast(), text.len());
        let failed = LLVMTargetMachineEmitToMemoryBuffer(machine, module, OBJECT, &raw mut message, &raw mut buffer);
        let bytes = if failed == 0 {
            let bytes = std::slice::from_raw_parts(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer)).to_vec();
            LLVMDisposeMemoryBuffer(buffer);
            Ok(bytes)
        } else {
            Err(take(message))
        };
        LLVMDisposeModule(module);
        LLVMContextDispose(context);
        LLVMDisposeTargetMachine(machine);
        bytes
    };
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    let bytes = bytes?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).map_err(|error| error.to_string())?;
    let section = file.section_by_name(".code").ok_or("no code section")?;
    Ok(section.data().map_err(|error| error.to_string())?.to_vec())
}

/// Collects the assembler's error messages.
extern "C" fn collect(info: *mut c_void, errors: *mut c_void) {
    // SAFETY: LLVM calls this only during `assemble`'s call to it, with a live diagnostic and the
    // pointer that `assemble` passed.
    unsafe {
        if LLVMGetDiagInfoSeverity(info) == ERROR {
            let text = take(LLVMGetDiagInfoDescription(info));
            (*errors.cast::<Vec<String>>()).push(text);
        }
    }
}

/// Copies a message of LLVM's to a string and disposes of it.
///
/// # Safety
///
/// `message` must be null or a message whose ownership LLVM has passed on.
unsafe fn take(message: *mut c_char) -> String {
    if message.is_null() {
        return "LLVM gives no reason".to_owned();
    }
    // SAFETY: the caller guarantees it; LLVM's messages end in NUL.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::assemble;

    #[test]
    fn lines_become_bytes_and_nonsense_an_error() {
        assert_eq!(assemble("s_endpgm"), Ok(vec![0, 0, 0x81, 0xbf]));
        let error = assemble("s_endpgm\nv_frobnicate v0").expect_err("no such instruction");
        assert!(error.contains("invalid instruction"), "{error}");
    }
}
