//! `rotini tune`: which form of each graph is the fastest on this device.
//!
//! | Module | What it owns |
//! |---|---|
//! | `contest` | one graph: its candidates, tried and measured, and the record that comes of it |
//! | `predicted` | times on an emulated GPU: predictions |
//! | `exchange` | records in files, for other machines |
//! | `report` | what was found, for people |
//! | `setup` | what all graphs of a run share: device, plugin, cache |

mod contest;
mod exchange;
mod predicted;
mod report;
mod setup;

use super::answer::Answer;
use super::workloads::workloads;
use crate::args::Tune;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use anyhow::{Result, bail};
use contest::{Contest, Found};
use setup::Setup;

pub(super) fn tune(args: &Tune, output: &Output) -> Result<Answer> {
    let workloads = workloads(&args.workloads, output)?;
    if workloads.is_empty() && args.imports.is_empty() && args.export.is_none() {
        bail!(Failure::Usage("there is nothing to tune".to_owned()));
    }
    let setup = Setup::new(args)?;
    for file in &args.imports {
        exchange::import(&setup, file, output)?;
    }
    let progress = Progress::new(workloads.len(), output)?;
    let mut all = Vec::new();
    for workload in &workloads {
        progress.graph(&workload.name);
        let found = Contest::new(&setup, args, workload).run(&progress)?;
        progress.advance();
        progress.suspend(|| report::line(&found, output))?;
        all.push(found);
    }
    drop(progress);
    if let Some(file) = &args.export {
        exchange::export(&setup, file, output)?;
    }
    report::all(&setup, &all, output)?;
    Ok(Answer::of(!all.iter().any(Found::is_bad)))
}
