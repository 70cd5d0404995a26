//! Directories of graphs that were compiled ahead of time.

use crate::{INTERNAL_ERROR, create, expect_right, expect_status, files, small};
use rotini_tests::harness::Runner;
use rotini_tests::process::{command, part, run, without_compiler};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Fills a directory, and then runs its graphs in a process that has it in `ROTINI_CACHE_PATH`.
fn ship(prepare: impl FnOnce(&Path)) -> Result<String, anyhow::Error> {
    let directory = tempfile::tempdir().unwrap();
    let (image, own) = (directory.path().join("image"), directory.path().join("own"));
    run(&mut command("fill", &image).unwrap()).unwrap();
    prepare(&image);
    let mut command = command("use", &own).unwrap();
    command.env("ROTINI_CACHE_PATH", format!("/nonexistent:{}", image.display()));
    run(without_compiler(&mut command))
}

fn fill_or_use(part: &str) {
    let runner = Runner::cpu().unwrap();
    for elements in 20..23 {
        expect_right(&runner, &small(elements));
    }
    if part == "use" {
        let engine = runner.engine();
        assert_eq!(runner.handle().applicable(&crate::bytes(&small(20))).unwrap(), [engine]);
        // A graph that is not in the directory cannot be compiled, and is declined from the start.
        let other = small(24);
        assert!(runner.handle().applicable(&crate::bytes(&other)).unwrap().is_empty());
        let text = expect_status(create(&runner, &other), INTERNAL_ERROR);
        assert!(text.contains("no compiler"), "{text}");
    }
}

#[test]
fn a_directory_serves_machines_without_a_compiler() {
    match part() {
        Some(part) => fill_or_use(&part),
        None => drop(ship(|_| ()).unwrap()),
    }
}

#[test]
fn a_directory_that_nobody_can_write_serves_too() {
    match part() {
        Some(part) => fill_or_use(&part),
        None => {
            let freeze = |image: &Path| {
                for file in files(image, "") {
                    fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
                }
                fs::set_permissions(image, fs::Permissions::from_mode(0o555)).unwrap();
            };
            drop(ship(freeze).unwrap());
        }
    }
}

/// Code that other users could have written is not executed.
#[test]
fn a_directory_that_others_can_write_is_not_used() {
    match part() {
        Some(part) => fill_or_use(&part),
        None => {
            let open = |image: &Path| fs::set_permissions(image, fs::Permissions::from_mode(0o777)).unwrap();
            let error = ship(open).unwrap_err().to_string();
            assert!(error.contains("no compiler"), "{error}");
        }
    }
}
