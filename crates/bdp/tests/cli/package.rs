//! The Debian package, built from the binary under test and inspected, and the service in it.

use std::path::Path;
use std::process::Command;

use crate::support::machine::is_installed;
use crate::support::{BDP, Bench, start};

fn packaging() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn ask(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments);
    let ended = start(command).wait();
    assert_eq!(ended.code(), 0, "{program} {arguments:?}: {}", ended.err);
    ended.out
}

#[test]
fn the_package_has_all_that_it_should_and_enables_nothing() {
    if !is_installed("dpkg-deb") {
        return;
    }
    let bench = Bench::new();
    let mut build = Command::new(packaging().join("debian/build"));
    build.arg(BDP).arg(bench.path("out")).arg("0");
    let built = start(build).wait();
    assert_eq!(built.code(), 0, "{}", built.err);
    let package = built.out.trim();
    assert!(package.ends_with(".deb"), "{package}");

    let listed = ask("dpkg-deb", &["--contents", package]);
    for (mode, file) in [
        ("-rwxr-xr-x", "./usr/bin/bdp"),
        ("-rw-r--r--", "./lib/systemd/system/bdp.service"),
        ("-rw-------", "./etc/default/bdp"),
        ("-rw-r--r--", "./usr/share/man/man1/bdp.1.gz"),
        ("-rw-r--r--", "./usr/share/man/man1/bdp-serve.1.gz"),
        ("-rw-r--r--", "./usr/share/man/man7/bdp-windows.7.gz"),
        ("-rw-r--r--", "./usr/share/doc/bdp/window.md"),
        ("-rw-r--r--", "./usr/share/doc/bdp/images/findings.svg"),
        ("-rw-r--r--", "./usr/share/bash-completion/completions/bdp"),
        ("-rw-r--r--", "./usr/share/zsh/vendor-completions/_bdp"),
        ("-rw-r--r--", "./usr/share/fish/vendor_completions.d/bdp.fish"),
        ("-rw-r--r--", "./usr/share/doc/bdp/copyright"),
        ("-rw-r--r--", "./usr/share/doc/bdp/changelog.gz"),
    ] {
        let line = listed.lines().find(|line| line.ends_with(&format!(" {file}")));
        let line = line.unwrap_or_else(|| panic!("{file} is not in\n{listed}"));
        assert!(line.starts_with(mode) && line.contains("root/root"), "{line}");
    }
    assert!(!listed.contains(".wants"), "a service is enabled: {listed}");
    for (field, value) in [("Package", "bdp"), ("Version", env!("CARGO_PKG_VERSION")), ("Section", "net")] {
        assert_eq!(ask("dpkg-deb", &["--field", package, field]).trim(), value);
    }
    assert_eq!(ask("dpkg-deb", &["--info", package, "conffiles"]).trim(), "/etc/default/bdp");
    let scripts = ask("dpkg-deb", &["--info", package, "postinst"]);
    assert!(!scripts.contains("enable") || scripts.contains("until it is enabled"), "{scripts}");

    let root = bench.path("root");
    ask("dpkg-deb", &["--extract", package, root.to_str().unwrap()]);
    let version = ask(root.join("usr/bin/bdp").to_str().unwrap(), &["--version"]);
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
}

#[test]
fn the_service_is_closed_to_all_that_it_does_not_need() {
    let unit = std::fs::read_to_string(packaging().join("bdp.service")).unwrap();
    for line in ["DynamicUser=yes", "ProtectSystem=strict", "CapabilityBoundingSet=", "NoNewPrivileges=yes"] {
        assert!(unit.lines().any(|l| l == line), "no {line}");
    }
    if !is_installed("systemd-analyze") {
        return;
    }
    let path = packaging().join("bdp.service");
    let told = ask("systemd-analyze", &["security", "--offline=true", path.to_str().unwrap()]);
    let exposure = told.lines().rev().find_map(|l| l.split("bdp.service: ").nth(1)).unwrap();
    let exposure: f64 = exposure.split(' ').next().unwrap().parse().unwrap();
    assert!(exposure < 2.0, "{told}");
}
