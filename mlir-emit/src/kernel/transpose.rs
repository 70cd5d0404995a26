//! Transposes of 16-bit elements: an axis becomes the innermost one, and may be padded with zeros.
//!
//! Example: N C H W becomes N H W C. A lane reads some channels at some neighbouring positions,
//! transposes them in registers, and stores each position's channels at once. A workgroup has
//! enough channels to fill the cache lines that it writes.

use super::code::{Code, Ssa, gathered};
use super::gemm::element;
use crate::counts::ceil_div;
use crate::mlir::Type;
use rotini_graph::DataType;

/// Lanes per workgroup.
pub(super) const LANES: i64 = 256;
/// Minimum number of positions per workgroup.
const POSITIONS: i64 = 64;
/// Elements of a 16-byte access.
const WIDEST: i64 = 8;
/// Rows of at most this length that are not aligned for wide loads are transposed through LDS.
const SHORT: i64 = 64;
/// Minimum number of rows, and maximum number of elements, of a workgroup that transposes through
/// LDS.
const ROWS: i64 = 64;
const ELEMENTS: i64 = 4608;

/// The copy of a tensor of 16-bit floats: `outer` times `moved` times `inner` elements become
/// `outer` times `inner` times `padded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transpose {
    /// The id of the tensor's value.
    pub(crate) tensor: usize,
    pub(crate) dtype: DataType,
    pub(crate) outer: i64,
    pub(crate) moved: i64,
    pub(crate) inner: i64,
    /// At least `moved`: the elements beyond `moved` are zeros.
    pub(crate) padded: i64,
}

impl Transpose {
    /// Returns whether there is a kernel for this transpose.
    pub(crate) fn is_possible(&self) -> bool {
        const MOST: i64 = 1 << 30;
        let elements = [self.padded, self.inner]
            .iter()
            .try_fold(self.outer, |all, &extent| all.checked_mul(extent));
        matches!(self.dtype, DataType::F16 | DataType::Bf16)
            && (self.moved > 1 && self.inner > 1 || self.padded > self.moved)
            && elements.is_some_and(|elements| elements > 0 && elements < MOST)
    }

    /// Returns the number of elements of the tensor and of its copy.
    pub(super) fn elements(&self) -> [i64; 2] {
        [self.moved, self.padded].map(|extent| self.outer * extent * self.inner)
    }

    /// Returns the kernel's name, for people.
    pub(super) fn name(&self) -> String {
        format!("transpose_{}x{}x{}_{}", self.outer, self.moved, self.inner, self.dtype)
    }

    /// Returns the number of neighbouring positions that a lane reads at once.
    fn width(&self) -> i64 {
        [4, 2].into_iter().find(|width| self.inner % width == 0).unwrap_or(1)
    }

    /// Returns the number of elements of the moved axis that a lane stores at once: 16 bytes at
    /// most.
    fn chunk(&self) -> i64 {
        [8, 4, 2]
            .into_iter()
            .find(|chunk| self.padded % chunk == 0)
            .unwrap_or(1)
    }

    /// Returns whether rows are short and not aligned for wide loads.
    fn is_ragged(&self) -> bool {
        self.outer < 1 << 20
            && self.inner <= SHORT
            && self.width() < 4
            && self.moved % WIDEST == 0
            && self.padded == self.moved
    }

    /// Writes the body, and returns the number of workgroups.
    pub(super) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        let float = element(code.context(), self.dtype);
        if self.is_ragged() {
            self.through_lds(code, float)
        } else {
            self.in_registers(code, float)
        }
    }

    /// Copies rows to LDS in memory order, and reads columns from there.
    fn through_lds<'c>(&self, code: &Code<'c>, float: Type<'c>) -> i64 {
        let (lane, workgroup) = (code.lane(), code.workgroup());
        let (source, target) = (code.buffer(0), code.buffer(1));
        let mut rows = ROWS;
        while rows < self.moved && 2 * rows * self.inner <= ELEMENTS {
            rows *= 2;
        }
        let strips = ceil_div(self.moved, rows);
        let (outer, strip) = (workgroup / strips, workgroup % strips);
        let row = strip * rows;
        let from = outer * (self.moved * self.inner) + row * self.inner;
        let vector = float.vector(&[WIDEST]);
        // As many vectors are loaded as are stored.
        let chunks = rows / WIDEST;
        let vectors = chunks * self.inner;
        let passes = ceil_div(vectors, LANES);
        let memory = code.shared(passes * LANES * WIDEST, float);
        for pass in 0..passes {
            let number = lane + pass * LANES;
            let place = number * WIDEST;
            let is_there = number.is_below(vectors);
            let read = code.masked(is_there, from + place, source);
            let loaded = code.load(source, read, vector);
            code.write_vector(loaded, memory, place);
        }
        code.barrier();
        for pass in 0..passes {
            let number = lane + pass * LANES;
            let (position, chunk) = (number / chunks, number % chunks);
            let first = chunk * WIDEST;
            let place = first * self.inner + position;
            let elements: Vec<Ssa<'c>> = (0..WIDEST)
                .map(|next| code.read(memory, place + next * self.inner))
                .collect();
            let column = row + first;
            let to = outer * (self.inner * self.moved) + position * self.moved + column;
            let is_there = position.is_below(self.inner) & column.is_below(self.moved);
            let stored = code.vector(&elements, vector);
            code.store(stored, target, code.masked(is_there, to, target));
        }
        self.outer * strips
    }

    /// Transposes in registers: a lane reads several rows at neighbouring positions.
    fn in_registers<'c>(&self, code: &Code<'c>, float: Type<'c>) -> i64 {
        let (width, depth) = (self.width(), self.chunk());
        let rows = ceil_div(self.padded, depth);
        let most = LANES * width / POSITIONS;
        let down = std::iter::successors(Some(1), |down| Some(down * 2)).find(|&down| down >= rows.min(most));
        let down = down.unwrap_or(1);
        let across = LANES / down;
        let positions = self.outer * self.inner;
        let tall = down * depth;
        let strips = ceil_div(self.padded, tall);
        let tile_width = across * width;
        let workgroups = ceil_div(positions, tile_width) * strips;

        let (lane, workgroup) = (code.lane(), code.workgroup());
        let (strip, tile) = (workgroup % strips, workgroup / strips);
        let within = lane % across * width;
        let position = tile * tile_width + within;
        let chunk = lane / across * depth;
        let row = strip * tall + chunk;
        let (outer, inner) = (position / self.inner, position % self.inner);
        let from = outer * (self.moved * self.inner) + row * self.inner + inner;
        let to = position * self.padded + row;
        let is_inside = position.is_below(positions);
        let exists = is_inside & row.is_below_unless(self.padded % tall == 0, self.padded);
        let (source, target) = (code.buffer(0), code.buffer(1));
        let (from, to) = (code.masked(exists, from, source), code.masked(exists, to, target));
        let vector = if width == 1 { float } else { float.vector(&[width]) };
        let rows: Vec<Ssa<'c>> = (0..depth)
            .map(|next| {
                let mut place = from + next * self.inner;
                if self.padded > self.moved {
                    let is_read = (row + next).is_below(self.moved);
                    place = code.masked(is_read, place, source);
                }
                code.load(source, place, vector)
            })
            .collect();
        for position in 0..width {
            let place = to + position * self.padded;
            code.store(gathered(code, &rows, width, position), target, place);
        }
        workgroups
    }
}
