//! `bdp page` as a browser uses it: a link, a test, its events, the history.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::serving::serve;
use crate::support::{Bench, Running, start};

pub struct Page {
    pub process: Running,
    address: String,
    token: String,
}

pub fn open(bench: &Bench, options: &str) -> Page {
    let mut process = start(bench.bdp(&format!("page --no-browser --listen 127.0.0.1:0 {options}")));
    process.wait_until("it prints its link", |p| p.out().ends_with('\n'));
    let link = process.out();
    let (address, token) = link.trim().strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
    Page { address: address.to_owned(), token: token.to_owned(), process }
}

impl Page {
    pub fn send(&self, request: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}",
            self.address, self.token
        )
        .unwrap();
        BufReader::new(stream)
    }

    /// The status and the body.
    pub fn ask(&self, request: &str, body: &str) -> (u16, String) {
        let mut text = String::new();
        self.send(request, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub fn json(&self, request: &str, body: &Value) -> (u16, Value) {
        let (status, text) = self.ask(request, &body.to_string());
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    pub fn start(&self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (status, job) = self.json("POST /api/jobs", &json!({ "command": words }));
        assert_eq!(status, 201, "{job}");
        job["id"].as_str().unwrap().to_owned()
    }

    /// Uploads a capture of this name, percent-encoded.
    pub fn upload(&self, name: &str, bytes: &[u8]) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /api/captures HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nBdp-Name: {name}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            self.token,
            bytes.len()
        )
        .unwrap();
        stream.write_all(bytes).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    /// The events of a job, up to the outcome.
    pub fn events(&self, id: &str) -> Vec<Value> {
        let lines = self.send(&format!("GET /api/jobs/{id}/events"), "").lines().map_while(Result::ok);
        lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
    }
}

#[test]
fn a_test_is_started_followed_and_found_in_the_history() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let page = open(&bench, "");
    let line = format!("measure 127.0.0.1:{} --forward -t 0.5 --idle 0.2", server.port);
    let (status, checked) =
        page.json("POST /api/check", &json!({ "command": line.split_whitespace().collect::<Vec<_>>() }));
    assert_eq!((status, &checked["command"]), (200, &json!(format!("bdp {line}"))));
    let events = page.events(&page.start(&line));
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert!(of("progress") > 3, "{} readings", of("progress"));
    assert_eq!(of("measurement_ended"), 1);
    let outcome = events.last().unwrap();
    assert_eq!((&outcome["schema"], &outcome["ending"]), (&json!("bdp.outcome/1"), &json!("done")));
    let run = outcome["run"].as_str().unwrap();

    let (_, runs) = page.json("GET /api/runs", &Value::Null);
    assert_eq!((&runs["runs"][0]["run"], &runs["more"]), (&json!(run), &json!(false)));
    assert_eq!(runs["runs"][0]["command"], format!("bdp {line}"));
    assert!(runs["runs"][0]["goodput_bps"]["to"].as_f64().unwrap() > 1e6, "{runs}");
    let (_, none) = page.json("GET /api/runs?search=tokyo", &Value::Null);
    assert_eq!(none["runs"], json!([]));
    let (_, about) = page.json("GET /api/about", &Value::Null);
    assert_eq!(about["hosts"], json!([format!("127.0.0.1:{}", server.port)]));

    // What the page shows is what the command line shows.
    let shown = bench.run(&format!("show {run} --json"));
    assert_eq!(page.ask(&format!("GET /api/runs/{run}"), "").1, shown.out);
    let csv = bench.run(&format!("report {run} --csv"));
    assert_eq!(page.ask(&format!("GET /api/runs/{run}/csv"), "").1, csv.out);
    assert!(page.ask(&format!("GET /api/runs/{run}/report"), "").1.starts_with("<!DOCTYPE html>"));
    assert_eq!(page.ask(&format!("DELETE /api/runs/{run}"), "").0, 204);
    assert_eq!(page.ask(&format!("GET /api/runs/{run}"), "").0, 400);

    page.process.signal("INT");
    let ended = page.process.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

#[test]
fn what_is_wrong_is_said_as_in_a_terminal() {
    let bench = Bench::new();
    let page = open(&bench, "");
    let (status, refused) =
        page.json("POST /api/check", &json!({ "command": ["measure", "ams1", "-t", "soon"] }));
    let terminal = bench.run("measure ams1 -t soon");
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!((status, format!("bdp: {message}").as_str()), (400, terminal.last_line()));
    for (words, part) in [
        ("measure ams1 --csv", "--csv is for a terminal"),
        ("measure ams1 --report x.html", "--report is for a terminal"),
        ("measure --help", "for a terminal"),
        ("lab shell x", "the page does not run 'bdp lab shell'"),
        ("nonsense", "nonsense"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let (status, refused) = page.json("POST /api/jobs", &json!({ "command": words }));
        assert_eq!(status, 400, "{words:?}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(part), "{refused}");
    }
    assert!(!bench.path("x.html").exists());
    // A test to a host that does not answer fails in the words of the command.
    let events = page.events(&page.start("measure 127.0.0.1:9 -t 1"));
    let outcome = events.last().unwrap();
    assert_eq!(outcome["ending"], "failed");
    assert!(outcome["error"].as_str().unwrap().contains("127.0.0.1"), "{outcome}");
}

#[test]
fn the_end_of_the_page_ends_its_test_and_keeps_what_was_measured() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let page = open(&bench, "");
    let id = page.start(&format!("measure 127.0.0.1:{} --forward -t 60 --idle 0.1", server.port));
    let mut events = page.send(&format!("GET /api/jobs/{id}/events"), "").lines().map_while(Result::ok);
    assert!(events.any(|line| line.contains(r#""stage":{"direction":"to"}"#) && line.contains(r#"["to","#)));
    page.process.signal("TERM");
    let ended = page.process.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert!(events.any(|line| line.contains(r#""ending":"cancelled""#)));
    let runs: Value = serde_json::from_str(&bench.run("runs --json").out).unwrap();
    assert_eq!(runs["runs"][0]["cases_recorded"], 1, "{runs}");
}

#[test]
fn a_link_is_secret_and_a_port_in_use_has_a_way_out() {
    let bench = Bench::new();
    let (one, two) = (open(&bench, ""), open(&bench, ""));
    assert_ne!(one.token, two.token);
    assert!(one.token.len() >= 32 && one.token.bytes().all(|b| b.is_ascii_hexdigit()));
    let taken = bench.run(&format!("page --no-browser --listen {}", one.address));
    assert_eq!(taken.code(), 3);
    assert!(taken.last_line().contains("choose another with --listen"), "{}", taken.err);
    let short = bench.run("page --no-browser --token short");
    assert_eq!(short.code(), 2);
    assert!(short.last_line().contains("at least 16 characters"), "{}", short.err);
}
