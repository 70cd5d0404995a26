//! The graph under construction.

use super::choices::Choices;
use crate::range::Range;
use rotini_graph::{DataType, Graph, GraphBuilder, Op, PointwiseMode, Scalar, TensorId, TensorKind};
use rotini_reference::Profile;
use std::collections::{BTreeMap, BTreeSet};

/// Largest magnitude of a float tensor: far below the largest f16, so that no sum overflows.
const LARGEST: f64 = 4096.0;
/// Largest magnitude of an integer tensor that is computed in i32.
const LARGEST_INTEGER: f64 = 1e9;
/// Maximum number of elements of a tensor.
const MOST_ELEMENTS: i64 = 3000;

/// A tensor that nodes may read.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) id: TensorId,
    pub(super) dims: Vec<i64>,
    pub(super) dtype: DataType,
    pub(super) range: Range,
    /// Whether its elements are independent of a kernel's order of computation.
    pub(super) exact: bool,
    /// Its fill profile, if it is an input.
    filled: Option<Profile>,
}

impl Known {
    /// Returns true if it can be read in a role that needs elements of this profile. An input takes
    /// its most demanding profile: that must remain the one that its range is based on.
    fn plays(&self, role: Profile) -> bool {
        match self.filled {
            // Weights lie within the range of any other profile.
            Some(filled) => role <= filled || role == Profile::Weights,
            None => role <= Profile::Weights,
        }
    }
}

/// A graph under construction.
pub(super) struct Draft {
    builder: GraphBuilder,
    known: Vec<Known>,
    read: Vec<TensorId>,
    /// Tensors that nodes write; results of a step that was abandoned halfway are not included.
    written: BTreeSet<TensorId>,
    /// Whether it contains declined choices.
    rare: bool,
    /// The type of most of its floats.
    float: DataType,
    /// Whether the current node reads truth values as numbers, which most operations do not.
    reads_truths: bool,
    names: usize,
}

const FLOATS: [DataType; 4] = [DataType::F32, DataType::F16, DataType::Bf16, DataType::F64];
const NARROW: [DataType; 9] = [
    DataType::F8E4M3,
    DataType::F8E5M2,
    DataType::F8E8M0,
    DataType::F4E2M1,
    DataType::F6E2M3,
    DataType::F6E3M2,
    DataType::I4,
    DataType::F8E4M3Fnuz,
    DataType::F8E5M2Fnuz,
];

impl Draft {
    pub(super) fn new(choices: &mut Choices<'_>) -> Self {
        Draft {
            builder: GraphBuilder::new("random"),
            known: Vec::new(),
            read: Vec::new(),
            written: BTreeSet::new(),
            rare: choices.chance(25),
            float: choices.pick(&[
                DataType::F32,
                DataType::F32,
                DataType::F16,
                DataType::F16,
                DataType::Bf16,
                DataType::F64,
            ]),
            reads_truths: false,
            names: 0,
        }
    }

    /// Sets, before each step, whether its operands may be truth values.
    pub(super) fn read_truths(&mut self, reads_truths: bool) {
        self.reads_truths = reads_truths;
    }

    pub(super) fn is_rare(&self) -> bool {
        self.rare
    }

    /// Returns true for a declined choice, with a probability of `percent`, in a graph that has
    /// such choices.
    pub(super) fn oddity(&self, choices: &mut Choices<'_>, percent: usize) -> bool {
        choices.chance(percent) && self.rare
    }

    /// Returns a type for floats.
    pub(super) fn float(&mut self, choices: &mut Choices<'_>) -> DataType {
        if choices.chance(15) {
            choices.pick(&FLOATS)
        } else {
            self.float
        }
    }

    /// Returns a compute type for float nodes.
    pub(super) fn compute(&mut self, choices: &mut Choices<'_>) -> DataType {
        match choices.below(20) {
            _ if self.float == DataType::F64 => choices.pick(&[DataType::F64, DataType::F64, DataType::F32]),
            18 => DataType::F16,
            19 => DataType::Bf16,
            _ => DataType::F32,
        }
    }

    /// Returns the type, or a narrow one in a graph with declined choices.
    fn perhaps_narrow(&self, choices: &mut Choices<'_>, dtype: DataType) -> DataType {
        if self.oddity(choices, 5) {
            choices.pick(&NARROW)
        } else {
            dtype
        }
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Adds an input.
    pub(super) fn input(&mut self, choices: &mut Choices<'_>, dims: &[i64], dtype: DataType, role: Profile) -> Known {
        self.input_of(choices, dims, dtype, role, true)
    }

    /// Adds an input for routing without duplicate elements: routing a row twice is undefined.
    pub(super) fn routing(&mut self, choices: &mut Choices<'_>, dims: &[i64]) -> Known {
        self.input_of(choices, dims, DataType::I32, Profile::Normal, false)
    }

    fn input_of(
        &mut self,
        choices: &mut Choices<'_>,
        dims: &[i64],
        dtype: DataType,
        role: Profile,
        may_repeat: bool,
    ) -> Known {
        let strides = strides(choices, dims, may_repeat);
        let name = self.name("in");
        let kind = if self.oddity(choices, 3) {
            TensorKind::RuntimeScalar
        } else {
            TensorKind::Buffer
        };
        let dims_of = if kind == TensorKind::RuntimeScalar {
            vec![1; dims.len()]
        } else {
            dims.to_vec()
        };
        // A runtime value has one element, so it does not fit an operand that needs these dims.
        let kind = if dims_of == dims { kind } else { TensorKind::Buffer };
        let id = self.builder.tensor(&name, dtype, dims, &strides, kind);
        let known = Known {
            id,
            dims: dims.to_vec(),
            dtype,
            range: filled_range(dtype, role),
            exact: true,
            filled: Some(role),
        };
        self.known.push(known.clone());
        known
    }

    /// Adds a constant.
    pub(super) fn constant(&mut self, dims: &[i64], dtype: DataType, value: f64) -> Known {
        let scalar = if dtype.is_integer() {
            Scalar::Integer(value as i64)
        } else {
            Scalar::float(value)
        };
        let name = self.name("const");
        let id = self.builder.constant(&name, dtype, dims, scalar);
        Known {
            id,
            dims: dims.to_vec(),
            dtype,
            range: Range::new(value, value),
            exact: true,
            filled: None,
        }
    }

    /// Returns an existing tensor that meets the requirements, if any.
    pub(super) fn present(
        &mut self,
        choices: &mut Choices<'_>,
        role: Profile,
        fits: impl Fn(&Known) -> bool,
    ) -> Option<Known> {
        // Newest first, which gives longer chains.
        let found: Vec<&Known> = self
            .known
            .iter()
            .rev()
            .filter(|known| known.filled.is_some() || self.written.contains(&known.id))
            .filter(|known| known.dtype != DataType::Bool || self.reads_truths)
            .filter(|known| known.plays(role) && fits(known))
            .collect();
        if found.is_empty() || choices.chance(25) {
            return None;
        }
        // The smaller of two random numbers, so that most picks are among the newest.
        let position = choices.below(found.len()).min(choices.below(found.len()));
        found.get(position).map(|known| (*known).clone())
    }

    /// Returns an operand that determines the others: an existing one that meets the requirements,
    /// or a new input.
    pub(super) fn first(
        &mut self,
        choices: &mut Choices<'_>,
        role: Profile,
        fits: impl Fn(&Known) -> bool,
        dims: impl FnOnce(&mut Choices<'_>) -> Vec<i64>,
    ) -> Known {
        match self.present(choices, role, fits) {
            Some(known) => known,
            None => {
                let dims = dims(choices);
                let dtype = self.float(choices);
                let dtype = self.perhaps_narrow(choices, dtype);
                self.input(choices, &dims, dtype, role)
            }
        }
    }

    /// Returns an operand of these dims, of integers if `like` is an integer type, else of floats.
    pub(super) fn operand(
        &mut self,
        choices: &mut Choices<'_>,
        dims: &[i64],
        like: DataType,
        role: Profile,
        fits: impl Fn(&Known) -> bool,
    ) -> Known {
        let same = |known: &Known| known.dims == dims && known.dtype.is_integer() == like.is_integer() && fits(known);
        match self.present(choices, role, same) {
            Some(known) => known,
            None => {
                let dtype = match like.is_integer() || !choices.chance(10) {
                    true => like,
                    false => choices.pick(&FLOATS),
                };
                let dtype = self.perhaps_narrow(choices, dtype);
                self.input(choices, dims, dtype, role)
            }
        }
    }

    /// Adds a tensor for a node to write: virtual, or in a buffer.
    pub(super) fn result(
        &mut self,
        choices: &mut Choices<'_>,
        dims: &[i64],
        dtype: DataType,
        range: Range,
        exact: bool,
    ) -> TensorId {
        let strides = strides(choices, dims, false);
        let kind = if choices.chance(20) {
            TensorKind::Buffer
        } else {
            TensorKind::Virtual
        };
        let name = self.name("out");
        let id = self.builder.tensor(&name, dtype, dims, &strides, kind);
        let range = match dtype.integer_range() {
            // Independent of the operands.
            Some(_) if dtype == DataType::Bool => Range::new(0.0, 1.0),
            Some(range_of) => range
                .map(f64::trunc)
                .clamp(*range_of.start() as f64, *range_of.end() as f64),
            None => range,
        };
        self.known.push(Known {
            id,
            dims: dims.to_vec(),
            dtype,
            range,
            exact,
            filled: None,
        });
        id
    }

    /// Adds a tensor for a float result: mostly of a float type, sometimes of an integer type.
    pub(super) fn float_result(&mut self, choices: &mut Choices<'_>, dims: &[i64], range: Range) -> TensorId {
        let dtype = match choices.below(20) {
            0..=8 => self.float,
            19 => choices.pick(&[DataType::I32, DataType::I8, DataType::U8]),
            16 if self.reads_truths => DataType::Bool,
            17 | 18 => choices.pick(&FLOATS),
            _ if self.float == DataType::F64 => DataType::F64,
            _ => DataType::F32,
        };
        let dtype = self.perhaps_narrow(choices, dtype);
        self.result(choices, dims, dtype, range, false)
    }

    /// Adds a node.
    pub(super) fn node(&mut self, compute: DataType, op: impl Into<Op>) -> Option<()> {
        let op = op.into();
        op.for_each_input(&mut |_, id| self.read.push(id));
        op.for_each_output(&mut |_, id| _ = self.written.insert(id));
        let name = self.name("node");
        self.builder.node(&name, compute, op);
        Some(())
    }

    /// Returns the graph, in which all results without a reader are stored.
    pub(super) fn finish(mut self, choices: &mut Choices<'_>) -> Graph {
        let backwards = choices.chance(30);
        let mut graph = std::mem::take(&mut self.builder).build();
        if graph.nodes.is_empty() {
            self.builder = GraphBuilder::new("random");
            let x = self.builder.buffer("x", self.float, &[1]);
            let y = self.builder.buffer("y", self.float, &[1]);
            self.builder.pointwise(DataType::F32, PointwiseMode::Identity, &[x], y);
            return self.builder.build();
        }
        for (index, tensor) in (0..).zip(&mut graph.tensors) {
            if tensor.kind == TensorKind::Virtual && !self.read.contains(&TensorId(index)) {
                tensor.kind = TensorKind::Buffer;
            }
        }
        if backwards {
            graph.nodes.reverse();
        }
        without_unused(graph)
    }
}

/// Returns the graph without tensors that no node reads or writes: operands of abandoned steps.
fn without_unused(mut graph: Graph) -> Graph {
    let mut used = BTreeMap::new();
    for node in &graph.nodes {
        node.op.for_each_input(&mut |_, id| _ = used.insert(id, id));
        node.op.for_each_output(&mut |_, id| _ = used.insert(id, id));
    }
    for (new, id) in (0..).zip(used.values_mut()) {
        *id = TensorId(new);
    }
    for node in &mut graph.nodes {
        node.op.renumber(&mut |id| used[&id]);
    }
    let tensors = std::mem::take(&mut graph.tensors);
    let is_used = |index: &u32| used.contains_key(&TensorId(*index));
    graph.tensors = (0..)
        .zip(tensors)
        .filter(|(index, _)| is_used(index))
        .map(|(_, tensor)| tensor)
        .collect();
    graph
}

/// Returns the range if it is small enough for a float result.
pub(super) fn is_bounded(range: Range) -> Option<Range> {
    (range.magnitude() <= LARGEST).then_some(range)
}

/// Returns the range if it is small enough for an integer result.
pub(super) fn is_bounded_integer(range: Range) -> Option<Range> {
    (range.magnitude() <= LARGEST_INTEGER).then_some(range)
}

/// Returns the dims if they have few enough elements.
pub(super) fn small(dims: Vec<i64>) -> Option<Vec<i64>> {
    (dims.iter().product::<i64>() <= MOST_ELEMENTS).then_some(dims)
}

/// Returns dims of a rank; extents of 1 are frequent.
pub(super) fn dims(choices: &mut Choices<'_>, rank: usize) -> Vec<i64> {
    let most = match rank {
        0..=2 => 17,
        3 => 9,
        4 => 6,
        _ => 4,
    };
    (0..rank).map(|_| choices.between(0, most).max(1)).collect()
}

/// Returns the range of [`rotini_reference::fill`] for a profile.
fn filled_range(dtype: DataType, role: Profile) -> Range {
    if dtype.is_float() {
        return match role {
            Profile::SmallIntegers => Range::around(3.0),
            Profile::Booleans => Range::new(0.0, 1.0),
            Profile::Positive => Range::new(0.5, 2.0),
            _ => Range::around(1.0),
        };
    }
    match (role, dtype) {
        (_, DataType::Bool) => Range::new(0.0, 1.0),
        (Profile::SmallIntegers, DataType::U8) => Range::new(0.0, 6.0),
        (Profile::SmallIntegers, _) => Range::around(3.0),
        (Profile::Booleans, _) => Range::new(0.0, 1.0),
        (Profile::Positive, _) => Range::new(1.0, 8.0),
        (_, DataType::I8) => Range::new(-128.0, 127.0),
        (_, DataType::U8) => Range::new(0.0, 255.0),
        _ => Range::around(4096.0),
    }
}

/// Returns a memory order: that of the dims, channels last, any other, or with gaps; for an input
/// also with a broadcast axis.
fn strides(choices: &mut Choices<'_>, dims: &[i64], is_input: bool) -> Vec<i64> {
    let rank = dims.len();
    let kind = choices.below(20);
    let mut order: Vec<usize> = (0..rank).collect();
    match kind {
        0..=9 => {}
        10..=14 if rank > 1 => {
            order.remove(1);
            order.push(1);
        }
        // Shuffled.
        _ => (1..rank)
            .rev()
            .for_each(|axis| order.swap(axis, choices.below(axis + 1))),
    }
    // Gaps between neighbours along an axis that is not the innermost, or along the innermost.
    let gaps = kind == 18;
    let repeated = (kind == 19 && is_input).then(|| choices.below(rank));
    let mut strides = vec![0; rank];
    let mut next = if gaps { choices.between(1, 2) } else { 1 };
    for &axis in order.iter().rev() {
        if Some(axis) == repeated {
            continue;
        }
        strides[axis] = next;
        next *= dims[axis];
        if gaps {
            next += choices.between(0, 3);
        }
    }
    strides
}
