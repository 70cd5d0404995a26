//! The exported function that the runtime calls, around the computation on tensors.
//!
//! It takes `!hal.buffer_view`s for inputs and outputs, integers for scalars, the caller's
//! workspace and two fences, which may be null:
//!
//! ```text
//! @main(inputs…, scalars…, outputs…, workspace: !hal.buffer, wait: !hal.fence, signal: !hal.fence)
//! ```
//!
//! A scalar is passed as its bits: an `i64` if it has 8 bytes, else the low bits of an `i32`. The
//! computation converts it inside its loops, so the bits reach the kernels unchanged, and a GPU's
//! launch plan can pass other values.
//!
//! The order of the operations matters: with `hal.tensor.alias` before `hal.tensor.transients`,
//! results are computed directly in the caller's buffers; in the other order, they are allocated
//! and copied. The shell has the same form for every graph, so it is written as plain text.

use crate::EmitError;
use crate::ir::Emitter;
use crate::mlir::Type;
use crate::packing::packed_bytes;
use crate::value::extents;
use rotini_graph::{DataType, Layout, NormalGraph, SlotRole};
use std::fmt::Write as _;

/// The exported function's name.
pub const ENTRY_POINT: &str = "main";

/// One buffer or scalar of the compiled function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Whether it is read, passed by value, or written.
    pub role: SlotRole,
    /// Element type.
    pub dtype: DataType,
    /// Extents in memory order; the whole span in elements if it has gaps; empty for a scalar.
    pub shape: Vec<i64>,
    /// Whether the elements fill their span. If not, an output is updated in place: its gaps are
    /// neither read nor written.
    pub packed: bool,
}

impl Argument {
    /// Returns the size of the buffer in bytes; `None` if it overflows or elements share bytes.
    #[must_use]
    pub fn byte_length(&self) -> Option<u64> {
        let mut bytes = self.dtype.bytes()?;
        for &extent in &self.shape {
            bytes = bytes.checked_mul(u64::try_from(extent).ok()?)?;
        }
        Some(bytes)
    }
}

/// The arguments of the compiled function, in the order of the graph's slots. Workspace and fences
/// follow them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// All inputs, then all scalars, then all outputs.
    pub arguments: Vec<Argument>,
}

impl Signature {
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Argument> {
        self.of(SlotRole::Input)
    }

    pub(crate) fn scalars(&self) -> impl Iterator<Item = &Argument> {
        self.of(SlotRole::Scalar)
    }

    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Argument> {
        self.of(SlotRole::Output)
    }

    fn of(&self, role: SlotRole) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(move |argument| argument.role == role)
    }
}

/// Returns the module's text: the computation, the functions that it calls, and the shell that
/// calls it.
pub(crate) fn module(functions: &[String], signature: &Signature) -> Result<String, EmitError> {
    let mut text = String::from("module @rotini {\n");
    for function in functions {
        text.push_str(function);
        text.push('\n');
    }
    write_shell(&mut text, signature)?;
    text.push_str("}\n");
    Ok(text)
}

fn write_shell(text: &mut String, signature: &Signature) -> Result<(), std::fmt::Error> {
    let inputs: Vec<String> = signature.inputs().map(tensor_type).collect();
    let outputs: Vec<(String, bool)> = signature
        .outputs()
        .map(|argument| (tensor_type(argument), argument.packed))
        .collect();

    write!(text, "  util.func public @main(")?;
    for index in 0..inputs.len() {
        write!(text, "%in{index}: !hal.buffer_view, ")?;
    }
    for (index, scalar) in signature.scalars().enumerate() {
        write!(
            text,
            "%v{index}: {}, ",
            if scalar.dtype.bits() == 64 { "i64" } else { "i32" }
        )?;
    }
    for index in 0..outputs.len() {
        write!(text, "%out{index}: !hal.buffer_view, ")?;
    }
    writeln!(
        text,
        "%workspace: !hal.buffer, %wait: !hal.fence, %signal: !hal.fence) attributes {{iree.abi.stub}} {{"
    )?;

    let mut operands = Vec::new();
    let mut operand_types = Vec::new();
    for (index, ty) in inputs.iter().enumerate() {
        writeln!(
            text,
            "    %i{index} = hal.tensor.import wait(%wait) => %in{index} : !hal.buffer_view -> {ty}"
        )?;
        operands.push(format!("%i{index}"));
        operand_types.push(ty.clone());
    }
    for (index, scalar) in signature.scalars().enumerate() {
        let ty = scalar.dtype.storage().mlir();
        let bits = scalar.dtype.bits();
        let mut name = format!("%v{index}");
        if bits < 32 {
            writeln!(text, "    %n{index} = arith.trunci {name} : i32 to i{bits}")?;
            name = format!("%n{index}");
        }
        if scalar.dtype.is_float() {
            writeln!(text, "    %s{index} = arith.bitcast {name} : i{bits} to {ty}")?;
            name = format!("%s{index}");
        }
        operands.push(name);
        operand_types.push(ty.to_owned());
    }
    for (index, (ty, _)) in outputs.iter().enumerate().filter(|(_, (_, packed))| !packed) {
        writeln!(
            text,
            "    %old{index} = hal.tensor.import wait(%wait) => %out{index} : !hal.buffer_view -> {ty}"
        )?;
        operands.push(format!("%old{index}"));
        operand_types.push(ty.clone());
    }

    let result_types = outputs.iter().map(|(ty, _)| ty.as_str()).collect::<Vec<_>>().join(", ");
    let (count, results): (String, Vec<String>) = match outputs.len() {
        1 => (String::new(), vec!["%r".to_owned()]),
        many => (
            format!(":{many}"),
            (0..many).map(|index| format!("%r#{index}")).collect(),
        ),
    };
    writeln!(
        text,
        "    %r{count} = func.call @compute({}) : ({}) -> ({result_types})",
        operands.join(", "),
        operand_types.join(", ")
    )?;
    for ((index, (ty, packed)), result) in outputs.iter().enumerate().zip(&results) {
        // An output with gaps is imported instead, and updated in place.
        let mut stored = result.clone();
        if *packed {
            stored = format!("%a{index}");
            writeln!(
                text,
                "    {stored} = hal.tensor.alias wait(%wait) => {result} : {ty} to %out{index} : !hal.buffer_view"
            )?;
        }
        writeln!(
            text,
            "    %t{index} = hal.tensor.transients {stored} : {ty} from %workspace : !hal.buffer"
        )?;
    }
    let stored = (0..outputs.len())
        .map(|index| format!("%t{index}"))
        .collect::<Vec<_>>()
        .join(", ");
    writeln!(
        text,
        "    %b{count} = hal.tensor.barrier join({stored} : {result_types}) => %signal : !hal.fence"
    )?;
    writeln!(text, "    util.return")?;
    writeln!(text, "  }}")
}

fn tensor_type(argument: &Argument) -> String {
    let mut text = String::from("tensor<");
    for extent in &argument.shape {
        let _ = write!(text, "{extent}x");
    }
    text.push_str(argument.dtype.storage().mlir());
    text.push('>');
    text
}

/// Returns the arguments of the compiled function, which depend only on the graph.
///
/// # Errors
///
/// If a span overflows, which validation rules out.
pub fn signature(graph: &NormalGraph) -> Result<Signature, EmitError> {
    let mut arguments = Vec::new();
    for (_, tensor, role) in graph.slots() {
        if role == SlotRole::Scalar {
            arguments.push(Argument {
                role,
                dtype: tensor.dtype,
                shape: Vec::new(),
                packed: true,
            });
            continue;
        }
        let (shape, packed) = match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } => (extents(&tensor.dims, &order), true),
            Layout::Strided => {
                let span = rotini_graph::element_span(&tensor.dims, &tensor.strides);
                (vec![span.ok_or(EmitError::Internal("a span that overflows"))?], false)
            }
        };
        let (dtype, shape) = match tensor.dtype {
            dtype if dtype.is_packed() => {
                let bytes = shape
                    .iter()
                    .try_fold(1_i64, |count, &extent| count.checked_mul(extent))
                    .and_then(|count| packed_bytes(count, dtype));
                (
                    DataType::U8,
                    vec![bytes.ok_or(EmitError::Internal("a span that overflows"))?],
                )
            }
            dtype if dtype.is_code() => (DataType::U8, shape),
            dtype => (dtype, shape),
        };
        arguments.push(Argument {
            role,
            dtype,
            shape,
            packed,
        });
    }
    Ok(Signature { arguments })
}

/// Returns the types of the lowered function: its arguments and its results.
pub(crate) fn function_types<'c>(at: &Emitter<'c>, signature: &Signature) -> (Vec<Type<'c>>, Vec<Type<'c>>) {
    let of = |arguments: &[&Argument]| {
        arguments
            .iter()
            .map(|argument| at.tensor_type(&argument.shape, argument.dtype))
            .collect::<Vec<_>>()
    };
    let read: Vec<&Argument> = signature.inputs().collect();
    let kept: Vec<&Argument> = signature.outputs().filter(|argument| !argument.packed).collect();
    let written: Vec<&Argument> = signature.outputs().collect();
    let mut arguments = of(&read);
    for scalar in signature.scalars() {
        arguments.push(at.element_type(scalar.dtype));
    }
    arguments.extend(of(&kept));
    (arguments, of(&written))
}
