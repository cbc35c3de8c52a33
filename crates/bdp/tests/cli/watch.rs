//! `bdp watch`: connections of other programs, what limits them, and what can't be watched.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::metrics::{ask, check};
use crate::support::machine::{can_isolate, is_installed};
use crate::support::nobody::{as_nobody, can_be_nobody};
use crate::support::serving::{free_port, serve};
use crate::support::{Bench, Ended, start, wait_for};

const SCHEMA: &str = include_str!("../../../../docs/watch.schema.json");

/// The documents of `--json`, each of which keeps the schema.
#[track_caller]
fn documents(ended: &Ended) -> Vec<Value> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let read = |line: &str| {
        let document: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{document:#}");
        document
    };
    ended.out.lines().map(read).collect()
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}

/// Both ends of a connection over loopback, each in a thread, until it is dropped.
struct Transfer {
    port: u16,
    /// Of the end that connected.
    near_port: u16,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Transfer {
    /// What the sending and the receiving thread do again and again.
    fn new(
        mut send: impl FnMut(&mut TcpStream) + Send + 'static,
        mut receive: impl FnMut(&mut TcpStream) + Send + 'static,
    ) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let mut near = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut far, from) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let (one, other) = (Arc::clone(&over), Arc::clone(&over));
        let threads = vec![
            thread::spawn(move || {
                while !one.load(Ordering::Relaxed) {
                    send(&mut near);
                }
            }),
            thread::spawn(move || {
                while !other.load(Ordering::Relaxed) {
                    receive(&mut far);
                }
            }),
        ];
        Self { port, near_port: from.port(), over, threads }
    }

    /// Writes as fast as it can, and reads 20 kB each 10 ms.
    fn of_slow_reader() -> Self {
        let send = |stream: &mut TcpStream| {
            if stream.write(&[0; 65_536]).is_err() {
                thread::sleep(Duration::from_millis(1));
            }
        };
        let mut room = vec![0; 20_000];
        Self::new(send, move |stream| {
            let _ = stream.read(&mut room);
            thread::sleep(Duration::from_millis(10));
        })
    }

    /// Asks, waits for the answer, and asks again; each answer takes 60 ms.
    fn of_slow_answers() -> Self {
        let ask = |stream: &mut TcpStream| {
            let _ = stream.write(&[0; 100]);
            while stream.read(&mut [0; 800]).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock) {
                thread::sleep(Duration::from_millis(1));
            }
        };
        Self::new(ask, |stream| {
            if stream.read(&mut [0; 100]).is_ok_and(|length| length > 0) {
                thread::sleep(Duration::from_millis(60));
                let _ = stream.write(&[0; 800]);
            }
        })
    }

    /// Writes a kilobyte now and then, and reads what comes.
    fn of_idle_writer() -> Self {
        let send = |stream: &mut TcpStream| {
            let _ = stream.write(&[0; 1000]);
            thread::sleep(Duration::from_millis(70));
        };
        Self::new(send, |stream| {
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let _ = stream.read(&mut [0; 65_536]);
        })
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The limits of the sending and the receiving end, as the lines `total` have them.
fn limits(documents: &[Value], port: u16) -> [Vec<String>; 2] {
    let end = |is_sender: bool| {
        let end = if is_sender { "remote" } else { "local" };
        let totals = of_kind(documents, "total");
        let total = totals.iter().find(|t| t["last"][end].as_str().unwrap().ends_with(&format!(":{port}")));
        let limits =
            total.unwrap_or_else(|| panic!("no {end} end: {documents:#?}"))["limits"].as_array().unwrap();
        limits.iter().map(|limit| limit["limit"].as_str().unwrap().to_owned()).collect()
    };
    [end(true), end(false)]
}

#[test]
fn slow_reader_is_found_from_either_end_and_lines_keep_the_schema() {
    let transfer = Transfer::of_slow_reader();
    let ended = Bench::new().run(&format!("watch :{} --for 3s --json", transfer.port));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let documents = documents(&ended);
    let [sender, receiver] = limits(&documents, transfer.port);
    assert_eq!(receiver[0], "slow_reader", "{receiver:?}");
    assert!(["slow_reader", "receive_window"].contains(&sender[0].as_str()), "{sender:?}");
    let sockets = of_kind(&documents, "socket");
    assert_eq!(sockets.len() % 2, 0);
    assert!(sockets.len() >= 4, "{}", sockets.len());
    let (own, last) = (std::process::id(), documents.last().unwrap());
    assert!(sockets.iter().all(|socket| socket["holder"]["pid"] == own), "{:#}", sockets[0]);
    assert_eq!(last["kind"], "end");
    assert!(last["samples"].as_u64().unwrap() >= 10 && last["seen"] == 2, "{last}");
}

#[test]
fn program_that_writes_now_and_then_is_the_limit_of_its_connection() {
    let transfer = Transfer::of_idle_writer();
    let ended =
        Bench::new().run(&format!("watch 127.0.0.1:{} :{} --for 3s --json", transfer.port, transfer.port));
    let documents = documents(&ended);
    let [sender, receiver] = limits(&documents, transfer.port);
    assert_eq!(sender[0], "slow_writer", "{sender:?}");
    // Gaps longer than the way explains are the writer's; what keeps that from writing only its own end can say.
    assert_eq!(receiver[0], "slow_writer", "{receiver:?}");
    let totals = of_kind(&documents, "total");
    let missing = totals.iter().flat_map(|t| t["limits"].as_array().unwrap()).any(|limit| {
        limit["finding"]["missing"].as_array().unwrap().iter().any(|m| m["what"] == "sender_figures")
    });
    assert!(missing, "{totals:#?}");
}

#[test]
fn server_that_is_long_to_answer_is_named_from_either_end() {
    let transfer = Transfer::of_slow_answers();
    let ended = Bench::new().run(&format!("watch :{} --for 3s --json", transfer.port));
    let documents = documents(&ended);
    for end in limits(&documents, transfer.port) {
        assert_eq!(end[0], "slow_writer", "{end:?}");
    }
    let totals = of_kind(&documents, "total");
    for total in totals {
        let is_server = total["last"]["local"].as_str().unwrap().ends_with(&format!(":{}", transfer.port));
        let finding = &total["limits"][0]["finding"];
        let name = if is_server { "this host" } else { "127.0.0.1" };
        assert_eq!(
            (&finding["cause"], &finding["place"]["name"]),
            (&"response_time".into(), &name.into()),
            "{finding:#}"
        );
        assert!(finding["remedy"]["text"].as_str().unwrap().contains("from answering"), "{finding:#}");
    }
}

#[test]
fn lines_and_the_summary_say_who_and_what() {
    let transfer = Transfer::of_slow_reader();
    let ended = Bench::new().run(&format!("watch :{} --for 2s -i 500ms --top 1", transfer.port));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let mut lines = ended.out.lines();
    assert!(lines.next().unwrap().trim_start().starts_with("s  program"), "{}", ended.out);
    assert!(ended.out.contains("and 1 more that moved"), "{}", ended.out);
    let (live, summary) = ended.out.split_once("\nwatched  ").unwrap();
    // Both ends move the same, so that either may be the one row that is shown.
    let either = [transfer.port, transfer.near_port].map(|port| format!("127.0.0.1:{port} "));
    assert!(either.iter().any(|end| live.contains(end)), "{live}");
    for words in ["LIMIT ", "reader on this host (", "% of the time", "wait unread", "cost ", "cure: "] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    assert!(!ended.out.contains('\x1b'), "no terminal, no escape");
}

#[test]
fn process_is_watched_with_what_it_starts_until_it_ends() {
    let bench = Bench::new();
    let server = serve(&bench, "--token right");
    // The shell has no socket, the program that it starts has.
    let mut shell = start(bench.shell(&format!(
        "bdp measure 127.0.0.1:{} --forward -t 3 --idle 0.1 --json > out.json; true",
        server.port
    )));
    shell.wait_until("it measures", |_| bench.path("out.json").exists());
    let mut watching = start(bench.bdp(&format!("watch {} --json -i 200ms", shell.pid())));
    watching.wait_until("a socket is seen", |p| p.out().contains("\"kind\":\"socket\""));
    let measured = shell.wait();
    assert_eq!(measured.code(), 0, "{}", measured.err);
    let ended = watching.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let documents = documents(&ended);
    let sockets = of_kind(&documents, "socket");
    assert!(sockets.iter().all(|s| s["holder"].is_null() || s["holder"]["name"] == "bdp"), "{sockets:#?}");
    assert!(sockets.iter().any(|s| !s["holder"].is_null()));
    let notes = of_kind(&documents, "note");
    assert!(notes.iter().any(|n| n["text"].as_str().unwrap().ends_with("ended")), "{notes:?}");
    // What ended keeps its last figures.
    let totals = of_kind(&documents, "total");
    assert!(totals.iter().all(|total| total["ended"] == true), "{totals:#?}");
    assert!(totals[0]["last"]["sent_bytes"].as_u64().unwrap() > 0, "{totals:#?}");
}

#[test]
fn end_that_is_asked_for_prints_the_summary() {
    let transfer = Transfer::of_slow_reader();
    let bench = Bench::new();
    for (time, code) in [("", Some(0)), (" --for 100s", None)] {
        let mut watching = start(bench.bdp(&format!("watch :{} -i 200ms{time}", transfer.port)));
        watching.wait_until("it watches", |p| p.out().contains("reader on this host"));
        watching.signal("INT");
        let ended = watching.wait();
        assert_eq!(ended.status.code(), code, "{}", ended.err);
        assert!(ended.out.contains("\nwatched  "), "{}", ended.out);
    }
}

#[test]
fn program_in_another_network_is_watched_there() {
    if !is_installed("unshare") || !is_installed("ip") || !can_isolate() {
        return;
    }
    let bench = Bench::new();
    let script = "ip link set lo up; bdp serve --open 2>serve.err & \
                  until grep -q listening serve.err; do sleep 0.02; done; \
                  exec bdp measure 127.0.0.1 --forward -t 25 --idle 0.1 --json";
    let mut program = start(bench.shell(&format!("exec unshare --net sh -ec '{script}'")));
    program.wait_until("its server listens", |_| {
        std::fs::read_to_string(bench.path("serve.err")).is_ok_and(|said| said.contains("listening"))
    });
    let mut watching = start(bench.bdp(&format!("watch {} --json -i 200ms", program.pid())));
    watching.wait_until("its connection is seen", |p| p.out().contains("\"remote\":\"127.0.0.1:5201\""));
    watching.signal("INT");
    let ended = watching.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let documents = documents(&ended);
    let sockets = of_kind(&documents, "socket");
    assert!(sockets.iter().any(|s| s["holder"]["pid"] == program.pid()), "{documents:#?}");
    // The machine's own network has none of them.
    let number = sockets[0]["cookie"].clone();
    let ended = bench.run("watch 127.0.0.1:5201 --for 300ms --json");
    let here = super::watch::documents(&ended);
    assert!(of_kind(&here, "socket").iter().all(|socket| socket["cookie"] != number));
    program.signal_group("TERM");
    program.wait();
}

#[test]
fn what_cannot_be_watched_is_one_line() {
    let bench = Bench::new();
    for (line, code, words) in [
        ("watch 4000000", 2, "process 4000000 does not exist"),
        ("watch", 2, "required"),
        ("watch :0", 2, "not a port"),
        ("watch :99999", 2, "not a port"),
        ("watch a@b:x", 2, "not a port"),
        ("watch --all :443", 2, "cannot be used with"),
        ("watch --all -i 1ms", 2, "too short"),
        ("watch --all --for 0", 2, "watches nothing"),
        ("watch --all --samples 0", 2, "samples"),
        ("watch --all --json --for 0", 2, "watches nothing"),
        ("watch --all --metrics nowhere", 2, "not an address"),
    ] {
        let ended = bench.run(line);
        let said = ended.refusal(code);
        assert!(said.contains(words), "{line}: {said}");
    }
}

#[test]
fn process_of_another_user_is_refused_and_ones_own_is_not() {
    if !can_be_nobody() {
        return;
    }
    let bench = Bench::new();
    let copy = bench.open_to_all();
    let ended = start(as_nobody(&bench, &copy, &format!("watch {}", std::process::id()))).wait();
    let line = ended.refusal(3);
    assert!(line.contains("only that user and root can see") && line.contains(":443"), "{line}");
    // The connections are seen all the same, without who has them open.
    let transfer = Transfer::of_slow_reader();
    let ended = start(as_nobody(&bench, &copy, &format!("watch :{} --for 1s --json", transfer.port))).wait();
    let documents = documents(&ended);
    let sockets = of_kind(&documents, "socket");
    assert!(sockets.len() >= 2 && sockets.iter().all(|s| s["holder"].is_null()), "{documents:#?}");
    assert_eq!(sockets[0]["user"], 0);
}

#[test]
fn figures_are_there_for_prometheus() {
    let transfer = Transfer::of_slow_reader();
    let (bench, port) = (Bench::new(), free_port());
    let watching = start(bench.bdp(&format!("watch :{} -i 200ms --metrics {port}", transfer.port)));
    let page = || {
        let request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok().then(|| ask(port, request).1)
    };
    wait_for("a finding is counted", || page().is_some_and(|p| p.contains("limit=\"slow_reader\"")));
    let text = page().unwrap();
    check(&text);
    let docs = include_str!("../../../../docs/metrics.md");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(docs.contains(&format!("`{name}`")), "{name} is in no document");
    }
    assert!(
        text.contains("bdp_watch_sockets{program=\"") && text.contains("remote=\"127.0.0.1\"} 2"),
        "{text}"
    );
    drop(watching);
}
