//! The arguments of `rotini emit`.

use super::TargetArgs;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Emit {
    /// Serialized graph (FlatBuffers), or a `.json` file in hipDNN's JSON form
    #[arg(value_name = "GRAPH")]
    pub(crate) graph: PathBuf,

    /// Lists the kernels instead: the origin of each, the operations fused into it, the tensors
    /// that it reads and stores
    #[arg(long)]
    pub(crate) plan: bool,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}
