//! Prediction of one graph on the emulated MI300X: compiled, sampled by the emulator, predicted
//! from the records.

use crate::Args;
use crate::predecessor::Tools;
use anyhow::{Context as _, Result};
use rotini_inspect::Emulator;
use rotini_time::{MI300X, Parameters, Prediction, predict};
use std::path::{Path, PathBuf};

/// Memory limit of the emulator in bytes, which no suite's graph exceeds and the machine can
/// provide.
const MOST_BYTES: usize = 3 << 30;

/// An emulated MI300X whose launches are sampled, with either rotini's plugin or the predecessor's
/// programs.
pub(crate) enum Machine {
    Plugin(Emulator),
    Predecessor(Tools),
}

impl Machine {
    /// Loads the emulator, which writes to `reports`, and the plugin; for the predecessor, finds
    /// IREE's programs instead.
    pub(crate) fn new(args: &Args, [emulator, plugin]: [&Path; 2], reports: PathBuf) -> Result<Self> {
        if args.predecessor {
            return Ok(Self::Predecessor(Tools {
                compile: args.compile.clone().context("no iree-compile")?,
                run: args.run.clone().context("no iree-run-module")?,
                emulator: emulator.parent().context("an emulator in no directory")?.to_owned(),
                scratch: reports.parent().context("reports in no directory")?.to_owned(),
            }));
        }
        // SAFETY: the files are the emulator and the plugin that this workspace builds, or others
        // that the user named instead.
        let emulator = unsafe { Emulator::load(emulator, plugin, reports, MOST_BYTES) }?;
        Ok(Self::Plugin(emulator))
    }

    /// Returns the prediction of each dispatch of a graph.
    pub(crate) fn predict(&mut self, bytes: &[u8]) -> Result<Vec<Prediction>> {
        let launches = match self {
            Self::Plugin(emulator) => emulator.launches(bytes)?,
            Self::Predecessor(tools) => tools.launches(&rotini_wire::decode(bytes)?)?,
        };
        let records = launches
            .into_iter()
            .map(|launch| launch.record.context("a launch without a record"));
        records
            .map(|record| Ok(predict(&record?, &MI300X, &Parameters::default())))
            .collect()
    }
}
