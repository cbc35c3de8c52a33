//! `--metrics` of `bdp serve` and `bdp watch`: Prometheus metrics, on a listener of their own.
//!
//! The text format 0.0.4 over HTTP/1.1. A request is answered within a deadline or dropped, a few at a time, and
//! nothing in it reaches the source of the figures.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bdp_agent::server::{Counted, Reason, Stranger, Watcher};

use crate::exit;

/// Deadline for receiving a request, and for sending its answer.
const DEADLINE: Duration = Duration::from_secs(3);
/// Longest head of a request.
const LONGEST_HEAD: usize = 8 << 10;
/// Concurrent requests; more are closed without an answer.
const AT_ONCE: u32 = 8;
/// Pause after a failed accept, usually for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Parses a listening address: a port alone is on loopback.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        return Ok((IpAddr::from(Ipv4Addr::LOCALHOST), port).into());
    }
    text.parse().map_err(|_| format!("'{text}' is not an address: give 9152, 192.0.2.1:9152 or [::1]:9152"))
}

/// Binds the port.
pub fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| {
        exit::environment(format!(
            "listen on {address} for metrics: {e}; give another address with --metrics"
        ))
    })
}

/// Returns a function that formats the current metrics of a server.
pub fn of_server(watcher: Watcher) -> impl Fn() -> String + Clone + Send + 'static {
    let started = Instant::now();
    move || text(&watcher.counted(), started.elapsed())
}

/// Serves a page on its own threads until the process ends.
pub fn serve(
    listener: TcpListener,
    page: impl Fn() -> String + Clone + Send + 'static,
) -> anyhow::Result<()> {
    let busy = Arc::new(AtomicU32::new(0));
    let accept = move || {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let place = Place(Arc::clone(&busy));
            if place.0.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
                continue;
            }
            let page = page.clone();
            // Without a thread the connection closes.
            drop(spawn(move || {
                let _place = place;
                // A client that has gone needs no answer.
                let _ = answer(&stream, &page);
            }));
        }
    };
    spawn(accept)
        .map(drop)
        .map_err(|e| exit::environment(format!("start a thread: {e}; raise the limit 'ulimit -u'")))
}

fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name("bdp-metrics".to_owned()).spawn(work)
}

/// A place among the concurrent requests, released when dropped.
struct Place(Arc<AtomicU32>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(mut stream: &TcpStream, page: &impl Fn() -> String) -> std::io::Result<()> {
    let until = Instant::now() + DEADLINE;
    stream.set_write_timeout(Some(DEADLINE))?;
    let mut head = Vec::new();
    let mut room = [0; 1024];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > LONGEST_HEAD {
            return Ok(());
        }
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut room)? {
            0 => return Ok(()),
            length => head.extend_from_slice(&room[..length]),
        }
    }
    let line = String::from_utf8_lossy(&head);
    let mut words = line.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", page()),
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "GET /metrics\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.shutdown(std::net::Shutdown::Write)
}

/// The text format of Prometheus, version 0.0.4.
fn text(counted: &Counted, up: Duration) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let one = |value: u64| vec![(String::new(), value.to_string())];
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    family("bdp_build_info", "gauge", "Version of bdp; always 1.", &[(version, "1".to_owned())]);
    let seconds = format!("{:.3}", up.as_secs_f64());
    family("bdp_uptime_seconds", "gauge", "Time since the server started.", &[(String::new(), seconds)]);
    family("bdp_sessions_total", "counter", "Sessions started.", &one(counted.sessions_begun));
    let open = counted.sessions_begun.saturating_sub(counted.sessions_ended);
    family("bdp_sessions_open", "gauge", "Active sessions.", &one(open));
    family("bdp_flows_total", "counter", "Flows of ended sessions.", &one(counted.flows));
    family(
        "bdp_received_bytes_total",
        "counter",
        "Payload bytes received, of ended flows.",
        &one(counted.received_bytes),
    );
    family(
        "bdp_sent_bytes_total",
        "counter",
        "Payload bytes sent to the kernel, of ended flows.",
        &one(counted.sent_bytes),
    );
    family(
        "bdp_connections_waiting",
        "gauge",
        "Connections whose protocol is not yet known.",
        &one(counted.waiting),
    );
    family(
        "bdp_log_lines_dropped_total",
        "counter",
        "Log lines dropped because the reader was too slow.",
        &one(counted.lines_dropped),
    );
    let refusals: Vec<_> = Reason::ALL
        .iter()
        .zip(counted.turned_away)
        .map(|(reason, count)| (format!("{{reason=\"{}\"}}", reason.name()), count.to_string()))
        .collect();
    family("bdp_refusals_total", "counter", "Refused connections, by reason.", &refusals);
    let strangers: Vec<_> = Stranger::ALL
        .iter()
        .zip(counted.strangers)
        .map(|(stranger, count)| (format!("{{protocol=\"{}\"}}", stranger.name()), count.to_string()))
        .collect();
    family(
        "bdp_strangers_total",
        "counter",
        "Connections with a protocol that the port does not serve, by protocol.",
        &strangers,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_loopback() {
        assert_eq!(address("9152"), Ok("127.0.0.1:9152".parse().unwrap()));
        assert_eq!(address(":9152"), Ok("127.0.0.1:9152".parse().unwrap()));
        assert_eq!(address("[::]:9152"), Ok("[::]:9152".parse().unwrap()));
        assert!(address("localhost").is_err() && address("192.0.2.1").is_err());
    }
}
