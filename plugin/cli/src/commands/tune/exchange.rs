//! Export and import of records: one JSON document that maps keys to records.

use super::setup::Setup;
use crate::output::Output;
use anyhow::{Context as _, Result, bail};
use rotini_cache::{Key, notes};
use rotini_plugin::tuned::{self, Record};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Version of the file's format.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    /// Records by key.
    records: BTreeMap<String, Record>,
}

/// Writes all records to a file.
pub(super) fn export(setup: &Setup, path: &Path, output: &Output) -> Result<()> {
    let known = notes(&setup.cache).with_context(|| format!("{} cannot be read", setup.cache.display()))?;
    let records: BTreeMap<String, Record> = known
        .into_iter()
        .filter_map(|(key, note)| Some((key.to_string(), Record::read(&note).ok()?)))
        .collect();
    let count = records.len();
    let file = File {
        version: VERSION,
        records,
    };
    fs::write(path, serde_json::to_string_pretty(&file)?)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    output.note(&format!("{}: {count} graphs written", path.display()))
}

/// Merges the records of a file into the cache. Records of other devices are kept, but not used
/// on this one.
pub(super) fn import(setup: &Setup, path: &Path, output: &Output) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file: File = serde_json::from_str(&text)
        .with_context(|| format!("{} is not what `rotini tune --export` writes", path.display()))?;
    if file.version != VERSION {
        bail!(
            "{} is of form {}, and this program reads {VERSION}",
            path.display(),
            file.version
        );
    }
    let mut elsewhere = BTreeMap::<String, usize>::new();
    let count = file.records.len();
    for (key, record) in file.records {
        let key: Key = key.parse().with_context(|| format!("{}: {key}", path.display()))?;
        // The record is read as the cache would read it.
        let record = Record::read(&record.text()?)
            .map_err(|reason| anyhow::anyhow!("{}: {}: {reason}", path.display(), record.graph))?;
        if record.device != setup.measured_on() {
            *elsewhere.entry(record.device.clone()).or_default() += 1;
        }
        let Ok(_lock) = setup.runtime.cache.lock_note(&key) else {
            bail!("another process is measuring {}: try again", record.graph);
        };
        let merged = match tuned::read(&setup.runtime, &key) {
            Some(own) => own.merged(record),
            None => record,
        };
        if !tuned::store(&setup.runtime, &key, &merged)? {
            bail!("{} cannot be written", setup.cache.display());
        }
    }
    output.note(&format!("{}: {count} graphs read", path.display()))?;
    for (device, count) in elsewhere {
        output.note(&format!(
            "{count} of them were measured on {device}; this is {}: they are kept and not used here",
            setup.measured_on()
        ))?;
    }
    Ok(())
}
