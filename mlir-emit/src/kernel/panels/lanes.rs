//! Offsets of a vector's lanes, and loads and stores of vectors at these offsets.

use super::{Along, LEFT, OUT, RIGHT, varies};
use crate::counts::ceil_div;
use crate::ir::IntegerPredicate;
use crate::kernel::code::{Code, Int, Ssa};
use crate::mlir::{Attribute, Float, Name, Type};

/// The offsets of a vector's lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'c> {
    first: Int<'c>,
    step: Step<'c>,
}

/// The distances between the lanes of a vector.
#[derive(Clone, Copy, Debug)]
enum Step<'c> {
    /// The lanes are contiguous.
    One,
    /// Every other element. The elements are in two vectors: one begins at the first element, the
    /// other ends at the last. If some lanes have no column, each vector has a mask.
    Two(Option<[Ssa<'c>; 2]>),
    /// Each lane has its own distance from `first`.
    Any(Ssa<'c>),
}

/// The columns of one vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column<'c> {
    /// The lanes that have a column; `None` if all have.
    mask: Option<Ssa<'c>>,
    /// The place in the left tensor, if that tensor varies along columns.
    left: Option<Place<'c>>,
    right: Place<'c>,
    out: Place<'c>,
}

/// Writes loads and stores of vectors.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'k, 'c> {
    pub(super) code: &'k Code<'c>,
    pub(super) count: i64,
}

impl<'c> Lanes<'_, 'c> {
    /// The type of a vector.
    pub(super) fn vector(&self) -> Type<'c> {
        Type::float(self.code.context(), Float::F32).vector(&[self.count])
    }

    fn words(&self) -> Type<'c> {
        Type::integer(self.code.context(), 32).vector(&[self.count])
    }

    fn truths(&self) -> Type<'c> {
        Type::integer(self.code.context(), 1).vector(&[self.count])
    }

    fn constant(&self, text: &str, r#type: Type<'c>) -> Ssa<'c> {
        let value = Attribute::text(&format!("dense<{text}> : {}", r#type));
        self.code.literal(value, r#type)
    }

    fn splat(&self, number: i64) -> Ssa<'c> {
        self.constant(&number.to_string(), self.words())
    }

    /// Returns a vector of `first` and the numbers after it, one in each lane.
    fn from(&self, first: Int<'c>) -> Ssa<'c> {
        let numbers = self.code.multiples(1, self.count);
        let first = self.code.word(first);
        let first = first.broadcast(self.words());
        first + numbers
    }

    fn below(&self, numbers: Ssa<'c>, end: i64) -> Ssa<'c> {
        self.code
            .compare_integers(IntegerPredicate::Below, numbers, self.splat(end))
    }

    /// Returns the vector `number` of columns that are contiguous, or every other element, in the
    /// right tensor. Each run of columns has whole vectors.
    pub(super) fn of_run(&self, columns: &[Along], number: Int<'c>) -> Column<'c> {
        let Some((inner, outer)) = columns.split_last() else {
            unreachable!("a run without columns");
        };
        let vectors = ceil_div(inner.extent, self.count);
        let (run, within) = (number / vectors, number % vectors);
        let lane = within * self.count;
        let places = places(run, outer);
        let mask_of_lanes = if inner.extent % self.count == 0 {
            None
        } else {
            Some(self.below(self.from(lane), inner.extent))
        };
        let place = |tensor: usize| -> Place<'c> {
            let stride = inner.strides[tensor];
            let step = match stride {
                1 => Step::One,
                2 if tensor == RIGHT => {
                    let mask = |from: i64| -> Ssa<'c> {
                        let numbers = self.from(lane * 2 + from);
                        self.below(numbers, 2 * inner.extent - 1)
                    };
                    Step::Two(mask_of_lanes.map(|_| [mask(0), mask(self.count - 1)]))
                }
                _ => {
                    let numbers = self.from(0.into());
                    Step::Any(numbers * self.splat(stride))
                }
            };
            Place {
                first: places[tensor] + lane * stride,
                step,
            }
        };
        let left = if varies(columns) { Some(place(LEFT)) } else { None };
        Column {
            mask: mask_of_lanes,
            left,
            right: place(RIGHT),
            out: place(OUT),
        }
    }

    /// Returns the vector `number` of columns with arbitrary strides. `all`: the number of columns.
    pub(super) fn gathered(&self, columns: &[Along], number: Int<'c>, all: i64) -> Column<'c> {
        let first = number * self.count;
        let numbers = self.from(first);
        let mask = if all % self.count == 0 {
            None
        } else {
            Some(self.below(numbers, all))
        };
        // Lanes without a column have the place of the last column.
        let numbers = match mask {
            Some(_) => numbers.minui(self.splat(all - 1)),
            None => numbers,
        };
        let lanes = |tensor: usize| -> Ssa<'c> {
            let (mut rest, mut sum) = (numbers, self.splat(0));
            for (position, axis) in columns.iter().enumerate().rev() {
                let here = if position == 0 {
                    rest
                } else {
                    let extent = self.splat(axis.extent);
                    let here = rest.remui(extent);
                    rest = rest.divui(extent);
                    here
                };
                let moved = here * self.splat(axis.strides[tensor]);
                sum = sum + moved;
            }
            sum
        };
        let right = Place {
            first: 0.into(),
            step: Step::Any(lanes(RIGHT)),
        };
        let out = match super::single(columns, OUT) {
            Some(1) => Place { first, step: Step::One },
            _ => Place {
                first: 0.into(),
                step: Step::Any(lanes(OUT)),
            },
        };
        let left = if varies(columns) {
            Some(Place {
                first: 0.into(),
                step: Step::Any(lanes(LEFT)),
            })
        } else {
            None
        };
        Column { mask, left, right, out }
    }

    /// Loads elements of the left tensor at offset `from`: those of the columns, or one for all
    /// columns.
    pub(super) fn left(&self, buffer: Ssa<'c>, from: Int<'c>, column: &Column<'c>) -> Ssa<'c> {
        if let Some(place) = column.left {
            return self.load(buffer, from, place, column.mask);
        }
        let number = self.code.read(buffer, from);
        number.broadcast(self.vector())
    }

    /// Loads elements of the right tensor at offset `from`.
    pub(super) fn right(&self, buffer: Ssa<'c>, from: Int<'c>, column: &Column<'c>) -> Ssa<'c> {
        self.load(buffer, from, column.right, column.mask)
    }

    /// Loads elements of the result at offset `from`.
    pub(super) fn out(&self, buffer: Ssa<'c>, from: Int<'c>, column: &Column<'c>) -> Ssa<'c> {
        self.load(buffer, from, column.out, column.mask)
    }

    fn load(&self, buffer: Ssa<'c>, from: Int<'c>, place: Place<'c>, mask: Option<Ssa<'c>>) -> Ssa<'c> {
        let code = self.code;
        let vector = self.vector();
        let first = from + place.first;
        let beside = |first: Int<'c>, mask| code.read_masked(buffer, first, mask, vector);
        match (place.step, mask) {
            (Step::One, mask) => beside(first, mask),
            (Step::Two(masks), _) => {
                // The last element that is read is the last lane's.
                let behind = first + (self.count - 1);
                let [low, high] = [(first, 0), (behind, 1)]
                    .map(|(first, number): (Int<'c>, usize)| beside(first, masks.map(|masks| masks[number])));
                let half = self.count / 2;
                let lanes = (0..self.count).map(|lane| if lane < half { 2 * lane } else { 2 * lane + 1 });
                code.shuffle([low, high], &lanes.collect::<Vec<_>>())
            }
            (Step::Any(lanes), mask) => {
                let first = code.index(first);
                let operands = [buffer, first, lanes, self.mask(mask), code.zeros(vector)];
                code.one(Name::VectorGather, &operands, vector, &[])
            }
        }
    }

    /// Stores a vector to the result at offset `from`.
    pub(super) fn store(&self, value: Ssa<'c>, (buffer, from): (Ssa<'c>, Int<'c>), column: &Column<'c>) {
        let code = self.code;
        let first = from + column.out.first;
        match column.out.step {
            Step::One => code.write_masked(value, buffer, first, column.mask),
            Step::Two(_) => unreachable!("a store to every other element"),
            Step::Any(lanes) => {
                let operands = [buffer, code.index(first), lanes, self.mask(column.mask), value];
                code.run(Name::VectorScatter, &operands);
            }
        }
    }

    fn mask(&self, mask: Option<Ssa<'c>>) -> Ssa<'c> {
        match mask {
            Some(mask) => mask,
            None => self.constant("true", self.truths()),
        }
    }
}

/// Returns the offset in each tensor of the step with this number of some loops.
pub(super) fn places<'c>(number: Int<'c>, axes: &[Along]) -> super::Places<'c> {
    let mut places = [Int::Known(0); 3];
    let mut rest = number;
    for (position, axis) in axes.iter().enumerate().rev() {
        let here = if position == 0 {
            rest
        } else {
            let here = rest % axis.extent;
            rest = rest / axis.extent;
            here
        };
        for (place, stride) in places.iter_mut().zip(axis.strides) {
            *place = *place + here * stride;
        }
    }
    places
}
