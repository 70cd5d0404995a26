//! `rotini tune`: finds the fastest form of each graph on this device.
//!
//! | Module | What it owns |
//! |---|---|
//! | `contest` | the tuning of one graph, from candidates to a record |
//! | `calibrate` | constants of the GPU, for predictions |
//! | `predicted` | times on an emulated GPU: predictions |
//! | `exchange` | export and import of records |
//! | `report` | text and JSON output |
//! | `page` | HTML output |
//! | `setup` | the device, the plugin and the cache of a run |

mod calibrate;
mod contest;
mod exchange;
mod page;
mod predicted;
mod report;
mod setup;

use super::answer::Answer;
use super::workloads::workloads;
use crate::args::Tune;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use anyhow::{Context as _, Result, bail};
use contest::{Contest, Found};
use setup::Setup;

pub(super) fn tune(args: &Tune, output: &Output) -> Result<Answer> {
    let workloads = workloads(&args.workloads, output)?;
    let is_more = !workloads.is_empty() || !args.imports.is_empty() || args.export.is_some();
    if !is_more && !args.calibrate {
        bail!(Failure::Usage("there is nothing to tune".to_owned()));
    }
    if args.calibrate && (output.json && is_more || args.page.is_some()) {
        bail!(Failure::Usage(
            "calibrate and tune in two runs: --json writes one document, and --page shows graphs".to_owned()
        ));
    }
    let setup = Setup::new(args)?;
    if args.calibrate {
        calibrate::calibrate(&setup, args, output)?;
        if !is_more {
            return Ok(Answer::Yes);
        }
    }
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
    if let Some(file) = &args.page {
        let records: Vec<_> = all.iter().filter_map(Found::record).collect();
        let page = page::page(&setup.measured_on(), &records);
        std::fs::write(file, page).with_context(|| format!("{} cannot be written", file.display()))?;
    }
    report::all(&setup, &all, output)?;
    Ok(Answer::of(!all.iter().any(Found::is_bad)))
}
