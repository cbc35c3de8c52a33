//! The real iperf3 as a peer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::fidelity::{Timing, timed};
use super::inside::{alone, in_guest, is_inside};
use super::machine::is_installed;
use super::peer::{count_crash, has_crashed};
use super::serving::{await_open, free_port, serve};
use super::{Bench, Ended};

/// Whether iperf3 is there; says so where it is not.
pub fn iperf3_is_there() -> bool {
    is_installed("iperf3")
}

/// The second number of its release: 12 of 3.12; 0 where it is not there.
pub fn release() -> u32 {
    let version =
        Command::new("iperf3").arg("--version").output().map_or_else(|_| Vec::new(), |said| said.stdout);
    let version = String::from_utf8_lossy(&version).into_owned();
    version.split(['.', ' ']).nth(2).and_then(|minor| minor.trim().parse().ok()).unwrap_or(0)
}

/// Runs the body of the calling test in a guest, where the iperf3 that is there keeps time in one: threads of 3.16 and later wait in
/// loops that ask the kernel for nothing, and in those no time of a guest passes. With such a release the body runs here,
/// alone.
#[track_caller]
pub fn in_guest_with_iperf3(body: impl FnOnce()) {
    const WITH_THREADS: u32 = 16;
    if !is_inside() && release() >= WITH_THREADS { alone(body) } else { in_guest(body) }
}

/// What the client says, as JSON; one that crashes is counted and started again.
pub fn client(port: u16, options: &str) -> Value {
    loop {
        let output = Command::new("iperf3")
            .args(["-c", if options.contains("-6") { "::1" } else { "127.0.0.1" }, "-p", &port.to_string()])
            .arg("-J")
            .args(options.split_whitespace())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if has_crashed(output.status) {
            count_crash("iperf3");
            continue;
        }
        return serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{options}: {e}: {output:?}"));
    }
}

/// A figure by its pointer.
#[track_caller]
pub fn number(document: &Value, pointer: &str) -> f64 {
    document
        .pointer(pointer)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no {pointer} in {document:#}"))
}

/// A connection that has shown its cookie and was asked for parameters.
pub fn greeted(port: u16, cookie: u8) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut bytes = [cookie; 37];
    bytes[36] = 0;
    stream.write_all(&bytes).unwrap();
    let mut state = [0];
    stream.read_exact(&mut state).unwrap();
    assert_eq!(state, [9]);
    stream
}

/// A JSON body as it is sent.
pub fn body(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// What one row of a table of modes has to show beyond that both ends ended well and tell the same; figures of time are
/// judged by the timing.
pub type Check = fn(&Value, &Timing);

/// Their client in each mode, with `common` options, against one server of ours.
pub fn served(modes: &[(&str, &str, Check)], common: &str, agree: fn(&str, &Value, &Timing)) {
    if !iperf3_is_there() {
        return;
    }
    let bench = Bench::new();
    let server = serve(&bench, "");
    for (mode, options, check) in modes {
        let (document, timing) = timed(mode, || client(server.port, &format!("{common} {options}")));
        agree(mode, &document, &timing);
        check(&document, &timing);
        println!("{mode} ... pass");
    }
    server.assert_unharmed(&bench);
}

/// Our client in each mode, with `common` options, against one server of theirs; `holds` judges each direction.
pub fn driven(modes: &[(&str, &str, Check)], common: &str, holds: fn(&str, &Value, &Timing)) {
    if !iperf3_is_there() {
        return;
    }
    let bench = Bench::new();
    let mut server = Theirs::start();
    for (mode, options, check) in modes {
        let host = if options.contains("-6") { "[::1]" } else { "127.0.0.1" };
        let line = format!("measure --iperf3 {host}:{} {common} {options} --json", server.port);
        let (ended, timing) = timed(mode, || server.run(&bench, &line));
        assert_eq!(ended.code(), 0, "{mode}: {}", ended.err);
        let document = ended.json();
        for direction in document["directions"].as_array().unwrap() {
            holds(mode, direction, &timing);
        }
        assert_eq!(document["request"]["peer"], "iperf3", "{mode}");
        check(&document, &timing);
        println!("{mode} ... pass");
    }
}

/// A server of iperf3's, ended with the value.
pub struct Theirs {
    child: Child,
    options: String,
    pub port: u16,
}

impl Theirs {
    pub fn start() -> Self {
        Self::start_with("")
    }

    pub fn start_with(options: &str) -> Self {
        let port = free_port();
        Self { child: listening(port, options), options: options.to_owned(), port }
    }

    /// Runs bdp; where the server crashes meanwhile that is counted, and bdp is run once more with another.
    pub fn run(&mut self, bench: &Bench, line: &str) -> Ended {
        loop {
            let ended = bench.run(line);
            match self.child.try_wait().unwrap() {
                Some(status) if has_crashed(status) => {
                    count_crash("iperf3");
                    self.child = listening(self.port, &self.options);
                }
                _ => return ended,
            }
        }
    }
}

/// iperf3 as a server, once it listens.
fn listening(port: u16, options: &str) -> Child {
    let child = Command::new("iperf3")
        .args(["-s", "-p", &port.to_string()])
        .args(options.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    await_open("tcp", port);
    child
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
