//! The part of the compiler's C API (`iree/compiler/embedding_api.h`, API version 1) that this
//! crate calls.
//!
//! The table is written by hand, because the library is opened at run time and bindgen's own loader
//! requires another version of libloading. For each `enum` of the header the type here is
//! [`c_uint`], so that a value that this crate does not know is no undefined behaviour.

#![allow(non_camel_case_types, non_snake_case, reason = "the header's names")]

use std::ffi::{c_char, c_int, c_uint, c_void};

macro_rules! opaque {
    ($($name:ident),+ $(,)?) => {$(
        /// An opaque type of the C API.
        #[repr(C)]
        #[derive(Debug)]
        pub struct $name {
            _private: [u8; 0],
        }
    )+};
}

opaque! {
    iree_compiler_error_t,
    iree_compiler_invocation_t,
    iree_compiler_output_t,
    iree_compiler_session_t,
    iree_compiler_source_t,
}

/// `IREE_COMPILER_PIPELINE_STD`: from input dialects to VM bytecode.
pub const IREE_COMPILER_PIPELINE_STD: c_uint = 0;
/// `IREE_COMPILER_DIAGNOSTIC_SEVERITY_NOTE`.
pub const IREE_COMPILER_DIAGNOSTIC_SEVERITY_NOTE: c_uint = 0;
/// `IREE_COMPILER_DIAGNOSTIC_SEVERITY_WARNING`.
pub const IREE_COMPILER_DIAGNOSTIC_SEVERITY_WARNING: c_uint = 1;
/// `IREE_COMPILER_DIAGNOSTIC_SEVERITY_ERROR`.
pub const IREE_COMPILER_DIAGNOSTIC_SEVERITY_ERROR: c_uint = 2;
/// `IREE_COMPILER_DIAGNOSTIC_SEVERITY_REMARK`.
pub const IREE_COMPILER_DIAGNOSTIC_SEVERITY_REMARK: c_uint = 3;

/// `void (*)(enum iree_compiler_diagnostic_severity_t, const char *, size_t, void *)`.
pub type DiagnosticCallback = unsafe extern "C" fn(c_uint, *const c_char, usize, *mut c_void);

macro_rules! table {
    ($($name:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)+) => {
        /// The functions of one opened library.
        #[derive(Clone, Copy, Debug)]
        pub struct Api {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,
            )+
        }

        impl Api {
            /// Resolves every function of the table.
            ///
            /// # Errors
            ///
            /// The error names the first symbol that is missing.
            ///
            /// # Safety
            ///
            /// `library` is an IREE compiler library of API version 1, and the table is not used
            /// after it is closed.
            pub unsafe fn resolve(library: &libloading::Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $(
                        // SAFETY: the header declares the symbol with this type.
                        $name: unsafe { *library.get(stringify!($name))? },
                    )+
                })
            }
        }
    };
}

table! {
    ireeCompilerGetAPIVersion: fn() -> c_int;
    ireeCompilerGetRevision: fn() -> *const c_char;
    ireeCompilerGlobalInitialize: fn();
    ireeCompilerSetupGlobalCL: fn(c_int, *mut *const c_char, *const c_char, bool);
    ireeCompilerErrorDestroy: fn(*mut iree_compiler_error_t);
    ireeCompilerErrorGetMessage: fn(*mut iree_compiler_error_t) -> *const c_char;
    ireeCompilerSessionCreate: fn() -> *mut iree_compiler_session_t;
    ireeCompilerSessionDestroy: fn(*mut iree_compiler_session_t);
    ireeCompilerSessionSetFlags: fn(
        *mut iree_compiler_session_t, c_int, *const *const c_char,
    ) -> *mut iree_compiler_error_t;
    ireeCompilerInvocationCreate: fn(*mut iree_compiler_session_t) -> *mut iree_compiler_invocation_t;
    ireeCompilerInvocationDestroy: fn(*mut iree_compiler_invocation_t);
    ireeCompilerInvocationEnableCallbackDiagnostics: fn(
        *mut iree_compiler_invocation_t, c_int, DiagnosticCallback, *mut c_void,
    );
    ireeCompilerInvocationParseSource: fn(
        *mut iree_compiler_invocation_t, *mut iree_compiler_source_t,
    ) -> bool;
    ireeCompilerInvocationPipeline: fn(*mut iree_compiler_invocation_t, c_uint) -> bool;
    ireeCompilerInvocationOutputVMBytecode: fn(
        *mut iree_compiler_invocation_t, *mut iree_compiler_output_t,
    ) -> *mut iree_compiler_error_t;
    ireeCompilerSourceWrapBuffer: fn(
        *mut iree_compiler_session_t, *const c_char, *const c_char, usize, bool,
        *mut *mut iree_compiler_source_t,
    ) -> *mut iree_compiler_error_t;
    ireeCompilerSourceDestroy: fn(*mut iree_compiler_source_t);
    ireeCompilerOutputOpenMembuffer: fn(*mut *mut iree_compiler_output_t) -> *mut iree_compiler_error_t;
    ireeCompilerOutputMapMemory: fn(
        *mut iree_compiler_output_t, *mut *mut c_void, *mut u64,
    ) -> *mut iree_compiler_error_t;
    ireeCompilerOutputDestroy: fn(*mut iree_compiler_output_t);
}
