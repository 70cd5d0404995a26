//! The faulty engine, which shows how a host handles failing engines: each fault occurs, and
//! nothing else is wrong.

use crate::small;
use rotini_host::Plugin;
use rotini_reference::fill_all;
use rotini_tests::engines::{Other, judge};
use rotini_tests::process::{command, finish, part};
use std::process::Command;
use std::time::Duration;

/// `HIPDNN_PLUGIN_STATUS_BAD_PARAM`.
const BAD_PARAM: i32 = 1;

/// Prefix of a child's result lines.
const SAID: &str = "SAID ";

/// Number of turns; each judges two executions.
const TURNS: usize = 3;

/// In a child: goes through all steps of a host, and reports the result.
fn play() {
    let case = small(64);
    let said = || -> anyhow::Result<()> {
        let other = Other::load("faulty")?;
        anyhow::ensure!(other.is_applicable(&case.graph)?, "declined");
        let context = other.context(&case.graph)?;
        for _ in 0..TURNS {
            match judge(&case, &context, &fill_all(&case.graph, 1)?) {
                Ok(_) => println!("{SAID}right"),
                Err(error) => println!("{SAID}{error:#}"),
            }
        }
        Ok(())
    };
    if let Err(error) = said() {
        println!("{SAID}{error:#}");
    }
}

fn with_fault(fault: &str) -> Command {
    let directory = std::env::temp_dir();
    let mut command = command("", &directory).unwrap();
    command.env("FAULTY_ENGINE", fault);
    command
}

/// Returns the output of a child that survives a fault.
fn said(fault: &str) -> Vec<String> {
    let output = finish(with_fault(fault).spawn().unwrap()).unwrap();
    let lines = output
        .lines()
        .filter_map(|line| Some(line.split_once(SAID)?.1.to_owned()));
    lines.collect()
}

#[test]
fn a_fault_that_is_told_is_told() {
    if part().is_some() {
        return play();
    }
    assert_eq!(said("none"), ["right"; TURNS]);
    assert_eq!(said("slow"), ["right"; TURNS]);
    for (fault, right, words) in [
        ("no-handle", 0, "no-handle"),
        ("fails-create", 0, "fails-create"),
        ("a-typo", 0, "is no fault"),
        ("fails", 0, "FAULTY_ENGINE=fails"),
        ("fails-later", 2, "FAULTY_ENGINE=fails-later"),
        ("unwinds", 0, "panicked: FAULTY_ENGINE=unwinds"),
        ("wrong", 0, "elements are wrong"),
        ("wrong-later", 2, "elements are wrong"),
        ("writes-input", 0, "was changed"),
    ] {
        let said = said(fault);
        let wrong = said.iter().position(|line| line != "right").expect(fault);
        assert_eq!(wrong, right, "{fault}: {said:?}");
        assert!(said[wrong].contains(words), "{fault}: {said:?}");
    }
}

#[test]
fn a_fault_that_ends_the_process_ends_it() {
    use std::os::unix::process::ExitStatusExt as _;
    if part().is_some() {
        return play();
    }
    for fault in ["crash", "crash-create"] {
        let output = with_fault(fault).output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{fault}: {output:?}");
    }
    let output = with_fault("exits").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(!stdout.contains(SAID) && !stdout.contains("passed"), "{stdout}");
}

#[test]
fn a_fault_that_hangs_hangs() {
    if part().is_some() {
        return play();
    }
    for fault in ["hang", "hang-create"] {
        let mut child = with_fault(fault).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        assert!(child.try_wait().unwrap().is_none(), "{fault}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// Null arguments, and objects of another engine, are refused with a status and a text.
#[test]
fn the_skeleton_refuses_what_is_not_its_own() {
    let other = Other::load("reference").unwrap();
    let plugin: &Plugin = &other.plugin;
    assert_eq!(plugin.name().unwrap(), "reference");
    assert_eq!(plugin.api_version().unwrap(), "1.4.0");
    assert_eq!(plugin.kind().unwrap(), 1);
    assert_eq!(plugin.engine_name(other.id).unwrap(), "REFERENCE_ENGINE");
    crate::expect_status(plugin.engine_name(1), crate::NOT_APPLICABLE);
    assert!(plugin.set_logging(None, 5).is_err() && plugin.set_logging(None, 4).is_ok());
    let bytes = crate::bytes(&small(64));
    assert_eq!(other.handle.details(other.id, &bytes).unwrap().engine_id, other.id);
    crate::expect_status(other.handle.details(1, &bytes), crate::INVALID_VALUE);
    let config = rotini_host::engine_config(1);
    crate::expect_status(other.handle.context(&config, &bytes), crate::INVALID_VALUE);
    let config = rotini_host::engine_config(other.id);
    crate::expect_status(other.handle.context(&config, &bytes[..40]), BAD_PARAM);
    assert!(other.handle.applicable(&bytes[..40]).unwrap().is_empty());
    let context = other.handle.context(&config, &bytes).unwrap();
    crate::expect_status(context.serialize(Some(other.id)), crate::NOT_APPLICABLE);
    crate::expect_status(other.handle.context_from_serialized(&bytes), crate::NOT_APPLICABLE);
    // SAFETY: no buffer is passed, so none is used.
    let text = crate::expect_status(
        unsafe { context.execute(std::ptr::null_mut(), &[]) },
        crate::INTERNAL_ERROR,
    );
    assert!(text.contains("has no buffer"), "{text}");
}
