//! One engine in a process of its own, for those who want its results and not its times.

use crate::client::{EngineSpec, Launch, LaunchError, Process};
use crate::judge::Judgement;
use crate::protocol::{Answer, Request, contents, split};
use crate::results::Outcome;
use rotini_graph::{Graph, TensorId};
use rotini_reference::Buffers;
use std::collections::HashSet;
use std::path::PathBuf;

/// Who an engine is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What the plugin calls itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The engine API that it implements.
    pub api_version: String,
    /// The device's name.
    pub device: String,
    /// Whether it is emulated.
    pub emulated: bool,
}

/// The process of an engine, started again when it is gone.
pub struct Session<'a> {
    launch: &'a Launch,
    spec: &'a EngineSpec,
    /// Where it keeps what it keeps, and where buffers are written.
    home: PathBuf,
    process: Option<Process>,
    engine: i64,
    about: About,
}

impl<'a> Session<'a> {
    /// Starts the process and loads the plugin. What it keeps on disk goes to `home`.
    ///
    /// # Errors
    ///
    /// No process, or a directory that cannot be made. An engine that cannot be loaded is the inner error.
    pub fn start(
        launch: &'a Launch,
        spec: &'a EngineSpec,
        home: PathBuf,
    ) -> Result<Result<Self, Outcome>, LaunchError> {
        std::fs::create_dir_all(&home)?;
        let mut session = Session {
            launch,
            spec,
            home,
            process: None,
            engine: 0,
            about: About::default(),
        };
        Ok(session.load()?.map(|()| session))
    }

    /// Who the engine is.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Loads the plugin: for the first time, or once more in the same process after it was unloaded.
    ///
    /// # Errors
    ///
    /// No process. An engine that cannot be loaded is the inner error.
    pub fn load(&mut self) -> Result<Result<(), Outcome>, LaunchError> {
        let load = Request::Load {
            plugin: self.spec.plugin.clone(),
            device: self.launch.device,
            library: self.launch.library.clone(),
        };
        Ok(match self.ask(&load)? {
            Ok(Answer::Loaded {
                name,
                version,
                api_version,
                engines,
                device,
                emulated,
            }) => {
                self.about = About {
                    name,
                    version,
                    api_version,
                    device,
                    emulated,
                };
                match engines.first() {
                    Some((id, _)) => {
                        self.engine = *id;
                        Ok(())
                    }
                    None => Err(Outcome::Failed("the plugin has no engine".to_owned())),
                }
            }
            Ok(_) => Err(Outcome::Failed("its process answers something else".to_owned())),
            Err(outcome) => Err(outcome),
        })
    }

    fn ask(&mut self, request: &Request) -> Result<Result<Answer, Outcome>, LaunchError> {
        let mut process = match self.process.take() {
            Some(process) => process,
            None => Process::start(self.launch, self.spec, &self.home)?,
        };
        let answer = process.ask(request);
        if !matches!(answer, Err(Outcome::Crashed(_) | Outcome::Hung(_))) {
            self.process = Some(process);
        }
        Ok(answer)
    }

    /// Executes a graph on these inputs: what is in all buffers afterwards. With `turns`, it is executed many times before, on a GPU in
    /// captured graphs.
    ///
    /// # Errors
    ///
    /// No process, or files that cannot be written. What the engine does is the inner error.
    pub fn execute(
        &mut self,
        bytes: &[u8],
        graph: &Graph,
        inputs: &Buffers,
        turns: bool,
    ) -> Result<Result<Buffers, Outcome>, LaunchError> {
        if self.process.is_none()
            && let Err(outcome) = self.load()?
        {
            return Ok(Err(outcome));
        }
        let [file, before, after] = ["graph", "inputs", "results"].map(|name| self.home.join(name));
        std::fs::write(&file, bytes)?;
        let mut stored = Vec::new();
        for (uid, _) in contents(graph) {
            stored.extend(inputs.get(&uid).map(Vec::as_slice).unwrap_or_default());
        }
        std::fs::write(&before, stored)?;
        let create = Request::Create {
            graph: file,
            engine: self.engine,
        };
        let execute = Request::Execute {
            seed: 0,
            inputs: Some(before),
            results: after.clone(),
        };
        let round = Request::Round {
            seed: 0,
            rotate: 0,
            microseconds: 0.0,
        };
        let requests = if turns {
            vec![create, round, execute]
        } else {
            vec![create, execute]
        };
        for request in &requests {
            if let Err(outcome) = self.ask(request)? {
                return Ok(Err(outcome));
            }
        }
        Ok(Ok(split(graph, &std::fs::read(after)?)))
    }
}

/// Holds results against the sharpest bounds that the reference knows: what a right kernel can make of the inputs, and nothing else.
#[must_use]
pub fn judge_sharply(graph: &Graph, inputs: &Buffers, results: &Buffers) -> Judgement {
    let evaluation = match rotini_reference::evaluate(graph, inputs) {
        Ok(evaluation) => evaluation,
        Err(error) => return Judgement::Unchecked(error.to_string()),
    };
    let mut outputs = HashSet::new();
    for node in &graph.nodes {
        node.op.for_each_output(&mut |_, id| _ = outputs.insert(id));
    }
    let mut wrongs = Vec::new();
    for (id, tensor) in (0..).map(TensorId).zip(&graph.tensors) {
        let (Some(before), Some(got)) = (inputs.get(&tensor.uid), results.get(&tensor.uid)) else {
            continue;
        };
        if outputs.contains(&id) {
            if let Err(mismatch) = evaluation.judge(id, got, before) {
                wrongs.push(mismatch.to_string());
            }
        } else if before != got {
            wrongs.push(format!("{tensor} is an input, but was written"));
        }
    }
    if wrongs.is_empty() {
        Judgement::Right
    } else {
        Judgement::Wrong(wrongs.join("; "))
    }
}
