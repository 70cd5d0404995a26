//! The function that the runtime calls, around the computation on tensors.
//!
//! It takes `!hal.buffer_view`s for inputs and outputs, the caller's workspace and two fences that may be null:
//!
//! ```text
//! @main(inputs…, outputs…, workspace: !hal.buffer, wait: !hal.fence, signal: !hal.fence)
//! ```
//!
//! The order of the operations in it matters: `hal.tensor.alias` before `hal.tensor.transients` computes straight into the caller's
//! buffers; the other way round the results are allocated and copied. melior does not know IREE's dialects, so this part is text.

use crate::EmitError;
use rotini_graph::{DataType, SlotRole};
use std::fmt::Write as _;

/// The exported function's name.
pub const ENTRY_POINT: &str = "main";

/// One buffer of the compiled function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Read or written.
    pub role: SlotRole,
    /// Element type.
    pub dtype: DataType,
    /// Extents in memory order; the whole span in elements if it has gaps.
    pub shape: Vec<i64>,
    /// Whether the elements fill their span. If not, an output's gaps are read and written back.
    pub packed: bool,
}

impl Argument {
    /// Size of the buffer in bytes; `None` if it overflows or elements share bytes.
    #[must_use]
    pub fn byte_length(&self) -> Option<u64> {
        let mut bytes = self.dtype.bytes()?;
        for &extent in &self.shape {
            bytes = bytes.checked_mul(u64::try_from(extent).ok()?)?;
        }
        Some(bytes)
    }
}

/// The buffers of the compiled function, in the order of the graph's slots. Workspace and fences follow them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// All inputs, then all outputs.
    pub arguments: Vec<Argument>,
}

impl Signature {
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Argument> {
        self.arguments
            .iter()
            .filter(|argument| argument.role == SlotRole::Input)
    }

    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Argument> {
        self.arguments
            .iter()
            .filter(|argument| argument.role == SlotRole::Output)
    }
}

/// The module's text: the computation, and the shell that calls it.
pub(crate) fn module(computation: &str, signature: &Signature) -> Result<String, EmitError> {
    let mut text = String::from("module @rotini {\n");
    text.push_str(computation);
    text.push('\n');
    write_shell(&mut text, signature).map_err(|_| EmitError::Internal("text that cannot be written"))?;
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
    for ((index, (ty, _)), result) in outputs.iter().enumerate().zip(&results) {
        writeln!(
            text,
            "    %a{index} = hal.tensor.alias wait(%wait) => {result} : {ty} to %out{index} : !hal.buffer_view"
        )?;
        writeln!(
            text,
            "    %t{index} = hal.tensor.transients %a{index} : {ty} from %workspace : !hal.buffer"
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
    text.push_str(match argument.dtype {
        DataType::U8 | DataType::I8 => "i8",
        DataType::I32 => "i32",
        DataType::I64 => "i64",
        DataType::F64 => "f64",
        DataType::F16 => "f16",
        DataType::Bf16 => "bf16",
        _ => "f32",
    });
    text.push('>');
    text
}
