use super::*;
use crate::device::Device as _;
use crate::device::host::Host;
use std::path::Path;

fn read(pairs: &[(&str, &str)]) -> Config {
    read_as(pairs, false)
}

fn read_as(pairs: &[(&str, &str)], is_raised: bool) -> Config {
    Config::read(pairs.iter().map(|(name, value)| (name.into(), value.into())), is_raised)
}

#[test]
fn defaults() {
    let config = read(&[]);
    assert_eq!(
        (config.device, config.compiler),
        (DeviceChoice::Auto, CompilerMode::Worker)
    );
    assert_eq!((config.target, config.cpu), (None, Target::Cpu));
    assert!((1..=4).contains(&config.compile_workers));
    assert_eq!(config.compile_timeout, Duration::from_secs(120));
    assert_eq!((config.compile_memory, config.cache_size), (8 << 30, 4 << 30));
    assert!(config.cache_path.is_empty());
    assert!(config.complaints.is_empty());
}

#[test]
fn values() {
    let config = read(&[
        ("ROTINI_DEVICE", "cpu"),
        ("ROTINI_CACHE_DIR", ""),
        ("ROTINI_TARGET", "gfx942"),
        ("ROTINI_CPU", "x86-64-v3"),
        ("ROTINI_HIP_LIBRARY", "libamdhip64.so.7"),
        ("ROTINI_SCHEDULES", "compiler"),
        ("ROTINI_COMPILER", "cli"),
        ("ROTINI_COMPILE_WORKERS", "3"),
        ("ROTINI_COMPILE_TIMEOUT", "7"),
        ("ROTINI_COMPILE_MEMORY", "512 MiB"),
        ("ROTINI_CACHE_PATH", "/a::/b"),
        ("ROTINI_CACHE_SIZE", "1048576"),
        ("HIPDNN_LOG_LEVEL", "info"),
    ]);
    assert_eq!((config.device, config.compiler), (DeviceChoice::Cpu, CompilerMode::Cli));
    assert_eq!((&config.cache_dir, &config.reproducers), (&None, &None));
    assert_eq!(config.hip_library.as_deref(), Some("libamdhip64.so.7"));
    assert_eq!(config.target, Some(Target::Rocm { arch: "gfx942".into() }));
    assert_eq!(config.cpu, Target::X86(Level::V3));
    assert!(config.unscheduled);
    assert_eq!((config.compile_workers, config.compile_timeout.as_secs()), (3, 7));
    assert_eq!((config.compile_memory, config.cache_size), (512 << 20, 1 << 20));
    assert_eq!(config.cache_path, [Path::new("/a"), Path::new("/b")]);
    assert_eq!(config.complaints, [""; 0]);
}

#[test]
fn reproducers_are_in_the_cache_directory_or_where_they_shall_be() {
    let directory = |pairs: &[(&str, &str)]| read(pairs).reproducers;
    assert_eq!(directory(&[("ROTINI_CACHE_DIR", "/c")]), Some("/c/reproducers".into()));
    let both = [("ROTINI_CACHE_DIR", "/c"), ("ROTINI_REPRODUCERS", "/r")];
    assert_eq!(directory(&both), Some("/r".into()));
    assert_eq!(
        directory(&[("ROTINI_CACHE_DIR", "/c"), ("ROTINI_REPRODUCERS", "")]),
        None
    );
}

#[test]
fn with_raised_privileges_nothing_names_a_place() {
    let all: Vec<_> = PLACES.iter().map(|&name| (name, "/somewhere")).collect();
    let others = [("ROTINI_COMPILE_WORKERS", "3"), ("ROTINI_COMPILER", "in-process")];
    let raised = read_as(&[&all[..], &others].concat(), true);
    // The compiler's library reads environment variables itself, so it is not loaded into this
    // process.
    assert_eq!(raised.compiler, CompilerMode::Worker);
    assert_eq!(
        (raised.cache_dir, raised.reproducers, raised.hip_library),
        (None, None, None)
    );
    assert_eq!((raised.cache_path, raised.compile_workers), (Vec::new(), 3));
    let [complaint] = &raised.complaints[..] else {
        panic!("{:?}", raised.complaints)
    };
    assert!(PLACES.iter().all(|name| complaint.contains(name)), "{complaint}");
    // All other settings of the plugin whose values are paths or directories are in the list.
    for setting in SETTINGS.iter().filter(|setting| setting.reader == Reader::Plugin) {
        let is_place = setting.values.contains("path") || setting.values.contains("director");
        assert_eq!(PLACES.contains(&setting.name), is_place, "{}", setting.name);
    }
}

#[test]
fn nonsense_is_reported_and_harmless() {
    let config = read(&[
        ("ROTINI_DEVICE", "abacus"),
        ("ROTINI_TARGET", "--flag"),
        ("ROTINI_CPU", "x86-64-v5"),
        ("ROTINI_COMPILER", "auto"),
        ("ROTINI_COMPILE_WORKERS", "0"),
        ("ROTINI_COMPILE_TIMEOUT", "-1"),
        ("ROTINI_COMPILE_MEMORY", "much"),
        ("ROTINI_CACHE_SIZE", "4 apples"),
        ("ROTINI_LOG", "loud"),
    ]);
    assert_eq!(config.complaints.len(), 9, "{:?}", config.complaints);
    let complaints = config.complaints.clone();
    assert_eq!(
        Config {
            complaints: Vec::new(),
            ..config
        },
        read(&[])
    );
    assert!(complaints.iter().all(|complaint| complaint.contains("not understood")));
}

/// Code for a CPU with more features than this one has would crash the process.
#[test]
fn a_cpu_that_is_not_here_is_refused() {
    let instance = rotini_iree::runtime::Instance::new().unwrap();
    for level in [Level::V3, Level::V4] {
        let config = read(&[("ROTINI_CPU", level.name())]);
        match Host::new(&config, &instance) {
            Ok(host) => assert!(level.is_here() && host.compiled_for().target == Target::X86(level)),
            Err(error) => assert!(!level.is_here() && error.to_string().contains(level.name()), "{error}"),
        }
    }
}

#[test]
fn names_that_are_not_in_the_table_are_reported() {
    let config = read(&[
        ("ROTINI_CACHE_DIRECTORY", "/c"),
        ("ROTINI_PLUGIN", "x.so"),
        ("ROTINI_TEST_ANYTHING", "1"),
        ("ROTINI_HIP_HEADERS", "/h"),
    ]);
    assert_eq!(config.complaints.len(), 1);
    assert!(config.complaints[0].contains("ROTINI_CACHE_DIRECTORY"));
}

#[test]
fn installed_kernels_are_found_from_the_plugin_and_from_the_command() {
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    let plugin = prefix.join("lib/hipdnn_plugins/engines/librotini_plugin.so");
    let command = prefix.join("bin/rotini");
    assert_eq!((shipped_kernels(&plugin), shipped_kernels(&command)), (None, None));
    let kernels = prefix.join("share/rotini/kernels");
    std::fs::create_dir_all(&kernels).unwrap();
    for file in [&plugin, &command] {
        assert_eq!(shipped_kernels(file).as_ref(), Some(&kernels));
    }
    // A directory that the plugin was built in is no installation.
    assert_eq!(shipped_kernels(&prefix.join("share/librotini_plugin.so")), None);
}
