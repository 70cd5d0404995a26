//! Vectors on CPUs: numbers and masks of their lanes, loads and stores of some lanes, and sums of
//! lanes.

use super::code::{Code, Int, Ssa};
use crate::mlir::{Attribute, Name, Type};

impl<'c> Code<'c> {
    /// Loads a vector from memory. Lanes outside the mask, if there is one, are zeros, and are not
    /// read.
    pub(super) fn read_masked(
        &self,
        memory: Ssa<'c>,
        place: Int<'c>,
        mask: Option<Ssa<'c>>,
        vector: Type<'c>,
    ) -> Ssa<'c> {
        let Some(mask) = mask else {
            return self.read_vector(memory, place, vector);
        };
        let operands = [memory, self.index(place), mask, self.zeros(vector)];
        self.one(Name::VectorMaskedload, &operands, vector, &[])
    }

    /// Stores a vector to memory, without the lanes outside the mask, if there is one.
    pub(super) fn write_masked(&self, vector: Ssa<'c>, memory: Ssa<'c>, place: Int<'c>, mask: Option<Ssa<'c>>) {
        match mask {
            None => self.write_vector(vector, memory, place),
            Some(mask) => self.run(Name::VectorMaskedstore, &[memory, self.index(place), mask, vector]),
        }
    }

    /// Loads lanes at these distances from a place in memory. Lanes outside the mask are zeros.
    pub(super) fn gather(
        &self,
        memory: Ssa<'c>,
        place: Int<'c>,
        [distances, mask]: [Ssa<'c>; 2],
        vector: Type<'c>,
    ) -> Ssa<'c> {
        let operands = [memory, self.index(place), distances, mask, self.zeros(vector)];
        self.one(Name::VectorGather, &operands, vector, &[])
    }

    /// Returns a mask with the first `count` lanes.
    pub(super) fn first_lanes(&self, count: i64, lanes: i64) -> Ssa<'c> {
        let truths = Type::integer(self.context(), 1).vector(&[lanes]);
        self.of_each_lane(truths, (0..lanes).map(|lane| lane < count))
    }

    /// Returns the multiples of `step` from 0 on, one in each lane, in 32 bits.
    pub(super) fn multiples(&self, step: i64, lanes: i64) -> Ssa<'c> {
        let words = Type::integer(self.context(), 32).vector(&[lanes]);
        self.of_each_lane(words, (0..lanes).map(|lane| lane * step))
    }

    fn of_each_lane(&self, vector: Type<'c>, lanes: impl Iterator<Item = impl ToString>) -> Ssa<'c> {
        let lanes: Vec<String> = lanes.map(|lane| lane.to_string()).collect();
        let value = Attribute::text(&format!("dense<[{}]> : {vector}", lanes.join(", ")));
        self.literal(value, vector)
    }

    /// Returns the sum of a vector's lanes.
    pub(super) fn sum_of_lanes(&self, vector: Ssa<'c>) -> Ssa<'c> {
        // Reassociation is allowed; otherwise the lanes would be added one after the other.
        let added = [
            ("kind", Attribute::text("#vector.kind<add>")),
            ("fastmath", Attribute::text("#arith.fastmath<reassoc>")),
        ];
        let (_, element) = vector.r#type().as_vector();
        self.one(Name::VectorReduction, &[vector], element, &added)
    }
}
