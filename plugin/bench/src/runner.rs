//! An engine of a run with its two processes: one executes, the other times the creation of
//! contexts from the cache on disk.

use crate::client::EngineSpec;
use crate::plan::{Plan, RunError};
use crate::protocol::Request;
use crate::results::{Engine, Outcome};
use crate::session::Session;
use std::path::{Path, PathBuf};

/// An engine with its processes.
pub(crate) struct Runner<'a> {
    plan: &'a Plan,
    spec: &'a EngineSpec,
    home: PathBuf,
    /// Its entry in the results.
    pub(crate) facts: Engine,
    /// The process that executes; `None` if the engine takes no part.
    pub(crate) session: Option<Session<'a>>,
    /// The process that creates contexts from the cache on disk.
    second: Option<Session<'a>>,
}

impl<'a> Runner<'a> {
    /// Loads the plugin. An engine that cannot be loaded takes no part, and its facts say why.
    pub(crate) fn new(plan: &'a Plan, spec: &'a EngineSpec, home: PathBuf) -> Result<Self, RunError> {
        let (session, unusable) = match Session::start(&plan.launch, spec, home.clone())? {
            Ok(session) => (Some(session), None),
            Err(outcome) => (None, outcome.reason().map(str::to_owned)),
        };
        let about = session
            .as_ref()
            .map(|session| session.about().clone())
            .unwrap_or_default();
        let plugin = spec.plugin.file_name().unwrap_or_default();
        Ok(Runner {
            plan,
            spec,
            home,
            facts: Engine {
                label: spec.label.clone(),
                plugin: plugin.to_string_lossy().into_owned(),
                name: about.name,
                version: about.version,
                api_version: about.api_version,
                engine: about.engine,
                settings: spec.settings.clone(),
                unusable,
            },
            session,
            second: None,
        })
    }

    /// Replaces the process that executes. Its cache on disk stays.
    pub(crate) fn renew(&mut self) -> Result<(), RunError> {
        if self.session.take().is_some() {
            match Session::start(&self.plan.launch, self.spec, self.home.clone())? {
                Ok(session) => self.session = Some(session),
                Err(outcome) => self.facts.unusable = outcome.reason().map(str::to_owned),
            }
        }
        Ok(())
    }

    /// Returns the process that executes, or why the engine takes no part.
    pub(crate) fn session(&mut self) -> Result<&mut Session<'a>, Outcome> {
        let reason = self.facts.unusable.clone().unwrap_or_default();
        self.session.as_mut().ok_or(Outcome::Failed(reason))
    }

    /// Returns the time in which another process creates a context from the cache on disk.
    pub(crate) fn create_warm(&mut self, graph: &Path) -> Result<Option<f64>, RunError> {
        if self.second.is_none() {
            self.second = Session::start(&self.plan.launch, self.spec, self.home.clone())?.ok();
        }
        let Some(second) = &mut self.second else {
            return Ok(None);
        };
        let created = second.create(graph)?;
        if second.is_running() {
            // It has nothing more to do with the graph.
            let _ = second.ask(&Request::Drop)?;
        }
        Ok(created.ok().map(|(microseconds, _)| microseconds))
    }
}
