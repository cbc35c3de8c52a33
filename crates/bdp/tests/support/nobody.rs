//! The user nobody, without a capability and none to be got.
#![allow(dead_code)]

use std::path::Path;
use std::process::Command;

use super::Bench;
use super::machine::is_installed;
use super::untested::skip;

/// The copy of bdp as the user nobody, who can never be anybody else.
pub fn as_nobody(bench: &Bench, copy: &Path, line: &str) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
        ])
        .args(["--no-new-privs", "--", "env", "-i", "PATH=/usr/bin:/bin", "RUST_BACKTRACE=0"])
        .arg(copy)
        .args(line.split_whitespace())
        .current_dir(bench.folder());
    command
}

/// Whether this test can become somebody else, which only root can; says so where it can't.
pub fn can_be_nobody() -> bool {
    let can = is_installed("setpriv")
        && Command::new("setpriv").args(["--reuid", "65534", "true"]).status().is_ok_and(|s| s.success());
    if !can {
        skip("needs setpriv, and root to give its rights away");
    }
    can
}
