//! Values that register entries share.

use crate::quirks::Effect::Wrong;
use crate::quirks::{Backend, Description, Guard, Quirk};

/// All GPUs.
pub(super) const GPUS: &[Backend] = &[Backend::Amd, Backend::Nvidia];
const EVERYWHERE: &[Backend] = &[Backend::Cpu, Backend::Amd, Backend::Nvidia];

/// The defaults of most quirks: wrong results, seen on 3.13, on all backends, without a cost, not
/// reported.
pub(super) const UNREPORTED: Description = Description {
    quirk: Quirk::FoldedTranspose,
    backends: EVERYWHERE,
    seen_on: &["3.13"],
    effect: Wrong,
    what: "",
    instead: "",
    costs: None,
    guard: Guard::None(""),
    upstream: None,
};
