//! `rotini cache`: lists and maintains a directory of compiled graphs.

use super::answer::Answer;
use crate::args::{Cache, CacheCommand};
use crate::failure::{Failure, chain};
use crate::output::{BAD, Output};
use crate::report::{self, age, bytes, count, number, short, time};
use anyhow::{Context as _, Result, bail};
use comfy_table::Cell;
use rotini_cache::admin::{self, Item};
use rotini_cache::{Key, Metadata, Swept};
use rotini_plugin::config::Config;
use rotini_plugin::known_compilers;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, BufWriter, IsTerminal as _, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time that `gc` waits for another process that is evicting entries.
const GC_PATIENCE: Duration = Duration::from_secs(10);
/// Name that stands for stdin or stdout.
const STANDARD_STREAM: &str = "-";

pub(super) fn cache(args: &Cache, output: &Output) -> Result<Answer> {
    let config = Config::from_env();
    let Some(directory) = args.dir.clone().or(config.cache_dir) else {
        bail!(Failure::Usage(
            "there is no cache directory: ROTINI_CACHE_DIR is empty; --dir names one".to_owned()
        ));
    };
    let directory = Directory {
        path: directory,
        output,
    };
    match &args.command {
        CacheCommand::Ls => directory.list(),
        CacheCommand::Stats => directory.stats(),
        CacheCommand::Verify => directory.verify(),
        CacheCommand::Gc { size } => directory.gc(size.map_or(config.cache_size, |size| size.as_u64())),
        CacheCommand::Clear => directory.clear(),
        CacheCommand::Export { archive, keys } => directory.export(archive, keys),
        CacheCommand::Import { archive } => directory.import(archive),
    }
}

/// The cache directory of a command, and the output of its report.
struct Directory<'a> {
    path: PathBuf,
    output: &'a Output,
}

/// A JSON document: the fields that all commands share, and the command's own.
#[derive(Serialize)]
struct Document<T> {
    ok: bool,
    directory: String,
    #[serde(flatten)]
    found: T,
}

/// An entry, as listed by `ls`.
#[derive(Debug, Serialize)]
struct Row {
    key: String,
    bytes: u64,
    /// Time of the last use, in seconds since the Unix epoch.
    used_unix: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    about: Option<About>,
    /// The error that kept the entry's metadata from being read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// An entry's metadata.
#[derive(Debug, Serialize)]
struct About {
    target: String,
    features: String,
    producer: String,
    workspace: u64,
    dispatches: u32,
    compile_us: u64,
    /// Time of creation, in seconds since the Unix epoch.
    created_unix: u64,
}

impl From<Metadata> for About {
    fn from(metadata: Metadata) -> Self {
        let facts = metadata.facts;
        About {
            target: facts.compiled_for.target,
            features: facts.compiled_for.features,
            producer: facts.producer,
            workspace: facts.workspace_bytes,
            dispatches: facts.dispatches,
            compile_us: metadata.compile_micros,
            created_unix: metadata.created_unix,
        }
    }
}

impl From<Item> for Row {
    fn from(item: Item) -> Self {
        let (about, error) = match item.metadata {
            Ok(metadata) => (Some(metadata.into()), None),
            Err(error) => (None, Some(chain(&error))),
        };
        Row {
            key: item.key.to_string(),
            bytes: item.bytes,
            used_unix: unix(item.last_used),
            about,
            error,
        }
    }
}

impl Directory<'_> {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn document(&self, ok: bool, found: impl Serialize) -> Result<Answer> {
        self.output.document(&Document {
            ok,
            directory: self.name(),
            found,
        })?;
        Ok(Answer::of(ok))
    }

    fn list(&self) -> Result<Answer> {
        let rows: Vec<Row> = admin::list(&self.path)?.into_iter().map(Row::from).collect();
        let ok = rows.iter().all(|row| row.error.is_none());
        if self.output.json {
            return self.document(ok, BTreeMap::from([("entries", rows)]));
        }
        let mut table = report::table(&[
            "key",
            "target",
            "size",
            "dispatches",
            "workspace",
            "compile",
            "made",
            "used",
        ]);
        for row in &rows {
            let about = row.about.as_ref();
            table.add_row([
                Cell::new(short(&row.key)),
                about.map_or_else(
                    || report::bad("damaged"),
                    |about| Cell::new(report::plain(&about.target)),
                ),
                number(Some(bytes(row.bytes))),
                number(about.map(|about| about.dispatches.to_string())),
                number(about.map(|about| bytes(about.workspace))),
                number(about.map(|about| time(Duration::from_micros(about.compile_us)))),
                Cell::new(about.map_or_else(String::new, |about| age(at(about.created_unix)))),
                Cell::new(age(at(row.used_unix))),
            ]);
        }
        if !table.is_empty() {
            self.output.line(&table.to_string())?;
        }
        let size = rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.bytes));
        let entries = count(rows.len() as u64, "entry", "entries");
        self.output
            .line(&format!("{}: {entries}, {}", self.name(), bytes(size)))?;
        Ok(Answer::of(ok))
    }

    fn stats(&self) -> Result<Answer> {
        let stats = admin::stats(&self.path)?;
        if self.output.json {
            #[derive(Serialize)]
            struct Target {
                entries: u64,
                bytes: u64,
            }
            #[derive(Serialize)]
            struct Found {
                entries: u64,
                bytes: u64,
                targets: BTreeMap<String, Target>,
                bad: u64,
                bad_bytes: u64,
                failures: u64,
                temporaries: u64,
                locks: u64,
                /// Time of the least recent use, in seconds since the Unix epoch.
                #[serde(skip_serializing_if = "Option::is_none")]
                oldest_use_unix: Option<u64>,
            }
            let target = |(name, (entries, bytes))| (name, Target { entries, bytes });
            return self.document(
                true,
                Found {
                    entries: stats.entries,
                    bytes: stats.entry_bytes,
                    targets: stats.targets.into_iter().map(target).collect(),
                    bad: stats.bad,
                    bad_bytes: stats.bad_bytes,
                    failures: stats.failures,
                    temporaries: stats.temporaries,
                    locks: stats.locks,
                    oldest_use_unix: stats.oldest_use.map(unix),
                },
            );
        }
        let mut table = report::table(&["", "number", "size"]);
        let mut row = |what: &str, number_of: u64, size: Option<u64>| {
            table.add_row([
                Cell::new(what),
                number(Some(number_of.to_string())),
                size.map_or_else(|| Cell::new(""), |size| number(Some(bytes(size)))),
            ]);
        };
        for (target, (entries, size)) in &stats.targets {
            row(&report::plain(target), *entries, Some(*size));
        }
        row("all entries", stats.entries, Some(stats.entry_bytes));
        row("bad entries, set aside", stats.bad, Some(stats.bad_bytes));
        row("remembered failures", stats.failures, None);
        row("temporary files", stats.temporaries, None);
        row("lock files", stats.locks, None);
        self.output.line(&table.to_string())?;
        let oldest = stats
            .oldest_use
            .map(|oldest| format!("; the least recently used entry was used {}", age(oldest)));
        self.output
            .line(&format!("{}{}", self.name(), oldest.unwrap_or_default()))?;
        Ok(Answer::Yes)
    }

    fn verify(&self) -> Result<Answer> {
        let verified = admin::verify(&self.path)?;
        let bad: Vec<(Key, String)> = verified
            .iter()
            .filter_map(|entry| Some((entry.key, chain(entry.result.as_ref().err()?))))
            .collect();
        let intact = verified.len().saturating_sub(bad.len());
        if self.output.json {
            #[derive(Serialize)]
            struct Bad {
                key: String,
                error: String,
            }
            #[derive(Serialize)]
            struct Found {
                intact: usize,
                bad: Vec<Bad>,
            }
            let ok = bad.is_empty();
            let tell = |(key, error): (Key, String)| Bad {
                key: key.to_string(),
                error,
            };
            let bad = bad.into_iter().map(tell).collect();
            return self.document(ok, Found { intact, bad });
        }
        for (key, error) in &bad {
            self.output.line(&format!("{BAD}{key}{BAD:#}: {error}"))?;
        }
        let intact = count(intact as u64, "entry is", "entries are");
        self.output
            .line(&format!("{}: {intact} intact, {} bad", self.name(), bad.len()))?;
        Ok(Answer::of(bad.is_empty()))
    }

    fn gc(&self, limit: u64) -> Result<Answer> {
        let started = Instant::now();
        loop {
            match admin::gc(&self.path, limit)? {
                Some(swept) => return self.swept(&swept),
                // Programs that publish entries evict too, for moments only.
                None if started.elapsed() < GC_PATIENCE => thread::sleep(Duration::from_millis(20)),
                None => bail!("{}: another process does not end making room", self.path.display()),
            }
        }
    }

    fn clear(&self) -> Result<Answer> {
        let swept = admin::clear(&self.path)?;
        self.swept(&swept)
    }

    /// Reports what was removed.
    fn swept(&self, swept: &Swept) -> Result<Answer> {
        let Swept {
            entries,
            bytes: size,
            temporaries,
            locks,
            failures,
            left_bytes,
        } = *swept;
        if self.output.json {
            return self.document(true, swept);
        }
        let mut parts = vec![format!("{} ({})", count(entries, "entry", "entries"), bytes(size))];
        for (number, one, more) in [
            (failures, "remembered failure", "remembered failures"),
            (temporaries, "temporary file", "temporary files"),
            (locks, "lock file", "lock files"),
        ] {
            if number > 0 {
                parts.push(count(number, one, more));
            }
        }
        self.output.line(&format!(
            "{}: removed {}; {} left",
            self.name(),
            parts.join(", "),
            bytes(left_bytes)
        ))?;
        Ok(Answer::Yes)
    }

    fn export(&self, archive: &Path, prefixes: &[String]) -> Result<Answer> {
        let keys = match prefixes {
            [] => None,
            _ => Some(self.keys(prefixes)?),
        };
        let keys = keys.as_deref();
        if archive == Path::new(STANDARD_STREAM) {
            let stdout = io::stdout();
            if self.output.json || stdout.is_terminal() {
                bail!(Failure::Usage("an archive is no text: name a file for it".to_owned()));
            }
            let exported = admin::export(&self.path, keys, BufWriter::new(stdout.lock()))?;
            self.output.note(&self.exported(exported, "stdout"))?;
            return Ok(Answer::Yes);
        }
        let failed = || format!("cannot write {}", archive.display());
        let exported = if fs::metadata(archive).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            // A device or a pipe is written to, not replaced.
            let file = File::options().write(true).open(archive).with_context(failed)?;
            admin::export(&self.path, keys, BufWriter::new(file))?
        } else {
            // The archive is renamed when complete, so a partial one never has the final name.
            let parent = archive.parent().filter(|parent| !parent.as_os_str().is_empty());
            let mut file = tempfile::Builder::new()
                // The process's umask still applies, as for any new file.
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(parent.unwrap_or(Path::new(".")))
                .with_context(failed)?;
            let exported = admin::export(&self.path, keys, BufWriter::new(&mut file))?;
            file.persist(archive)
                .map_err(|error| error.error)
                .with_context(failed)?;
            exported
        };
        if self.output.json {
            return self.document(true, BTreeMap::from([("exported", exported)]));
        }
        self.output
            .line(&self.exported(exported, &archive.display().to_string()))?;
        Ok(Answer::Yes)
    }

    fn exported(&self, number: u64, place: &str) -> String {
        format!("{}: {} to {place}", self.name(), count(number, "entry", "entries"))
    }

    /// Returns the keys of the entries that match a prefix. Each prefix must match at least one.
    fn keys(&self, prefixes: &[String]) -> Result<Vec<Key>> {
        let present: Vec<(Key, String)> = admin::list(&self.path)?
            .into_iter()
            .map(|entry| (entry.key, entry.key.to_string()))
            .collect();
        let mut keys = Vec::new();
        for prefix in prefixes {
            let before = keys.len();
            keys.extend(
                present
                    .iter()
                    .filter(|(_, text)| text.starts_with(prefix.as_str()))
                    .map(|(key, _)| *key),
            );
            if keys.len() == before {
                bail!("{}: no key begins with {prefix}", self.path.display());
            }
        }
        Ok(keys)
    }

    fn import(&self, archive: &Path) -> Result<Answer> {
        let reader: Box<dyn Read> = if archive == Path::new(STANDARD_STREAM) {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(archive).with_context(|| format!("cannot read {}", archive.display()))?;
            Box::new(BufReader::new(file))
        };
        let imported = admin::import(&self.path, reader)?;
        self.note_compilers()?;
        let ok = imported.refused.is_empty();
        let refused: Vec<(&str, String)> = imported
            .refused
            .iter()
            .map(|(member, error)| (member.as_str(), chain(error)))
            .collect();
        if self.output.json {
            #[derive(Serialize)]
            struct Refused<'a> {
                member: &'a str,
                error: &'a str,
            }
            #[derive(Serialize)]
            struct Found<'a> {
                added: u64,
                present: u64,
                refused: Vec<Refused<'a>>,
            }
            let refused = refused
                .iter()
                .map(|(member, error)| Refused { member, error })
                .collect();
            return self.document(
                ok,
                Found {
                    added: imported.added,
                    present: imported.present,
                    refused,
                },
            );
        }
        for (member, error) in &refused {
            self.output
                .line(&format!("{BAD}{}{BAD:#}: {error}", report::plain(member)))?;
        }
        self.output.line(&format!(
            "{}: {} added, {} there already, {} refused",
            self.name(),
            imported.added,
            imported.present,
            refused.len()
        ))?;
        Ok(Answer::of(ok))
    }

    /// Records the compiler builds of the imported entries, so that machines without a compiler
    /// find these entries.
    fn note_compilers(&self) -> Result<()> {
        let items = admin::list(&self.path)?;
        let builds: BTreeSet<&str> = items
            .iter()
            .filter_map(|item| known_compilers::build_of(&item.metadata.as_ref().ok()?.facts.producer))
            .collect();
        for build in builds {
            known_compilers::note(&self.path, build)
                .with_context(|| format!("cannot note in {} what compiled the entries", self.path.display()))?;
        }
        Ok(())
    }
}

/// Returns a time in seconds since the Unix epoch.
fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Returns the time of a number of seconds since the Unix epoch.
fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_secs(seconds))
        .unwrap_or(UNIX_EPOCH)
}
