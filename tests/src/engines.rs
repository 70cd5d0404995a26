//! Other engines than rotini's, of those in `benches`, driven as a host drives any.

use crate::plugin;
use anyhow::{Result, bail, ensure};
use rotini_graph::Graph;
use rotini_host::{Context, Handle, Plugin, engine_config};

/// Another engine on a handle.
pub struct Other {
    /// Its plugin.
    pub plugin: Plugin,
    /// The handle.
    pub handle: Handle,
    /// Its id.
    pub id: i64,
}

impl Other {
    /// Loads `reference`, `faulty` or `onnxruntime`.
    ///
    /// # Errors
    ///
    /// If it is not there, does not behave as a plugin, or gives no handle.
    pub fn load(name: &str) -> Result<Self> {
        // SAFETY: the file is a plugin that this workspace builds.
        let plugin = unsafe { Plugin::load(plugin::engine(name)?) }?;
        let &[id] = plugin.engine_ids()?.as_slice() else {
            bail!("{name} has not one engine")
        };
        let handle = plugin.handle()?;
        Ok(Other { plugin, handle, id })
    }

    /// Whether the engine runs a graph.
    ///
    /// # Errors
    ///
    /// The plugin's, or an engine that is not its own.
    pub fn is_applicable(&self, graph: &Graph) -> Result<bool> {
        match self.handle.applicable(&rotini_wire::encode(graph))?.as_slice() {
            [] => Ok(false),
            [id] => {
                ensure!(*id == self.id, "the engine {id:#x} is another's");
                Ok(true)
            }
            ids => bail!("{} engines, not one", ids.len()),
        }
    }

    /// Creates a context.
    ///
    /// # Errors
    ///
    /// The plugin's, or if it needs more workspace than it said.
    pub fn context(&self, graph: &Graph) -> Result<Context> {
        let (config, bytes) = (engine_config(self.id), rotini_wire::encode(graph));
        let estimate = self.handle.workspace_estimate(&config, &bytes)?;
        let context = self.handle.context(&config, &bytes)?;
        let exact = context.workspace()?;
        ensure!(exact <= estimate, "{estimate} bytes were said, but {exact} are needed");
        Ok(context)
    }
}
