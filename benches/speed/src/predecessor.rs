//! The form of rotini's predecessor, Fusilli (iree-org/fusilli): a graph in the torch dialect,
//! entirely in the type of its buffers, compiled by the same compiler with Fusilli's flags, and
//! executed by IREE's own runtime on the emulated MI300X.
//!
//! The form follows Fusilli's files of expected text (`tests/lit`): tensors are arguments in memory
//! order; each node permutes its operands to logical order, and its result back. Fusilli's flag
//! `--iree-torch-externalize-transients` is left out, so that the caller need not provide memory;
//! it changes no kernel.

use anyhow::{Context as _, Result, bail, ensure};
use rotini_graph::{ConvGeometry, ConvMode, DataType, Graph, Op, PointwiseMode, TensorId, TensorKind};
use rotini_inspect::emulate::{Launch, read};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Fusilli's flags for AMD GPUs (`include/fusilli/backend/backend.h`).
const FLAGS: [&str; 10] = [
    "--iree-hal-target-backends=rocm",
    "--iree-rocm-target=mi300x",
    "--iree-opt-level=O3",
    "--iree-preprocessing-pass-pipeline=builtin.module(iree-preprocessing-backward-data-conv-pipeline)",
    "--iree-flow-enable-pad-handling",
    "--iree-global-opt-propagate-transposes-through-conv",
    "--iree-global-opt-enable-sink-transpose-through-pad",
    "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops",
    "--iree-dispatch-creation-enable-aggressive-reshape-movement",
    "--iree-dispatch-creation-enable-split-reduction",
];

/// IREE's programs, and the directories that they use.
pub(crate) struct Tools {
    pub(crate) compile: PathBuf,
    pub(crate) run: PathBuf,
    /// The directory of the emulator's library.
    pub(crate) emulator: PathBuf,
    /// The directory of temporary files.
    pub(crate) scratch: PathBuf,
}

impl Tools {
    /// Returns the launches of a graph in the predecessor's form. The environment determines how
    /// they are sampled; only `HIPEMU_REPORT` is set here.
    pub(crate) fn launches(&self, graph: &Graph) -> Result<Vec<Launch>> {
        let form = Form::of(graph)?;
        let [source, module, reports] = ["in.mlir", "out.vmfb", "reports"].map(|name| self.scratch.join(name));
        fs::write(&source, &form.text)?;
        finished(
            Command::new(&self.compile)
                .arg(&source)
                .args(FLAGS)
                .arg("-o")
                .arg(&module),
        )?;
        if reports.exists() {
            fs::remove_file(&reports)?;
        }
        let mut run = Command::new(&self.run);
        run.arg(format!("--module={}", module.display()))
            .args(["--device=hip", "--function=main"])
            .arg(format!("--hip_dylib_path={}", self.emulator.display()))
            .args(form.arguments.iter().map(|shape| format!("--input={shape}")))
            .env("HIPEMU_REPORT", &reports);
        finished(&mut run)?;
        Ok(read(&fs::read_to_string(&reports)?)?)
    }
}

/// Runs a program to completion. If it fails, the error contains its first error message.
fn finished(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("{command:?} does not start"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| line.contains("error")).unwrap_or_default();
    ensure!(output.status.success(), "{}: {first}", output.status);
    Ok(())
}

/// A graph in the torch dialect.
struct Form {
    text: String,
    /// The types of the arguments, as `iree-run-module` spells them.
    arguments: Vec<String>,
}

impl Form {
    fn of(graph: &Graph) -> Result<Self> {
        let is_made = |id: usize| {
            graph
                .nodes
                .iter()
                .any(|node| writes(&node.op).is_some_and(|made| made.index() == id))
        };
        let first = graph.tensors.first().context("a graph without tensors")?;
        let mut writer = Writer {
            graph,
            element: element(first.dtype)?,
            text: String::new(),
            values: 0,
        };
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        for made in [true, false] {
            for (id, tensor) in graph.tensors.iter().enumerate() {
                if tensor.kind != TensorKind::Buffer || is_made(id) != made {
                    continue;
                }
                let (dims, element) = (writer.stored(id)?, element(tensor.dtype)?);
                let (name, class) = if made { ("out", "tensor") } else { ("t", "vtensor") };
                parameters.push(format!("%{name}{id}: {}", spelled(class, &dims, element)));
                let extents: Vec<String> = dims.iter().map(i64::to_string).collect();
                arguments.push(format!("{}x{element}", extents.join("x")));
            }
        }
        for node in &graph.nodes {
            writer.node(&node.op)?;
        }
        for (id, tensor) in graph.tensors.iter().enumerate() {
            if tensor.kind == TensorKind::Buffer && is_made(id) {
                let (dims, element) = (writer.stored(id)?, element(tensor.dtype)?);
                writer.line(&format!(
                    "torch.overwrite.tensor.contents %t{id} overwrites %out{id} : {}, {}",
                    spelled("vtensor", &dims, element),
                    spelled("tensor", &dims, element)
                ));
            }
        }
        let text = format!(
            "func.func @main({}) attributes {{torch.assume_strict_symbolic_shapes}} {{\n{}return\n}}\n",
            parameters.join(", "),
            writer.text
        );
        Ok(Form { text, arguments })
    }
}

/// Returns the tensor that a node of a supported operation writes.
fn writes(op: &Op) -> Option<TensorId> {
    match op {
        Op::ConvFprop(op) => Some(op.y),
        Op::ConvDgrad(op) => Some(op.dx),
        Op::ConvWgrad(op) => Some(op.dw),
        Op::Pointwise(op) => Some(op.out_0),
        _ => None,
    }
}

fn element(dtype: DataType) -> Result<&'static str> {
    Ok(match dtype {
        DataType::F16 => "f16",
        DataType::Bf16 => "bf16",
        DataType::F32 => "f32",
        other => bail!("no form for {other}"),
    })
}

/// Returns PyTorch's number of an element type.
fn number(element: &str) -> i64 {
    match element {
        "f16" => 5,
        "bf16" => 15,
        _ => 6,
    }
}

fn spelled(class: &str, dims: &[i64], element: &str) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("!torch.{class}<[{}],{element}>", dims.join(","))
}

struct Writer<'g> {
    graph: &'g Graph,
    /// Element type of all tensors, which is that of the first tensor: this form has no wider type
    /// between nodes.
    element: &'static str,
    text: String,
    values: usize,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{text}");
    }

    fn new_value(&mut self) -> String {
        self.values += 1;
        format!("%v{}", self.values)
    }

    /// Adds a value defined by an operation given as text.
    fn value(&mut self, operation: &str) -> String {
        let value = self.new_value();
        self.line(&format!("{value} = {operation}"));
        value
    }

    fn list(&mut self, kind: &str, constants: &[String]) -> String {
        let items: Vec<String> = constants
            .iter()
            .map(|constant| self.value(&format!("torch.constant.{kind} {constant}")))
            .collect();
        let types = vec![format!("!torch.{kind}"); items.len()];
        self.value(&format!(
            "torch.prim.ListConstruct {} : ({}) -> !torch.list<{kind}>",
            items.join(", "),
            types.join(", ")
        ))
    }

    fn numbers(&mut self, numbers: &[i64]) -> String {
        self.list("int", &numbers.iter().map(i64::to_string).collect::<Vec<_>>())
    }

    /// Returns a tensor's axes in memory order.
    fn order(&self, id: usize) -> Result<Vec<usize>> {
        let tensor = self.graph.tensors.get(id).context("a tensor that is not there")?;
        let mut order: Vec<usize> = (0..tensor.dims.len()).collect();
        // If at most one axis has more than one element, the memory order is that of the dims.
        if tensor.dims.iter().filter(|&&extent| extent > 1).count() > 1 {
            order.sort_by_key(|&axis| std::cmp::Reverse(tensor.strides.get(axis).copied()));
        }
        Ok(order)
    }

    fn dims(&self, id: usize) -> Result<&[i64]> {
        Ok(&self.graph.tensors.get(id).context("a tensor that is not there")?.dims)
    }

    fn stored(&self, id: usize) -> Result<Vec<i64>> {
        let (order, dims) = (self.order(id)?, self.dims(id)?);
        Ok(order.iter().filter_map(|&axis| dims.get(axis).copied()).collect())
    }

    fn logical_type(&self, id: usize) -> Result<String> {
        Ok(spelled("vtensor", self.dims(id)?, self.element))
    }

    fn permute(&mut self, (made, value): (&str, &str), by: &[usize], from: &[i64]) -> Result<()> {
        let to: Vec<i64> = by.iter().filter_map(|&axis| from.get(axis).copied()).collect();
        let places: Vec<i64> = by.iter().map(|&axis| i64::try_from(axis)).collect::<Result<_, _>>()?;
        let list = self.numbers(&places);
        let [from, to] = [from, &to].map(|dims| spelled("vtensor", dims, self.element));
        self.line(&format!(
            "{made} = torch.aten.permute {value}, {list} : {from}, !torch.list<int> -> {to}"
        ));
        Ok(())
    }

    /// Returns an operand in logical order.
    fn operand(&mut self, id: TensorId) -> Result<String> {
        let (order, stored) = (self.order(id.index())?, self.stored(id.index())?);
        let mut back = vec![0; order.len()];
        for (position, &axis) in order.iter().enumerate() {
            if let Some(slot) = back.get_mut(axis) {
                *slot = position;
            }
        }
        let logical = self.new_value();
        self.permute((&logical, &format!("%t{}", id.index())), &back, &stored)?;
        Ok(logical)
    }

    /// Defines a tensor by a result, permuted to memory order.
    fn define(&mut self, id: TensorId, logical: &str) -> Result<()> {
        let (order, dims) = (self.order(id.index())?, self.dims(id.index())?.to_vec());
        self.permute((&format!("%t{}", id.index()), logical), &order, &dims)
    }

    fn node(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::ConvFprop(op) => {
                self.one_group(op.x, op.w)?;
                let [x, w] = [self.operand(op.x)?, self.operand(op.w)?];
                let [none, stride, padding, dilation, transposed, output, groups] = self.geometry(&op.geometry)?;
                let types = [op.x, op.w, op.y].map(|id| self.logical_type(id.index()));
                let [x_type, w_type, y_type] = types;
                let y = self.value(&format!(
                    "torch.aten.convolution {x}, {w}, {none}, {stride}, {padding}, {dilation}, {transposed}, {output}, {groups} : {}, {}, \
                     !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int -> {}",
                    x_type?, w_type?, y_type?
                ));
                self.define(op.y, &y)
            }
            Op::ConvDgrad(op) => self.backward([op.dy, op.dx, op.w], 0, &op.geometry),
            Op::ConvWgrad(op) => self.backward([op.dy, op.x, op.dw], 1, &op.geometry),
            Op::Pointwise(op) if op.mode == PointwiseMode::Add => {
                let second = op.in_1.context("a sum of one operand")?;
                let [a, b] = [self.operand(op.in_0)?, self.operand(second)?];
                let one = self.value("torch.constant.int 1");
                let types = [op.in_0, second, op.out_0].map(|id| self.logical_type(id.index()));
                let [a_type, b_type, out] = types;
                let sum = self.value(&format!(
                    "torch.aten.add.Tensor {a}, {b}, {one} : {}, {}, !torch.int -> {}",
                    a_type?, b_type?, out?
                ));
                self.define(op.out_0, &sum)
            }
            Op::Pointwise(op) if op.mode == PointwiseMode::ReluFwd => {
                let x = self.operand(op.in_0)?;
                let (of, to) = (
                    self.logical_type(op.in_0.index())?,
                    self.logical_type(op.out_0.index())?,
                );
                let y = self.value(&format!("torch.aten.relu {x} : {of} -> {to}"));
                self.define(op.out_0, &y)
            }
            _ => bail!("no form for this operation"),
        }
    }

    /// Adds the values for bias (none), stride, padding, dilation, transposed (false), output
    /// padding (none) and groups (1).
    /// Checks that the filters `w` have all channels of `x`.
    fn one_group(&self, x: TensorId, w: TensorId) -> Result<()> {
        ensure!(
            self.dims(x.index())?.get(1) == self.dims(w.index())?.get(1),
            "no form for groups"
        );
        Ok(())
    }

    fn geometry(&mut self, geometry: &ConvGeometry) -> Result<[String; 7]> {
        ensure!(
            geometry.mode == ConvMode::CrossCorrelation,
            "no form for reversed filters"
        );
        ensure!(
            geometry.pre_padding == geometry.post_padding,
            "no form for unequal padding"
        );
        Ok([
            self.value("torch.constant.none"),
            self.numbers(&geometry.stride),
            self.numbers(&geometry.pre_padding),
            self.numbers(&geometry.dilation),
            self.value("torch.constant.bool false"),
            self.numbers(&[]),
            self.value("torch.constant.int 1"),
        ])
    }

    /// Adds the gradient with respect to x (`made` = 0) or w (`made` = 1), which is the tensor at
    /// `made` + 1 of `[dy, x, w]`.
    fn backward(&mut self, [dy, x, w]: [TensorId; 3], made: usize, geometry: &ConvGeometry) -> Result<()> {
        self.one_group(x, w)?;
        let dy_value = self.operand(dy)?;
        let none = self.value("torch.constant.none");
        let mut factors = Vec::new();
        for (index, id) in [x, w].into_iter().enumerate() {
            factors.push(if index == made {
                let dims = self.dims(id.index())?.to_vec();
                let list = self.numbers(&dims);
                let dtype = self.value(&format!("torch.constant.int {}", number(self.element)));
                let to = self.logical_type(id.index())?;
                self.value(&format!(
                    "torch.aten.empty.memory_format {list}, {dtype}, {none}, {none}, {none}, {none} : !torch.list<int>, !torch.int, \
                     !torch.none, !torch.none, !torch.none, !torch.none -> {to}"
                ))
            } else {
                self.operand(id)?
            });
        }
        let [bias, stride, padding, dilation, transposed, output, groups] = self.geometry(geometry)?;
        let mask: Vec<String> = (0..3).map(|index| (index == made).to_string()).collect();
        let mask = self.list("bool", &mask);
        let types = [dy, x, w].map(|id| self.logical_type(id.index()));
        let [dy_type, x_type, w_type] = types;
        let (dy_type, x_type, w_type) = (dy_type?, x_type?, w_type?);
        let results = [self.new_value(), self.new_value(), self.new_value()];
        self.line(&format!(
            "{} = torch.aten.convolution_backward {dy_value}, {}, {bias}, {stride}, {padding}, {dilation}, {transposed}, {output}, {groups}, {mask} : \
             {dy_type}, {x_type}, {w_type}, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, \
             !torch.list<int>, !torch.int, !torch.list<bool> -> {}, {}, !torch.none",
            results.join(", "),
            factors.join(", "),
            if made == 0 { &x_type } else { "!torch.none" },
            if made == 1 { &w_type } else { "!torch.none" },
        ));
        let [dx, dw, _] = &results;
        let (id, value) = if made == 0 { (x, dx) } else { (w, dw) };
        self.define(id, value)
    }
}
