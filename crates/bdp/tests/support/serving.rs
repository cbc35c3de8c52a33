//! A server that a test measures to, over loopback.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, Running, start};

/// A server on a port that was free.
pub struct Serving {
    pub process: Running,
    pub port: u16,
}

/// Whether the kernel's table has a listener on the port; a connection to see would be a client of it.
pub fn is_listening(port: u16) -> bool {
    is_open("tcp", port)
}

/// The same of either protocol, `tcp` or `udp`.
pub fn is_open(protocol: &str, port: u16) -> bool {
    let wanted = format!(":{port:04X} ");
    // TCP_LISTEN, and what a socket of datagrams without a peer has: TCP_CLOSE.
    let state = if protocol == "tcp" { " 0A " } else { " 07 " };
    ["", "6"].iter().any(|version| {
        let text = std::fs::read_to_string(format!("/proc/net/{protocol}{version}")).unwrap_or_default();
        text.lines().any(|line| line.contains(&wanted) && line.contains(state))
    })
}

/// Waits until it is, where a program does not say so.
#[track_caller]
pub fn await_open(protocol: &str, port: u16) {
    let since = Instant::now();
    while !is_open(protocol, port) {
        assert!(since.elapsed() < Duration::from_secs(10), "nothing listens on {protocol} port {port}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A port that nothing listens on, and that the kernel gives to nobody by itself, such as to a client beside this one.
pub fn free_port() -> u16 {
    free_ports(1)
}

/// The first of so many such ports in a row.
pub fn free_ports(count: u16) -> u16 {
    const BELOW_THE_EPHEMERAL: Range<u32> = 10_000..32_768;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let ports = BELOW_THE_EPHEMERAL.len() as u32;
    // Tests of several processes at once begin apart.
    let first = std::process::id().wrapping_mul(97) % ports;
    let count = u32::from(count);
    let is_free = |port: u32| TcpListener::bind(("0.0.0.0", port as u16)).is_ok();
    (0..ports)
        .map(|_| BELOW_THE_EPHEMERAL.start + (first + TAKEN.fetch_add(count, Ordering::Relaxed)) % ports)
        .find(|&port| (port..port + count).all(is_free))
        .expect("a port is free") as u16
}

/// Starts one with these options, and waits until it listens.
pub fn serve(bench: &Bench, options: &str) -> Serving {
    serve_with(bench, options, &[])
}

/// As [`serve`], with variables of the environment.
pub fn serve_with(bench: &Bench, options: &str, variables: &[(&str, &str)]) -> Serving {
    let port = free_port();
    let mut command = bench.bdp(&format!("serve --listen {port} {options}"));
    command.envs(variables.iter().copied());
    let mut process = start(command);
    process.wait_until("it listens", |p| p.err().contains("listening on"));
    Serving { process, port }
}

/// A short measurement in one direction.
pub fn measure(port: u16) -> String {
    format!("measure 127.0.0.1:{port} --forward -t 0.3 --idle 0.1 --json")
}

impl Serving {
    /// A client is served: nothing that came before has done harm.
    #[track_caller]
    pub fn assert_unharmed(&self, bench: &Bench) {
        let ended = bench.run(&measure(self.port));
        assert_eq!(ended.code(), 0, "{}", ended.err);
        assert!(ended.json()["directions"][0]["goodput_bps"].as_f64().unwrap() > 0.0);
    }
}
