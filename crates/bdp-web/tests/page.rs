//! The page's server over real connections, with jobs that a test controls.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bdp_run::job::{Ending, Job, Outcome};
use bdp_run::{Event, Question};
use bdp_web::{Asked, Captures, Door, Host, JobResult, Order, Refused, RefusedBy, RunSelection, Server};
use serde_json::{Value, json};

const TOKEN: &str = "0123456789abcdef";
/// Longest wait of a test for what comes at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// A job that changes settings.
const FIX: &str = r#"{
    "schema": "bdp.job/1", "job": "fix", "runs": 3, "alone": false, "keep_for_ns": 600000000000, "asks_nothing": false,
    "command": "bdp fix h", "direction": null, "rate_bps": null,
    "request": {
        "host": "h", "port": 5201, "directions": ["to"], "bidirectional": false, "streams": 1, "bytes": null,
        "duration_ns": 10000000000, "omit_ns": 0, "interval_ns": 100000000, "length": 131072, "nodelay": false,
        "zerocopy": "auto", "check_payload": false, "idle_ns": 2000000000
    }
}"#;

/// Jobs that are named by their words: `ends`, `waits` until cancelled, `asks` twice, `fix` asks too, `breaks`, `reads` a
/// capture.
#[derive(Default)]
struct Script {
    started: AtomicU32,
    /// Tokens that jobs were given.
    tokens: Mutex<Vec<String>>,
}

impl Host for Script {
    fn about(&self) -> Result<Value, Refused> {
        Ok(json!({ "host": "script" }))
    }

    fn commands(&self) -> Value {
        json!([])
    }

    fn job(&self, order: Order, captures: &Captures) -> Result<Asked, Refused> {
        let words = order.words;
        if words == ["no"] {
            return Err(Refused::new(RefusedBy::Usage, "'no' is no command: try 'yes'"));
        }
        let watch = json!({
            "schema": "bdp.job/1", "job": "watch", "targets": [], "interval_ns": 1, "samples_per_second": 1,
            "duration_ns": null,
        });
        let job = if words[0] == "fix" { FIX.parse().expect("JSON") } else { watch };
        self.tokens.lock().expect("a lock").extend(order.secrets.tune_token);
        let capture = words.get(1).map(|id| captures.get(id)).transpose()?;
        Ok(Asked {
            command: words.join(" "),
            job: Job::from_json(job).expect("a job"),
            notes: vec![format!("local: {}", order.is_local)],
            document: Box::new(|_| None),
            captures: capture.into_iter().collect(),
        })
    }

    fn answer(&self, order: Order) -> Result<Value, Refused> {
        match order.is_local {
            true => Ok(json!({ "words": order.words })),
            false => Err(Refused::new(RefusedBy::Forbidden, "only at the machine itself")),
        }
    }

    fn what_if(&self, wish: Value) -> Result<Value, Refused> {
        Ok(wish)
    }

    fn what_if_in_lab(&self, _: Value) -> Result<Value, Refused> {
        Ok(json!({ "command": ["ends"] }))
    }

    fn run(
        &self,
        asked: Asked,
        watch: &mut dyn FnMut(Event<'_>, Value),
        answer: &mut dyn FnMut(Value) -> bool,
        cancel: &AtomicBool,
    ) -> JobResult {
        self.started.fetch_add(1, Ordering::Relaxed);
        let mut tell = |event: Event<'_>| {
            let told = event.to_json();
            watch(event, told);
        };
        let (mut kept, mut document) = (0, None);
        match asked.command.as_str() {
            "waits" => {
                tell(Event::NothingToResume);
                while !cancel.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(5));
                }
            }
            "asks" | "fix" => {
                for _ in 0..2 {
                    tell(Event::Question { question: Question::Keep });
                    kept += usize::from(answer(json!(Question::Keep)));
                }
            }
            "breaks" => panic!("a bug that this test means"),
            "reads c1" => {
                let text = std::fs::read_to_string(asked.captures[0].path()).expect("a capture");
                document = Some(json!({ "name": asked.captures[0].name, "text": text }).to_string());
            }
            _ => (1..=3).for_each(|n| tell(Event::LeftToOwner { changes: n })),
        }
        let outcome = Outcome {
            run: None,
            ending: Ending::Done,
            kept,
            expectations: vec![],
            baseline: vec![],
            error: None,
        };
        JobResult { outcome, document }
    }

    fn runs(&self, selection: &RunSelection, _: &AtomicBool) -> Result<Value, Refused> {
        Ok(json!({ "search": selection.search, "most": selection.most, "before": selection.before }))
    }

    fn run_document(&self, run: &str) -> Result<String, Refused> {
        Ok(json!({ "run": run }).to_string())
    }

    fn report(&self, _: &str) -> Result<String, Refused> {
        Ok("<script>alert(1)</script>".to_owned())
    }

    fn csv(&self, _: &str) -> Result<String, Refused> {
        Ok("a,b\r\n".to_owned())
    }

    fn remove(&self, run: &str) -> Result<(), Refused> {
        if run == "7f3a" { Ok(()) } else { Err(Refused::new(RefusedBy::Missing, "no run '1'")) }
    }
}

struct Page {
    address: SocketAddr,
    end: Sender<()>,
    served: Mutex<Option<JoinHandle<std::io::Result<()>>>>,
    host: Arc<Script>,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }
}

impl Page {
    fn open() -> Self {
        Self::named([])
    }

    /// With host names beside the addresses.
    fn named<const N: usize>(names: [&str; N]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let names = names.map(str::to_owned);
        let door = Door::new(TOKEN.to_owned(), "session".to_owned(), names, true);
        let (end, ends) = mpsc::channel();
        let host = Arc::new(Script::default());
        let server = Server { listener, door, host: host.clone() };
        let served = thread::spawn(move || bdp_web::serve(server, move || ends.recv().unwrap_or(())));
        Self { address, end, served: Mutex::new(Some(served)), host }
    }

    /// Sends a request with these header lines and returns the whole answer.
    fn send(&self, request: &str, headers: &[&str], body: &str) -> Answer {
        let mut stream = self.connect();
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let host =
            if headers.iter().any(|line| line.starts_with("Host:")) { "" } else { "Host: localhost\r\n" };
        let length = body.len();
        // A server that refuses a large body need not read it.
        let _ = write!(
            stream,
            "{request} HTTP/1.1\r\n{host}{lines}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[&bearer()], "")
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(&format!("POST {path}"), &[&bearer()], &body.to_string())
    }

    fn start(&self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = self.post("/api/jobs", &json!({ "command": words }));
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.json()["id"].as_str().expect("an id").to_owned()
    }

    /// Opens the event stream of a job.
    fn follow(&self, id: &str, more: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        write!(stream, "GET /api/jobs/{id}/events HTTP/1.1\r\nHost: localhost\r\n{}\r\n{more}\r\n", bearer())
            .expect("a request");
        BufReader::new(stream)
    }

    /// The job, when it is as wanted.
    fn job_when(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let job = self.get(&format!("/api/jobs/{id}")).json();
            if is_so(&job) {
                return job;
            }
            assert!(begun.elapsed() < PATIENCE, "{job}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.end.send(());
        let served = self.served.get_mut().expect("a lock").take().expect("a thread");
        let ended = served.join();
        if !thread::panicking() {
            ended.expect("no panic").expect("served");
        }
    }
}

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}")
}

/// The number and data of each event up to the outcome.
fn events(reader: BufReader<TcpStream>) -> Vec<(u64, Value)> {
    let mut all = Vec::new();
    let (mut number, mut is_outcome) = (0, false);
    let mut data = Value::Null;
    for line in reader.lines().map_while(Result::ok) {
        if let Some(id) = line.strip_prefix("id: ") {
            number = id.parse().expect("a number");
        } else if let Some(text) = line.strip_prefix("data: ") {
            data = serde_json::from_str(text).expect("JSON");
        } else if line == "event: outcome" {
            is_outcome = true;
        } else if line.is_empty() && !data.is_null() {
            all.push((number, data.take()));
            if is_outcome {
                return all;
            }
        }
    }
    all
}

#[test]
fn only_the_token_opens_and_the_answers_are_guarded() {
    let page = Page::open();
    for path in ["/", "/app.js", "/app.css"] {
        let answer = page.send(&format!("GET {path}"), &[], "");
        assert_eq!(answer.status, 200, "{path}");
        for line in [
            "content-security-policy: default-src 'self'",
            "x-frame-options: deny",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(answer.head.contains(line), "{path}: {}", answer.head);
        }
    }
    for (request, headers) in [
        ("GET /api/about", vec![]),
        ("GET /api/runs", vec!["Authorization: Bearer wrong"]),
        ("DELETE /api/runs/7f3a", vec!["Cookie: bdp-1=session"]),
        ("POST /api/session", vec![]),
        ("GET /api/nothing", vec![]),
    ] {
        let answer = page.send(request, &headers, "");
        assert_eq!(answer.status, if request.ends_with("nothing") { 404 } else { 401 }, "{request}");
        assert!(!answer.message().is_empty(), "{request}");
    }
    let foreign = page.send("GET /", &["Host: evil.example"], "");
    assert_eq!(foreign.status, 401);
    assert!(foreign.message().contains("--name evil.example"), "{}", foreign.body);
}

#[test]
fn a_browser_trades_the_token_for_a_secret() {
    let page = Page::open();
    let entered = page.send("POST /api/session", &[&bearer()], "");
    assert_eq!(entered.status, 200);
    assert!(!entered.head.contains("set-cookie"), "{}", entered.head);
    let secret = format!("Authorization: Bearer {}", entered.json()["secret"].as_str().expect("a secret"));
    assert_eq!(page.send("GET /api/about", &[&secret], "").status, 200);
    assert_eq!(page.send("DELETE /api/runs/7f3a", &[&secret], "").status, 204);
    assert_eq!(page.send("POST /api/session", &[&secret], "").status, 401);
    let evil = [&secret, "Origin: http://evil.example"];
    assert_eq!(page.send("DELETE /api/runs/7f3a", &evil, "").status, 401);
}

#[test]
fn a_job_is_followed_from_any_point() {
    let page = Page::open();
    let id = page.start("ends");
    let all = events(page.follow(&id, ""));
    let changes: Vec<_> = all.iter().map(|(number, data)| (*number, data["changes"].clone())).collect();
    assert_eq!(changes, [(1, json!(1)), (2, json!(2)), (3, json!(3)), (4, Value::Null)]);
    assert_eq!(all[3].1["ending"], "done");
    // Whoever has the outcome already is not kept waiting.
    assert!(events(page.follow(&id, "Last-Event-ID: 4\r\nConnection: close\r\n")).is_empty());
    let rest = events(page.follow(&id, "Last-Event-ID: 2\r\n"));
    assert_eq!(rest.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 4]);
    let job = page.get(&format!("/api/jobs/{id}")).json();
    assert_eq!((&job["state"], &job["kind"]), (&json!("ended"), &json!("watch")));
    assert_eq!(page.get("/api/jobs").json().as_array().map(Vec::len), Some(1));
    assert_eq!(page.get("/api/jobs/99/events").status, 404);
}

#[test]
fn a_double_click_starts_one_job_and_a_second_job_waits_its_turn() {
    let page = Page::open();
    let click = json!({ "command": ["waits"], "key": "click-1" });
    let (first, second) = (page.post("/api/jobs", &click), page.post("/api/jobs", &click));
    assert_eq!((first.status, second.status), (201, 200));
    assert_eq!(first.json()["id"], second.json()["id"]);
    let other = page.post("/api/jobs", &json!({ "command": ["ends"], "key": "click-2" }));
    assert_eq!(other.status, 409);
    assert!(other.message().contains("'waits' is running"), "{}", other.body);
    let id = first.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(page.post(&format!("/api/jobs/{id}/cancel"), &json!({})).status, 202);
    page.job_when(&id, |job| job["state"] == "ended");
    assert_eq!(page.host.started.load(Ordering::Relaxed), 1);
    page.start("ends");
}

#[test]
fn each_question_is_answered_once_and_by_its_number() {
    let page = Page::open();
    let id = page.start("asks");
    let path = format!("/api/jobs/{id}/answer");
    let yes = |question: u32| page.post(&path, &json!({ "question": question, "yes": true }));
    let asking = page.job_when(&id, |job| !job["question"].is_null());
    assert_eq!(asking["question"], json!({ "about": "keep", "number": 1 }));
    assert!(yes(2).message().contains("another question"));
    assert_eq!(page.post(&path, &json!({ "yes": true })).status, 400);
    assert_eq!(yes(1).status, 202);
    // An answer to the first, by a page that has not seen the second.
    page.job_when(&id, |job| job["question"]["number"] == 2);
    assert_eq!(yes(1).status, 400);
    assert_eq!(page.post(&path, &json!({ "question": 2, "yes": false })).status, 202);
    let ended = page.job_when(&id, |job| job["state"] == "ended");
    assert_eq!(ended["outcome"]["kept"], 1);
    assert!(yes(2).message().contains("asks nothing now"));
    let told = events(page.follow(&id, ""));
    assert_eq!(told[1].1["question"], json!({ "about": "keep", "number": 2 }));
    // Whoever cancels says no.
    let id = page.start("asks");
    page.job_when(&id, |job| !job["question"].is_null());
    page.post(&format!("/api/jobs/{id}/cancel"), &json!({}));
    assert_eq!(page.job_when(&id, |job| job["state"] == "ended")["outcome"]["kept"], 0);
}

#[test]
fn a_capture_is_uploaded_read_by_a_job_and_removed() {
    let page = Page::open();
    let header = [&bearer(), "Bdp-Name: slow%20path.pcap", "Content-Type: application/octet-stream"];
    // More than a request of JSON may have.
    let text = "x".repeat(200_000);
    let sent = page.send("POST /api/captures", &header, &text);
    assert_eq!(sent.status, 201, "{}", sent.body);
    assert_eq!(sent.json(), json!({ "id": "c1", "name": "slow path.pcap", "bytes": text.len() }));
    assert_eq!(page.get("/api/captures").json(), json!([sent.json()]));
    let all = events(page.follow(&page.start("reads c1"), ""));
    let (result, outcome) = (&all[0].1, &all[1].1);
    assert_eq!((&result["schema"], &result["event"]), (&json!("bdp.event/1"), &json!("result")));
    assert_eq!(result["document"], json!({ "name": "slow path.pcap", "text": text }));
    assert_eq!(outcome["ending"], "done");
    assert_eq!(page.send("DELETE /api/captures/c1", &[&bearer()], "").status, 204);
    assert_eq!(page.send("DELETE /api/captures/c1", &[&bearer()], "").status, 404);
    assert_eq!(page.get("/api/captures").json(), json!([]));
    assert_eq!(page.post("/api/check", &json!({ "command": ["reads", "c1"] })).status, 404);
    assert_eq!(page.send("POST /api/captures", &header, "").status, 400);
    assert_eq!(page.send("POST /api/captures", &["Bdp-Name: x"], &text).status, 401);
}

#[test]
fn a_capture_that_is_too_large_is_refused_before_it_is_sent() {
    let page = Page::open();
    let mut stream = page.connect();
    let length = (4_u64 << 30) + 1;
    write!(
        stream,
        "POST /api/captures HTTP/1.1\r\nHost: localhost\r\n{}\r\nContent-Length: {length}\r\n\r\n",
        bearer()
    )
    .expect("a request");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer");
    assert!(line.starts_with("HTTP/1.1 413 "), "{line}");
}

#[test]
fn secrets_reach_the_job_and_nothing_that_is_shown() {
    let page = Page::open();
    let secret = "correct-horse";
    let line = json!({ "command": ["ends"], "secrets": { "tune_token": secret } });
    let started = page.post("/api/jobs", &line);
    assert_eq!(started.status, 201);
    let id = started.json()["id"].as_str().expect("an id").to_owned();
    let all = events(page.follow(&id, ""));
    let shown = format!("{}{}{all:?}", started.body, page.get("/api/jobs").body);
    assert!(!shown.contains(secret), "{shown}");
    assert_eq!(*page.host.tokens.lock().expect("a lock"), [secret]);
    assert_eq!(page.post("/api/check", &json!({ "command": ["ends"], "secrets": { "x": 1 } })).status, 400);
}

#[test]
fn only_who_is_at_the_machine_may_change_its_settings() {
    let (page, named, bearer) = (Page::open(), Page::named(["bdp.example"]), bearer());
    let body = json!({ "command": ["tune", "revert"] });
    assert_eq!(page.post("/api/answer", &body).json(), json!({ "words": ["tune", "revert"] }));
    let id = page.start("fix");
    let question = page.job_when(&id, |job| !job["question"].is_null())["question"]["number"].clone();
    let (path, yes) = (format!("/api/jobs/{id}/answer"), json!({ "question": question, "yes": true }));
    let proxied = [bearer.as_str(), "Via: 1.1 proxy"];
    assert_eq!(page.send(&format!("POST {path}"), &proxied, &yes.to_string()).status, 403);
    assert_eq!(page.post(&path, &yes).status, 202);
    for (page, proxy) in [
        (&named, vec!["Host: bdp.example"]),
        (&named, vec!["Host: localhost"]),
        (&page, vec!["Host: localhost", "X-Forwarded-For: 192.0.2.7"]),
    ] {
        let headers: Vec<&str> = proxy.into_iter().chain([bearer.as_str()]).collect();
        let answer = page.send("POST /api/answer", &headers, &body.to_string());
        assert_eq!(answer.status, 403, "{headers:?}");
        assert_eq!(answer.message(), "only at the machine itself");
        let checked = page.send("POST /api/check", &headers, &json!({ "command": ["ends"] }).to_string());
        assert_eq!(checked.json()["notes"], json!(["local: false"]));
    }
}

#[test]
fn a_job_that_breaks_ends_alone() {
    let page = Page::open();
    let id = page.start("breaks");
    let ended = page.job_when(&id, |job| job["state"] == "ended");
    assert_eq!(ended["outcome"]["ending"], "failed");
    assert!(ended["outcome"]["error"].as_str().expect("a sentence").contains("internal error"), "{ended}");
    page.start("ends");
}

#[test]
fn what_is_no_request_is_refused_in_a_sentence() {
    let page = Page::open();
    let wrong = page.post("/api/check", &json!({ "command": ["no"] }));
    assert_eq!((wrong.status, wrong.message().as_str()), (400, "'no' is no command: try 'yes'"));
    for body in [json!({}), json!([]), json!({ "command": "x" }), json!({ "command": [], "more": 1 })] {
        let answer = page.post("/api/jobs", &body);
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.message().contains("not as expected"), "{}", answer.body);
    }
    let many = vec!["x"; 300];
    assert_eq!(page.post("/api/jobs", &json!({ "command": many })).status, 400);
    let large = page.post("/api/jobs", &json!({ "command": ["x".repeat(100_000)] }));
    assert_eq!(large.status, 400);
    assert!(large.message().contains("length limit exceeded"), "{}", large.body);
    let selection = page.get("/api/runs?search=ams1&before=7f3a");
    assert_eq!(selection.json(), json!({ "search": "ams1", "most": 50, "before": "7f3a" }));
    assert_eq!(page.get("/api/runs?most=many").status, 400);
    assert_eq!(page.get("/api/runs?every=1").status, 400);
    assert_eq!(page.get("/api/runs/..%2f..%2fetc%2fpasswd").json()["run"], "../../etc/passwd");
    assert_eq!(page.send("DELETE /api/runs/1", &[&bearer()], "").status, 404);
}

#[test]
fn a_report_is_a_file_and_never_a_part_of_the_page() {
    let page = Page::open();
    let report = page.get("/api/runs/7f3a%22%0d%0aX:1/report");
    assert_eq!(report.status, 200);
    assert!(
        report.head.contains("content-disposition: attachment; filename=\"bdp-7f3ax1.html\""),
        "{}",
        report.head
    );
    assert!(report.head.contains("content-security-policy"), "{}", report.head);
}

#[test]
fn streams_are_limited_and_given_back() {
    let page = Page::open();
    let id = page.start("waits");
    let status = |reader: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer");
        line.split(' ').nth(1).expect("a status").to_owned()
    };
    let mut streams: Vec<_> = (0..64).map(|_| page.follow(&id, "")).collect();
    assert!(streams.iter_mut().all(|stream| status(stream) == "200"));
    let mut refused = page.follow(&id, "");
    assert_eq!(status(&mut refused), "409");
    // Other requests go on.
    assert_eq!(page.get("/api/about").status, 200);
    drop(streams);
    let begun = Instant::now();
    while status(&mut page.follow(&id, "")) != "200" {
        // A closed stream is noticed when the next event or comment is written.
        assert!(begun.elapsed() < Duration::from_secs(40), "no stream was given back");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_end_of_the_server_cancels_its_job_and_its_streams_learn_the_outcome() {
    let page = Page::open();
    let id = page.start("waits");
    let mut reader = page.follow(&id, "");
    let mut line = String::new();
    // The stream has begun once its first event is there.
    while !line.starts_with("data: ") {
        line.clear();
        assert_ne!(reader.read_line(&mut line).expect("an event"), 0);
    }
    let reads = thread::spawn(move || events(reader));
    drop(page);
    let all = reads.join().expect("a reader");
    assert_eq!(all.last().map(|(_, data)| data["ending"].clone()), Some(json!("done")), "{all:?}");
}
