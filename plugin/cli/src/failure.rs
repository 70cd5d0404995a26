//! Reporting of errors: one line on stderr, and an exit code.

use crate::output::{BAD, Output};
use rotini_cache::admin::AdminError;
use rotini_host::HostError;
use serde::Serialize;
use std::io;
use std::process::ExitCode;
use thiserror::Error;

/// The exit code if a graph is not right.
pub(crate) const WRONG: u8 = 1;
/// The exit code if this machine lacks something.
pub(crate) const ENVIRONMENT: u8 = 3;
const USAGE: u8 = 2;
/// 128 plus the number of SIGPIPE, which a shell reports for a program that this signal ends.
const BROKEN_PIPE: u8 = 141;

/// Errors with an exit code other than [`WRONG`].
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// Arguments that are valid one by one, but not together.
    #[error("{0}")]
    Usage(String),
    /// Something that this machine lacks.
    #[error("{0}")]
    Environment(String),
}

/// Reports an error and returns the exit code. A closed pipe is not reported.
pub(crate) fn report(error: &anyhow::Error, output: &Output) -> ExitCode {
    let code = exit_code(error);
    if code == BROKEN_PIPE {
        return ExitCode::from(code);
    }
    let text = chain(error.as_ref());
    // If stderr is closed nobody can be informed, and stdout may be what failed.
    let _ = output.note(&format!("{BAD}error:{BAD:#} {text}"));
    if output.json {
        #[derive(Serialize)]
        struct Document<'a> {
            ok: bool,
            error: &'a str,
        }
        let _ = output.document(&Document {
            ok: false,
            error: &text,
        });
    }
    ExitCode::from(code)
}

fn exit_code(error: &anyhow::Error) -> u8 {
    let code = |cause: &(dyn std::error::Error + 'static)| {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return Some(match failure {
                Failure::Usage(_) => USAGE,
                Failure::Environment(_) => ENVIRONMENT,
            });
        }
        if let Some(HostError::Load { .. }) = cause.downcast_ref() {
            return Some(ENVIRONMENT);
        }
        if let Some(rotini_plugin::Error::NoCompiler(_)) = cause.downcast_ref() {
            return Some(ENVIRONMENT);
        }
        if let Some(AdminError::Directory(_)) = cause.downcast_ref() {
            return Some(ENVIRONMENT);
        }
        let broken = cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        broken.then_some(BROKEN_PIPE)
    };
    error.chain().find_map(code).unwrap_or(WRONG)
}

/// Formats an error and its causes in one line. A cause that the text already contains is left out.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    let mut line = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push_str(if line.ends_with(':') { " " } else { "; " });
        }
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context as _, anyhow};

    #[test]
    fn codes_follow_the_cause_through_any_context() {
        let usage = anyhow!(Failure::Usage("one".into())).context("two");
        assert_eq!(exit_code(&usage), USAGE);
        let compiler = anyhow!(rotini_plugin::Error::NoCompiler("nowhere".into())).context("three");
        assert_eq!(exit_code(&compiler), ENVIRONMENT);
        let pipe = anyhow!(io::Error::from(io::ErrorKind::BrokenPipe)).context("four");
        assert_eq!(exit_code(&pipe), BROKEN_PIPE);
        assert_eq!(exit_code(&anyhow!("anything")), WRONG);
    }

    #[test]
    fn a_chain_is_one_line_without_repetition() {
        let inner: Result<(), _> = Err(io::Error::other("no\nspace"));
        let error = inner.context("a file: no\nspace").context("outer").unwrap_err();
        assert_eq!(chain(error.as_ref()), "outer: a file: no; space");
    }
}
