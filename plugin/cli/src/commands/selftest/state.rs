//! The outcomes of earlier items, in a file of one JSON document per line. Each outcome is written
//! as soon as it is known.

use super::items::{Item, Part};
use anyhow::{Context as _, Result};
use rotini_bench::results::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

/// The properties that must be equal for one run to continue another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The plugin and its version.
    pub(super) plugin: String,
    /// A hash of the files that the outcomes depend on.
    pub(super) files: String,
    /// The device.
    pub(super) device: String,
    /// The seed.
    pub(super) seed: u64,
}

/// The outcome of one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    /// The part of the item.
    pub(super) part: Part,
    /// The name of the item.
    pub(super) name: String,
    /// `right`, `wrong`, …
    pub(super) outcome: String,
    /// The reason, if the outcome has one.
    pub(super) reason: Option<String>,
}

impl Found {
    pub(super) fn new(item: &Item, outcome: Outcome) -> Self {
        let name = match &outcome {
            Outcome::Right => "right",
            Outcome::Unjudged(_) => "not judged",
            Outcome::Wrong(_) => "wrong",
            Outcome::Declined(_) => "declined",
            Outcome::Failed(_) => "failed",
            Outcome::Crashed(_) => "crashed",
            Outcome::Hung(_) => "hung",
        };
        Found {
            part: item.part,
            name: item.name.clone(),
            outcome: name.to_owned(),
            reason: outcome.reason().map(str::to_owned),
        }
    }

    /// Returns true for an outcome that indicates a fault.
    pub(super) fn is_bad(&self) -> bool {
        !matches!(self.outcome.as_str(), "right" | "declined" | "not judged")
    }
}

/// The outcomes so far, and the file that keeps them.
pub(super) struct State {
    file: File,
    known: HashSet<(Part, String)>,
    pub(super) found: Vec<Found>,
}

impl State {
    /// Continues the file of an earlier run if its header is equal to `header`, else starts a new
    /// one. A truncated last line is dropped.
    pub(super) fn open(path: &Path, header: &Header) -> Result<Self> {
        let mut found: Vec<Found> = Vec::new();
        if let Ok(file) = File::open(path) {
            let mut lines = BufReader::new(file).lines().map_while(Result::ok);
            let first = lines.next().and_then(|line| serde_json::from_str::<Header>(&line).ok());
            if first.as_ref() == Some(header) {
                found.extend(lines.map_while(|line| serde_json::from_str(&line).ok()));
            }
        }
        // The file is rewritten, so that no line follows a truncated one.
        let unwritable = || format!("{} cannot be written", path.display());
        let partial = path.with_extension("new");
        let mut text = serde_json::to_string(header)? + "\n";
        for found in &found {
            text += &serde_json::to_string(found)?;
            text.push('\n');
        }
        std::fs::write(&partial, text).with_context(unwritable)?;
        std::fs::rename(&partial, path).with_context(unwritable)?;
        Ok(State {
            file: OpenOptions::new().append(true).open(path).with_context(unwritable)?,
            known: found.iter().map(|found| (found.part, found.name.clone())).collect(),
            found,
        })
    }

    pub(super) fn has(&self, part: &Part, name: &str) -> bool {
        self.known.contains(&(*part, name.to_owned()))
    }

    pub(super) fn add(&mut self, found: Found) -> Result<()> {
        let line = serde_json::to_string(&found)? + "\n";
        self.file
            .write_all(line.as_bytes())
            .context("the state of the run cannot be written")?;
        self.known.insert((found.part, found.name.clone()));
        self.found.push(found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str) -> Found {
        Found {
            part: Part::Cases,
            name: name.to_owned(),
            outcome: "right".to_owned(),
            reason: None,
        }
    }

    #[test]
    fn a_run_goes_on_where_it_was_cut_off() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.jsonl");
        let header = Header {
            plugin: "rotini 1".to_owned(),
            files: "abc".to_owned(),
            device: "CPU".to_owned(),
            seed: 1,
        };
        let mut state = State::open(&path, &header).unwrap();
        state.add(found("a")).unwrap();
        state.add(found("b")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        // This truncates the last line.
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        let mut state = State::open(&path, &header).unwrap();
        assert_eq!(state.found, [found("a")]);
        state.add(found("c")).unwrap();
        assert_eq!(State::open(&path, &header).unwrap().found, [found("a"), found("c")]);
        // A build with other files, though of the same version, starts with no outcomes.
        let other = Header {
            files: "abd".to_owned(),
            ..header
        };
        assert!(State::open(&path, &other).unwrap().found.is_empty());
    }
}
