//! `bdp serve` and `bdp measure` as people run them: two processes over loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::serving::{free_port, measure, serve, serve_with};
use crate::support::{Bench, start};

#[test]
fn a_server_tells_what_to_run_at_the_other_end_and_ends_cleanly() {
    let bench = Bench::new();
    for signal in ["TERM", "INT"] {
        let server = serve(&bench, "--token secret-of-a-test");
        server.assert_unharmed(&bench);
        server.process.signal(signal);
        let ended = server.process.wait();
        assert_eq!(ended.code(), 0, "{}", ended.err);
        let pasted = ended.out.lines().next().unwrap();
        assert!(pasted.starts_with("bdp measure "), "{pasted}");
        assert!(pasted.ends_with(&format!(":{} --token secret-of-a-test", server.port)), "{pasted}");
        assert!(ended.err.contains("session 1: 127.0.0.1:") && ended.err.contains("1 flow"), "{}", ended.err);
        assert!(ended.last_line().contains(&format!("ended by SIG{signal}")), "{}", ended.err);
    }
}

#[test]
fn a_token_that_nobody_gave_is_made_anew_each_time() {
    let bench = Bench::new();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let server = serve(&bench, "");
        server.process.signal("TERM");
        let out = server.process.wait().out;
        let token = out.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(token.len() >= 20 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{out}");
        tokens.push(token);
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn a_token_that_can_be_guessed_is_warned_of() {
    let bench = Bench::new();
    let said = |options: &str| serve(&bench, options).process.err();
    assert!(
        said("--token eleven-char")
            .contains("warning: the token has 11 characters; fewer than 12 can be guessed")
    );
    assert!(!said("--token twelve-chars").contains("warning"));
    assert!(!said("").contains("warning"));
    let both = said("--token short --allow-tune --tune-token shorter");
    assert!(
        both.contains("the token has 5 characters") && both.contains("the tune token has 7 characters"),
        "{both}"
    );
}

#[test]
fn tokens_come_from_files_and_the_environment_at_both_ends() {
    let bench = Bench::new();
    bench.write("token", "from-a-file\nand more\n");
    let server = serve(&bench, "--token-file token");
    assert_eq!(bench.run(&format!("{} --token from-a-file", measure(server.port))).code(), 0);
    let mut command = bench.bdp(&measure(server.port));
    command.env("BDP_TOKEN", "another");
    let refused = start(command).wait();
    let line = refused.refusal(3);
    assert!(line.contains("wrong token") && !line.contains("another"), "{line}");
    assert!(bench.run("serve --token-file no-such-file").refusal(3).contains("no-such-file"));
    bench.write("empty", "\n");
    assert!(bench.run("serve --token-file empty").refusal(2).contains("contains no token"));
    server.assert_unharmed(&bench);
}

#[test]
fn a_port_in_use_is_refused_with_the_way_out() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let refused = bench.run(&format!("serve --listen {}", server.port));
    assert!(refused.refusal(3).contains("--listen"), "{}", refused.err);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    assert!(bench.run(&format!("serve --listen {address}")).refusal(3).contains("UDP"));
    assert!(bench.run("serve --listen nowhere").refusal(2).contains("--listen"));
    assert!(bench.run("serve --listen 192.0.2.1").refusal(2).contains("192.0.2.1"));
}

#[test]
fn a_wrong_request_is_refused_before_anything_listens() {
    let bench = Bench::new();
    for (argument, value, part) in [
        ("--token", "", "--token contains no token"),
        ("--max-duration", "0", "permits no flow"),
        ("--max-duration", "999us", "permits no flow"),
    ] {
        let mut command = bench.bdp(&format!("serve --listen 127.0.0.1:{}", free_port()));
        command.args([argument, value]);
        let ended = start(command).wait();
        assert_eq!((ended.code(), ended.out.as_str()), (2, ""), "{argument} '{value}': {}", ended.err);
        assert!(ended.err.contains(part), "{argument} '{value}': {}", ended.err);
    }
}

#[test]
fn one_session_and_no_more_with_1() {
    let bench = Bench::new();
    let server = serve(&bench, "-1");
    server.assert_unharmed(&bench);
    let ended = server.process.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

#[test]
fn limits_are_refused_with_the_option_that_raises_them() {
    let bench = Bench::new();
    let server = serve(&bench, "--open");
    let long = bench.run(&format!("measure 127.0.0.1:{} -t 31", server.port));
    assert!(long.refusal(2).contains("--max-duration"), "{}", long.err);
    let wide = bench.run(&format!("measure 127.0.0.1:{} -P 17 -t 1", server.port));
    assert!(wide.refusal(2).contains("--max-streams"), "{}", wide.err);
    server.assert_unharmed(&bench);
}

#[test]
fn peers_that_cannot_serve_are_one_line_and_exit_3() {
    let bench = Bench::new();
    let refused = bench.run(&measure(free_port()));
    assert!(refused.refusal(3).contains("bdp serve"), "{}", refused.err);
    let nobody = bench.run("measure no-such-host.invalid -t 1");
    assert!(nobody.refusal(3).contains("no-such-host.invalid"), "{}", nobody.err);
    for (answer, word) in [
        (b"HTTP/1.0 400 Bad Request\r\n".as_slice(), "HTTP"),
        (b"\xbdbdp\x09\x01\0\0".as_slice(), "version 9"),
        (b"", "connected but silent"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(answer).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let ended = bench.run(&measure(port));
        assert!(ended.refusal(3).contains(word), "{}", ended.err);
    }
}

#[test]
fn a_server_that_is_killed_in_mid_test_is_one_line_and_exit_3() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let line = format!("measure 127.0.0.1:{} -t 60 --idle 0.1 --json-stream", server.port);
    let mut client = start(bench.bdp(&line));
    client.await_flow();
    server.process.signal("KILL");
    let started = Instant::now();
    let ended = client.wait();
    assert_eq!(ended.code(), 3, "{}", ended.err);
    assert!(ended.last_line().contains("lost the connection"), "{}", ended.err);
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn what_was_measured_before_the_server_died_is_printed_and_stored_as_broken() {
    let bench = Bench::new();
    for (way, options) in [("to", "--forward"), ("from", "-R"), ("to", "--forward -P 3")] {
        let server = serve(&bench, "");
        let line = format!("measure 127.0.0.1:{} -t 60 --idle 0.2 --json-stream {options}", server.port);
        let mut client = start(bench.bdp(&line));
        let stage = format!("\"stage\":\"{way}\"");
        client.wait_until("data flows for a while", |p| p.out().matches(&stage).count() >= 8);
        server.process.signal("KILL");
        let ended = client.wait();
        assert_eq!(ended.code(), 3, "{}", ended.err);
        let line = ended.last_line();
        assert!(line.contains("lost the connection") && line.contains("' prints them"), "{}", ended.err);
        let shown = bench.run("show --json");
        assert_eq!(shown.code(), 0, "{}", shown.err);
        let shown = shown.json();
        assert!(shown["error"].as_str().unwrap().contains("lost the connection"), "{shown}");
        assert_eq!(shown["directions"][0]["direction"], way);
        assert!(shown["directions"][0]["goodput_bps"].as_f64().unwrap() > 0.0, "{shown}");
        let end = ended.out.lines().find(|line| line.contains("\"event\":\"end\"")).unwrap();
        assert!(end.contains("lost the connection"), "{end}");
        let text = bench.run("show").out;
        assert!(
            text.contains("FAILED") && text.contains("lost the connection") && text.contains("bit/s"),
            "{text}"
        );
        // It is no figure to compare with.
        assert_eq!(bench.run("compare").code(), 2);
    }
}

#[test]
fn a_client_that_is_killed_in_mid_test_frees_its_place() {
    let bench = Bench::new();
    let mut server = serve(&bench, "--max-sessions 1");
    for options in ["--forward", "-R", "--bidir -P 4"] {
        let before = server.process.err().matches("ended after").count();
        let line = format!("measure 127.0.0.1:{} -t 60 --idle 0.1 --json-stream {options}", server.port);
        let mut client = start(bench.bdp(&line));
        client.await_flow();
        client.signal("KILL");
        client.wait();
        server.process.wait_until("its session ended", |p| p.err().matches("ended after").count() > before);
        server.assert_unharmed(&bench);
    }
}

#[test]
fn strangers_do_no_harm() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let strangers: Vec<TcpStream> = (0..200)
        .map(|i: u32| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            let noise: Vec<u8> =
                (0..i).map(|k| (k.wrapping_mul(i).wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
            // One that was turned away already refuses the rest.
            let _ = stream.write_all(&noise);
            stream
        })
        .collect();
    server.assert_unharmed(&bench);
    drop(strangers);
    server.assert_unharmed(&bench);
}

#[test]
fn an_idle_server_is_small_and_stays_so() {
    let bench = Bench::new();
    // With an arena for each thread, what the allocator keeps depends on which threads met: 1.9 to 6.9 MiB for the same sessions.
    let server = serve_with(&bench, "", &[("MALLOC_ARENA_MAX", "1")]);
    let line = format!("measure 127.0.0.1:{} --bidir -P 3 -t 0.02 -i 10ms --idle 0 --json", server.port);
    let session = || assert_eq!(bench.run(&line).code(), 0);
    (0..5).for_each(|_| session());
    let before = Held::by(server.process.pid());
    (0..20).for_each(|_| session());
    // What a session has goes a moment after it.
    let since = Instant::now();
    let mut after = Held::by(server.process.pid());
    while (after.threads, after.descriptors) != (before.threads, before.descriptors)
        && since.elapsed() < Duration::from_secs(5)
    {
        thread::sleep(Duration::from_millis(20));
        after = Held::by(server.process.pid());
    }
    assert_eq!((after.threads, after.descriptors), (before.threads, before.descriptors));
    assert!(after.resident_kib < 10 * 1024, "{} KiB", after.resident_kib);
    // With one arena it stays as it is; a leak of a session's samples is more than 200 KiB each.
    assert!(
        after.resident_kib < before.resident_kib + 20 * 50,
        "{} KiB, then {}",
        before.resident_kib,
        after.resident_kib
    );
}

/// What a process has of the machine; of its memory what is its own, without the pages of its file, of which there are as many as its build has code.
struct Held {
    threads: usize,
    descriptors: usize,
    resident_kib: u64,
}

impl Held {
    fn by(pid: u32) -> Self {
        let count = |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().count();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let resident = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap();
        Self {
            threads: count("task"),
            descriptors: count("fd"),
            resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }
}
