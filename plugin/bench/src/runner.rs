//! An engine of a run with its processes: one that executes, and one that finds what the other has left on disk.

use crate::client::{EngineSpec, Process};
use crate::plan::{Plan, RunError};
use crate::protocol::{Answer, Request};
use crate::results::{Engine, Outcome};
use std::path::{Path, PathBuf};

/// An engine with its processes.
pub(crate) struct Runner<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) spec: &'a EngineSpec,
    pub(crate) home: PathBuf,
    pub(crate) facts: Engine,
    pub(crate) id: i64,
    /// What executes.
    pub(crate) process: Option<Process>,
    /// What has never made the contexts that it is asked for: they come from what the other has left on disk.
    pub(crate) second: Option<Process>,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(plan: &'a Plan, spec: &'a EngineSpec, home: PathBuf) -> Self {
        Runner {
            plan,
            spec,
            home,
            facts: Engine {
                label: spec.label.clone(),
                plugin: spec
                    .plugin
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                name: String::new(),
                version: String::new(),
                api_version: String::new(),
                engine: String::new(),
                settings: spec.settings.clone(),
                unusable: None,
            },
            id: 0,
            process: None,
            second: None,
        }
    }

    /// Starts a process and loads the plugin in it.
    pub(crate) fn start(&self) -> Result<Result<(Process, Answer), Outcome>, RunError> {
        let mut process = Process::start(&self.plan.launch, self.spec, &self.home)?;
        let load = Request::Load {
            plugin: self.spec.plugin.clone(),
            device: self.plan.launch.device,
            library: self.plan.launch.library.clone(),
        };
        Ok(process.ask(&load).map(|answer| (process, answer)))
    }

    /// Learns who the engine is: the device and whether it is emulated. Nothing if it takes no part.
    pub(crate) fn introduce(&mut self) -> Result<Option<(String, bool)>, RunError> {
        match self.start()? {
            Ok((
                process,
                Answer::Loaded {
                    name,
                    version,
                    api_version,
                    engines,
                    device,
                    emulated,
                },
            )) => {
                self.facts.name = name;
                self.facts.version = version;
                self.facts.api_version = api_version;
                match engines.first() {
                    Some((id, name)) => {
                        self.id = *id;
                        self.facts.engine.clone_from(name);
                        self.process = Some(process);
                    }
                    None => self.facts.unusable = Some("the plugin has no engine".to_owned()),
                }
                Ok(Some((device, emulated)))
            }
            Ok(_) => {
                self.facts.unusable = Some("its process answers something else".to_owned());
                Ok(None)
            }
            Err(outcome) => {
                self.facts.unusable = outcome.reason().map(str::to_owned);
                Ok(None)
            }
        }
    }

    /// Asks the process that executes, starting it again if it is gone.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Result<Answer, Outcome>, RunError> {
        let mut process = match self.process.take() {
            Some(process) => process,
            None => match self.start()? {
                Ok((process, _)) => process,
                Err(outcome) => return Ok(Err(outcome)),
            },
        };
        let answer = process.ask(request);
        if is_alive(&answer) {
            self.process = Some(process);
        }
        Ok(answer)
    }

    /// How long another process takes to make a context that this engine has made before.
    pub(crate) fn create_warm(&mut self, graph: &Path) -> Result<Option<f64>, RunError> {
        let mut process = match self.second.take() {
            Some(process) => process,
            None => match self.start()? {
                Ok((process, _)) => process,
                Err(_) => return Ok(None),
            },
        };
        let answer = process.ask(&Request::Create {
            graph: graph.to_owned(),
            engine: self.id,
        });
        let dropped = process.ask(&Request::Drop);
        if is_alive(&answer) && is_alive(&dropped) {
            self.second = Some(process);
        }
        Ok(match answer {
            Ok(Answer::Created { microseconds, .. }) => Some(microseconds),
            _ => None,
        })
    }
}

pub(crate) fn is_alive(answer: &Result<Answer, Outcome>) -> bool {
    !matches!(answer, Err(Outcome::Crashed(_) | Outcome::Hung(_)))
}
