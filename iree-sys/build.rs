//! Builds IREE's HAL runtime as a static library and generates its bindings.
//!
//! The steps are:
//!
//! - Sources: vendored in the crate `eerie-sys`, found through `cargo metadata`.
//!   `ROTINI_IREE_SOURCE` names another copy (a directory with that crate's `CMakeLists.txt` and
//!   `iree/`).
//! - Native build: CMake (`CMAKE` names the program, 3.26 or newer) and Ninja. The drivers are
//!   local-sync, local-task and hip, and cuda with the cargo feature of that name; the only
//!   executable loader is that for embedded ELF.
//! - HIP headers: `ROTINI_HIP_HEADERS`, else ROCm's, else `.toolchain/hip/include` at the workspace
//!   root, where `scripts/setup` puts them.
//! - CUDA headers: `ROTINI_CUDA_HEADERS`, a directory with `cuda.h`; only with the feature `cuda`.
//! - Bindings: bindgen over `src/wrapper.h`. Static inline functions get C wrappers, compiled with
//!   `cc`.
//! - HIP's structures: bindgen over `src/hip.h`, types only, since the library is opened at run
//!   time.
//! - Internals: `src/internal.c`, the only file that includes headers of IREE's drivers that are
//!   not part of its API.
//!
//! IREE is compiled with CMake's `Release` type whatever Cargo's profile, so that tests and benches
//! run the runtime that is shipped.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// CMake definitions that do not depend on the environment.
const DEFINITIONS: &[(&str, &str)] = &[
    ("IREE_BUILD_BENCHMARKS", "OFF"),
    ("IREE_BUILD_BINDINGS_TFLITE", "OFF"),
    ("IREE_BUILD_BINDINGS_TFLITE_JAVA", "OFF"),
    ("IREE_BUILD_COMPILER", "OFF"),
    ("IREE_BUILD_PYTHON_BINDINGS", "OFF"),
    ("IREE_BUILD_SAMPLES", "OFF"),
    ("IREE_BUILD_TESTS", "OFF"),
    ("IREE_ENABLE_LIBBACKTRACE", "OFF"),
    ("IREE_HAL_DRIVER_DEFAULTS", "OFF"),
    ("IREE_HAL_DRIVER_HIP", "ON"),
    ("IREE_HAL_DRIVER_LOCAL_SYNC", "ON"),
    ("IREE_HAL_DRIVER_LOCAL_TASK", "ON"),
    // The compiler links CPU code as embedded ELF by default: the other loaders would be dead code,
    // and the one for system libraries would let a vmfb write files and `dlopen` them.
    ("IREE_HAL_EXECUTABLE_LOADER_DEFAULTS", "OFF"),
    ("IREE_HAL_EXECUTABLE_LOADER_EMBEDDED_ELF", "ON"),
    ("IREE_HAL_EXECUTABLE_PLUGIN_DEFAULTS", "OFF"),
];

/// Preprocessor flags with which bindgen and the compiler of its wrappers must agree with the
/// archive: the system allocator's control function is a macro that IREE's own build sets, and
/// `NDEBUG` decides on status features and structure layouts.
const MACROS: [&str; 2] = ["-DIREE_ALLOCATOR_SYSTEM_CTL=iree_allocator_libc_ctl", "-DNDEBUG"];

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    for file in ["hip.h", "internal.c", "internal.h", "wrapper.h"] {
        println!("cargo:rerun-if-changed=src/{file}");
    }
    for name in ["CMAKE", "ROCM_PATH", "ROTINI_HIP_HEADERS", "ROTINI_IREE_SOURCE"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let source = iree_source()?;
    let sdks = Sdks::find(&out)?;
    let build = build_runtime(&source, &sdks, &out)?;
    bind(&source, &build, &sdks, &out)
}

/// The directories with headers of GPU vendors.
struct Sdks {
    /// Directory that contains `hip/`.
    hip: PathBuf,
    /// Directory that contains `include/cuda.h`, if the feature `cuda` is enabled.
    cuda: Option<PathBuf>,
    /// Directory of stubs for headers that are included but not used. Searched last, so that a stub
    /// never hides a real header.
    stubs: PathBuf,
}

impl Sdks {
    fn find(out: &Path) -> Result<Self> {
        let stubs = out.join("stubs");
        fs::create_dir_all(&stubs)?;
        let hip = hip_headers()?;
        if !hip.join("hip/hip_fp16.h").is_file() {
            // This header is included by a header that IREE includes. None of its contents are
            // used, and trimmed-down copies of the headers lack it.
            write_stub(&stubs, "hip/hip_fp16.h", "")?;
        }
        let cuda = match env::var_os("CARGO_FEATURE_CUDA") {
            Some(_) => Some(cuda_root(out)?),
            None => None,
        };
        Ok(Sdks { hip, cuda, stubs })
    }

    fn stub_flag(&self) -> String {
        format!("-idirafter{}", self.stubs.display())
    }
}

/// Returns the directory that holds `CMakeLists.txt` and `iree/`.
fn iree_source() -> Result<PathBuf> {
    let source = match env::var_os("ROTINI_IREE_SOURCE") {
        Some(path) => PathBuf::from(path),
        None => {
            // The crate has no `links` key that would pass its path to dependents, so the path is
            // taken from Cargo's metadata. Those need every package of the workspace, but Cargo has
            // only downloaded the ones that are being built: on a new machine the others, which
            // tests need, are downloaded now, so `--offline` is not set. Packages of other
            // platforms are left out.
            let metadata = cargo_metadata::MetadataCommand::new()
                .cargo_path(env::var("CARGO")?)
                .manifest_path(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml"))
                .other_options(["--locked".into(), format!("--filter-platform={}", env::var("HOST")?)])
                .exec()?;
            let package = metadata
                .packages
                .iter()
                .find(|package| package.name.as_str() == "eerie-sys")
                .ok_or("the dependency graph has no `eerie-sys`, which vendors IREE's sources")?;
            package
                .manifest_path
                .parent()
                .ok_or("eerie-sys's manifest has no parent directory")?
                .into()
        }
    };
    if !source.join("iree/runtime/src/iree/hal/api.h").is_file() {
        return Err(format!("{} holds no IREE runtime sources", source.display()).into());
    }
    Ok(source)
}

/// Compiles the runtime; returns CMake's build directory.
fn build_runtime(source: &Path, sdks: &Sdks, out: &Path) -> Result<PathBuf> {
    let mut config = cmake::Config::new(source);
    config
        .profile("Release")
        .generator("Ninja")
        .build_target("eerie_runtime")
        .out_dir(out)
        .define("HIP_API_HEADERS_ROOT", &sdks.hip)
        .cflag(sdks.stub_flag())
        .cxxflag(sdks.stub_flag());
    for (key, value) in DEFINITIONS {
        config.define(key, value);
    }
    if let Some(root) = &sdks.cuda {
        config
            .define("IREE_HAL_DRIVER_CUDA", "ON")
            .env("IREE_CUDA_DEPS_DIR", root)
            // Only the compiler's CUDA target uses libdevice, but CMake insists that the file
            // exists.
            .define("IREE_CUDA_LIBDEVICE_PATH", root.join("include/cuda.h"));
    } else {
        config.define("IREE_HAL_DRIVER_CUDA", "OFF");
    }
    let build = config.build().join("build");
    for dir in ["", "iree/build_tools/third_party/flatcc"] {
        println!("cargo:rustc-link-search=native={}", build.join(dir).display());
    }
    Ok(build)
}

/// Returns a directory with the `hip/hip_runtime_api.h` of HIP 6 or newer.
fn hip_headers() -> Result<PathBuf> {
    let workspace = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("..");
    let candidates = [
        env::var_os("ROTINI_HIP_HEADERS").map(PathBuf::from),
        env::var_os("ROCM_PATH").map(|root| Path::new(&root).join("include")),
        Some("/opt/rocm/include".into()),
        Some(workspace.join(".toolchain/hip/include")),
    ];
    let mut tried = Vec::new();
    for candidate in candidates.into_iter().flatten() {
        // IREE includes this header, which HIP 5 does not have.
        if candidate.join("hip/hip_deprecated.h").is_file() && candidate.join("hip/hip_version.h").is_file() {
            return Ok(candidate);
        }
        tried.push(candidate.display().to_string());
    }
    Err(format!(
        "no HIP headers of version 6 or newer in {}: run scripts/setup, or set ROTINI_HIP_HEADERS to the directory that \
         holds hip/hip_runtime_api.h",
        tried.join(", ")
    )
    .into())
}

/// Returns a directory `ROOT` for IREE, which expects `cuda.h` in `ROOT/include`.
///
/// IREE's NCCL headers include three more of CUDA's headers for a single type, and those include
/// half of the CUDA compiler's headers: stubs suffice.
fn cuda_root(out: &Path) -> Result<PathBuf> {
    println!("cargo:rerun-if-env-changed=ROTINI_CUDA_HEADERS");
    let header = env::var_os("ROTINI_CUDA_HEADERS")
        .map(|dir| Path::new(&dir).join("cuda.h"))
        .filter(|header| header.is_file())
        .ok_or("the feature `cuda` needs ROTINI_CUDA_HEADERS: the directory that holds cuda.h")?;
    let root = out.join("cuda");
    let include = root.join("include");
    write_stub(&include, "cuda.h", &fs::read_to_string(header)?)?;
    write_stub(
        &include,
        "cuda_runtime.h",
        "typedef struct CUstream_st* cudaStream_t;\n",
    )?;
    write_stub(&include, "cuda_fp16.h", "")?;
    write_stub(&include, "cuda_bf16.h", "")?;
    Ok(root)
}

/// Writes a file, unless it has this text already: a new time stamp would make Ninja compile every
/// user of the header again.
fn write_stub(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    if fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(fs::write(path, text)?)
}

/// Writes `runtime.rs` and `hip.rs`, compiles the wrappers of static functions and the internals,
/// and links everything.
fn bind(source: &Path, build: &Path, sdks: &Sdks, out: &Path) -> Result<()> {
    let includes = [
        source.join("iree/runtime/src"),
        // Contains the generated table of VM operations.
        build.join("iree/runtime/src"),
        source.join("iree/third_party/flatcc/include"),
    ];
    let mut flags: Vec<String> = includes.iter().map(|dir| format!("-I{}", dir.display())).collect();
    flags.extend(MACROS.map(String::from));
    if sdks.cuda.is_some() {
        flags.push("-DROTINI_IREE_CUDA".into());
    }

    bindgen::Builder::default()
        .header("src/hip.h")
        .clang_args([format!("-I{}", sdks.hip.display()), sdks.stub_flag()])
        .allowlist_type("hipDeviceProp_tR0600")
        .derive_default(true)
        .layout_tests(false)
        .generate()?
        .write_to_file(out.join("hip.rs"))?;

    let wrappers = out.join("wrappers.c");
    bindgen::Builder::default()
        .header("src/wrapper.h")
        .clang_args(&flags)
        .allowlist_function("iree_(allocator_(free|system)|status_(allocate|free|to_string))")
        .allowlist_function("iree_arena_block_pool_(deinitialize|initialize)")
        .allowlist_function("iree_async_(frontier_tracker|proactor_pool)_(create|options_default|release)")
        .allowlist_function("iree_async_semaphore_acquire_timepoint")
        .allowlist_function("iree_hal_(cuda|hip)_(device_params|driver_options)_initialize")
        .allowlist_function("iree_hal_(cuda|hip)_driver_create")
        .allowlist_function("iree_hal_(sync|task)_device_(create|params_initialize)")
        .allowlist_function("iree_hal_allocator_(allocate_buffer|create_heap|import_buffer|release)")
        .allowlist_function("iree_hal_buffer_(allocation_placement|byte_length|map_read|map_write|move_ref|release|retain)")
        .allowlist_function("iree_hal_buffer_release_callback_null")
        .allowlist_function("iree_hal_buffer_view_(create|move_ref|release)")
        .allowlist_function("iree_hal_command_buffer_initialize")
        .allowlist_function("iree_hal_deferred_command_buffer_(apply|create)")
        .allowlist_function(
            "iree_hal_device_(allocator|create_params_default|group_create_from_device|group_release|release)",
        )
        .allowlist_function("iree_hal_driver_(create_device_by_ordinal|release)")
        .allowlist_function("iree_hal_embedded_elf_loader_create")
        .allowlist_function("iree_hal_executable_loader_release")
        .allowlist_function("iree_hal_fence_(create_at|release|retain_ref)")
        .allowlist_function("iree_hal_module_(create|debug_sink_null|device_policy_default|register_all_types)")
        .allowlist_function("iree_hal_resource_initialize")
        .allowlist_function("iree_hal_semaphore_(create|list_signal|query|release|retain)")
        .allowlist_function("iree_task_executor_(create|options_initialize|release)")
        .allowlist_function("iree_task_topology_(deinitialize|initialize_from_group_count)")
        .allowlist_function("iree_vm_bytecode_module_create")
        .allowlist_function("iree_vm_context_(create_with_modules|release)")
        .allowlist_function("iree_vm_function_(lookup_attr_by_name|signature)")
        .allowlist_function("iree_vm_instance_(create|release)")
        .allowlist_function("iree_vm_invoke")
        .allowlist_function("iree_vm_list_(create|release|resize|set_ref_move|set_value)")
        .allowlist_function("iree_vm_make_undefined_type_def")
        .allowlist_function("iree_vm_module_(lookup_function_by_name|release)")
        .allowlist_function("iree_vm_value_make_(i32|i64)")
        .allowlist_type(
            "iree_(hal_element_types|hal_encoding_types|hal_memory_access_bits|hal_memory_type_bits|status_code).*",
        )
        .allowlist_function("rotini_(hip|cuda)_(address|kernel)")
        .allowlist_type("iree_hal_(command_buffer|device)_vtable_t")
        .allowlist_type("iree_hal_(buffer_usage_bits|command_(buffer_mode|category)_bits|dispatch_flag_bits|external_buffer_type).*")
        .allowlist_type("iree_vm_(function_linkage|invocation_flag_bits|context_flag_bits|bytecode_module_flags).*")
        .allowlist_var("IREE_(HAL_HEAP_BUFFER_ALIGNMENT|TASK_TOPOLOGY_MAX_GROUP_COUNT|VM_TYPE_CAPACITY_DEFAULT)")
        .derive_default(true)
        .layout_tests(false)
        .merge_extern_blocks(true)
        .prepend_enum_name(false)
        .wrap_static_fns(true)
        .wrap_static_fns_path(&wrappers)
        .wrap_unsafe_ops(true)
        .generate()?
        .write_to_file(out.join("runtime.rs"))?;

    cc::Build::new()
        .file(&wrappers)
        .include(env::var("CARGO_MANIFEST_DIR")?)
        .include("src")
        .flags(&flags)
        .warnings(false)
        .compile("rotini_iree_wrappers");
    let mut internal = cc::Build::new();
    internal
        .file("src/internal.c")
        .include(&sdks.hip)
        .flags(&flags)
        .flag(sdks.stub_flag())
        .warnings(false);
    if let Some(root) = &sdks.cuda {
        internal.include(root.join("include"));
    }
    internal.compile("rotini_iree_internal");
    // The order matters, since the linker resolves from left to right: the wrappers use the
    // runtime, and the runtime uses flatcc.
    println!("cargo:rustc-link-lib=static=eerie_runtime");
    println!("cargo:rustc-link-lib=static=flatcc_parsing");
    println!("cargo:rustc-link-lib=m");
    Ok(())
}
