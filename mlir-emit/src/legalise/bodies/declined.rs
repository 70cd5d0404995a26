//! Bodies that the compiler gets wrong and that no rewrite corrects.

use super::factors::function_of_products;
use crate::quirks::{Quirk, Quirks};
use crate::target::Target;
use rotini_custom::{Body, Generic, Operation};

/// Returns the reason why a body is declined for a target; `None` if it is accepted.
pub(crate) fn declined(body: &Body, target: &Target) -> Option<String> {
    let quirks = Quirks::of(target);
    let mut long = 0;
    let mut generics = body
        .statements
        .iter()
        .filter_map(|statement| match &statement.operation {
            Operation::Generic(generic) => Some(generic),
            _ => None,
        });
    generics.find_map(|generic| {
        let is_long = is_long(generic, quirks);
        long += usize::from(is_long);
        if is_long && long > 1 {
            return Some(
                "several sums of more than 32 terms whose number is no multiple of 64, which do not compile in bounded time"
                    .to_owned(),
            );
        }
        let extents = generic.reduced();
        if let Some(name) = function_of_products(body, generic)
            && quirks.avoids(Quirk::ForgottenFunctions)
        {
            return Some(format!(
                "a sum of {name} of products, which the compiler forgets on GPUs: products in a linalg.generic of their own are right"
            ));
        }
        if let Some(combiner) = generic.combiner()
            && ["arith.minsi", "arith.maxsi"].contains(&combiner.arithmetic.name())
            && quirks.avoids(Quirk::SignedExtremes)
            && extents.iter().any(|&extent| extent > 1)
        {
            return Some(format!(
                "{} along an axis, which the compiler computes wrongly on GPUs where it knows all signs: arith.minui and arith.maxui of \
                 integers whose highest bit is turned are right",
                combiner.arithmetic.name()
            ));
        }
        quirks.loses_sums(target, &extents).then(|| {
            format!(
                "{extents:?} reduced at once, which the compiler computes wrongly on GPUs: one loop after the other is right"
            )
        })
    })
}

/// Returns true if the compiler would give the whole sum to one thread
/// ([`Quirk::UnspreadReductions`]): in the form that a body gives them, the compiler does not
/// finish with several such sums. Operations of the schema are lowered to another form.
fn is_long(generic: &Generic, quirks: Quirks) -> bool {
    let extents = generic.reduced();
    let terms = extents
        .iter()
        .fold(1_i64, |terms, &extent| terms.saturating_mul(extent));
    quirks.avoids(Quirk::UnspreadReductions) && terms > 32 && terms % 64 != 0
}
