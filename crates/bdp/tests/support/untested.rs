//! What a test could not test, and why: on standard error, past the harness, which shows only what failed. `.ci/tests` counts it.
//! Tests of other crates have this file by its path, and each its part of it.
#![allow(dead_code)]

use std::io::Write;

/// Prints why a test is not run.
pub fn skip(why: &str) {
    print(&format!("SKIPPED {}: {why}\n", test()));
}

/// Prints that a figure is not judged, and why.
pub fn not_judged(what: &str, why: &str) {
    print(&format!("NOT JUDGED {} ({what}): {why}\n", test()));
}

/// Whether this kernel lowers the window of an open connection (`bdp_sys::window`); says so where it doesn't.
pub fn kernel_lowers_windows() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut parts = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let lowers = (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (6, 9);
    if !lowers {
        skip("kernels before 6.9 lower no window that is open");
    }
    lowers
}

/// Whether loopback has IPv6; says so where it hasn't.
pub fn has_ipv6() -> bool {
    let has = std::net::TcpListener::bind("[::1]:0").is_ok();
    if !has {
        skip("loopback has no IPv6");
    }
    has
}

/// Prints again what a test said that ran elsewhere: what it could not test.
pub fn forward(said: &str) {
    let kinds = ["SKIPPED ", "NOT JUDGED ", "CRASHED "];
    for line in said.lines() {
        if let Some(at) = kinds.iter().find_map(|kind| line.find(kind)) {
            print(&format!("{}\n", &line[at..]));
        }
    }
}

fn test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

/// In one piece, or the harness writes between.
fn print(line: &str) {
    let _ = std::io::stderr().write_all(line.as_bytes());
}
