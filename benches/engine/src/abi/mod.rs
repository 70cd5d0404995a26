//! The bodies of the functions that [`export_engine!`](crate::export_engine) exports. Their
//! contracts are those of hipDNN's headers (`PluginApi.h`, `EnginePluginApi.h`): pointers are null
//! or valid; handles and contexts were created by this plugin and are alive.

#![expect(
    clippy::missing_safety_doc,
    reason = "the contract of all of them is at the head of this module"
)]

mod base;
mod call;
mod context;
mod handle;

pub use crate::engine::DeviceBuffer;
pub use base::{
    LogCallback, all_ids, api_version, engine_name, kind, last_error, name, set_callback, set_log_level, version,
};
pub use call::Bytes;
pub use context::{
    Context, context_from_serialized, context_workspace, create_context, destroy_context, destroy_serialized, execute,
    execute_with_overrides, serialize, serialize_with_id, workspace,
};
pub use handle::{Handle, applicable, create, destroy, destroy_details, details, set_stream};
