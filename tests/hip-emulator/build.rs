//! Generates the types and prototypes of HIP's API from its headers, and the table of its errors'
//! names.
//!
//! The headers are found as `iree-sys` finds them: `ROTINI_HIP_HEADERS`, else ROCm's, else
//! `.toolchain/hip/include` at the workspace root.

use bindgen::callbacks::{EnumVariantCustomBehavior, EnumVariantValue, ParseCallbacks};
use std::cell::RefCell;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/hip.h");
    for name in ["ROTINI_HIP_HEADERS", "ROCM_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    // IREE closes the library when its driver is released, while threads of streams still run in it
    // and threads of the host still have counters to give back.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Once it is loaded by its path, IREE finds it by its name. Copies loaded by theirs stay
    // libraries of their own.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libamdhip64.so");

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let errors = Rc::new(RefCell::new(Vec::new()));
    bindgen::Builder::default()
        .header("src/hip.h")
        .clang_arg(format!("-I{}", headers()?.display()))
        .allowlist_type("(hip|HIP).*")
        .allowlist_function("hip.*")
        .allowlist_var("(hip|HIP).*")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .layout_tests(false)
        .derive_default(true)
        .merge_extern_blocks(true)
        .wrap_unsafe_ops(true)
        .parse_callbacks(Box::new(ErrorNames(Rc::clone(&errors))))
        .generate()?
        .write_to_file(out.join("hip.rs"))?;

    let mut table = "/// The errors of HIP by value, with C strings of their names.\npub(crate) const ERRORS: &[(u32, &std::ffi::CStr)] = &[\n".to_owned();
    for (name, value) in errors.borrow().iter() {
        writeln!(table, "    ({value}, c\"{name}\"),")?;
    }
    table.push_str("];\n");
    fs::write(out.join("errors.rs"), table)?;
    Ok(())
}

/// Notes the names and values of `hipError_t` as bindgen meets them.
#[derive(Debug)]
struct ErrorNames(Rc<RefCell<Vec<(String, u64)>>>);

impl ParseCallbacks for ErrorNames {
    fn enum_variant_behavior(
        &self,
        name: Option<&str>,
        variant: &str,
        value: EnumVariantValue,
    ) -> Option<EnumVariantCustomBehavior> {
        if name.is_some_and(|name| name.contains("hipError_t")) {
            let value = match value {
                EnumVariantValue::Unsigned(value) => value,
                EnumVariantValue::Signed(value) => u64::try_from(value).ok()?,
                EnumVariantValue::Boolean(_) => return None,
            };
            self.0.borrow_mut().push((variant.to_owned(), value));
        }
        None
    }
}

/// A directory with `hip/hip_runtime_api.h` of HIP 6 or newer.
fn headers() -> Result<PathBuf, Box<dyn Error>> {
    let workspace = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let candidates = [
        env::var_os("ROTINI_HIP_HEADERS").map(PathBuf::from),
        env::var_os("ROCM_PATH").map(|root| Path::new(&root).join("include")),
        Some("/opt/rocm/include".into()),
        Some(workspace.join(".toolchain/hip/include")),
    ];
    let tried: Vec<PathBuf> = candidates.into_iter().flatten().collect();
    tried
        .iter()
        .find(|path| path.join("hip/hip_deprecated.h").is_file())
        .cloned()
        .ok_or_else(|| {
            format!("no HIP headers: tried {tried:?}; scripts/setup fetches them, ROTINI_HIP_HEADERS names others")
                .into()
        })
}
