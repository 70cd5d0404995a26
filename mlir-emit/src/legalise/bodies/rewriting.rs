//! Rewrites a caller's body into forms that the compiler gets right, wherever the body would meet a
//! defect.
//!
//! - A value that may be a constant is computed in another dispatch than its sum
//!   ([`Quirk::ConstantSums`]), and in the memory order of its operand
//!   ([`Quirk::ConstantTransposed`]).
//! - The factors of a sum of products are copied if necessary: into the type of the product, over
//!   all summed loops, with the summed loops innermost (`factors`).
//! - If the compiler would fuse products into their sum and take both for a contraction, the
//!   products are a separate dispatch.
//! - Contractions, reductions beside them and concatenations are separate dispatches if their
//!   fusion is wrong.

use super::factors::{Product, product, root};
use super::varying::Varying;
use crate::custom::elements::{UNKNOWN, element_of, tensor_of};
use crate::quirks::{Quirk, Quirks};
use rotini_custom::{
    Arithmetic, Body, Generic, Loop, Operand, Operation, Place, Scalar, Statement, TensorType, Type, Value,
};
use std::collections::HashMap;

/// Rewrites a function into one that the target's compiler gets right.
pub(crate) fn avoiding(body: Body, quirks: Quirks) -> Body {
    let contracts = body.statements.iter().any(
        |statement| matches!(&statement.operation, Operation::Generic(generic) if product(&body, generic).is_some()),
    );
    let statements = body.statements.clone();
    let mut rewriting = Rewriting {
        body: Body {
            statements: Vec::new(),
            ..body
        },
        quirks,
        varying: Varying::default(),
        products: HashMap::new(),
        behind: HashMap::new(),
        contracts,
    };
    for index in 0..rewriting.body.arguments {
        rewriting.varying.set(Value::argument(index), true);
    }
    for statement in statements {
        rewriting.statement(statement);
    }
    rewriting.end()
}

pub(super) struct Rewriting {
    /// The rewritten function, with its statements so far.
    pub(super) body: Body,
    pub(super) quirks: Quirks,
    varying: Varying,
    /// True if the elements of a tensor are products that the compiler must not fuse into a sum.
    products: HashMap<Value, bool>,
    /// For each tensor, its copy behind a barrier.
    behind: HashMap<Value, Value>,
    /// True if there is a sum of products.
    contracts: bool,
}

impl Rewriting {
    fn statement(&mut self, mut statement: Statement) {
        for source in statement.operation.sources() {
            if let Some(&apart) = self.behind.get(source).filter(|_| self.contracts) {
                *source = apart;
            }
        }
        let result = statement.result;
        let varies = match &statement.operation {
            Operation::Scalar(scalar) => {
                self.varying.note(&self.body, scalar);
                self.varying.is(result)
            }
            Operation::Generic(generic) => {
                let generic = generic.clone();
                return self.generic(result, generic);
            }
            Operation::Fill(_) | Operation::Empty => false,
            Operation::Expand(source, _) | Operation::Collapse(source, _) | Operation::Slice(source, _) => {
                let is_product = self.products.get(source) == Some(&true);
                self.products.insert(result, is_product);
                self.varying.is(*source)
            }
            Operation::Concat(_, sources) => sources.iter().all(|&source| self.varying.is(source)),
            Operation::Apart(_) => true,
        };
        self.varying.set(result, varies);
        self.body.statements.push(statement);
    }

    fn generic(&mut self, result: Value, mut generic: Generic) {
        let terms: i64 = generic
            .reduced()
            .iter()
            .fold(1, |terms, &extent| terms.saturating_mul(extent));
        let sums = generic.combiner().is_some() && (terms > 1 || generic.reduced().is_empty());
        if !sums {
            return self.parallel(result, generic);
        }
        for operand in &mut generic.inputs {
            let is_hidden_product = self.products.get(&operand.value) == Some(&true);
            let may_be_constant = !self.varying.is(operand.value) && self.quirks.avoids(Quirk::ConstantSums);
            if is_hidden_product || may_be_constant {
                operand.value = self.apart(operand.value);
            }
        }
        self.note(&generic);
        if let Some(element) = element(&generic)
            && !self.varying.is(element)
            && self.quirks.avoids(Quirk::ConstantSums)
        {
            generic = self.elements_apart(generic, element);
        }
        if self.quirks.avoids(Quirk::RepeatedFactors) {
            generic = self.written_out(generic);
        }
        let is_contraction = match product(&self.body, &generic) {
            Some(found) => {
                generic = self.factors(generic, &found);
                true
            }
            None => false,
        };
        self.push(result, Operation::Generic(generic));
        self.varying.set(result, true);
        let quirk = if is_contraction {
            Quirk::StoredSums
        } else {
            Quirk::PackedReductions
        };
        if self.contracts && self.quirks.avoids(quirk) && (!is_contraction || self.body.results.len() > 1) {
            self.apart(result);
        }
    }

    /// Appends an elementwise operation. If its result may be a constant, its operands are first
    /// copied into the order in which the result is stored.
    pub(super) fn parallel(&mut self, result: Value, mut generic: Generic) {
        if self.contracts && self.quirks.avoids(Quirk::FoldedSums) {
            self.complete(&mut generic);
        }
        if self.quirks.avoids(Quirk::ConstantTransposed) {
            for operand in &mut generic.inputs {
                if is_turned(operand, &generic.init) && !self.varying.is(operand.value) {
                    operand.value = self.apart(operand.value);
                }
            }
        }
        self.note(&generic);
        let varies = self.varying.is(generic.yielded);
        if !varies && self.quirks.avoids(Quirk::ConstantTransposed) {
            for operand in &mut generic.inputs {
                if is_turned(operand, &generic.init) {
                    let loops = loops_in_order(operand, &generic.init);
                    *operand = self.copied(operand, &generic.extents, &loops, None);
                }
            }
        }
        let is_product = self.is_product(&generic);
        self.products.insert(result, is_product);
        self.push(result, Operation::Generic(generic));
        self.varying.set(result, varies);
    }

    /// Copies the sign of each added element to the element itself: it may be a sum, and the
    /// compiler would start that sum from the other summand ([`Quirk::FoldedSums`]).
    fn complete(&mut self, generic: &mut Generic) {
        let mut body = Vec::with_capacity(generic.body.len());
        for mut scalar in std::mem::take(&mut generic.body) {
            let mut terms = match &scalar.arithmetic {
                Arithmetic::Operation { name, operands, .. } if *name == "arith.addf" => operands.clone(),
                _ => Vec::new(),
            };
            terms.dedup();
            for term in terms.into_iter().filter(|term| generic.arguments.contains(term)) {
                let ty = self.body.types[term.index()].clone();
                let result = self.body.define(ty);
                scalar.arithmetic.replace(term, result);
                let arithmetic = Arithmetic::Operation {
                    name: "math.copysign",
                    operands: vec![term, term],
                    predicate: None,
                    flag: None,
                };
                body.push(Scalar { result, arithmetic });
            }
            body.push(scalar);
        }
        generic.body = body;
    }

    /// Records which values of the loop body vary.
    fn note(&mut self, generic: &Generic) {
        let operands = generic.inputs.iter().chain([&generic.init]);
        for (operand, &argument) in operands.zip(&generic.arguments) {
            let varies = self.varying.is(operand.value);
            self.varying.set(argument, varies);
        }
        for scalar in &generic.body {
            self.varying.note(&self.body, scalar);
        }
    }

    /// Returns true if the elements are products whose sum would be a contraction that the caller
    /// did not write as one: products of two tensors, unless both are arguments, of one type, and
    /// indexed alike. Also true for values computed from one such element.
    fn is_product(&self, generic: &Generic) -> bool {
        if let Some(Product { factors: [a, b], .. }) = product(&self.body, generic) {
            let [a, b] = [a, b].map(|factor| generic.inputs.get(factor.input));
            let (Some(a), Some(b)) = (a, b) else { return true };
            let element = |operand: &Operand| tensor_of(&self.body, operand.value).element;
            let is_given = |operand: &Operand| operand.value.index() < self.body.arguments;
            let is_mixed = element(a) != element(b) && self.quirks.avoids(Quirk::MixedProducts);
            return a.map != b.map || is_mixed || !is_given(a) || !is_given(b);
        }
        let inputs = generic.inputs.iter().zip(&generic.arguments);
        inputs
            .filter(|(operand, _)| self.products.get(&operand.value) == Some(&true))
            .any(|(_, &argument)| root(generic, generic.yielded) == argument)
    }

    /// Splits a reduction: its elements are computed in a separate dispatch, and the reduction
    /// reads them.
    fn elements_apart(&mut self, generic: Generic, made: Value) -> Generic {
        let (Some(combiner), Some(&so_far)) = (generic.combiner().cloned(), generic.arguments.last()) else {
            unreachable!("{UNKNOWN}");
        };
        let Some(Type::Scalar(element)) = self.body.types.get(made.index()).cloned() else {
            unreachable!("{UNKNOWN}");
        };
        let kept: Vec<usize> = (0..generic.loops.len()).collect();
        let mut loops = generic.clone();
        let unused = self.body.define(Type::Scalar(element));
        loops.arguments = generic
            .arguments
            .iter()
            .copied()
            .filter(|&value| value != so_far)
            .chain([unused])
            .collect();
        loops.loops = vec![Loop::Parallel; kept.len()];
        loops.body.retain(|scalar| scalar.result != combiner.result);
        loops.yielded = made;
        let ty = TensorType {
            dims: generic.extents.clone(),
            element,
        };
        let (whole, empty) = self.empty(ty);
        loops.init = Operand {
            value: empty,
            map: kept.iter().copied().map(Place::Loop).collect(),
        };
        self.parallel(whole, loops);
        let map: Vec<Place> = kept.into_iter().map(Place::Loop).collect();
        let value = self.apart(whole);
        let argument = self.body.define(Type::Scalar(element));
        self.varying.set(argument, true);
        let mut combiner = combiner;
        combiner.arithmetic.replace(made, argument);
        Generic {
            inputs: vec![Operand { value, map }],
            arguments: vec![argument, so_far],
            yielded: combiner.result,
            body: vec![combiner],
            ..generic
        }
    }

    /// Copies an operand to a tensor over these loops, in their order, behind a barrier. `made` has
    /// the unary chain that is applied on the way: its first value, its last value, and its
    /// operations.
    pub(super) fn copied(
        &mut self,
        operand: &Operand,
        extents: &[i64],
        loops: &[usize],
        made: Option<(Value, Value, &[Scalar])>,
    ) -> Operand {
        let own = tensor_of(&self.body, operand.value).element;
        let argument = self.body.define(Type::Scalar(own));
        let (mut body, mut yielded, mut element) = (Vec::new(), argument, own);
        if let Some((from, to, scalars)) = made {
            let mut names = HashMap::from([(from, argument)]);
            for scalar in scalars {
                let ty = self.body.types[scalar.result.index()].clone();
                let mut scalar = scalar.clone();
                let result = self.body.define(ty);
                names.insert(scalar.result, result);
                scalar.result = result;
                for (&old, &new) in &names {
                    scalar.arithmetic.replace(old, new);
                }
                body.push(scalar);
            }
            yielded = names[&to];
            element = element_of(&self.body, yielded);
        }
        let of_loop = |index: &usize| extents[*index];
        let dims = loops.iter().map(of_loop).collect::<Vec<_>>();
        let position = |place: &Place| match place {
            Place::Loop(index) => loops
                .iter()
                .position(|one| one == index)
                .map(Place::Loop)
                .expect(UNKNOWN),
            Place::Fixed(index) => Place::Fixed(*index),
        };
        let map = operand.map.iter().map(position).collect::<Vec<_>>();
        let (copy, empty) = self.empty(TensorType {
            dims: dims.clone(),
            element,
        });
        let unused = self.body.define(Type::Scalar(element));
        self.push(
            copy,
            Operation::Generic(Generic {
                loops: vec![Loop::Parallel; loops.len()],
                extents: dims,
                inputs: vec![Operand {
                    value: operand.value,
                    map,
                }],
                init: Operand {
                    value: empty,
                    map: (0..loops.len()).map(Place::Loop).collect(),
                },
                arguments: vec![argument, unused],
                body,
                yielded,
            }),
        );
        let value = self.apart(copy);
        Operand {
            value,
            map: loops.iter().copied().map(Place::Loop).collect(),
        }
    }

    /// Defines a value for a tensor to be computed, and appends its empty initial tensor. Returns
    /// both.
    fn empty(&mut self, ty: TensorType) -> (Value, Value) {
        self.body.elements = self.body.elements.saturating_add(ty.count());
        let empty = self.body.define(Type::Tensor(ty.clone()));
        self.push(empty, Operation::Empty);
        (self.body.define(Type::Tensor(ty)), empty)
    }

    /// Returns the tensor behind a barrier.
    pub(super) fn apart(&mut self, value: Value) -> Value {
        if let Some(&apart) = self.behind.get(&value) {
            return apart;
        }
        let ty = tensor_of(&self.body, value).clone();
        self.body.elements = self.body.elements.saturating_add(ty.count());
        let apart = self.body.define(Type::Tensor(ty));
        self.push(apart, Operation::Apart(value));
        self.varying.set(apart, true);
        self.behind.insert(value, apart);
        apart
    }

    fn push(&mut self, result: Value, operation: Operation) {
        self.body.statements.push(Statement { result, operation });
    }

    /// Returns the function, with results behind barriers if other operations may read them in
    /// another order, or sum them, in a way that the compiler gets wrong.
    fn end(mut self) -> Body {
        for index in 0..self.body.results.len() {
            let result = self.body.results[index];
            let may_be_constant = !self.varying.is(result) && self.quirks.avoids(Quirk::ConstantSums);
            let is_product = self.products.get(&result) == Some(&true);
            let is_apart = self.behind.contains_key(&result);
            if may_be_constant || is_product || is_apart || self.contracts && self.quirks.avoids(Quirk::StoredSums) {
                self.body.results[index] = self.apart(result);
            }
        }
        self.body
    }
}

/// Returns the operand of a reduction's combiner that is not the accumulator.
pub(super) fn element(generic: &Generic) -> Option<Value> {
    let so_far = generic.arguments.last()?;
    let operands = generic.combiner()?.arithmetic.operands();
    operands.iter().copied().find(|operand| operand != so_far)
}

/// Returns the loops of an operand in the order in which the result has them; loops that the result
/// lacks come first.
fn loops_in_order(operand: &Operand, init: &Operand) -> Vec<usize> {
    let mut loops = loops_of(operand);
    loops.sort_by_key(|index| init.map.iter().position(|place| *place == Place::Loop(*index)));
    loops
}

pub(super) fn loops_of(operand: &Operand) -> Vec<usize> {
    let loops = operand.map.iter().filter_map(|place| match place {
        Place::Loop(index) => Some(*index),
        Place::Fixed(_) => None,
    });
    loops.collect()
}

/// Returns true if an operand is read in another order than that in which the result is stored.
fn is_turned(operand: &Operand, init: &Operand) -> bool {
    loops_of(operand) != loops_in_order(operand, init)
}
