//! The real iperf2 as a peer.

use std::process::Command;

use super::machine::is_installed;
use super::peer::{count_crash, has_crashed};
use super::serving::{await_open, free_port};
use super::{Ended, Running, start};

/// iperf2 with these words as arguments; it is killed where it does not end by itself, and one that crashes is counted and started
/// again.
pub fn iperf(line: &str) -> Ended {
    loop {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "20", "iperf"]).args(line.split_whitespace());
        let ended = start(command).wait();
        if !has_crashed(ended.status) {
            return ended;
        }
        count_crash("iperf");
    }
}

/// A server of iperf2 with these options and its port, ended with the test; `None`, with the reason printed, where this machine has
/// no iperf2.
pub fn serve_by_iperf(options: &str) -> Option<(Running, u16)> {
    if !is_installed("iperf") {
        return None;
    }
    let port = free_port();
    let mut command = Command::new("iperf");
    command.args(["-s", "-p", &port.to_string()]).args(options.split_whitespace());
    let server = start(command);
    // What it would make of a connection or a datagram is a test: the kernel's table tells that it listens.
    await_open(if options.contains("-u") { "udp" } else { "tcp" }, port);
    Some((server, port))
}

/// Whether the iperf that is installed is of release 2.2, as Debian 13's.
pub fn iperf_is_of_2_2() -> bool {
    let version = Command::new("iperf").arg("--version").output();
    // It tells it on one stream or the other, by its release.
    version.is_ok_and(|told| {
        String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).contains("iperf version 2.2")
    })
}
