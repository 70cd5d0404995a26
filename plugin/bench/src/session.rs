//! One engine in a separate process: loaded, asked, and started again when it is gone.
//!
//! `run` has two for each engine of a benchmark. `rotini selftest` has one for each of its threads,
//! and wants results, not times.

use crate::client::{EngineSpec, Launch, LaunchError, Process};
use crate::protocol::{Answer, Request, Way, contents, split};
use crate::results::Outcome;
use rotini_graph::Graph;
use rotini_reference::Buffers;
use std::path::{Path, PathBuf};

/// The answer of an engine, or the outcome instead. The outer error: the process cannot be started,
/// or a file cannot be read or written.
pub(crate) type Asked<T> = Result<Result<T, Outcome>, LaunchError>;

/// Name, version and device of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What the plugin calls itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The engine API that it implements.
    pub api_version: String,
    /// The engine's name in hipDNN.
    pub engine: String,
    /// The device's name.
    pub device: String,
    /// Whether it is emulated.
    pub emulated: bool,
    /// How many GPUs there are.
    pub gpus: usize,
}

/// The process of an engine.
pub struct Session<'a> {
    launch: &'a Launch,
    spec: &'a EngineSpec,
    /// The directory for its files, and the one for buffers.
    home: PathBuf,
    process: Option<Process>,
    id: i64,
    about: About,
}

impl<'a> Session<'a> {
    /// Starts the process and loads the plugin. What it keeps on disk goes to `home`.
    ///
    /// # Errors
    ///
    /// No process, or a directory that cannot be made. An engine that cannot be loaded is the inner
    /// error.
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
            id: 0,
            about: About::default(),
        };
        Ok(session.load()?.map(|()| session))
    }

    /// Returns name, version and device of the engine.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Whether there is a process that has not crashed or hung.
    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Loads the plugin: for the first time, or once more in the same process after it was
    /// unloaded.
    ///
    /// # Errors
    ///
    /// No process. An engine that cannot be loaded is the inner error.
    pub fn load(&mut self) -> Result<Result<(), Outcome>, LaunchError> {
        let load = Request::Load {
            plugin: self.spec.plugin.clone(),
            device: self.launch.device,
            library: self.launch.library.clone(),
            gpu: self.launch.gpu,
        };
        let loaded = match self.send(&load)? {
            Ok(loaded) => loaded,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let Answer::Loaded {
            name,
            version,
            api_version,
            engines,
            device,
            emulated,
            gpus,
        } = loaded
        else {
            return Ok(Err(unexpected()));
        };
        let Some((id, engine)) = engines.into_iter().next() else {
            return Ok(Err(Outcome::Failed("the plugin has no engine".to_owned())));
        };
        self.id = id;
        self.about = About {
            name,
            version,
            api_version,
            engine,
            device,
            emulated,
            gpus,
        };
        Ok(Ok(()))
    }

    /// Asks a process in which nothing need be loaded.
    fn send(&mut self, request: &Request) -> Asked<Answer> {
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

    /// Asks the engine, after its process was started again if it was gone.
    pub(crate) fn ask(&mut self, request: &Request) -> Asked<Answer> {
        if self.process.is_none()
            && let Err(outcome) = self.load()?
        {
            return Ok(Err(outcome));
        }
        self.send(request)
    }

    /// Creates the context of a graph. Returns the time in microseconds, and the bytes of
    /// workspace.
    pub(crate) fn create(&mut self, graph: &Path) -> Asked<(f64, u64)> {
        let request = Request::Create {
            graph: graph.to_owned(),
            engine: self.id,
            knobs: self.spec.knobs.clone(),
        };
        Ok(match self.ask(&request)? {
            Ok(Answer::Created {
                microseconds,
                workspace,
            }) => Ok((microseconds, workspace)),
            Ok(_) => Err(unexpected()),
            Err(outcome) => Err(outcome),
        })
    }

    /// Executes the graph of the context once. Returns the time in microseconds, and the bytes of
    /// all buffers.
    pub(crate) fn execute_once(&mut self, seed: u64, inputs: Option<PathBuf>, way: Way) -> Asked<(f64, Vec<u8>)> {
        let results = self.home.join("results");
        let request = Request::Execute {
            seed,
            inputs,
            results: results.clone(),
            way,
        };
        Ok(match self.ask(&request)? {
            Ok(Answer::Executed { microseconds }) => Ok((microseconds, std::fs::read(&results)?)),
            Ok(_) => Err(unexpected()),
            Err(outcome) => Err(outcome),
        })
    }

    /// Executes a graph on these inputs. Returns the bytes of all buffers.
    ///
    /// # Errors
    ///
    /// No process, or files that cannot be written. What the engine does is the inner error.
    pub fn execute(
        &mut self,
        bytes: &[u8],
        graph: &Graph,
        inputs: &Buffers,
        way: Way,
    ) -> Result<Result<Buffers, Outcome>, LaunchError> {
        let [file, before] = ["graph", "inputs"].map(|name| self.home.join(name));
        std::fs::write(&file, bytes)?;
        let mut stored = Vec::new();
        for (uid, _) in contents(graph) {
            stored.extend(inputs.get(&uid).map(Vec::as_slice).unwrap_or_default());
        }
        std::fs::write(&before, stored)?;
        if let Err(outcome) = self.create(&file)? {
            return Ok(Err(outcome));
        }
        let executed = self.execute_once(0, Some(before), way)?;
        Ok(executed.map(|(_, bytes)| split(graph, &bytes)))
    }
}

/// Returns the outcome of an engine whose process violates the protocol.
pub(crate) fn unexpected() -> Outcome {
    Outcome::Failed("its process answers something else".to_owned())
}
