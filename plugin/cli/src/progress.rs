//! Progress of long work: on stderr, on a terminal only, and gone when the work is done.

use crate::output::Output;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::time::Duration;

/// A line that says which of several graphs are worked on, and what is done with them.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A line for `count` graphs, one after the other; nothing where log messages or JSON would mix
    /// with it.
    pub(crate) fn new(count: usize, output: &Output) -> Result<Self> {
        Self::with_template(count, "{spinner} [{pos}/{len}] {prefix}: {wide_msg}", output)
    }

    /// A bar for `count` graphs that are worked on by several threads, on the same terms.
    pub(crate) fn bar(count: usize, output: &Output) -> Result<Self> {
        Self::with_template(count, "{bar:30} {pos}/{len}, {eta} left: {wide_msg}", output)
    }

    fn with_template(count: usize, template: &str, output: &Output) -> Result<Self> {
        if output.json || output.verbose {
            return Ok(Progress(ProgressBar::hidden()));
        }
        // Draws on stderr, and only if that is a terminal.
        let bar = ProgressBar::new(u64::try_from(count)?);
        bar.set_style(ProgressStyle::with_template(template)?);
        bar.enable_steady_tick(Duration::from_millis(100));
        Ok(Progress(bar))
    }

    /// Names the graph that is worked on.
    pub(crate) fn graph(&self, name: &str) {
        self.0.set_message("");
        self.0.set_prefix(name.to_owned());
    }

    /// Says what is done with it.
    pub(crate) fn stage(&self, stage: impl Into<Cow<'static, str>>) {
        self.0.set_message(stage);
    }

    /// Does something that writes, without the line in its way.
    pub(crate) fn suspend<T>(&self, body: impl FnOnce() -> T) -> T {
        self.0.suspend(body)
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
