//! Owns the value: what is chosen for one operation, and how IREE is told.

use crate::tiles::{Half, Tiles};

/// What is chosen for one structured operation. Empty: the compiler's own choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// For each summed loop, how much of it one workgroup sums up. The sums of the parts are added in a second kernel.
    pub split: Option<Vec<u64>>,
    /// How a product of factors of a type is cut.
    pub tiles: Option<(Tiles, Half)>,
}

impl Schedule {
    /// The attributes of the operation, as names and texts.
    #[must_use]
    pub fn attributes(&self) -> Vec<(&'static str, String)> {
        let mut attributes = Vec::new();
        if let Some(split) = &self.split {
            let tiles: Vec<String> = split.iter().map(u64::to_string).collect();
            attributes.push(("iree_linalg_ext.split_reduction", format!("[{}]", tiles.join(", "))));
        }
        if let Some((tiles, half)) = &self.tiles {
            attributes.push(("compilation_info", tiles.attribute(*half)));
        }
        attributes
    }
}
