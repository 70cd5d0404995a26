//! Random valid graphs of every operation, from a seed.
//!
//! A [`Recipe`] is a list of steps; each has a family of operations and the choices that it
//! consumes in order. Every recipe gives a valid graph ([`Recipe::graph`]): a step whose operation
//! does not fit the graph so far is omitted. Shrinking a failing recipe therefore needs no
//! knowledge of graphs: fewer steps and smaller choices give simpler graphs.
//!
//! Graph `i` of a run has the seed `ROTINI_SEED` + `i`; to repeat it, set `ROTINI_SEED` to its seed
//! and `ROTINI_GRAPHS=1`.
//!
//! | Module | Contents |
//! |---|---|
//! | `choices` | the numbers that determine a step |
//! | `draft` | the graph so far: operands to choose from, memory orders, types |
//! | `run` | the run: accepted graphs are right, declined ones have a reason |
//! | `second` | the run of graphs from the second encoder, with truth values and FNUZ |
//! | the others | one per family of operations |

mod attention;
mod blocks;
mod choices;
mod convolution;
mod draft;
mod matmul;
mod norm;
mod pointwise;
mod pooling;
mod reduction;
mod run;
mod second;

pub use run::{Settings, run};
pub use second::run_second;

use choices::Choices;
use draft::Draft;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rotini_graph::Graph;

/// A function that adds one node of a family to a graph, with its operands; `None` if it does not
/// fit the graph so far.
type Add = fn(&mut Draft, &mut Choices<'_>) -> Option<()>;

/// Frequency of a family.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    /// In every graph, with this weight.
    Common(usize),
    /// In a quarter of the graphs, beside the common families: declined choices, which would leave
    /// few long graphs to run if they were in every graph.
    Rare,
}

/// Every family. A new operation needs an entry here.
const FAMILIES: &[(Share, Add)] = &[
    (Share::Common(16), pointwise::unary),
    (Share::Common(20), pointwise::binary),
    (Share::Common(4), pointwise::gradient),
    (Share::Common(4), pointwise::select),
    (Share::Common(6), pointwise::integer),
    (Share::Common(2), pointwise::index),
    (Share::Common(5), convolution::fprop),
    (Share::Common(3), convolution::dgrad),
    (Share::Common(3), convolution::wgrad),
    (Share::Common(6), matmul::matmul),
    (Share::Common(7), reduction::reduction),
    (Share::Common(2), norm::batchnorm_inference),
    (Share::Common(2), norm::batchnorm_inference_variance),
    (Share::Common(2), norm::batchnorm),
    (Share::Common(2), norm::batchnorm_backward),
    (Share::Common(2), norm::layernorm),
    (Share::Common(2), norm::layernorm_backward),
    (Share::Common(2), norm::rms_norm),
    (Share::Common(2), norm::rms_norm_backward),
    (Share::Common(3), attention::sdpa),
    (Share::Common(2), attention::sdpa_backward),
    (Share::Common(3), pooling::forward),
    (Share::Common(2), pooling::backward),
    (Share::Common(3), blocks::dequantize),
    (Share::Common(3), blocks::quantize),
    (Share::Common(2), matmul::grouped),
    (Share::Common(2), matmul::grouped_backward),
    (Share::Rare, blocks::custom),
];

/// The families whose operands and results may be truth values.
const READ_TRUTHS: [Add; 6] = [
    pointwise::unary,
    pointwise::binary,
    pointwise::gradient,
    pointwise::select,
    pointwise::integer,
    reduction::reduction,
];

/// The families of graphs of attention only, which `ROTINI_FAMILY=attention` selects.
const OF_ATTENTION: &[(Share, Add)] = &[
    (Share::Common(5), attention::sdpa),
    (Share::Common(4), attention::sdpa_backward),
    (Share::Common(1), pointwise::unary),
    (Share::Common(1), pointwise::binary),
];

/// Returns true if graphs have attention only, large enough for all its kernels.
fn is_about_attention() -> bool {
    std::env::var("ROTINI_FAMILY").is_ok_and(|family| family == "attention")
}

/// The weight of a rare family in the graphs that have any.
const RARE: usize = 3;

/// The random numbers that determine a graph.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Numbers for the whole graph: its types, whether it has rare families, the order of its
    /// nodes.
    pub whole: Vec<u16>,
    /// The nodes.
    pub steps: Vec<Step>,
}

/// The random numbers that determine a node.
#[derive(Clone, Debug)]
pub struct Step {
    /// The family, as a share of all.
    pub family: u16,
    /// Its decisions.
    pub choices: Vec<u16>,
}

/// Maximum number of decisions of a step.
const CHOICES: usize = 40;

/// Returns the recipe of a seed, with 1 to 30 steps; half of the recipes have at most three.
#[must_use]
pub fn recipe(seed: u64) -> Recipe {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut numbers = |count: usize| -> Vec<u16> { (0..count).map(|_| (rng.next_u32() >> 16) as u16).collect() };
    let whole = numbers(4);
    let size = numbers(2);
    let mut size = Choices::new(&size);
    let (least, most) = size.pick(&[
        (1, 3),
        (1, 3),
        (1, 3),
        (1, 3),
        (1, 3),
        (4, 9),
        (4, 9),
        (4, 9),
        (4, 9),
        (10, 30),
    ]);
    let steps = (0..size.between(least, most))
        .map(|_| Step {
            family: numbers(1)[0],
            choices: numbers(CHOICES),
        })
        .collect();
    Recipe { whole, steps }
}

impl Recipe {
    /// Returns the graph, which is valid.
    #[must_use]
    pub fn graph(&self) -> Graph {
        let mut whole = Choices::new(&self.whole);
        let mut draft = Draft::new(&mut whole);
        let weight = |share: Share| match share {
            Share::Common(weight) => weight,
            Share::Rare if draft.is_rare() => RARE,
            Share::Rare => 0,
        };
        let families = if is_about_attention() { OF_ATTENTION } else { FAMILIES };
        let weights: Vec<usize> = families.iter().map(|&(share, _)| weight(share)).collect();
        for step in &self.steps {
            let mut drawn = Choices::new(&[step.family]).below(weights.iter().sum());
            let family = families.iter().zip(&weights).find(|(_, weight)| {
                let found = drawn < **weight;
                drawn = drawn.saturating_sub(**weight);
                found
            });
            if let Some(((_, add), _)) = family {
                draft.read_truths(READ_TRUTHS.iter().any(|&of| std::ptr::fn_addr_eq(of, *add)));
                // A step that does not fit is omitted.
                _ = add(&mut draft, &mut Choices::new(&step.choices));
            }
        }
        draft.finish(&mut whole)
    }
    /// Returns simpler recipes, the simplest first: without some of the steps, without some of
    /// their choices, with choices of 0.
    fn simpler(&self) -> impl Iterator<Item = Recipe> {
        let without_steps = halvings(self.steps.len()).map(|range| {
            let mut recipe = self.clone();
            recipe.steps.drain(range);
            recipe
        });
        let without_choices = (0..self.steps.len()).flat_map(move |step| {
            let count = self.steps[step].choices.len();
            [0, count / 2, count.saturating_sub(1)]
                .into_iter()
                .filter(move |&left| left < count)
                .map(move |left| {
                    let mut recipe = self.clone();
                    recipe.steps[step].choices.truncate(left);
                    recipe
                })
        });
        let zeroed = (0..self.steps.len()).flat_map(move |step| {
            let positions = (0..self.steps[step].choices.len()).filter(move |&at| self.steps[step].choices[at] > 0);
            positions.map(move |at| {
                let mut recipe = self.clone();
                recipe.steps[step].choices[at] = 0;
                recipe
            })
        });
        let plain = self.whole.iter().any(|&choice| choice > 0).then(|| Recipe {
            whole: Vec::new(),
            steps: self.steps.clone(),
        });
        without_steps.chain(plain).chain(without_choices).chain(zeroed)
    }
}

/// Iterates over ranges of a list: its halves, its quarters and so on to its single elements.
fn halvings(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    std::iter::successors(Some(count / 2), |&size| (size > 1).then_some(size / 2))
        .filter(|&size| size > 0)
        .flat_map(move |size| (0..count).step_by(size).map(move |from| from..(from + size).min(count)))
        .filter(move |range| range.len() < count)
}
