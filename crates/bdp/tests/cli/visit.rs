//! `bdp serve --page` as a browser uses it: a visit with transfers, pings, a result, and whom it turns away.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::serving::{Serving, serve};
use crate::support::{Bench, wait_for};

/// A body of an upload.
const BLOB: usize = 16 << 20;

struct Page(Serving);

fn page(bench: &Bench, options: &str) -> Page {
    Page(serve(bench, &format!("--page {options}")))
}

impl Page {
    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.0.port)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    fn send(&self, request: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
        let (host, length) = (self.host(), body.len());
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// The status and the body.
    fn ask(&self, request: &str, headers: &str, body: &str) -> (u16, String) {
        let mut text = String::new();
        self.send(request, headers, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn json(&self, request: &str, body: &Value) -> (u16, Value) {
        let (status, text) = self.ask(request, "", &body.to_string());
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    fn open(&self) -> String {
        let (status, visit) = self.json("POST /api/visit", &json!({}));
        assert_eq!(status, 201, "{visit}");
        visit["id"].as_str().unwrap().to_owned()
    }

    fn mark(&self, id: &str, stage: &str) {
        let body = json!({ "stage": stage }).to_string();
        assert_eq!(self.ask(&format!("POST /api/visit/{id}/stage"), "", &body).0, 204);
    }

    /// Reads for this long; returns the bytes.
    fn down(&self, id: &str, time: Duration) -> u64 {
        let mut stream = self.send(&format!("GET /api/visit/{id}/down?stage=down"), "", "");
        let (until, mut room, mut bytes) = (Instant::now() + time, vec![0; 1 << 20], 0);
        while Instant::now() < until {
            bytes += stream.read(&mut room).unwrap_or(0) as u64;
        }
        bytes
    }

    /// Sends bodies for this long; returns the bytes.
    fn up(&self, id: &str, time: Duration) -> u64 {
        let blob = vec![7; BLOB];
        let (until, mut bytes) = (Instant::now() + time, 0);
        while Instant::now() < until {
            let mut stream = self.connect();
            let host = self.host();
            write!(
                stream,
                "POST /api/visit/{id}/up?stage=up HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: {BLOB}\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
            stream.write_all(&blob).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
            bytes += BLOB as u64;
        }
        bytes
    }

    /// Opens a WebSocket of pings.
    fn pings(&self, id: &str, origin: &str) -> (TcpStream, String) {
        let mut stream = self.connect();
        let host = self.host();
        write!(
            stream,
            "GET /api/visit/{id}/ping HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        .unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        (stream, String::from_utf8(head).unwrap())
    }
}

/// A text in a masked frame (RFC 6455, section 5), and its answer.
fn ping(stream: &mut TcpStream, text: &str) -> Value {
    let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
    frame.extend(text.bytes());
    stream.write_all(&frame).unwrap();
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[0], 0x81);
    let mut body = vec![0; usize::from(head[1])];
    stream.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_visit_is_measured_explained_and_kept() {
    let bench = Bench::new();
    let page = page(&bench, "");
    let (status, html) = page.ask("GET /", "", "");
    assert!(status == 200 && html.contains("visitor.js"), "{html}");
    let (_, about) = page.json("GET /api/visit/about", &json!({}));
    assert_eq!(about["command"], format!("bdp measure {}", page.host()));
    assert_eq!(about["limits"]["rate_bps"], 1_000_000_000);
    let id = page.open();
    assert!(id.len() >= 32);
    let (mut pings, head) = page.pings(&id, &format!("http://{}", page.host()));
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let answer = ping(&mut pings, "{\"n\":1}");
    assert_eq!(answer["echo"], "{\"n\":1}");
    assert!(answer["tcp_rtt_ns"].as_u64().unwrap() > 0, "{answer}");

    let time = Duration::from_millis(1500);
    page.mark(&id, "down");
    let read = page.down(&id, time);
    ping(&mut pings, "2");
    page.mark(&id, "up");
    let sent = page.up(&id, time);
    page.mark(&id, "idle");
    let told = json!({
        "agent": "a test\u{1b}[31m", "down": { "goodput_bps": 1.0, "waited": 0.5 }, "up": { "waited": 0.9 },
        "ping": { "idle_ns": [1000, 2000, 3000], "down_ns": [5000], "up_ns": [] },
    });
    let (status, result) = page.json(&format!("POST /api/visit/{id}/result"), &told);
    assert_eq!(status, 200, "{result}");
    assert_eq!((&result["schema"], &result["visitor"]), (&json!("bdp.visit/1"), &json!("127.0.0.1")));
    assert!(!result["agent"].as_str().unwrap().contains('\u{1b}'));
    let [down, up] = [0, 1].map(|i| &result["directions"][i]);
    assert_eq!((&down["direction"], &up["direction"]), (&json!("down"), &json!("up")));
    for (of, counted, finding) in [(down, read, true), (up, sent, false)] {
        let bytes = of["bytes"].as_u64().unwrap();
        // Buffers hold the rest, or the begin of a body came with its head.
        assert!(bytes.abs_diff(counted) < (16 << 20) + counted / 10, "{bytes} and {counted}");
        assert!(of["goodput_bps"].as_f64().unwrap() > 1e6, "{of}");
        assert!(of["series"].as_array().unwrap().len() > 5);
        if finding {
            assert!(!of["finding"]["summary"].as_str().unwrap().is_empty(), "{of}");
        }
    }
    assert_eq!(down["rtt_idle_ns"]["p50"], 2000);
    assert!(up["cannot_tell"].to_string().contains("how many segments were lost"), "{up}");
    assert!(result["caveats"].to_string().contains("the browser counted"), "{}", result["caveats"]);

    let key = result["key"].as_str().unwrap();
    let (status, kept) = page.json(&format!("GET /api/visit/results/{key}"), &json!({}));
    assert_eq!((status, &kept), (200, &result));
    let (status, again) = page.json(&format!("POST /api/visit/{id}/result"), &json!({}));
    assert_eq!((status, &again), (200, &result), "a visit has one result");
    assert_eq!(page.ask(&format!("GET /r/{key}"), "", "").0, 200);
}

#[test]
fn a_result_ends_after_its_time() {
    let bench = Bench::new();
    let page = page(&bench, "--keep 1s");
    let id = page.open();
    let (_, result) = page.json(&format!("POST /api/visit/{id}/result"), &json!({}));
    let request = format!("GET /api/visit/results/{}", result["key"].as_str().unwrap());
    wait_for("the end of the result", || page.ask(&request, "", "").0 == 404);
    assert!(page.ask(&request, "", "").1.contains("deleted after its time"));
}

#[test]
fn foreign_pages_and_unknown_visits_are_turned_away() {
    let bench = Bench::new();
    let page = page(&bench, "");
    let foreign = "Origin: http://example.org\r\n";
    assert_eq!(page.ask("POST /api/visit", foreign, "{}").0, 403);
    assert_eq!(page.ask("POST /api/visit", "Sec-Fetch-Site: same-site\r\n", "{}").0, 403);
    let id = page.open();
    assert!(page.pings(&id, "http://example.org").1.starts_with("HTTP/1.1 403"));
    let unknown = "0".repeat(32);
    for request in ["GET down", "POST up", "GET events", "POST stage", "POST result"] {
        let (method, what) = request.split_once(' ').unwrap();
        let (status, text) = page.ask(&format!("{method} /api/visit/{unknown}/{what}"), "", "{}");
        assert!(status == 404 && text.contains("start again"), "{request}: {status} {text}");
    }
    for (request, body, status) in [
        (format!("POST /api/visit/{id}/stage"), "{\"stage\":\"sideways\"}".to_owned(), 400),
        (format!("POST /api/visit/{id}/result"), "{".to_owned(), 400),
        ("GET /api/visit/../../etc/passwd".to_owned(), String::new(), 404),
    ] {
        assert_eq!(page.ask(&request, "", &body).0, status, "{request}");
    }
}

#[test]
fn only_names_of_the_server_are_answered() {
    let bench = Bench::new();
    let page = page(&bench, "--name Speed.example --max-sessions 8");
    for (host, status) in
        [("speed.example", 201), ("speed.example:80", 201), ("localhost", 201), ("evil.example", 403)]
    {
        let mut stream = page.connect();
        write!(
            stream,
            "POST /api/visit HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let is_as = text.starts_with(&format!("HTTP/1.1 {status}"));
        assert!(is_as && text.contains("--name evil.example") == (status == 403), "{host}: {text}");
    }
}

#[test]
fn places_and_data_are_limited() {
    let bench = Bench::new();
    let busy = page(&bench, "--max-sessions 1");
    let id = busy.open();
    // It has begun, so that it keeps its place.
    busy.mark(&id, "idle");
    let (status, text) = busy.ask("POST /api/visit", "", "{}");
    assert!(status == 503 && text.contains("busy"), "{status} {text}");
    // Who needs no page has a place of its own.
    busy.0.assert_unharmed(&bench);

    let page = page(&bench, "--page-data-per-day 10M --max-rate 100M");
    let id = page.open();
    let time = Duration::from_secs(1);
    let bytes = page.down(&id, time);
    let bps = bytes as f64 * 8.0 / time.as_secs_f64();
    assert!(bps < 150e6, "{bps} bit/s of 100 Mbit/s");
    let (status, text) = page.ask("POST /api/visit", "", "{}");
    assert!(status == 429 && text.contains("--page-data-per-day"), "{status} {text}");
}

#[test]
fn a_place_is_free_after_the_result_and_after_the_visitor_left() {
    let bench = Bench::new();
    let mut page = page(&bench, "--max-sessions 1");
    let another = |page: &Page| page.ask("POST /api/visit", "", "{}").0;
    let id = page.open();
    page.mark(&id, "idle");
    assert_eq!(another(&page), 503);
    assert_eq!(page.json(&format!("POST /api/visit/{id}/result"), &json!({})).0, 200);
    let id = page.open();
    let events = page.send(&format!("GET /api/visit/{id}/events"), "", "");
    let (mut pings, _) = page.pings(&id, &format!("http://{}", page.host()));
    thread::sleep(Duration::from_secs(4));
    ping(&mut pings, "still here");
    assert_eq!(another(&page), 503);
    drop((events, pings));
    let since = Instant::now();
    // Its place is asked for by nobody meanwhile: it would give way.
    page.0.process.wait_until("both have ended", |p| p.err().matches(" ended after ").count() == 2);
    assert!((2..20).contains(&since.elapsed().as_secs()), "{:?}", since.elapsed());
    assert_eq!(another(&page), 201);
}

#[test]
fn a_visit_has_four_transfers_at_once() {
    let bench = Bench::new();
    let page = page(&bench, "");
    let id = page.open();
    let request = format!("GET /api/visit/{id}/down?stage=down");
    let begin = || {
        let mut stream = page.send(&request, "", "");
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        (stream, String::from_utf8_lossy(&head).into_owned())
    };
    let own = format!("http://{}", page.host());
    let pings = [(); 3].map(|()| page.pings(&id, &own));
    let statuses: Vec<&str> = pings.iter().map(|(_, head)| &head[..12]).collect();
    assert_eq!(statuses, ["HTTP/1.1 101", "HTTP/1.1 101", "HTTP/1.1 503"]);
    let four = [(); 4].map(|()| begin());
    assert!(four.iter().all(|(_, head)| head == "HTTP/1.1 200"), "{four:?}");
    assert_eq!(begin().1, "HTTP/1.1 503");
    // The stage ends them.
    page.mark(&id, "up");
    assert_eq!(page.ask(&format!("POST /api/visit/{id}/up?stage=up"), "", "data").0, 204);
}

#[test]
fn slow_clients_are_waited_for_and_tls_is_not() {
    let bench = Bench::new();
    let mut page = page(&bench, "");
    let mut slow = page.connect();
    thread::sleep(Duration::from_secs(6));
    slow.write_all(b"GE").unwrap();
    thread::sleep(Duration::from_millis(300));
    write!(slow, "T / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    slow.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");

    let mut tls = page.connect();
    let since = Instant::now();
    tls.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01]).unwrap();
    assert!(!matches!(tls.read(&mut [0; 16]), Ok(1..)), "it is answered");
    assert!(since.elapsed() < Duration::from_secs(2));
    page.0.process.wait_until("the log says why", |p| p.err().contains("the page is at http://"));

    // A head that never ends is dropped in time.
    let mut endless = page.connect();
    endless.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
    let since = Instant::now();
    let mut rest = Vec::new();
    let _ = endless.read_to_end(&mut rest);
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}
