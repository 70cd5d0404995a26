//! A host with more privileges than the user who started it: environment variables must not name
//! code or paths.

use crate::{expect_right, logging, small, warnings};
use rotini_iree::compiler::has_raised_privileges;
use rotini_tests::process::{command, part, run};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::process::Command;

#[test]
fn no_variable_names_a_place() {
    const OWNER: u32 = 54_323;
    if part().is_some() {
        if !has_raised_privileges() {
            return println!("skipped: this directory's file system raises no privileges");
        }
        let runner = logging();
        expect_right(&runner, &small(30));
        let warnings = warnings();
        let [warning] = &warnings[..] else {
            panic!("{warnings:?}")
        };
        for said in [
            "raised privileges",
            "ROTINI_CACHE_DIR",
            "ROTINI_COMPILE_WORKER",
            "ROTINI_IREE_COMPILE",
        ] {
            assert!(warning.contains(said), "{warning}");
        }
        return;
    }
    assert!(!has_raised_privileges());
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return println!("skipped: only root can give files away");
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let set = |name: &str, mode| {
        let path = directory.path().join(name);
        chown(&path, Some(OWNER), Some(OWNER)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    // A directory and a program that would be used if the environment were trusted.
    fs::create_dir(directory.path().join("cache")).unwrap();
    let cache = set("cache", 0o700);
    fs::write(directory.path().join("worker"), "#!/bin/sh\n: >${0%/*}/cache/trace\n").unwrap();
    let worker = set("worker", 0o755);
    // A copy of this test that is owned by another user and setuid.
    fs::copy(std::env::current_exe().unwrap(), directory.path().join("test")).unwrap();
    let program = set("test", 0o4755);
    let usual = command("raised", &cache).unwrap();
    let mut raised = Command::new(program);
    raised.args(usual.get_args());
    raised.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    raised
        .env("ROTINI_COMPILE_WORKER", &worker)
        .env("ROTINI_IREE_COMPILE", &worker)
        .env("HOME", &cache)
        .env("XDG_CACHE_HOME", &cache)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    println!("{}", run(&mut raised).unwrap());
    let left: Vec<_> = fs::read_dir(&cache)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
