//! Writes the panels kernel.

use super::lanes::{Column, Lanes, places};
use super::{LEFT, OUT, Panels, Part, Places, RIGHT, Tiling, single};
use crate::counts::signed;
use crate::kernel::code::{Code, Int, Ssa};
use crate::mlir::{Float, Name, Type};

const OVERFLOW: &str = "a sum of products that cannot be counted";

impl Panels {
    /// Writes the body, and returns the number of workgroups.
    pub(in crate::kernel) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        let float = Type::float(code.context(), Float::F32);
        let parts: Vec<Part> = self.parts.iter().map(Part::merged).collect();
        let tilings = parts.iter().map(|part| Tiling::of(part, self.registers));
        let tilings: Vec<Tiling> = tilings.collect::<Option<_>>().expect(OVERFLOW);
        let most = |count: &dyn Fn(&Tiling) -> i64| tilings.iter().map(count).max().unwrap_or(1).max(1);
        let lanes = self.registers.lanes;
        let panel = most(&|tiling| tiling.block * tiling.vectors * lanes);
        let panel = code.stack(panel, float);
        let table = if tilings.iter().any(|tiling| tiling.has_table) {
            Some(code.stack(most(&|tiling| tiling.block), Type::integer(code.context(), 64)))
        } else {
            None
        };
        let buffers = code.buffers();
        let workgroup = code.workgroup();
        let mut first = 0;
        for (part, tiling) in parts.iter().zip(&tilings) {
            let count = tiling.workgroups().expect(OVERFLOW);
            let own = workgroup - first;
            let is_own = own.is_below_unless(parts.len() == 1, count);
            let writer = Writer {
                code,
                part,
                tiling,
                lanes: Lanes { code, count: lanes },
                buffers,
                panel,
                table,
            };
            code.when(is_own, || {
                writer.workgroup(own);
            });
            first += count;
        }
        first
    }
}

/// Writes one part of the kernel.
struct Writer<'k, 'c> {
    code: &'k Code<'c>,
    part: &'k Part,
    tiling: &'k Tiling,
    lanes: Lanes<'k, 'c>,
    buffers: [Ssa<'c>; 3],
    panel: Ssa<'c>,
    table: Option<Ssa<'c>>,
}

/// A block of terms that are summed at a time.
#[derive(Clone, Copy)]
struct Terms<'c> {
    first: Int<'c>,
    count: Int<'c>,
    /// Whether the result holds the sums of earlier terms.
    are_more: Int<'c>,
}

impl<'c> Writer<'_, 'c> {
    fn workgroup(&self, own: Int<'c>) {
        let (code, tiling) = (self.code, self.tiling);
        let across = tiling.across();
        let (tile, rest) = (own % across, own / across);
        let (chunk, batch) = (rest % tiling.chunks, rest / tiling.chunks);
        let mut base = places(batch, &self.part.batch);
        for (place, first) in base.iter_mut().zip(self.part.first) {
            *place = *place + first;
        }
        let whole = tiling.all / tiling.vectors;
        code.when(tile.is_below(whole), || {
            self.tile(base, tile, chunk, tiling.vectors);
        });
        let rest = tiling.all % tiling.vectors;
        if rest > 0 {
            let is_last = (tile - whole).is_below(1);
            code.when(is_last, || {
                self.tile(base, tile, chunk, rest);
            });
        }
    }

    /// Computes the sums of a tile of columns. `vectors`: the number of vectors of the tile.
    fn tile(&self, base: Places<'c>, tile: Int<'c>, chunk: Int<'c>, vectors: i64) {
        let (code, tiling) = (self.code, self.tiling);
        let all = super::count(&self.part.columns).expect(OVERFLOW);
        let columns: Vec<_> = (0..vectors)
            .map(|vector| {
                let number = tile * tiling.vectors + vector;
                if tiling.has_runs {
                    self.lanes.of_run(&self.part.columns, number)
                } else {
                    self.lanes.gathered(&self.part.columns, number, all)
                }
            })
            .collect();
        let all_rows = |terms: Option<Terms<'c>>| {
            let whole = tiling.rows / tiling.down;
            let first = chunk * tiling.each;
            let end = (first + tiling.each).min(whole);
            code.each([first, end, 1.into()], |number| {
                let row = number * tiling.down;
                self.rows(base, &columns, (row, tiling.down), terms);
            });
            let rest = tiling.rows % tiling.down;
            if rest > 0 {
                let is_last = (tiling.chunks - 1 - chunk).is_below(1);
                code.when(is_last, || {
                    self.rows(base, &columns, ((whole * tiling.down).into(), rest), terms);
                });
            }
        };
        if tiling.terms == 0 {
            return all_rows(None);
        }
        let block = |terms: Terms<'c>| {
            if !tiling.is_read_once() {
                self.copy(base[RIGHT], &columns, terms);
            }
            all_rows(Some(terms))
        };
        if tiling.terms <= tiling.block {
            return block(Terms {
                first: 0.into(),
                count: tiling.terms.into(),
                are_more: 0.into(),
            });
        }
        code.each([0.into(), tiling.terms.into(), tiling.block.into()], |first| {
            block(Terms {
                first,
                count: (tiling.terms - first).min(tiling.block),
                are_more: Int::Known(0).is_below(first),
            });
        });
    }

    /// Copies a block of terms to the panel, and writes the table of the terms' offsets in the left
    /// tensor.
    fn copy(&self, right: Int<'c>, columns: &[Column<'c>], terms: Terms<'c>) {
        let code = self.code;
        code.each([0.into(), terms.count, 1.into()], |term| {
            let place = places(terms.first + term, &self.part.terms);
            if let (Some(table), true) = (self.table, self.tiling.has_table) {
                // The compiler crashes if indices are stored on the stack.
                let long = Type::integer(code.context(), 64);
                let place = code.index(place[LEFT]).index_cast(long);
                let operands = [place, table, code.index(term)];
                code.run(Name::MemrefStore, &operands);
            }
            let from = right + place[RIGHT];
            for (number, column) in (0..).zip(columns) {
                let elements = self.lanes.right(self.buffers[RIGHT], from, column);
                code.write_vector(elements, self.panel, self.in_panel(term, number, columns.len()));
            }
        });
    }

    /// Returns the offset of a term's vector in the panel. `vectors`: the number of vectors per
    /// term.
    fn in_panel(&self, term: Int<'c>, number: i64, vectors: usize) -> Int<'c> {
        let vectors = signed(vectors);
        term * (vectors * self.lanes.count) + number * self.lanes.count
    }

    /// Adds the products of some terms to the sums of some rows. Without terms the sums are zeros.
    fn rows(&self, base: Places<'c>, columns: &[Column<'c>], (row, down): (Int<'c>, i64), terms: Option<Terms<'c>>) {
        let code = self.code;
        let vector = self.lanes.vector();
        let own = |tensor: usize| -> Vec<Int<'c>> {
            let rows = &self.part.rows;
            let first = || base[tensor] + places(row, rows)[tensor];
            match single(rows, tensor) {
                Some(stride) => {
                    let first = first();
                    (0..down).map(|next| first + next * stride).collect()
                }
                None => (0..down)
                    .map(|next| base[tensor] + places(row + next, rows)[tensor])
                    .collect(),
            }
        };
        let out = own(OUT);
        let pairs = || {
            out.iter()
                .flat_map(|&row| columns.iter().map(move |column| (row, column)))
        };
        let zeros = pairs().map(|_| code.zeros(vector)).collect::<Vec<_>>();
        let sums = match terms {
            None => zeros,
            Some(terms) => {
                let so_far = code.replaced(terms.are_more, &zeros, || {
                    pairs()
                        .map(|(row, column)| self.lanes.out(self.buffers[OUT], row, column))
                        .collect()
                });
                // Each block is summed by itself and then added: this has fewer roundings than one
                // long sum.
                let sums = self.products((&own(LEFT), base[RIGHT]), columns, terms, &zeros);
                let both = sums.into_iter().zip(so_far);
                both.map(|(sum, so_far)| sum + so_far).collect()
            }
        };
        for (sum, (row, column)) in sums.into_iter().zip(pairs()) {
            self.lanes.store(sum, (self.buffers[OUT], row), column);
        }
    }

    /// Returns the sums of the products of some terms, added to `start`. `rows`: the offsets of the
    /// rows in the left tensor. `right`: the offset of the columns in the right tensor.
    fn products(
        &self,
        (rows, right): (&[Int<'c>], Int<'c>),
        columns: &[Column<'c>],
        terms: Terms<'c>,
        start: &[Ssa<'c>],
    ) -> Vec<Ssa<'c>> {
        let code = self.code;
        if !self.tiling.is_read_once() {
            let (vector, vectors) = (self.lanes.vector(), columns.len());
            return code.repeat([0.into(), terms.count, 1.into()], start, |term, sums| {
                let panel = (0_i64..)
                    .zip(0..vectors)
                    .map(|(number, _)| code.read_vector(self.panel, self.in_panel(term, number, vectors), vector));
                let panel: Vec<_> = panel.collect();
                self.summed((rows, self.moved(terms.first, term)), columns, &panel, sums)
            });
        }
        let unrolled = self.tiling.unrolled;
        let next = match self.part.terms.last() {
            Some(inner) if unrolled > 1 => inner.strides,
            _ => [0; 3],
        };
        code.repeat([0.into(), terms.count, unrolled.into()], start, |term, sums| {
            let place = places(terms.first + term, &self.part.terms);
            let from = right + place[RIGHT];
            let mut sums = sums.to_vec();
            for number in 0..unrolled {
                let from = from + number * next[RIGHT];
                let panel = columns
                    .iter()
                    .map(|column| self.lanes.right(self.buffers[RIGHT], from, column));
                let panel: Vec<_> = panel.collect();
                sums = self.summed((rows, place[LEFT] + number * next[LEFT]), columns, &panel, &sums);
            }
            sums
        })
    }

    /// Adds the products of one term to the sums. `moved`: the term's offset from the first term in
    /// the left tensor. `panel`: the term's elements of the right tensor.
    fn summed(
        &self,
        (rows, moved): (&[Int<'c>], Int<'c>),
        columns: &[Column<'c>],
        panel: &[Ssa<'c>],
        sums: &[Ssa<'c>],
    ) -> Vec<Ssa<'c>> {
        let mut sums = sums.iter();
        let mut next = Vec::new();
        for &row in rows {
            let place = row + moved;
            let mut number = None;
            for (column, &elements) in columns.iter().zip(panel) {
                let left = match number.filter(|_| !super::varies(&self.part.columns)) {
                    Some(number) => number,
                    None => self.lanes.left(self.buffers[LEFT], place, column),
                };
                number = Some(left);
                let &sum = sums.next().expect(OVERFLOW);
                next.push(left.vector_fma(elements, sum));
            }
        }
        next
    }

    /// Returns the offset of a term from the first term in the left tensor.
    fn moved(&self, first: Int<'c>, term: Int<'c>) -> Int<'c> {
        let code = self.code;
        match (single(&self.part.terms, LEFT), self.table) {
            (Some(stride), _) => (first + term) * stride,
            (None, Some(table)) => {
                let place = code.read(table, term);
                Int::Made(place.index_cast(code.index_type()))
            }
            (None, None) => unreachable!("terms without a table"),
        }
    }
}
