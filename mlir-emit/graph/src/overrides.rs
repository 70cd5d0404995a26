//! Graphs with shapes that are given at execution.
//!
//! A graph may declare that its shapes are upper bounds. An execution then gives the shapes of some
//! of its buffers, and runs the same graph with those shapes, which is validated like any other
//! graph. Nobody gives the shapes of virtual tensors: they follow from the tensors that these are
//! computed from.
//!
//! The gradient of strided windows may have several extents. Example: inputs of 5 and of 6
//! elements, padded by 1, both have 3 windows of 3 elements with stride 2. Each extent is tried.
//! The graph has to be valid with exactly one of them: the node that reads the gradient determines
//! which.

use crate::builder::packed_strides;
use crate::op::{ConvGeometry, MoeMode, Op};
use crate::{Graph, GraphError, Node, Tensor, TensorId, TensorKind, broadcast_dims, conv_output_extent};
use thiserror::Error;

/// The shape of a buffer in one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeOverride<'a> {
    /// The tensor's uid.
    pub uid: i64,
    /// Extents, at most the declared ones.
    pub dims: &'a [i64],
    /// Strides in elements, in the declared memory order.
    pub strides: &'a [i64],
}

/// The reason why a graph cannot have the given shapes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// The graph does not declare that its shapes may be overridden.
    #[error("the graph is declared for its own shapes alone")]
    NotDeclared,
    /// A uid that no tensor has.
    #[error("the graph has no tensor with uid {0}")]
    Unknown(i64),
    /// A tensor that is not in a buffer.
    #[error("{tensor} is in no buffer, so it cannot be given another shape")]
    NoBuffer {
        /// The tensor.
        tensor: String,
    },
    /// A tensor for which two shapes are given.
    #[error("{tensor} is given two shapes")]
    Twice {
        /// The tensor.
        tensor: String,
    },
    /// A shape of another rank than the declared one.
    #[error("{tensor} has rank {declared}, and is given {dims} extents and {strides} strides")]
    Rank {
        /// The tensor.
        tensor: String,
        /// Its rank.
        declared: usize,
        /// Number of extents that were given.
        dims: usize,
        /// Number of strides that were given.
        strides: usize,
    },
    /// An extent below 1 or above the declared one.
    #[error("{tensor}: extent {given} along axis {axis} is not from 1 to the declared {declared}")]
    Extent {
        /// The tensor.
        tensor: String,
        /// The axis.
        axis: usize,
        /// The given extent.
        given: i64,
        /// The declared extent, which is the largest allowed.
        declared: i64,
    },
    /// A stride that is not positive where the declared one is.
    #[error("{tensor}: stride {given} along axis {axis} is not positive")]
    Stride {
        /// The tensor.
        tensor: String,
        /// The axis.
        axis: usize,
        /// The given stride.
        given: i64,
    },
    /// Strides that order the axes differently from the declared ones.
    #[error("{tensor}: strides {given:?} are not in the memory order of the declared {declared:?}")]
    Order {
        /// The tensor.
        tensor: String,
        /// The given strides.
        given: Vec<i64>,
        /// The declared strides.
        declared: Vec<i64>,
    },
    /// A virtual tensor whose extents do not follow from those of other tensors.
    #[error("with these shapes {tensor} may have several extents, and nothing that reads it says which")]
    Ambiguous {
        /// The tensor.
        tensor: String,
    },
    /// Shapes that are inconsistent with each other.
    #[error("with these shapes the graph is not valid: {0}")]
    Graph(#[from] GraphError),
}

impl Graph {
    /// Returns the graph with these shapes, validated and no longer open to overrides. The rules
    /// are those of hipDNN's front end (`validateGraphBackedOverrideArguments`), which hosts may
    /// have bypassed.
    ///
    /// # Errors
    ///
    /// Returns the first override that breaks a rule, or the first fault of the graph with these
    /// shapes.
    pub fn with_shapes(&self, overrides: &[ShapeOverride<'_>]) -> Result<Graph, OverrideError> {
        if !self.override_shapes {
            return Err(OverrideError::NotDeclared);
        }
        let mut graph = self.clone();
        graph.override_shapes = false;
        let mut given = vec![false; self.tensors.len()];
        for shape in overrides {
            let mut tensors = graph.tensors.iter_mut().zip(&mut given);
            let (tensor, given) = tensors
                .find(|(tensor, _)| tensor.uid == shape.uid)
                .ok_or(OverrideError::Unknown(shape.uid))?;
            if tensor.kind != TensorKind::Buffer {
                return Err(OverrideError::NoBuffer {
                    tensor: tensor.to_string(),
                });
            }
            if std::mem::replace(given, true) {
                return Err(OverrideError::Twice {
                    tensor: tensor.to_string(),
                });
            }
            check(tensor, shape)?;
            tensor.dims = shape.dims.to_vec();
            tensor.strides = shape.strides.to_vec();
        }
        let mut choices = Choices::default();
        let mut found = graph.inferred_by(self, &mut choices);
        for _ in 0..Choices::MOST {
            if !choices.next() {
                return found;
            }
            let other = graph.inferred_by(self, &mut choices);
            match (found.is_ok(), other.is_ok()) {
                (true, true) => return Err(choices.unknown()),
                (false, true) => found = other,
                (_, false) => {}
            }
        }
        Err(choices.unknown())
    }

    /// Returns the graph with inferred shapes of its virtual tensors, if it is valid with them.
    fn inferred_by(&self, declared: &Graph, choices: &mut Choices) -> Result<Graph, OverrideError> {
        let mut graph = self.clone();
        for position in 0..graph.nodes.len() {
            graph.infer_virtual(declared, position, choices);
        }
        graph.validate()?;
        Ok(graph)
    }

    /// Infers the shapes of the virtual tensors that a node writes. A tensor whose extents stay as
    /// declared keeps its declared strides.
    fn infer_virtual(&mut self, declared: &Graph, position: usize, choices: &mut Choices) {
        let Some(node) = declared.nodes.get(position) else {
            return;
        };
        let mut outputs = Vec::new();
        node.op.for_each_output(&mut |field, id| outputs.push((field, id)));
        for (field, id) in outputs {
            let Some(old) = declared.tensor(id).filter(|tensor| tensor.kind == TensorKind::Virtual) else {
                continue;
            };
            let Some(dims) = self.inferred(declared, node, (field, old), choices) else {
                continue;
            };
            let strides = packed_like(&dims, &old.strides);
            if let Some(tensor) = self.tensors.get_mut(id.index())
                && tensor.dims != dims
            {
                (tensor.dims, tensor.strides) = (dims, strides);
            }
        }
    }

    /// Returns the extents of the tensor that `node` writes to `field`. `None` if they cannot be
    /// inferred: the tensor then keeps its declared extents, and validation decides.
    fn inferred(
        &self,
        declared: &Graph,
        node: &Node,
        (field, old): (&str, &Tensor),
        choices: &mut Choices,
    ) -> Option<Vec<i64>> {
        let dims = |id: TensorId| self.tensor(id).map(|tensor| tensor.dims.as_slice());
        // An axis with the same declared extent as the operand's axis follows that axis.
        let follow = |id: TensorId| {
            let (before, now) = (declared.tensor(id)?, dims(id)?);
            let axes = old.dims.iter().zip(before.dims.iter().zip(now));
            (before.dims.len() == old.dims.len()).then(|| {
                axes.map(|(&old, (&before, &now))| if old == before { now } else { old })
                    .collect()
            })
        };
        match &node.op {
            Op::Pointwise(op) => {
                let operands = [Some(op.in_0), op.in_1, op.in_2];
                let (mut before, mut now) = (vec![1], vec![1]);
                for id in operands.into_iter().flatten() {
                    before = broadcast_dims(&before, &declared.tensor(id)?.dims)?;
                    now = broadcast_dims(&now, dims(id)?)?;
                }
                // The output may have more axes, or larger extents, than all operands.
                let missing = old.dims.len().checked_sub(now.len())?;
                let follows = |(axis, &old): (usize, &i64)| {
                    let operand = axis
                        .checked_sub(missing)
                        .and_then(|axis| Some((before.get(axis)?, now.get(axis)?)));
                    match operand {
                        Some((&before, &now)) if before == old => now,
                        _ => old,
                    }
                };
                Some(old.dims.iter().enumerate().map(follows).collect())
            }
            Op::ConvFprop(op) => {
                let filter = dims(op.w)?;
                let (&k, window) = (filter.first()?, filter.get(2..)?);
                pooled(dims(op.x)?, k, window, &op.geometry)
            }
            Op::ResampleFwd(op) => {
                let x = dims(op.x)?;
                let geometry = windows(&op.pre_padding, &op.post_padding, &op.stride, op.window.len());
                pooled(x, *x.get(1)?, &op.window, &geometry)
            }
            Op::ConvDgrad(op) => {
                let window = dims(op.w)?.get(2..)?;
                self.unpooled(declared, (op.dy, old), (window, &op.geometry), choices)
            }
            Op::ResampleBwd(op) => {
                let geometry = windows(&op.pre_padding, &op.post_padding, &op.stride, op.window.len());
                self.unpooled(declared, (op.dy, old), (&op.window, &geometry), choices)
            }
            Op::Matmul(op) => {
                let (a, b) = (dims(op.a)?, dims(op.b)?);
                let mut c = vec![1; a.len().max(b.len())];
                for dims in [a, b] {
                    for (extent, dim) in c.iter_mut().rev().zip(dims.iter().rev()) {
                        *extent = dim.max(extent).to_owned();
                    }
                }
                let [.., rows, columns] = c.as_mut_slice() else {
                    return None;
                };
                (*rows, *columns) = (*a.get(a.len().checked_sub(2)?)?, *b.last()?);
                Some(c)
            }
            Op::Sdpa(op) => {
                let mut dims_of: Vec<i64> = follow(op.q)?;
                if field == "o" {
                    *dims_of.last_mut()? = *dims(op.v)?.last()?;
                }
                Some(dims_of)
            }
            Op::ConvWgrad(op) => {
                let groups = declared.tensor(op.x)?.dims.get(1)?.checked_div(*old.dims.get(1)?)?;
                let mut dw = old.dims.clone();
                *dw.get_mut(0)? = *dims(op.dy)?.get(1)?;
                *dw.get_mut(1)? = dims(op.x)?.get(1)?.checked_div(groups)?;
                Some(dw)
            }
            Op::MoeGroupedMatmul(op) => {
                let rows = op.token_index.filter(|_| op.mode == MoeMode::Gather);
                let rows = *dims(rows.unwrap_or(op.token))?.get(1)?;
                Some(vec![1, rows, *dims(op.weight)?.last()?])
            }
            Op::MoeGroupedMatmulBwd(op) => {
                let experts = *dims(op.first_token_offset)?.first()?;
                Some(vec![experts, *dims(op.token)?.last()?, *dims(op.doutput)?.last()?])
            }
            Op::BlockScaleQuantize(op) if field == "scale" => {
                let mut scale = dims(op.x)?.to_vec();
                let axis = op
                    .axis
                    .map_or(scale.len().checked_sub(1), |axis| usize::try_from(axis).ok());
                let blocks = scale.get_mut(axis?)?;
                *blocks = blocks
                    .checked_sub(1)?
                    .checked_div(op.block_size.into())?
                    .checked_add(1)?;
                Some(scale)
            }
            Op::SdpaBackward(op) => match field {
                "dq" => follow(op.q),
                "dk" => follow(op.k),
                "dv" => follow(op.v),
                _ => follow(op.attn_mask?),
            },
            op => {
                let mut first = None;
                op.for_each_input(&mut |_, id| first = first.or(Some(id)));
                follow(first?)
            }
        }
    }

    /// Returns the extents of the tensor from which a window makes `dy`, with a choice for each
    /// axis along which several extents are possible. An axis that no buffer overrides keeps its
    /// declared extent.
    fn unpooled(
        &self,
        declared: &Graph,
        (dy, old): (TensorId, &Tensor),
        (window, geometry): (&[i64], &ConvGeometry),
        choices: &mut Choices,
    ) -> Option<Vec<i64>> {
        let now = &self.tensor(dy)?.dims;
        let mut dims = vec![*now.first()?, *old.dims.get(1)?];
        let extents = now.get(2..)?.iter().zip(old.dims.get(2..)?.iter().zip(window));
        for (axis, (now, (&old_extent, &window))) in extents.enumerate() {
            let mut tensors = self.tensors.iter().zip(&declared.tensors);
            if tensors.all(|(now, before)| now.dims.get(axis + 2) == before.dims.get(axis + 2)) {
                dims.push(old_extent);
                continue;
            }
            let [pre, post, stride, dilation] = along(geometry, axis)?;
            let reach = window.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
            let padded = now.checked_sub(1)?.checked_mul(stride)?.checked_add(reach)?;
            let least = padded.checked_sub(pre)?.checked_sub(post)?;
            let most = least.checked_add(stride.checked_sub(1)?)?.min(old_extent);
            dims.push(choices.of(old, [least, most])?);
        }
        Some(dims)
    }
}

/// The extent that is tried for each axis that may have several, in the order in which the axes are
/// visited.
#[derive(Debug, Default)]
struct Choices {
    /// For each such axis: the index of the extent that is tried, and the number of possible
    /// extents.
    chosen: Vec<[i64; 2]>,
    /// Number of such axes visited in the current round.
    met: usize,
    /// Label of the tensor of the last axis added to `chosen`.
    tensor: String,
}

impl Choices {
    /// Maximum number of rounds.
    const MOST: usize = 256;

    /// Returns the extent to try in this round, from `least` to `most`.
    fn of(&mut self, tensor: &Tensor, [least, most]: [i64; 2]) -> Option<i64> {
        let count = most.saturating_sub(least).saturating_add(1);
        if count <= 1 {
            return Some(least);
        }
        if self.chosen.len() == self.met {
            self.chosen.push([0, count]);
            self.tensor = tensor.to_string();
        }
        let [which, _] = *self.chosen.get(self.met)?;
        self.met += 1;
        least.checked_add(which)
    }

    /// Advances to the next combination of extents; returns `false` if none is left.
    fn next(&mut self) -> bool {
        self.met = 0;
        while let Some([which, count]) = self.chosen.pop() {
            if which + 1 < count {
                self.chosen.push([which + 1, count]);
                return true;
            }
        }
        false
    }

    fn unknown(&self) -> OverrideError {
        OverrideError::Ambiguous {
            tensor: self.tensor.clone(),
        }
    }
}

fn check(tensor: &Tensor, shape: &ShapeOverride<'_>) -> Result<(), OverrideError> {
    let (dims, strides) = (shape.dims, shape.strides);
    if [dims.len(), strides.len()] != [tensor.dims.len(); 2] {
        return Err(OverrideError::Rank {
            tensor: tensor.to_string(),
            declared: tensor.dims.len(),
            dims: dims.len(),
            strides: strides.len(),
        });
    }
    for (axis, (&given, &declared)) in dims.iter().zip(&tensor.dims).enumerate() {
        if given < 1 || given > declared {
            return Err(OverrideError::Extent {
                tensor: tensor.to_string(),
                axis,
                given,
                declared,
            });
        }
    }
    for (axis, (&given, &declared)) in strides.iter().zip(&tensor.strides).enumerate() {
        // An axis that is declared as broadcast (stride 0) may stay so.
        if given < 1 && (given, declared) != (0, 0) {
            return Err(OverrideError::Stride {
                tensor: tensor.to_string(),
                axis,
                given,
            });
        }
    }
    // The stride of an axis of extent 1 has no meaning.
    let axes: Vec<(i64, i64)> = dims
        .iter()
        .zip(tensor.strides.iter().zip(strides))
        .filter(|(dim, _)| **dim > 1)
        .map(|(_, (&declared, &given))| (declared, given))
        .collect();
    let is_reversed = |a: &(i64, i64), b: &(i64, i64)| a.0 > b.0 && a.1 < b.1;
    if axes.iter().any(|a| axes.iter().any(|b| is_reversed(a, b))) {
        return Err(OverrideError::Order {
            tensor: tensor.to_string(),
            given: strides.to_vec(),
            declared: tensor.strides.clone(),
        });
    }
    Ok(())
}

/// Returns packed strides in the memory order of the strides `order`.
fn packed_like(dims: &[i64], order: &[i64]) -> Vec<i64> {
    let mut axes: Vec<usize> = (0..dims.len()).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(order.get(axis).copied().unwrap_or(0)));
    packed_strides(dims, &axes)
}

/// Returns windows without dilation as the geometry of a convolution.
pub(crate) fn windows(pre: &[i64], post: &[i64], stride: &[i64], count: usize) -> ConvGeometry {
    ConvGeometry {
        pre_padding: pre.to_vec(),
        post_padding: post.to_vec(),
        stride: stride.to_vec(),
        dilation: vec![1; count],
        mode: crate::ConvMode::CrossCorrelation,
    }
}

/// Returns the extents of the output of a window over `x`, with `channels` channels.
fn pooled(x: &[i64], channels: i64, window: &[i64], geometry: &ConvGeometry) -> Option<Vec<i64>> {
    let mut dims = vec![*x.first()?, channels];
    for (axis, (&extent, &window)) in x.get(2..)?.iter().zip(window).enumerate() {
        let [pre, post, stride, dilation] = along(geometry, axis)?;
        dims.push(conv_output_extent(extent, window, pre, post, stride, dilation)?);
    }
    Some(dims)
}

/// Returns the padding before, the padding after, the stride and the dilation of a spatial axis.
pub(crate) fn along(geometry: &ConvGeometry, axis: usize) -> Option<[i64; 4]> {
    let ConvGeometry {
        pre_padding,
        post_padding,
        stride,
        dilation,
        ..
    } = geometry;
    let at = |list: &[i64]| list.get(axis).copied();
    Some([at(pre_padding)?, at(post_padding)?, at(stride)?, at(dilation)?])
}
