//! `bdp lab stacks`: which kernels there are, and how to come by the others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::untested::skip;
use crate::support::{Bench, start};

#[test]
fn a_kernel_that_is_missing_has_its_command_and_one_that_is_there_its_version() {
    let bench = Bench::new();
    let folder = bench.path("kernels");
    fs::create_dir(&folder).unwrap();
    let listed = |arguments: &str| {
        let mut command = bench.bdp(arguments);
        command.env("BDP_KERNELS", &folder);
        start(command).wait()
    };
    let text = listed("lab stacks");
    assert_eq!(text.code(), 0, "{}", text.err);
    for wanted in
        ["linux       real", "make kernel LINUX=6.1 ", "make kernel LINUX=6.12 ", "make kernel LINUX=7.2 "]
    {
        assert!(text.out.contains(wanted), "{wanted}: {}", text.out);
    }
    let content = "CONFIG_UML=y\n\0CONFIG_UML_TIME_TRAVEL_SUPPORT=y\n\0CONFIG_TCP_CONG_BBR=y\n\0Linux version 6.12.117 (a)\n\0";
    let kernel = folder.join("linux-6.12");
    fs::write(&kernel, content).unwrap();
    let text = listed("lab stacks");
    let way_out = format!("is not executable; run 'chmod +x {}'", kernel.display());
    assert!(text.out.contains(&way_out), "{}", text.out);
    fs::set_permissions(&kernel, fs::Permissions::from_mode(0o755)).unwrap();
    let value: Value = listed("lab stacks --json").json();
    let stack =
        value["stacks"].as_array().unwrap().iter().find(|stack| stack["name"] == "linux-6.12").unwrap();
    assert_eq!(stack["version"], "6.12.117");
    assert_eq!(stack["congestion_controls"], serde_json::json!(["bbr", "reno"]));
    assert_eq!((&stack["default"], &stack["repeatable"]), (&true.into(), &false.into()));
}

/// What an earlier build left another checkout takes.
#[test]
fn a_kernel_that_was_built_before_is_taken_from_the_cache() {
    let bench = Bench::new();
    if std::env::consts::ARCH != "x86_64" {
        return skip("guests are programs of x86-64 machines");
    }
    let tree = bench.path("tree");
    fs::create_dir_all(tree.join("arch/um")).unwrap();
    fs::write(tree.join("Makefile"), "VERSION = 9\nPATCHLEVEL = 8\n").unwrap();
    let build = |arguments: &[&str]| {
        let mut command =
            Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../stacks/linux/build"));
        command.args(arguments).args([&tree, &bench.path("kernels")]);
        command.env("BDP_KERNEL_CACHE", bench.path("cache"));
        start(command).wait()
    };
    let digest = build(&["--digest"]).out;
    let kept = bench.path("cache").join(format!("linux-9.8-{}", digest.trim()));
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    fs::write(&kept, "#!/bin/sh\necho 9.8.0\n").unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o755)).unwrap();
    let taken = build(&[]);
    assert_eq!(taken.code(), 0, "{}", taken.err);
    assert!(taken.out.contains("copied "), "{}", taken.out);
    assert!(bench.path("kernels/linux-9.8").exists());
    assert!(build(&[]).out.contains("is up to date"));
}
