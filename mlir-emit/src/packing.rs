//! Elements of less than a byte: unpacked where a tensor is read, and packed where it is written.

use crate::counts::{ceil_div, exactly};
use crate::ir::{Emitter, IndexMap, Loop};
use crate::mlir::{Name, Value as Ssa};
use crate::narrow::Bits;

use rotini_graph::DataType;

/// Returns the number of bytes of `elements` packed elements of a type; `None` on overflow.
pub(crate) fn packed_bytes(elements: i64, dtype: DataType) -> Option<i64> {
    Some((elements.checked_mul(i64::from(dtype.bits()))?.checked_add(7)?) / 8)
}

/// Returns the numbers of elements and bytes of the smallest group that fills whole bytes.
const fn group(dtype: DataType) -> (i64, i64) {
    match dtype.bits() {
        6 => (4, 3),
        _ => (2, 1),
    }
}

/// Unpacks the elements of a tensor of these physical extents, each into one byte. The first
/// element is in the lowest bits of the first byte (`PackedFp4Tensor.hpp` and `PackedFp6Tensor.hpp`
/// of hipDNN, which has no such class for int4; it is packed likewise).
pub(crate) fn unpack<'c>(at: &Emitter<'c>, bytes: Ssa<'c>, shape: &[i64], dtype: DataType) -> Ssa<'c> {
    let groups = Groups::of(shape, dtype);
    let filled = [(0, groups.bytes() - groups.length)];
    let (bytes, _) = at.pad(bytes, &[groups.length], &filled, (0.0, DataType::U8));
    let bytes = fold(at, bytes, &groups.shape(groups.group_bytes));
    let to = (groups.elements, i64::from(dtype.bits()));
    let codes = repack(at, bytes, &groups.lines, 8, to, dtype);
    let codes = groups.joined(at, codes, groups.elements);
    if groups.fills(shape) {
        return codes;
    }
    let codes = at.crop(codes, &[groups.codes()], &[groups.count], dtype);
    fold(at, codes, shape)
}

/// Packs the elements of a tensor of these physical extents into bytes. Unused bits of the last
/// byte are 0.
pub(crate) fn pack<'c>(at: &Emitter<'c>, codes: Ssa<'c>, shape: &[i64], dtype: DataType) -> Ssa<'c> {
    let groups = Groups::of(shape, dtype);
    let codes = if groups.fills(shape) {
        let split = groups.shape(groups.elements);
        at.expand(codes, &innermost_pair(shape.len()), &split)
    } else {
        let flat = unfold(at, codes, shape.len(), groups.count);
        let filled = [(0, groups.codes() - groups.count)];
        let (flat, _) = at.pad(flat, &[groups.count], &filled, (0.0, dtype));
        fold(at, flat, &groups.shape(groups.elements))
    };
    let to = (groups.group_bytes, 8);
    let bytes = repack(at, codes, &groups.lines, i64::from(dtype.bits()), to, DataType::U8);
    let bytes = unfold(at, bytes, groups.lines.len() + 1, groups.bytes());
    at.crop(bytes, &[groups.bytes()], &[groups.length], DataType::U8)
}

/// The groups of elements that fill whole bytes.
struct Groups {
    /// Elements of the tensor.
    count: i64,
    /// Bytes of the tensor.
    length: i64,
    /// Elements of a group.
    elements: i64,
    /// Bytes of a group.
    group_bytes: i64,
    /// Extents in groups. If groups do not cross the ends of the innermost axis, they are the
    /// tensor's, so that packing can be fused with producers and consumers; else all groups are in
    /// one line, the last one perhaps incomplete.
    lines: Vec<i64>,
}

impl Groups {
    fn of(shape: &[i64], dtype: DataType) -> Self {
        let count: i64 = shape.iter().product();
        let (elements, group_bytes) = group(dtype);
        let lines = match shape.split_last() {
            Some((last, outer)) if last % elements == 0 => outer.iter().copied().chain([last / elements]).collect(),
            _ => vec![ceil_div(count, elements)],
        };
        Groups {
            count,
            length: packed_bytes(count, dtype).expect("a span that overflows"),
            elements,
            group_bytes,
            lines,
        }
    }

    /// Returns the extents if each group has `parts` parts.
    fn shape(&self, parts: i64) -> Vec<i64> {
        self.lines.iter().copied().chain([parts]).collect()
    }

    /// Returns the number of bytes of all groups.
    fn bytes(&self) -> i64 {
        self.lines.iter().product::<i64>() * self.group_bytes
    }

    /// Returns the number of elements of all groups.
    fn codes(&self) -> i64 {
        self.lines.iter().product::<i64>() * self.elements
    }

    /// Returns true if the innermost axis of a tensor consists of whole groups.
    fn fills(&self, shape: &[i64]) -> bool {
        shape.last().is_some_and(|last| last % self.elements == 0)
    }

    /// Merges the groups of a line and their parts into one axis.
    fn joined<'c>(&self, at: &Emitter<'c>, tensor: Ssa<'c>, parts: i64) -> Ssa<'c> {
        let mut shape = self.lines.clone();
        *shape.last_mut().expect("no axis") *= parts;
        let rank = shape.len();
        at.collapse(tensor, &innermost_pair(rank), &shape)
    }
}

/// Returns the reassociation groups that merge the innermost two axes of a tensor of rank `rank +
/// 1`.
fn innermost_pair(rank: usize) -> Vec<Vec<usize>> {
    let pair = |axis| {
        if axis + 1 == rank {
            vec![axis, axis + 1]
        } else {
            vec![axis]
        }
    };
    (0..rank).map(pair).collect()
}

/// Expands a flat tensor to these extents.
fn fold<'c>(at: &Emitter<'c>, flat: Ssa<'c>, shape: &[i64]) -> Ssa<'c> {
    if shape.len() == 1 {
        return flat;
    }
    let all = (0..shape.len()).collect();
    at.expand(flat, &[all], shape)
}

/// Collapses a tensor of this rank to a flat one.
fn unfold<'c>(at: &Emitter<'c>, tensor: Ssa<'c>, rank: usize, count: i64) -> Ssa<'c> {
    if rank == 1 {
        return tensor;
    }
    at.collapse(tensor, &[(0..rank).collect()], &[count])
}

/// Repacks the bits of each group: from pieces of `from` bits into `pieces` pieces of `to` bits.
fn repack<'c>(
    at: &Emitter<'c>,
    tensor: Ssa<'c>,
    groups: &[i64],
    from: i64,
    (pieces, to): (i64, i64),
    dtype: DataType,
) -> Ssa<'c> {
    let (new, old) = (groups.len(), groups.len() + 1);
    let shape: Vec<i64> = groups.iter().copied().chain([pieces]).collect();
    let init = at.zeros(&shape, dtype);
    let map = |piece: usize| IndexMap::select(old + 1, (0..new).chain([piece]));
    let mut loops = vec![Loop::Parallel; old];
    loops.push(Loop::Reduction);
    let inputs = [(tensor, map(old))];
    at.generic(&loops, &inputs, (init, map(new)), |elements| {
        let [piece, so_far] = exactly(elements);
        let word = at.element_type(DataType::I32);
        let bits = Bits { at, ty: word };
        let start = |axis: usize, width: i64| {
            let index = at.loop_index(axis).index_cast(word);
            bits.with(Name::ArithMuli, index, width)
        };
        let piece = piece.extui(word);
        let piece = bits.with(Name::ArithAndi, piece, (1 << from) - 1);
        let placed = piece.shli(start(old, from));
        let moved = placed.shrui(start(new, to));
        let mut own = bits.with(Name::ArithAndi, moved, (1 << to) - 1);
        if dtype == DataType::I4 {
            // Sign-extended.
            own = bits.with(Name::ArithShli, own, 32 - to);
            own = bits.with(Name::ArithShrsi, own, 32 - to);
        }
        let own = own.trunci(at.element_type(DataType::U8));
        own | so_far
    })
}
