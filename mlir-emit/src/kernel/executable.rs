//! Kernels as IREE executables: the text around a kernel's body, and the attributes of a dispatch.

use super::code::{Buffer, Code, Ssa};
use crate::EmitError;
use crate::mlir::{Attribute, Context, body_text};
use std::fmt::{self, Write as _};

/// Writes the body of a kernel with these buffers, the operands before the results, and returns the
/// number of workgroups. The lane and the workgroup are the kernel's other arguments.
pub(super) type Body<'c> = Box<dyn FnOnce(&Code<'c>, &[Ssa<'c>]) -> i64 + 'c>;

/// Returns a body that `write` writes, of a kernel into which no operation is fused.
pub(super) fn body<'c, K: Clone + 'c>(kernel: &K, write: fn(&K, &Code<'c>) -> i64) -> Body<'c> {
    let kernel = kernel.clone();
    Box::new(move |code, _| write(&kernel, code))
}

/// A kernel as an IREE executable. The text is written only when a module needs it: plans,
/// workspace bounds and lists of candidates do not.
pub(crate) struct Executable<'c> {
    /// The kernel's name, which is unique within a module.
    pub(super) name: String,
    text: Box<dyn FnOnce() -> Result<String, EmitError> + 'c>,
}

impl Executable<'_> {
    /// Writes the text of the executable.
    ///
    /// # Errors
    ///
    /// [`EmitError::Internal`] if the body is invalid.
    pub(crate) fn text(self) -> Result<String, EmitError> {
        (self.text)()
    }
}

impl fmt::Debug for Executable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The lanes of a workgroup.
#[derive(Clone, Copy)]
pub(super) enum WorkgroupSize {
    /// One thread, on CPUs.
    Single,
    /// On GPUs, in subgroups of 64 lanes.
    Wave64(u64),
    /// On GPUs, in subgroups of any size.
    AnyWave(u64),
}

/// A kernel into which other operations are fused, with the names for its dispatch.
pub(super) struct Fusable<'c> {
    pub(super) symbol: String,
    pub(super) name: String,
    pub(super) lanes: WorkgroupSize,
    /// The names of the operations that are fused into the kernel.
    pub(super) fused: Vec<String>,
    pub(super) body: Body<'c>,
}

/// Returns the attributes of the dispatch of a kernel.
pub(super) fn dispatched(symbol: &str, name: &str, operands: usize) -> Vec<(&'static str, Attribute)> {
    let operands = i32::try_from(operands).expect("too many operands");
    vec![
        ("entry_points", Attribute::text(&format!("[@{symbol}::@{name}]"))),
        ("operandSegmentSizes", Attribute::i32_array(&[0, operands, 0, 0])),
    ]
}

/// Returns a kernel as an IREE executable. The first `read` buffers are read only.
pub(super) fn executable<'c>(
    context: &'c Context,
    (symbol, name, lanes): (&str, &str, WorkgroupSize),
    (buffers, read): (Vec<Buffer<'c>>, usize),
    body: Body<'c>,
) -> Executable<'c> {
    let (symbol, name) = (symbol.to_owned(), name.to_owned());
    Executable {
        name: name.clone(),
        text: Box::new(move || text(context, (&symbol, &name, lanes), (&buffers, read), body)),
    }
}

fn text<'c>(
    context: &'c Context,
    (symbol, name, lanes): (&str, &str, WorkgroupSize),
    (buffers, read): (&[Buffer<'c>], usize),
    body: Body<'c>,
) -> Result<String, EmitError> {
    let code = Code::kernel(context, buffers);
    let values: Vec<_> = (0..buffers.len()).map(|number| code.buffer(number)).collect();
    let workgroups = body(&code, &values);
    let block = code.finish()?;
    let binding = |number: usize| {
        let flags = if number < read { ", ReadOnly" } else { "" };
        format!("#hal.pipeline.binding<storage_buffer{flags}>")
    };
    let bindings: Vec<String> = (0..buffers.len()).map(binding).collect();
    let on_gpu = |lanes: u64, subgroup: &str| {
        let pipeline = "#iree_gpu.pipeline<BaseLowering>";
        let translation = format!("{pipeline} workgroup_size = [{lanes}, 1, 1]{subgroup}");
        (translation, "gpu.thread_id x")
    };
    let (translation, lane) = match lanes {
        WorkgroupSize::Single => ("#iree_cpu.pipeline<Default>".to_owned(), "arith.constant 0 : index"),
        WorkgroupSize::Wave64(lanes) => on_gpu(lanes, " subgroup_size = 64"),
        WorkgroupSize::AnyWave(lanes) => on_gpu(lanes, ""),
    };
    let layout = format!("#hal.pipeline.layout<bindings = [{}]>", bindings.join(", "));
    let mut text = format!(
        "  hal.executable.source private @{symbol} {{\n    hal.executable.export public @{name} ordinal(0) layout({layout}) count(%device: \
         !hal.device) -> (index, index, index) {{\n      %x = arith.constant {} : index\n      %one = arith.constant 1 : index\n      \
         hal.return %x, %one, %one : index, index, index\n    }}\n    builtin.module {{\n      func.func @{name}() attributes {{\
         translation_info = #iree_codegen.translation_info<pipeline = {translation}>}} {{\n        %zero = arith.constant 0 : \
         index\n        %0 = {lane}\n        %1 = hal.interface.workgroup.id[0] : index\n",
        workgroups,
    );
    for (number, buffer) in buffers.iter().enumerate() {
        let flags = if number < read { " flags(ReadOnly)" } else { "" };
        writeln!(
            text,
            "        %{} = hal.interface.binding.subspan layout({layout}) binding({number}) alignment(64) offset(%zero){flags} : {buffer}",
            number + 2,
        )?;
    }
    text.push_str(&body_text(context, &block, 4));
    text.push_str("      }\n    }\n  }");
    Ok(text)
}
