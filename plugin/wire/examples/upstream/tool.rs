//! The command: its arguments, its output and its exit code.

pub(crate) mod c;
pub(crate) mod compare;
pub(crate) mod fbs;
pub(crate) mod ours;
pub(crate) mod theirs;

use compare::{Report, Status};
use std::io::Write;
use std::path::Path;

const USAGE: &str = "usage: scripts/upstream DIRECTORY [--list]";

/// Compares the sources in `root` with those of hipDNN in the directory that `arguments` names, and
/// writes the differences to `out`; with `--list`, equal items too.
///
/// Returns the exit code: 1 if a number disagrees, 2 if the arguments or the directory cannot be
/// used, else 0.
pub(crate) fn run(root: &Path, arguments: &[String], out: &mut dyn Write) -> u8 {
    let (options, directories): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    let [directory] = directories[..] else {
        return fail(out, USAGE);
    };
    if options.iter().any(|option| *option != "--list") {
        return fail(out, USAGE);
    }
    let report = match report(root, Path::new(directory)) {
        Ok(report) => report,
        Err(error) => return fail(out, &format!("upstream: {error}")),
    };
    let written = write(&report, !options.is_empty(), out);
    match (written, report.count(Status::Disagrees)) {
        (Err(_), _) => 2,
        (Ok(()), 0) => 0,
        (Ok(()), _) => 1,
    }
}

fn fail(out: &mut dyn Write, message: &str) -> u8 {
    // The only output has failed, so its error cannot be reported.
    let _ = writeln!(out, "{message}");
    2
}

fn report(root: &Path, directory: &Path) -> Result<Report, String> {
    let ours = ours::read(root)?;
    let theirs = theirs::read(directory)?;
    Ok(compare::compare(&ours, &theirs))
}

fn write(report: &Report, list: bool, out: &mut dyn Write) -> std::io::Result<()> {
    for line in &report.lines {
        if list || line.status != Status::Same {
            writeln!(out, "{:<12}{}", line.status.text(), line.text)?;
        }
    }
    for missing in &report.missing {
        writeln!(out, "not there: {missing}")?;
    }
    let counts = Status::ALL.map(|status| format!("{} {}", report.count(status), status.text()));
    writeln!(out, "{}", counts.join(", "))
}
