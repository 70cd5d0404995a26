//! Ahead-of-time compilation, and the directories that it fills.

use crate::bench::{Bench, ENVIRONMENT, Finished, OK, WRONG, each, has_compiler, plugin};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the files of a directory's entries, sorted by key.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "entry"))
        .collect();
    entries.sort();
    entries
}

/// Flips one bit of a file's last byte, which belongs to the payload.
fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(file, bytes).unwrap();
}

fn origins(document: &Value) -> Vec<&str> {
    document["graphs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|graph| graph["origin"].as_str().unwrap_or("none"))
        .collect()
}

/// Fills the directory `kernels` with one graph for two targets.
fn fill(bench: &Bench) -> PathBuf {
    let into = ["compile", "--target", "gfx942,gfx950", "good.fb", "--into", "kernels"];
    let filled = bench.run(&into);
    assert_eq!(filled.code, OK, "{}{}", filled.stdout, filled.stderr);
    bench.path("kernels")
}

#[test]
fn a_directory_is_filled_resumed_and_repaired() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    let compile = |graphs: &[&str], code| {
        let into = [
            "compile",
            "--json",
            "-j",
            "2",
            "--target",
            "gfx942,gfx950",
            "--into",
            "kernels",
        ];
        bench.run(&[&into[..], graphs].concat()).json(code)
    };
    let document = compile(&["declined.fb", "good.fb", "nowhere.fb"], WRONG);
    // A graph that fails does not stop the others.
    assert_eq!(
        origins(&document),
        ["none", "none", "compiled", "compiled", "none", "none"]
    );
    assert_eq!(each(&document["graphs"], "target"), ["gfx942", "gfx950"].repeat(3));
    assert!(document["graphs"][0]["error"].as_str().unwrap().contains("'foreign'"));
    let files = entries(&bench.path("kernels"));
    assert_eq!(files.len(), 2);
    for graph in document["graphs"].as_array().unwrap() {
        if let Some(key) = graph["key"].as_str() {
            assert!(files.iter().any(|file| file.file_stem().unwrap() == key), "{key}");
        }
    }
    // The user's own directory is not used, and every user of the image can read this one.
    assert!(!bench.path("cache").exists() || entries(&bench.path("cache")).is_empty());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bench.path("kernels")), 0o755);
    assert_eq!(mode(&files[0]), 0o644);

    let before: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let document = compile(&["good.fb"], OK);
    assert_eq!(origins(&document), ["cache", "cache"]);
    let after: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert_eq!(before, after);

    damage(&files[0]);
    let mut origins_of = origins(&compile(&["good.fb"], OK))
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    origins_of.sort();
    assert_eq!(origins_of, ["cache", "compiled"]);
    let verified = bench.run(&["cache", "--dir", "kernels", "verify", "--json"]).json(OK);
    assert_eq!(verified["intact"], 2);
}

#[test]
fn a_shipped_directory_runs_without_a_compiler() {
    let bench = Bench::new();
    let Some(plugin) = plugin(&bench) else { return };
    let filled = bench.run(&["compile", "--target", "cpu", "good.fb", "--into", "kernels"]);
    assert_eq!(filled.code, OK, "{}", filled.stderr);
    let run = |path: &str| {
        let output = bench
            .command(["run", "--json", "--plugin"])
            .args([&plugin, &bench.path("good.fb")])
            .env("ROTINI_CACHE_DIR", "")
            .env("ROTINI_CACHE_PATH", bench.path(path))
            .env("ROTINI_IREE_COMPILE", bench.path("no-compiler"))
            .env("ROTINI_IREE_COMPILER_LIB", bench.path("no-library"))
            .output()
            .unwrap();
        Finished::new(output)
    };
    let document = run("kernels").json(OK);
    assert_eq!(document["graphs"][0]["verdict"], "right");
    assert_eq!(document["graphs"][0]["origin"], "cache");
    // An archive serves as well as the directory.
    for transport in [
        ["cache", "--dir", "kernels", "export", "kernels.tar"],
        ["cache", "--dir", "imported", "import", "kernels.tar"],
    ] {
        assert_eq!(bench.run(&transport).code, OK);
    }
    assert_eq!(run("imported").json(OK)["graphs"][0]["origin"], "cache");
    // The same run fails without the directory, which shows that no compiler was found.
    assert_ne!(run("elsewhere").code, OK);
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    fs::write(bench.path("file"), "").unwrap();
    let document = bench
        .run(&["compile", "--json", "--target", "gfx942", "good.fb", "--into", "file"])
        .json(ENVIRONMENT);
    assert!(document["error"].as_str().unwrap().contains("file"), "{document}");
}

#[test]
fn a_directory_is_listed_counted_and_verified() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    let directory = fill(&bench);
    let files = entries(&directory);
    let on = |command: &[&str], code| {
        let arguments = [&["cache", "--dir", "kernels", "--json"], command].concat();
        bench.run(&arguments).json(code)
    };
    let listed = on(&["ls"], OK);
    let listed = &listed["entries"];
    for entry in listed.as_array().unwrap() {
        let file = directory.join(format!("{}.entry", entry["key"].as_str().unwrap()));
        assert_eq!(entry["bytes"], fs::metadata(file).unwrap().len());
        assert_eq!(entry["dispatches"], 1);
        assert!(entry["compile_us"].as_u64().unwrap() > 0);
    }
    let mut targets = each(listed, "target");
    targets.sort_unstable();
    assert_eq!(targets, ["gfx942", "gfx950"]);

    let size: u64 = files.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    let stats = on(&["stats"], OK);
    assert_eq!((&stats["entries"], &stats["bytes"]), (&2.into(), &size.into()));
    assert_eq!(stats["targets"]["gfx950"]["entries"], 1);

    assert_eq!(on(&["verify"], OK)["intact"], 2);
    damage(&files[0]);
    let verified = on(&["verify"], WRONG);
    assert_eq!(verified["intact"], 1);
    assert_eq!(
        verified["bad"][0]["key"],
        files[0].file_stem().unwrap().to_str().unwrap()
    );
    assert_eq!(entries(&directory), files, "verify has changed the directory");

    let text = bench.run(&["cache", "ls", "--dir", "kernels"]);
    assert!(
        text.stdout.contains("gfx942") && text.stdout.contains("2 entries"),
        "{}",
        text.stdout
    );
}

#[test]
fn a_directory_is_cut_to_size_and_cleared() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    let directory = fill(&bench);
    fs::write(directory.join("notes.txt"), "mine").unwrap();
    let gc = ["cache", "--dir", "kernels", "--json", "gc", "--size"];
    let kept = bench.run(&[&gc[..], &["1GB"]].concat()).json(OK);
    assert_eq!((&kept["entries"], entries(&directory).len()), (&0.into(), 2));
    let largest = entries(&directory)
        .iter()
        .map(|file| fs::metadata(file).unwrap().len())
        .max()
        .unwrap();
    let removed = bench.run(&[&gc[..], &[&largest.to_string()]].concat()).json(OK);
    assert_eq!((&removed["entries"], entries(&directory).len()), (&1.into(), 1));
    let left = fs::metadata(&entries(&directory)[0]).unwrap().len();
    assert_eq!(removed["left_bytes"], left);

    let cleared = bench.run(&["cache", "--dir", "kernels", "--json", "clear"]).json(OK);
    assert_eq!((&cleared["entries"], entries(&directory).len()), (&1.into(), 0));
    assert_eq!(fs::read_to_string(directory.join("notes.txt")).unwrap(), "mine");
}

#[test]
fn entries_travel_in_archives() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    let directory = fill(&bench);
    let files = entries(&directory);
    let name = |file: &Path| file.file_name().unwrap().to_str().unwrap().to_owned();
    let members = |archive: &str| {
        let tar = Command::new("tar")
            .arg("-tf")
            .arg(bench.path(archive))
            .output()
            .unwrap();
        String::from_utf8(tar.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let export = |arguments: &[&str], code| {
        let all = [&["cache", "--dir", "kernels", "--json", "export"], arguments].concat();
        bench.run(&all).json(code)
    };
    assert_eq!(export(&["all.tar"], OK)["exported"], 2);
    assert_eq!(members("all.tar"), [name(&files[0]), name(&files[1])]);
    // The archive has the same permissions as any new file.
    fs::write(bench.path("plain"), "").unwrap();
    let mode = |name: &str| fs::metadata(bench.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("all.tar"), mode("plain"));
    // A pipe is written to, not replaced.
    assert!(
        Command::new("mkfifo")
            .arg(bench.path("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let reader = Command::new("timeout")
        .args(["30", "cat"])
        .arg(bench.path("pipe"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    export(&["pipe"], OK);
    assert!(fs::metadata(bench.path("pipe")).unwrap().file_type().is_fifo());
    let read = reader.wait_with_output().unwrap().stdout;
    assert_eq!(read, fs::read(bench.path("all.tar")).unwrap());
    export(&["one.tar", &name(&files[1])[..20]], OK);
    assert_eq!(members("one.tar"), [name(&files[1])]);
    export(&["none.tar", "ffffffffffffffffffffff"], WRONG);
    assert!(!bench.path("none.tar").exists());

    let import = |archive: &str, code| {
        bench
            .run(&["cache", "--dir", "other", "--json", "import", archive])
            .json(code)
    };
    assert_eq!(import("one.tar", OK)["added"], 1);
    let imported = import("all.tar", OK);
    assert_eq!((&imported["added"], &imported["present"]), (&1.into(), &1.into()));
    let read = |directory: &str| -> Vec<_> {
        entries(&bench.path(directory))
            .iter()
            .map(|file| (name(file), fs::read(file).unwrap()))
            .collect()
    };
    assert_eq!(read("other"), read("kernels"));

    // One member is damaged and the other is stored under a wrong name; both are refused.
    let forged = bench.path("forged");
    fs::create_dir(&forged).unwrap();
    fs::copy(&files[0], forged.join(name(&files[0]))).unwrap();
    damage(&forged.join(name(&files[0])));
    fs::copy(&files[0], forged.join(name(&files[1]))).unwrap();
    let made = Command::new("tar")
        .arg("-C")
        .arg(&forged)
        .arg("-cf")
        .arg(bench.path("forged.tar"))
        .args([name(&files[0]), name(&files[1])])
        .status()
        .unwrap();
    assert!(made.success());
    let refused = bench
        .run(&["cache", "--dir", "third", "--json", "import", "forged.tar"])
        .json(WRONG);
    assert_eq!(refused["refused"].as_array().unwrap().len(), 2, "{refused}");
    assert!(entries(&bench.path("third")).is_empty());
}

#[test]
fn directories_that_others_can_write_are_refused() {
    let bench = Bench::new();
    let directory = bench.path("open");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    for command in ["ls", "stats", "verify", "gc", "clear"] {
        let document = bench
            .run(&["cache", "--dir", "open", "--json", command])
            .json(ENVIRONMENT);
        assert!(
            document["error"].as_str().unwrap().contains("others can write it"),
            "{document}"
        );
        let document = bench
            .run(&["cache", "--dir", "nowhere", "--json", command])
            .json(ENVIRONMENT);
        assert!(document["error"].as_str().unwrap().contains("nowhere"), "{document}");
    }
    assert!(!bench.path("nowhere").exists());
}
