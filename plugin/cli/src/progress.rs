//! Progress of long work: on stderr, on a terminal only, and gone when the work is done.

use crate::output::Output;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A line that says which of several graphs is worked on, and what is done with it.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A line for `count` graphs; nothing where log messages or JSON would mix with it.
    pub(crate) fn new(count: usize, output: &Output) -> Result<Self> {
        if output.json || output.verbose {
            return Ok(Progress(ProgressBar::hidden()));
        }
        // Draws on stderr, and only if that is a terminal.
        let bar = ProgressBar::new(u64::try_from(count)?);
        bar.set_style(ProgressStyle::with_template(
            "{spinner} [{pos}/{len}] {prefix}: {wide_msg}",
        )?);
        bar.enable_steady_tick(Duration::from_millis(100));
        Ok(Progress(bar))
    }

    /// Names the graph that is worked on.
    pub(crate) fn graph(&self, name: &str) {
        self.0.set_message("");
        self.0.set_prefix(name.to_owned());
    }

    /// Says what is done with it.
    pub(crate) fn stage(&self, stage: &'static str) {
        self.0.set_message(stage);
    }

    /// One graph is done.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
