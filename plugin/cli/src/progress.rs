//! Progress of long work: shown on stderr, only on a terminal, and removed when the work is done.

use crate::output::Output;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::time::Duration;

/// A progress line or bar for several graphs, with the current stage.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Shows a line for `count` graphs that are processed one after another. Shows nothing if log
    /// messages or JSON would mix with it.
    pub(crate) fn new(count: usize, output: &Output) -> Result<Self> {
        Self::with_template(count, "{spinner} [{pos}/{len}] {prefix}: {wide_msg}", output)
    }

    /// Shows a bar for `count` graphs that are processed by several threads, under the same
    /// conditions as [`Progress::new`].
    pub(crate) fn bar(count: usize, output: &Output) -> Result<Self> {
        Self::with_template(count, "{bar:30} {pos}/{len}, {eta} left: {wide_msg}", output)
    }

    fn with_template(count: usize, template: &str, output: &Output) -> Result<Self> {
        if output.json || output.verbose {
            return Ok(Progress(ProgressBar::hidden()));
        }
        // The bar is drawn on stderr, and only if that is a terminal.
        let bar = ProgressBar::new(u64::try_from(count)?);
        bar.set_style(ProgressStyle::with_template(template)?);
        bar.enable_steady_tick(Duration::from_millis(100));
        Ok(Progress(bar))
    }

    /// Sets the name of the current graph.
    pub(crate) fn graph(&self, name: &str) {
        self.0.set_message("");
        self.0.set_prefix(name.to_owned());
    }

    /// Sets the stage of the current graph.
    pub(crate) fn stage(&self, stage: impl Into<Cow<'static, str>>) {
        self.0.set_message(stage);
    }

    /// Runs a function that writes to the terminal, with the progress line hidden.
    pub(crate) fn suspend<T>(&self, body: impl FnOnce() -> T) -> T {
        self.0.suspend(body)
    }

    /// Counts a graph as done.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
