//! Products of matrices on CPUs whose operands both have the summed axis innermost, as a filter has it: nothing is packed.
//!
//! Example: 49 positions of 4608 terms by 512 filters. Packing the filter's 9 MB would take as long as a third of the products. A vector
//! has 16 terms of a row, and its lanes are added at the end. A tile of 7 rows by 4 columns has 28 sums, which with what they are made of
//! fill the 32 registers of 512 bits; so this is for CPUs that have those ([`has_wide_registers`]).

use super::code::{Code, Int, Ssa};
use super::gemm::Written;
use crate::EmitError;
use crate::mlir::{Attribute, Context, Float, Type};

/// Terms of a vector.
const LANES: i64 = 16;
/// Rows and columns of a tile.
const TILE: [i64; 2] = [7, 4];
/// Columns of a workgroup.
const STRIP: i64 = 32;
/// Fewest terms that are worth the addition of lanes.
const TERMS: i64 = 256;

/// Whether this machine's CPU, for which graphs are compiled, has 32 registers of 512 bits.
pub(crate) fn has_wide_registers() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The product of a \[rows, terms\] matrix and the transpose of a \[columns, terms\] one, in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dots {
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    pub(crate) terms: i64,
}

impl Dots {
    /// Whether there is a kernel for it.
    pub(crate) fn is_possible(&self) -> bool {
        const MOST: i64 = 1 << 40;
        let is_counted = |a: i64, b: i64| a.checked_mul(b).is_some_and(|count| count < MOST);
        let [_, across] = TILE;
        self.rows > 0
            && self.terms >= TERMS
            && self.terms % LANES == 0
            && self.columns % across == 0
            && is_counted(self.rows, self.terms)
            && is_counted(self.columns, self.terms)
            && is_counted(self.rows, self.columns)
    }

    /// Elements of both matrices and of the product.
    pub(super) fn elements(&self) -> [i64; 3] {
        let Dots {
            rows, columns, terms, ..
        } = *self;
        [rows * terms, columns * terms, rows * columns]
    }

    /// What it is, for people who read the kernel's name.
    pub(super) fn name(&self) -> String {
        format!("dots_{}x{}x{}_f32", self.rows, self.columns, self.terms)
    }

    /// Writes the kernel. Its arguments are a number that is not used, the workgroup, and the buffers.
    pub(super) fn write<'c>(&self, context: &'c Context) -> Result<Written<'c>, EmitError> {
        let (index, float) = (Type::index(context), Type::float(context, Float::F32));
        let mut arguments = vec![index, index];
        for count in self.elements() {
            arguments.push(float.memref(&[count], None)?);
        }
        let code = Code::new(context, &arguments);
        let first = code.mul(Int::Made(code.argument(1)?), STRIP)?;
        let end = code.add(first, STRIP)?;
        let end = code.select(code.is_below(end, self.columns)?, end, self.columns)?;
        let buffers = [code.argument(2)?, code.argument(3)?, code.argument(4)?];
        let [down, across] = [TILE[0].min(self.rows), TILE[1]];
        code.repeat([first, end, across.into()], &[], |column, _| {
            code.repeat([0.into(), self.rows.into(), down.into()], &[], |row, _| {
                // The last tile ends with the last row: what it shares with the one before is computed again.
                let last = self.rows - down;
                let row = code.select(code.is_below(row, last)?, row, last)?;
                self.tile(&code, buffers, [row, column], [down, across])?;
                Ok(Vec::new())
            })?;
            Ok(Vec::new())
        })?;
        code.op("func.return", &[], &[], &[], Vec::new())?;
        Ok(Written {
            block: code.finish()?,
            workgroups: (self.columns + STRIP - 1) / STRIP,
        })
    }

    /// The sums of some rows and columns.
    fn tile<'c>(
        &self,
        code: &Code<'c>,
        [a, b, out]: [Ssa<'c>; 3],
        [row, column]: [Int<'c>; 2],
        [down, across]: [i64; 2],
    ) -> Result<(), EmitError> {
        let float = Type::float(code.context(), Float::F32);
        let vector = float.vector(&[LANES])?;
        let starts = |first: Int<'c>, count: i64| -> Result<Vec<Int<'c>>, EmitError> {
            (0..count)
                .map(|next| code.mul(code.add(first, next)?, self.terms))
                .collect()
        };
        let (rows, columns) = (starts(row, down)?, starts(column, across)?);
        let zero = code.zeros(vector)?;
        let zeros = vec![zero; rows.len() * columns.len()];
        let sums = code.repeat([0.into(), self.terms.into(), LANES.into()], &zeros, |term, sums| {
            let loaded = |buffer: Ssa<'c>, start: &Int<'c>| {
                let place = code.index(code.add(*start, term)?)?;
                code.one("vector.load", &[buffer, place], vector, &[])
            };
            let right: Vec<_> = columns.iter().map(|start| loaded(b, start)).collect::<Result<_, _>>()?;
            let mut sums = sums.iter();
            let mut next = Vec::new();
            for start in &rows {
                let left = loaded(a, start)?;
                for (&right, &sum) in right.iter().zip(&mut sums) {
                    next.push(code.one("vector.fma", &[left, right, sum], vector, &[])?);
                }
            }
            Ok(next)
        })?;
        // In any order, else the lanes are added one after the other.
        let added = [
            ("kind", Attribute::text("#vector.kind<add>")),
            ("fastmath", Attribute::text("#arith.fastmath<reassoc>")),
        ];
        let mut sums = sums.into_iter();
        for down in 0..down {
            let line = code.add(code.mul(code.add(row, down)?, self.columns)?, column)?;
            for (across, sum) in (0..across).zip(&mut sums) {
                let sum = code.one("vector.reduction", &[sum], float, &added)?;
                let place = code.index(code.add(line, across)?)?;
                code.op("memref.store", &[sum, out, place], &[], &[], Vec::new())?;
            }
        }
        Ok(())
    }
}
