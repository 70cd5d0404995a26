//! Directories that are full, read-only, removed or replaced. Results stay right, and the log has
//! few lines about it.
//!
//! A test that needs its own file system mounts it in a namespace of its processes. If the system
//! does not allow that, the test reports it and is skipped.

use crate::{counted, directory, expect_right, files, logging, logging_library, logging_on, small, warnings};
use bytes::Bytes;
use rotini_cache::{Entry, admin};
use rotini_tests::harness::Runner;
use rotini_tests::process::{Notes, command, part, run, wait_until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const GRAPHS: i64 = 8;

/// Returns a command for a part of a test that compiles each module once in all processes of its
/// directory, and logs it.
fn start(part: &str, directory: &Path) -> Command {
    fs::create_dir_all(directory.join("memo")).unwrap();
    let mut command = command(part, &directory.join("cache")).unwrap();
    command
        .env("ROTINI_TEST_DIRECTORY", directory)
        .env("ROTINI_TEST_COMPILER_MEMO", directory.join("memo"))
        .env("ROTINI_TEST_COMPILER_GATE", directory.join("gate"));
    counted(&mut command, compilations(directory).path());
    command
}

fn compilations(directory: &Path) -> Notes {
    Notes::new(directory.join("compilations"))
}

fn cache() -> PathBuf {
    directory().join("cache")
}

fn graph(number: i64) -> rotini_tests::cases::Case {
    small(400 + number)
}

/// Boundaries of the parts of an entry's file, in each of which it can be damaged.
struct Parts {
    /// End of magic, format and the header's length.
    prefix: usize,
    header: usize,
    checksum: usize,
    end: usize,
}

impl Parts {
    /// Parses an entry by the documented format.
    fn of(entry: &[u8]) -> Self {
        let length = u32::from_le_bytes(entry[12..16].try_into().unwrap());
        let header = 16 + usize::try_from(length).unwrap();
        assert!(entry.len() > header + 32);
        Parts {
            prefix: 16,
            header,
            checksum: header + 32,
            end: entry.len(),
        }
    }

    /// Returns offsets in every part, including its first and its last byte.
    fn places(&self) -> Vec<usize> {
        let some = |from: usize, to: usize, count: usize| {
            (0..count)
                .map(move |index| from + index * (to - 1 - from) / (count - 1))
                .collect::<Vec<_>>()
        };
        [
            some(0, self.prefix, 16),
            some(self.prefix, self.header, 12),
            some(self.header, self.checksum, 4),
            some(self.checksum, self.end, 12),
        ]
        .concat()
    }
}

/// A damaged entry causes a warning, and is compiled again.
#[test]
fn damaged_entries_are_made_again() {
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        println!("{}", run(&mut start("damage", directory.path())).unwrap());
        return;
    }
    // Keeps the library loaded, so that each runner only creates a new state of it.
    let _library = logging_library();
    let log = compilations(&directory());
    let graph = graph(0);
    expect_right(&Runner::cpu().unwrap(), &graph);
    let entry = || files(&cache(), ".entry").pop().unwrap();
    let count = Parts::of(&fs::read(entry()).unwrap()).places().len();
    let flips = (0..count).map(|index| (index, true));
    let truncations = (0..count).step_by(3).map(|index| (index, false));
    let mut rounds = 0;
    for (index, flip) in flips.chain(truncations) {
        let mut bytes = fs::read(entry()).unwrap();
        // The header contains times, so its length varies.
        let place = Parts::of(&bytes).places()[index];
        let what = format!("{} at {place} of {}", if flip { "flipped" } else { "cut" }, bytes.len());
        if flip {
            bytes[place] ^= 1 << (place % 8);
        } else {
            bytes.truncate(place);
        }
        // The same file under both of its names.
        fs::write(entry(), bytes).unwrap();
        let before = log.lines().len();
        expect_right(&Runner::cpu().unwrap(), &graph);
        assert_eq!(log.lines().len(), before + 1, "{what}: not made again");
        let warnings = warnings();
        assert_eq!(warnings.len(), 1, "{what}: {warnings:?}");
        assert!(warnings[0].contains("set aside"), "{what}: {warnings:?}");
        assert!(!files(&cache(), ".bad").is_empty(), "{what}");
        // The recompiled entry is found.
        expect_right(&Runner::cpu().unwrap(), &graph);
        assert_eq!((log.lines().len(), crate::warnings().len()), (before + 1, 0), "{what}");
        rounds += 1;
    }
    println!("{rounds} damages");
}

fn swap(one: &Path, other: &Path) {
    let aside = one.with_extension("aside");
    fs::rename(one, &aside).unwrap();
    fs::rename(other, one).unwrap();
    fs::rename(aside, other).unwrap();
}

/// Entries of two graphs exchange names, and the code of two modules exchanges contents.
#[test]
fn swapped_entries_are_seen() {
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        run(&mut start("swap", directory.path())).unwrap();
        return;
    }
    let _library = logging_library();
    let both = || {
        let runner = Runner::cpu().unwrap();
        expect_right(&runner, &graph(0));
        expect_right(&runner, &graph(1));
    };
    both();
    for kinds in [&[".entry"][..], &[".content"], &[".entry", ".content"]] {
        for kind in kinds {
            let names = files(&cache(), kind);
            let [one, other] = &names[..] else { panic!("{names:?}") };
            swap(one, other);
        }
        both();
        let wrong = warnings();
        // Both entries are wrong, or no entry was read.
        let expected = if kinds.contains(&".entry") { 2 } else { 0 };
        assert_eq!(wrong.len(), expected, "{kinds:?}: {wrong:?}");
        for bad in files(&cache(), ".bad") {
            fs::remove_file(bad).unwrap();
        }
        both();
        assert_eq!(warnings(), [""; 0]);
        for verdict in admin::verify(&cache()).unwrap() {
            assert!(verdict.result.is_ok(), "{verdict:?}");
        }
    }
}

/// In a child: runs one graph on a device, and returns the number of warnings.
fn on(device: &str) {
    let runner = match device {
        "cpu" => logging(),
        _ => logging_on(Runner::gpu),
    };
    expect_right(&runner, &graph(0));
    println!("warned: {:?}", warnings());
}

/// The code of one graph for the CPU and for MI300, exchanged.
#[test]
fn code_for_another_target_is_never_run() {
    if let Some(device) = part() {
        return on(&device);
    }
    let directory = tempfile::tempdir().unwrap();
    let play = |device: &str| {
        let mut command = start(device, directory.path());
        command.env("ROTINI_DEVICE", device);
        if device == "hip" {
            command.env("ROTINI_HIP_LIBRARY", rotini_tests::plugin::emulator().unwrap());
        }
        run(&mut command).unwrap()
    };
    let said_nothing = |text: &str| text.contains("warned: []");
    for device in ["cpu", "hip"] {
        assert!(said_nothing(&play(device)));
    }
    let cache = directory.path().join("cache");
    let names = files(&cache, ".entry");
    let [one, other] = &names[..] else { panic!("{names:?}") };
    let read = |path: &Path| Entry::from_bytes(&Bytes::from(fs::read(path).unwrap())).unwrap();
    let compiled_for = |path| read(path).metadata.facts.compiled_for;
    assert_ne!(compiled_for(one).target, compiled_for(other).target);

    // The files are unchanged, so each states another key than its name.
    swap(one, other);
    for device in ["cpu", "hip"] {
        let text = play(device);
        assert!(text.contains("holds the entry of another key"), "{text}");
        assert!(said_nothing(&play(device)));
    }
    // Each has the other's code, with nothing in the header to show it. Written into the existing
    // file, which has two names.
    let (first, second) = (read(one), read(other));
    let forge = |path: &Path, entry: &Entry, code: &Entry| {
        let forged = Entry {
            payload: code.payload.clone(),
            ..entry.clone()
        };
        fs::write(path, forged.to_bytes().unwrap()).unwrap();
    };
    forge(one, &first, &second);
    forge(other, &second, &first);
    for device in ["cpu", "hip"] {
        let text = play(device);
        assert_eq!(text.matches("set aside").count(), 1, "{text}");
        assert!(said_nothing(&play(device)));
    }
}

/// Runs a script in a namespace in which it may mount: `$dir` is the cache directory, and `play
/// PART` starts this test's part.
fn in_namespace(script: &str) {
    let namespace = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--user", "--map-root-user", "sh", "-e", "-c"]);
        command
    };
    let refused = match namespace().arg("mount -t tmpfs none /mnt").output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(reason) = refused {
        println!("skipped: nothing can be mounted here: {reason}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("cache")).unwrap();
    let child = start("", directory.path());
    let mut shell = namespace();
    shell
        .arg(format!(
            "play() {{ part=$1; shift; ROTINI_TEST_CHILD=\"$part\" \"$@\"; }}; dir=$1; shift; {script}"
        ))
        .arg("sh")
        .arg(directory.path().join("cache"))
        .arg(child.get_program())
        .args(child.get_args())
        .envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        text.matches("1 passed").count(),
        script.matches("play").count(),
        "{text}"
    );
}

fn all_right(graphs: std::ops::Range<i64>) {
    let runner = logging();
    for number in graphs.clone().chain(graphs) {
        expect_right(&runner, &graph(number));
    }
}

#[test]
fn a_full_file_system_is_one_warning() {
    if part().is_none() {
        return in_namespace("mount -t tmpfs -o size=48k,mode=700 none $dir; play first \"$@\"; play second \"$@\"");
    }
    all_right(0..GRAPHS);
    let warnings = warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let stored = files(&cache(), ".entry").len();
    assert!(
        0 < stored && stored < usize::try_from(GRAPHS).unwrap(),
        "{stored} stored: the file system never was full"
    );
    assert!(files(&cache(), ".tmp").is_empty() && files(&cache(), ".lock").is_empty());
    for verdict in admin::verify(&cache()).unwrap() {
        assert!(verdict.result.is_ok(), "{verdict:?}");
    }
}

#[test]
fn a_read_only_file_system_is_read() {
    match part().as_deref() {
        None => in_namespace(
            "mount -t tmpfs -o mode=700 none $dir; play fill \"$@\"; mount -o remount,ro $dir; play read \"$@\"",
        ),
        Some("fill") => all_right(0..3),
        Some(_) => {
            assert!(fs::write(cache().join("file"), "").is_err(), "it can be written");
            let compiled = compilations(&directory()).lines().len();
            all_right(0..3);
            assert_eq!(warnings(), [""; 0]);
            assert_eq!(compilations(&directory()).lines().len(), compiled);
            all_right(3..6);
            let warnings = warnings();
            assert_eq!(warnings.len(), 1, "{warnings:?}");
        }
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_one_warning() {
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = start("nowhere", directory.path());
        run(command.env("ROTINI_CACHE_DIR", "/proc/rotini")).unwrap();
        return;
    }
    all_right(0..3);
    let warnings = warnings();
    assert!(matches!(&warnings[..], [one] if one.contains("/proc")), "{warnings:?}");
}

/// A directory that is removed while it is in use, between compilations and during one, and finally
/// replaced by something else.
#[test]
fn a_directory_that_is_removed_is_made_again() {
    const HELD: i64 = 500;
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = start("remove", directory.path());
        run(command.env("ROTINI_TEST_COMPILER_FAULT", "1x900xf32=hold")).unwrap();
        return;
    }
    let runner = logging();
    let log = compilations(&directory());
    expect_right(&runner, &graph(0));
    fs::remove_dir_all(cache()).unwrap();
    expect_right(&runner, &graph(0));
    expect_right(&runner, &graph(1));
    assert_eq!(files(&cache(), ".entry").len(), 1);
    std::thread::scope(|scope| {
        scope.spawn(|| expect_right(&runner, &graph(HELD)));
        wait_until("it is compiled", || log.lines().len() == 3).unwrap();
        fs::remove_dir_all(cache()).unwrap();
        fs::write(directory().join("gate"), "").unwrap();
    });
    assert_eq!(files(&cache(), ".entry").len(), 1);
    assert!(files(&cache(), ".tmp").is_empty() && files(&cache(), ".lock").is_empty());
    assert_eq!(warnings(), [""; 0]);

    fs::remove_dir_all(cache()).unwrap();
    fs::write(cache(), "not a directory").unwrap();
    for number in 2..5 {
        expect_right(&runner, &graph(number));
    }
    let warnings = warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}
