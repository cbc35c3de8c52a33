//! The real iperf3 as a peer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::machine::has;
use super::serving::{await_open, free_port, serve};
use super::{Bench, row};

/// Whether iperf3 is there; says so where it is not.
pub fn iperf3_is_there(test: &str) -> bool {
    let there = has("iperf3", &["--version"]);
    if !there {
        println!("SKIPPED {test}: iperf3 is not installed");
    }
    there
}

/// The second number of its release: 12 of 3.12.
pub fn release() -> u32 {
    let version = Command::new("iperf3").arg("--version").output().unwrap().stdout;
    let version = String::from_utf8_lossy(&version).into_owned();
    version.split(['.', ' ']).nth(2).and_then(|minor| minor.trim().parse().ok()).unwrap_or(0)
}

/// What the client says, as JSON.
pub fn client(port: u16, options: &str) -> Value {
    let output = Command::new("iperf3")
        .args(["-c", if options.contains("-6") { "::1" } else { "127.0.0.1" }, "-p", &port.to_string(), "-J"])
        .args(options.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{options}: {e}: {output:?}"))
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

/// What one row of a table of modes has to show beyond that both ends ended well and tell the same.
pub type Check = fn(&Value);

/// Their client in each mode, with `common` options, against one server of ours.
pub fn served(modes: &[(&str, &str, Check)], common: &str, agree: fn(&str, &Value)) {
    if !iperf3_is_there("its_client_is_served_in_every_mode") {
        return;
    }
    let bench = Bench::new();
    let server = serve(&bench, "");
    for (mode, options, check) in modes {
        row(mode, || {
            let document = client(server.port, &format!("{common} {options}"));
            agree(mode, &document);
            check(&document);
        });
    }
    server.assert_unharmed(&bench);
}

/// Our client in each mode, with `common` options, against one server of theirs; `holds` judges each direction.
pub fn driven(modes: &[(&str, &str, Check)], common: &str, holds: fn(&str, &Value)) {
    if !iperf3_is_there("its_server_is_driven_in_every_mode") {
        return;
    }
    let bench = Bench::new();
    let server = Theirs::start();
    for (mode, options, check) in modes {
        let host = if options.contains("-6") { "[::1]" } else { "127.0.0.1" };
        row(mode, || {
            let ended =
                bench.run(&format!("measure --iperf3 {host}:{} {common} {options} --json", server.port));
            assert_eq!(ended.code(), 0, "{mode}: {}", ended.err);
            let document = ended.json();
            for direction in document["directions"].as_array().unwrap() {
                holds(mode, direction);
            }
            assert_eq!(document["request"]["peer"], "iperf3", "{mode}");
            check(&document);
        });
    }
}

/// A server of iperf3's, ended with the value.
pub struct Theirs {
    child: Child,
    pub port: u16,
}

impl Theirs {
    pub fn start() -> Self {
        Self::start_with("")
    }

    pub fn start_with(options: &str) -> Self {
        let port = free_port();
        let child = Command::new("iperf3")
            .args(["-s", "-p", &port.to_string()])
            .args(options.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        await_open("tcp", port);
        Self { child, port }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
