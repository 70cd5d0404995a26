//! Normalizations over rows of any length, as frameworks send them: sizes that were not chosen to
//! suit a compiler.

use crate::cases::{Case, Norm, Order, softmax, spread};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rotini_graph::{DataType, Graph, NormPhase};
use std::fmt;
use std::str::FromStr;

/// The operation on each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Layernorm without statistics.
    Layernorm,
    /// Layernorm with statistics.
    LayernormTraining,
    /// The gradients of a layernorm.
    LayernormBackward,
    /// The gradients of a layernorm with recomputed statistics.
    LayernormBackwardFound,
    /// RMSNorm without its statistic.
    RmsNorm,
    /// RMSNorm with it.
    RmsNormTraining,
    /// The gradients of an RMSNorm.
    RmsNormBackward,
    /// Softmax, as reductions and pointwise operations.
    Softmax,
    /// The variance, as reductions and pointwise operations.
    Spread,
    /// Batchnorm with statistics, saved and running: a row is a channel.
    Batchnorm,
    /// Batchnorm with statistics, channels last.
    BatchnormLast,
    /// The gradients of a batchnorm.
    BatchnormBackward,
    /// The gradients of a batchnorm, channels last.
    BatchnormBackwardLast,
}

impl Family {
    /// Every family with its name.
    pub const ALL: [(Family, &str); 13] = [
        (Family::Layernorm, "layernorm"),
        (Family::LayernormTraining, "layernorm-training"),
        (Family::LayernormBackward, "layernorm-backward"),
        (Family::LayernormBackwardFound, "layernorm-backward-found"),
        (Family::RmsNorm, "rmsnorm"),
        (Family::RmsNormTraining, "rmsnorm-training"),
        (Family::RmsNormBackward, "rmsnorm-backward"),
        (Family::Softmax, "softmax"),
        (Family::Spread, "spread"),
        (Family::Batchnorm, "batchnorm"),
        (Family::BatchnormLast, "batchnorm-last"),
        (Family::BatchnormBackward, "batchnorm-backward"),
        (Family::BatchnormBackwardLast, "batchnorm-backward-last"),
    ];
}

impl Family {
    /// Returns the minimum row length: a reduction must reduce something.
    #[must_use]
    pub fn least(self) -> i64 {
        if matches!(self, Family::Softmax | Family::Spread) {
            2
        } else {
            1
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Family::ALL.iter().find(|(family, _)| family == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Family::ALL.iter();
        let found = all.find(|(_, name)| *name == text).map(|&(family, _)| family);
        found.ok_or_else(|| format!("there is no family {text}"))
    }
}

/// A set of rows of one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The operation.
    pub family: Family,
    /// Number of rows.
    pub rows: i64,
    /// Extents of the axes that form a row.
    pub extents: Vec<i64>,
    /// Type of the large tensors.
    pub dtype: DataType,
}

/// Lengths beyond those that are all tested: of vocabularies, of pixels, near powers of two.
pub const LARGE: [i64; 40] = [
    1101, 1151, 1201, 1279, 1283, 1437, 1536, 1537, 1601, 1999, 2049, 2187, 2304, 2305, 2561, 3001, 3071, 3137, 3333,
    4095, 4097, 4099, 5001, 5121, 6401, 7919, 8191, 8193, 9999, 12289, 16385, 21128, 30522, 32001, 50257, 65537,
    100_003, 250_002, 524_287, 1_048_577,
];

/// Maximum number of elements that a sample judges: each is emulated.
const MOST_ELEMENTS: i64 = 1 << 18;

impl Rows {
    /// Returns a name that describes the rows completely.
    #[must_use]
    pub fn name(&self) -> String {
        let extents: Vec<String> = self.extents.iter().map(i64::to_string).collect();
        format!("{}_{}x{}_{}", self.family, self.rows, extents.join("x"), self.dtype)
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> Graph {
        let &Rows {
            family, rows, dtype, ..
        } = self;
        let dims = [&[rows], self.extents.as_slice()].concat();
        let axes = self.extents.len();
        let norm = Norm::new(&dims, dtype, Order::First);
        let channels = |order| {
            // The first extent is the batch.
            let mut dims = dims.clone();
            dims.swap(0, 1);
            Norm::new(&dims, dtype, order)
        };
        match family {
            Family::Layernorm => norm.layernorm(axes, NormPhase::Inference, true),
            Family::LayernormTraining => norm.layernorm(axes, NormPhase::Training, true),
            Family::LayernormBackward => norm.layernorm_backward(axes, true),
            Family::LayernormBackwardFound => norm.layernorm_backward(axes, false),
            Family::RmsNorm => norm.rms_norm(axes, NormPhase::Inference, false),
            Family::RmsNormTraining => norm.rms_norm(axes, NormPhase::Training, false),
            Family::RmsNormBackward => norm.rms_norm_backward(axes, false),
            Family::Softmax => softmax(dtype, &dims),
            Family::Spread => spread(dtype, &dims),
            Family::Batchnorm => channels(Order::First).batchnorm_training(true, true),
            Family::BatchnormLast => channels(Order::Last).batchnorm_training(true, true),
            Family::BatchnormBackward => channels(Order::First).batchnorm_backward(true),
            Family::BatchnormBackwardLast => channels(Order::Last).batchnorm_backward(true),
        }
    }

    /// The graph with its name.
    #[must_use]
    pub fn case(&self) -> Case {
        Case {
            name: self.name(),
            graph: self.graph(),
        }
    }
}

impl FromStr for Rows {
    type Err = String;

    /// Parses a name from [`Rows::name`].
    fn from_str(text: &str) -> Result<Self, String> {
        let &[family, extents, dtype] = text.split('_').collect::<Vec<_>>().as_slice() else {
            return Err(format!("{text} is not FAMILY_ROWSxLENGTH_TYPE"));
        };
        let extents: Result<Vec<i64>, _> = extents.split('x').map(str::parse).collect();
        let extents = extents.map_err(|error| format!("{text}: {error}"))?;
        let Some((&rows, extents)) = extents.split_first().filter(|(_, extents)| !extents.is_empty()) else {
            return Err(format!("{text} has no length"));
        };
        let dtype = [DataType::F32, DataType::F16, DataType::Bf16]
            .into_iter()
            .find(|known| known.to_string() == dtype)
            .ok_or_else(|| format!("{text}: {dtype} is no type of rows"))?;
        Ok(Rows {
            family: family.parse()?,
            rows,
            extents: extents.to_vec(),
            dtype,
        })
    }
}

/// Returns `count` sets of rows from a seed: every family in turn, with random types; a larger
/// count covers more lengths.
///
/// A quarter of the lengths is at most 64, half of them at most 1100 and a quarter from [`LARGE`];
/// a third of the rows spans two axes where that is possible.
#[must_use]
pub fn sample(seed: u64, count: usize) -> Vec<Rows> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut below = |bound: i64| i64::from(rng.next_u32()) % bound.max(1);
    let types = [DataType::F16, DataType::F32, DataType::Bf16];
    (0..count)
        .map(|index| {
            let (family, _) = Family::ALL[index % Family::ALL.len()];
            let length = match index / Family::ALL.len() % 4 {
                0 => 1 + below(64),
                1 | 2 => 65 + below(1100 - 64),
                _ => LARGE[below(40) as usize],
            };
            let length = length.max(family.least());
            let most = (MOST_ELEMENTS / length).clamp(1, 64);
            let rows = 1 + below(most);
            Rows {
                family,
                rows,
                extents: if below(3) == 0 { split(length) } else { vec![length] },
                dtype: types[below(3) as usize],
            }
        })
        .collect()
}

/// Returns two extents with this product, the first of which is the smaller.
fn split(length: i64) -> Vec<i64> {
    let divides = |first: &i64| length % first == 0;
    let first = (1..=length).take_while(|first| first * first <= length).filter(divides);
    let first = first.last().unwrap_or(1);
    if first == 1 {
        vec![length]
    } else {
        vec![first, length / first]
    }
}
