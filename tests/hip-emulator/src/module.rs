//! Loads modules and finds their functions.

use crate::code::{Code, CodeError, Kernel};
use crate::config;
use crate::device::Device;
use crate::handle::{Handle, Kind};
use crate::status::Result;
use crate::sys::{self, hipError_t};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// A code object that is loaded on a device.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) device: &'static Device,
    /// Handles of its kernels, created on request and dropped when the module is unloaded.
    pub(crate) functions: Mutex<Vec<&'static Handle<Function>>>,
    pub(crate) code: Mutex<Option<Arc<Code>>>,
}

/// A kernel of a module.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) module: &'static Handle<Module>,
    pub(crate) kernel: Arc<Kernel>,
    /// Bytes from the first argument to the end of the last one that the caller passes.
    pub(crate) explicit_bytes: usize,
}

impl Kind for Module {
    const MAGIC: u64 = u64::from_le_bytes(*b"hipModul");
    const INVALID: hipError_t = sys::hipErrorInvalidResourceHandle;
}

impl Kind for Function {
    const MAGIC: u64 = u64::from_le_bytes(*b"hipFunct");
    const INVALID: hipError_t = sys::hipErrorInvalidResourceHandle;
}

impl Module {
    pub(crate) fn load(device: &'static Device, image: &[u8]) -> Result<&'static Handle<Module>> {
        // The caller's image may be unaligned; the ELF reader needs the alignment that the
        // allocator gives.
        let image = Vec::from(image);
        let code = Code::parse(&image).map_err(|error| {
            let mut text = format!("a code object cannot be loaded: {error}");
            let mut cause = error.source();
            while let Some(inner) = cause {
                text.push_str(&format!(": {inner}"));
                cause = inner.source();
            }
            config::warn(&text);
            match error {
                CodeError::Target(_) => sys::hipErrorNoBinaryForGpu,
                _ => sys::hipErrorInvalidImage,
            }
        })?;
        if !device.architecture.runs(&code.architecture) {
            return Err(sys::hipErrorNoBinaryForGpu);
        }
        Ok(Handle::new(Module {
            device,
            functions: Mutex::default(),
            code: Mutex::new(Some(Arc::new(code))),
        }))
    }
}

/// Returns the bytes of an ELF file of unknown length: up to the end of its section headers, which
/// LLD writes last.
///
/// # Safety
///
/// The pointer is valid for reads of 64 bytes and, if they are an ELF header, of the whole file.
pub(crate) unsafe fn image<'a>(start: *const u8) -> Result<&'a [u8]> {
    // SAFETY: by this function's contract.
    let header = unsafe { std::slice::from_raw_parts(start, 64) };
    let field = |at: usize, bytes: usize| -> Result<u64> {
        let mut word = [0; 8];
        let from = header.get(at..at + bytes).ok_or(sys::hipErrorInvalidImage)?;
        word.get_mut(..bytes)
            .ok_or(sys::hipErrorInvalidImage)?
            .copy_from_slice(from);
        Ok(u64::from_le_bytes(word))
    };
    if header.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err(sys::hipErrorInvalidImage);
    }
    let end = field(0x28, 8)?
        .checked_add(field(0x3a, 2)? * field(0x3c, 2)?)
        .filter(|end| *end < 1 << 32)
        .ok_or(sys::hipErrorInvalidImage)?;
    // SAFETY: by this function's contract; a file's own headers say how long it is.
    Ok(unsafe { std::slice::from_raw_parts(start, usize::try_from(end).map_err(|_| sys::hipErrorInvalidImage)?) })
}

/// Returns the handle of a module's kernel by name.
pub(crate) fn function(module: &'static Handle<Module>, name: &str) -> Result<&'static Handle<Function>> {
    let mut functions = module.functions.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = functions.iter().find(|function| function.kernel.name == name) {
        return Ok(found);
    }
    let code = module.code.lock().unwrap_or_else(PoisonError::into_inner);
    let code = code.as_ref().ok_or(Module::INVALID)?;
    let kernel = code.kernels.iter().find(|kernel| kernel.name == name);
    let kernel = Arc::clone(kernel.ok_or(sys::hipErrorNotFound)?);
    let explicit = kernel.arguments.iter().filter(|argument| argument.hidden.is_none());
    let explicit_bytes = explicit
        .map(|argument| argument.offset + argument.bytes)
        .max()
        .unwrap_or(0);
    let function = Handle::new(Function {
        module,
        kernel,
        explicit_bytes,
    });
    functions.push(function);
    Ok(function)
}
