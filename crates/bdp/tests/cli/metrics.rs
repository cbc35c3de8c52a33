//! `bdp serve --metrics`: scraped as Prometheus does it, and left alone by whoever would hold it up.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::serving::{free_port, measure, serve};
use crate::support::{Bench, wait_for};

/// Head and body of the answer to a request.
pub(super) fn ask(port: u16, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.to_owned(), body.to_owned())
}

fn scrape(port: u16) -> BTreeMap<String, f64> {
    let (head, body) = ask(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("version=0.0.4"), "{head}");
    check(&body);
    body.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// Every sample stands behind its HELP and TYPE; where promtool is there it has nothing to say.
pub(super) fn check(text: &str) {
    let mut family = "";
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(rest) => {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(["counter", "gauge"].contains(&kind) && text.contains(&format!("# HELP {name} ")));
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                family = name;
            }
            None if line.starts_with('#') => {}
            None => assert!(line.starts_with(family) && !family.is_empty(), "{line}"),
        }
    }
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    if let Ok(mut promtool) = promtool {
        promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(promtool.wait().unwrap().success());
    }
}

#[test]
fn what_was_served_and_who_was_turned_away_is_counted() {
    let bench = Bench::new();
    let port = free_port();
    let server = serve(&bench, &format!("--token right --metrics {port}"));
    let before = scrape(port);
    assert_eq!((before["bdp_sessions_total"], before["bdp_received_bytes_total"]), (0.0, 0.0));
    assert!(before.keys().any(|name| name.starts_with("bdp_build_info{version=\"")), "{before:?}");
    let ended = bench.run(&format!("{} --token right", measure(server.port)));
    let bytes = ended.json()["directions"][0]["bytes"].as_f64().unwrap();
    bench.run(&format!("{} --token wrong", measure(server.port))).refusal(3);
    let _ = TcpStream::connect(("127.0.0.1", server.port)).unwrap().write_all(b"GET / HTTP/1.0\r\n\r\n");
    // The server hears of a session's end, and of a stranger, a moment after the client.
    wait_for("both are counted", || {
        let now = scrape(port);
        now["bdp_sessions_open"] == 0.0 && now["bdp_refusals_total{reason=\"protocol\"}"] > 0.0
    });
    let after = scrape(port);
    assert_eq!(after["bdp_received_bytes_total"], bytes);
    for (name, count) in [
        ("bdp_sessions_total", 1.0),
        ("bdp_sessions_open", 0.0),
        ("bdp_flows_total", 1.0),
        ("bdp_refusals_total{reason=\"token\"}", 1.0),
        ("bdp_refusals_total{reason=\"protocol\"}", 1.0),
        ("bdp_refusals_total{reason=\"other\"}", 0.0),
    ] {
        assert_eq!(after[name], count, "{name}: {after:?}");
    }
}

#[test]
fn nobody_holds_it_up() {
    let bench = Bench::new();
    let port = free_port();
    let server = serve(&bench, &format!("--metrics 127.0.0.1:{port}"));
    assert!(ask(port, "GET / HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 404"));
    assert!(ask(port, "POST /metrics HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 405"));
    assert_eq!(ask(port, "HEAD /metrics HTTP/1.1\r\n\r\n").1, "");
    // Its head never ends.
    let endless = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(9000));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let _ = stream.write_all(endless.as_bytes());
    // Silent ones take all places, until their time is up.
    let silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    for mut stream in &silent {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // Closed or reset; a time-out is neither.
        let end = stream.read(&mut [0; 1]).map_err(|error| error.kind());
        assert!(matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)), "{end:?}");
    }
    assert_eq!(scrape(port)["bdp_sessions_open"], 0.0);
    drop(silent);
    server.assert_unharmed(&bench);
    // The port is taken, and that is said.
    let line = bench.run(&format!("serve --listen {} --metrics {port}", free_port())).refusal(3).to_owned();
    assert!(line.contains("for metrics") && line.contains("--metrics"), "{line}");
}
