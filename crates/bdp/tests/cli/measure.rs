//! `bdp measure` as people run it: every flag against a real server, its JSON against the schema, and what a pipeline
//! makes of the exit code.

use std::thread;
use std::time::Duration;

use crate::support::serving::{Serving, serve};
use crate::support::{Bench, start, untested};
use serde_json::{Value, json};

#[track_caller]
fn assert_fits_schema(document: &Value) {
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/measurement.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> =
        validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(complaints, Vec::<String>::new());
}

impl Serving {
    /// Measures for a moment with further options, and gives the document, which keeps to the schema.
    #[track_caller]
    fn measured(&self, bench: &Bench, options: &str) -> Value {
        let time = if options.starts_with("-t ") { "" } else { "-t 0.2" };
        let brief = format!("measure 127.0.0.1:{} {time} --idle 0.1 --json {options}", self.port);
        let ended = bench.run(&brief);
        assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
        let document = ended.json();
        assert_fits_schema(&document);
        document
    }
}

#[test]
fn the_json_has_what_it_is_read_for() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let document = server.measured(&bench, "-t 0.4 -i 50ms -w 64K");
    let directions = document["directions"].as_array().unwrap();
    let names: Vec<&Value> = directions.iter().map(|d| &d["direction"]).collect();
    assert_eq!(names, ["to", "from"]);
    for d in directions {
        let bytes = d["bytes"].as_u64().unwrap();
        let seconds = d["duration_ns"].as_u64().unwrap() as f64 / 1e9;
        assert!((0.39..4.0).contains(&seconds), "{seconds}");
        assert_eq!(d["omit_ns"], 0);
        // The first read is the mark that is counted from.
        let goodput = d["goodput_bps"].as_f64().unwrap();
        let mean = bytes as f64 * 8.0 / seconds;
        assert!(goodput <= mean * 1.000_001 && goodput > 0.5 * mean, "{goodput} of {mean}");
        assert_eq!(d["window"]["asked_bytes"], 65_536);
        for when in ["idle", "loaded"] {
            let rtt = &d["rtt_ns"][when];
            let figures = ["min", "p50", "p95", "p99", "max"]
                .into_iter()
                .filter_map(|p| rtt[p].as_u64())
                .collect::<Vec<_>>();
            assert!(figures.is_sorted() && figures[0] > 0, "{when}: {rtt}");
        }
        assert!(d["retransmits"].is_u64() && !d["findings"].as_array().unwrap().is_empty(), "{d:#}");
    }
}

#[test]
fn each_flag_is_seen_in_what_is_measured() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let cases: &[(&str, &[(&str, Value)])] = &[
        ("-R", &[("/directions/0/direction", json!("from")), ("/directions/1", Value::Null)]),
        ("--forward", &[("/directions/0/direction", json!("to")), ("/directions/1", Value::Null)]),
        ("--bidir", &[("/request/bidirectional", json!(true)), ("/directions/1/direction", json!("from"))]),
        ("-R -P 3", &[("/request/streams", json!(3)), ("/directions/0/stream_goodput_bps/3", Value::Null)]),
        (
            "--forward -l 1K",
            &[("/request/length", json!(1024)), ("/directions/0/send_method", json!("write"))],
        ),
        ("-M 1000", &[("/directions/0/mss_bytes", json!(988)), ("/directions/1/mss_bytes", json!(988))]),
        (
            "-C reno",
            &[
                ("/directions/0/congestion_control", json!("reno")),
                ("/directions/1/congestion_control", json!("reno")),
            ],
        ),
        (
            "-R -w 256K",
            &[
                ("/directions/0/window/on_the_wire_bytes", json!(262_144)),
                ("/directions/0/window/reached", json!(true)),
            ],
        ),
        (
            "--forward --sockbuf 64K",
            &[
                ("/directions/0/send_buffer_bytes", json!(131_072)),
                ("/directions/0/window/socket_buffer_bytes", json!(131_072)),
            ],
        ),
        (
            "-R --sockbuf 64K",
            &[
                ("/directions/0/send_buffer_bytes", json!(131_072)),
                ("/directions/0/window/method", json!("SO_RCVBUF")),
            ],
        ),
        (
            "-4 -B 127.0.0.1 -N",
            &[
                ("/near/address", json!("127.0.0.1")),
                ("/request/family", json!("ipv4")),
                ("/request/nodelay", json!(true)),
            ],
        ),
        ("-B 127.0.0.5 --dscp ef", &[("/near/address", json!("127.0.0.5")), ("/request/dscp", json!(46))]),
        (
            "--forward -P 2 --check-payload",
            &[
                ("/directions/0/payload_check/wrong_bytes", json!(0)),
                ("/directions/0/payload_check/first_wrong", Value::Null),
                ("/directions/0/send_method", json!("write")),
                ("/directions/0/receive_method", json!("read")),
            ],
        ),
        ("-R --check-payload", &[("/directions/0/payload_check/wrong_bytes", json!(0))]),
        ("--forward --zerocopy off", &[("/directions/0/send_method", json!("write"))]),
        ("--forward -Z", &[("/directions/0/send_method", json!("sendfile"))]),
        ("--forward -S 0x88", &[("/request/dscp", json!(34))]),
        ("--forward --priority 5", &[("/request/priority", json!(5))]),
        ("-R -u -b 1M --priority 5", &[("/request/priority", json!(5))]),
        ("-R --zerocopy splice", &[("/directions/0/send_method", json!("splice"))]),
        (
            "--forward --zerocopy msg",
            &[("/directions/0/send_method", json!("MSG_ZEROCOPY, copied by the kernel"))],
        ),
        (
            "--forward -P 3 --cpu 0/0",
            &[("/directions/0/sender_threads", json!(1)), ("/directions/0/receiver_threads", json!(1))],
        ),
        (
            "-b 8M",
            &[
                ("/request/pacing_bps", json!(8_000_000)),
                ("/directions/0/pacing/rate_bps", json!(8_000_000)),
                ("/directions/1/pacing/by", json!("tcp")),
            ],
        ),
        ("--bind-dev lo", &[("/near/device/name", json!("lo")), ("/request/bind_device", json!("lo"))]),
    ];
    for (flags, expected) in cases {
        let document = server.measured(&bench, flags);
        for (at, value) in *expected {
            let found = document.pointer(at).cloned().unwrap_or_default();
            assert_eq!(&found, value, "{flags}: {at}");
        }
    }
    let omitting = server.measured(&bench, "--forward -O 0.3");
    let d = &omitting["directions"][0];
    // By the first reading past it, which a machine that halts makes late.
    let (omit, duration) = (d["omit_ns"].as_u64().unwrap(), d["duration_ns"].as_u64().unwrap());
    assert!(omit >= 290_000_000 && omit <= duration && duration >= 490_000_000, "{omit} of {duration}");
    // The first port is given, each flow has its own, and the next ones count up.
    let taken = crate::support::serving::free_ports(8);
    server.measured(&bench, &format!("-P 2 --cport {taken}"));
}

#[test]
fn bytes_end_a_direction() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let ended = bench.run(&format!("measure 127.0.0.1:{} -n 3000000 --idle 0.1 --json", server.port));
    let document = ended.json();
    for d in document["directions"].as_array().unwrap() {
        assert_eq!((&d["bytes"], &d["ended"]), (&json!(3_000_000), &json!("bytes")), "{}", ended.out);
    }
    assert_fits_schema(&document);
    // As so many writes, of which iperf3 speaks as blocks.
    let blocks = bench.run(&format!("measure 127.0.0.1:{} -k 3 -l 1M --forward --idle 0.1 -J", server.port));
    assert_eq!(blocks.json()["directions"][0]["bytes"], 3 << 20);
}

#[test]
fn ipv6_is_measured_by_its_address_in_brackets() {
    if !untested::has_ipv6() {
        return;
    }
    let bench = Bench::new();
    let server = serve(&bench, "");
    let ended =
        bench.run(&format!("measure [::1]:{} -6 --forward -t 0.2 --idle 0.1 --dscp cs1 --json", server.port));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    assert_fits_schema(&document);
    assert_eq!((&document["near"]["address"], &document["far"]["address"]), (&json!("::1"), &json!("::1")));
}

#[test]
fn a_thousand_streams_come_through() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let document = server.measured(&bench, "-t 1 --bidir -P 1000");
    for d in document["directions"].as_array().unwrap() {
        assert_eq!(d["stream_goodput_bps"].as_array().unwrap().len(), 1000);
        assert!(d["bytes"].as_u64().unwrap() > 0 && d["ended"] == "duration", "{}", d["ended"]);
    }
    server.assert_unharmed(&bench);
    // The client had its outcome before it left.
    server.process.signal("TERM");
    let said = server.process.wait().err;
    assert!(!said.contains("during a flow"), "{said}");
}

#[test]
fn a_limit_on_open_files_that_suffices_for_copies_suffices_for_the_choice_of_a_method() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let measure = |limit: u32, options: &str| {
        let line = format!("bdp measure 127.0.0.1:{} --forward -P 8 --idle 0 --json {options}", server.port);
        start(bench.shell(&format!("ulimit -n {limit}; exec {line}"))).wait()
    };
    let suffices = |&limit: &u32| {
        let ended = measure(limit, "-t 0.1 --zerocopy off");
        assert!(ended.code() == 0 || ended.refusal(3).contains("'ulimit -n'"), "{limit}: {}", ended.err);
        ended.code() == 0
    };
    let least = (16..64).find(suffices).expect("eight streams need fewer than 64 descriptors");
    // A pipe for each stream takes two more, and one that can't be had costs the trial alone.
    for limit in [least, least + 3, least + 9, least + 16] {
        let ended = measure(limit, "-t 0.3");
        assert_eq!(ended.code(), 0, "{limit} descriptors: {}", ended.err);
        assert_eq!(ended.json()["directions"][0]["send_method"], "write", "{limit} descriptors");
    }
    server.assert_unharmed(&bench);
}

#[test]
fn what_cannot_be_asked_for_is_refused_in_a_line() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    for (options, code, word) in [
        ("-6", 2, "IPv4 address"),
        ("-B 192.0.2.77", 2, "ip address"),
        ("-B nonsense", 2, "nonsense"),
        ("-B ::1", 2, "IP version"),
        ("--bind-dev nosuch0", 2, "ip link"),
        ("-C nosuch", 3, "; available: "),
        ("-t 0", 2, "-t 0"),
        ("-n 0", 2, "size of 0"),
        ("--sockbuf 0", 2, "no buffer"),
        ("-O 5 -i 5ms", 2, "-i 5 ms"),
        ("--cport 65535 -P 2", 2, "not enough local ports"),
        ("-w 1G", 2, "1 to 1073725440 bytes"),
        ("--expect to.speed>=1", 2, "to.speed"),
        ("--expect from.goodput>=1M --forward", 2, "from"),
        ("--baseline nosuch", 2, "nosuch"),
        ("-u", 2, "needs a rate"),
        ("-u -b 1M --check-payload", 2, "--check-payload applies to TCP"),
        ("-u -b 1M --zerocopy splice", 2, "--zerocopy applies to TCP"),
        ("-u -b 1M -w 64K", 2, "-w applies to TCP"),
        ("-u -b 1M --notsent-lowat 64K", 2, "--notsent-lowat applies to TCP"),
        ("--priority 7", 2, "7 is more than 6"),
        ("-u -b 1M --loss-ratio 1%", 2, "--loss-ratio needs -b auto"),
        ("-u -b auto --bidir", 2, "omit --bidir"),
        ("-u -b auto -n 1M", 2, "-t instead of -n"),
        ("-u -b auto --loss-ratio 100%", 2, "loss ratio"),
        ("-b auto", 2, "-b auto needs -u"),
        ("--flood", 2, "--flood needs -u"),
        ("--trial-time 1", 2, "--trial-time needs -u"),
    ] {
        let ended = bench.run(&format!("measure 127.0.0.1:{} --idle 0 {options}", server.port));
        let line = ended.refusal(code);
        assert!(line.contains(word), "{options}: {line}");
    }
    for options in
        ["-P 10001", "-P 0", "-4 -6", "-t 1 -n 1M", "-R --forward", "-w 64K --sockbuf 64K", "-M 20"]
    {
        let ended = bench.run(&format!("measure 127.0.0.1:{} {options}", server.port));
        assert_eq!((ended.code(), ended.out.as_str()), (2, ""), "{options}: {}", ended.err);
    }
    server.assert_unharmed(&bench);
}

#[test]
fn datagrams_to_this_machine_go_at_any_rate() {
    let bench = Bench::new();
    let url = bench.run("measure -u -b 1M http://192.0.2.1/x");
    assert!(url.refusal(2).contains("a URL applies to TCP"), "{}", url.err);
    let server = serve(&bench, "");
    let own = bench.run(&format!(
        "measure 127.0.0.1:{} -u -b 20M -l 1000 --forward -t 0.2 --idle 0.1 --json",
        server.port
    ));
    assert_eq!(own.code(), 0, "{}", own.err);
    assert_fits_schema(&own.json());
    assert!(!own.json()["caveats"].to_string().contains("backed_off"), "{}", own.out);
}

#[test]
fn datagrams_by_number_of_bytes_end_with_the_last_of_them() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let line = format!("measure 127.0.0.1:{} -u -b 10M -n 256K --idle 0.1 --json", server.port);
    let ended = bench.run(&line);
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    for direction in document["directions"].as_array().unwrap() {
        assert_eq!(direction["ended"], "bytes", "{direction:#}");
    }
    assert!(!document["caveats"].to_string().contains("granted"), "{}", document["caveats"]);
}

/// Loss is allowed of all that a machine which pauses may lose: what is searched here is found, and the search itself is
/// tested without a clock.
#[test]
fn the_highest_rate_within_a_loss_ratio_is_told_with_its_trials() {
    let bench = Bench::new();
    let server = serve(&bench, "--max-rate 40M");
    let brief = format!(
        "measure 127.0.0.1:{} -u -b auto --loss-ratio 99% --trial-time 0.1 --forward -t 0.3 --idle 0.1",
        server.port
    );
    let ended = bench.run(&format!("{brief} --json"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    assert_fits_schema(&document);
    let udp = &document["directions"][0]["udp"];
    let trials = udp["trials"].as_array().unwrap();
    assert!(trials.len() >= 2 && trials[0]["rate_bps"] == 40e6, "{udp:#}");
    assert_eq!((&trials[trials.len() - 1]["held"], &udp["search"]), (&json!(true), &json!("held")));
    assert_eq!(document["request"]["udp"]["search"]["trial_ns"], json!(100_000_000));
    let told = bench.run(&format!("{brief} -v"));
    assert_eq!(told.code(), 0, "{}", told.err);
    for part in [
        "highest rate with 99.0 % lost at most: ",
        "held for 300 ms",
        "trials: 40",
        "-b auto --loss-ratio 0.99",
    ] {
        let whole = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(whole.contains(part), "{part}: {}", told.out);
    }
}

/// The members are the same for one run and for several, and of a measurement that was not to be stored the run is null.
#[test]
fn one_run_has_the_document_of_several() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let brief = format!("measure 127.0.0.1:{} -t 0.2 --idle 0.1 --forward --json", server.port);
    let document = |options: &str| -> Value {
        let ended = bench.run(&format!("{brief} {options}"));
        assert_eq!(ended.code(), 0, "{}", ended.err);
        let document = serde_json::from_str(&ended.out).unwrap();
        assert_fits_schema(&document);
        document
    };
    let (one, two) = (document(""), document("--runs 2"));
    let members = |document: &Value| document.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&one), members(&two));
    assert_eq!((one["runs"].as_array().unwrap().len(), two["runs"].as_array().unwrap().len()), (1, 2));
    let stored: Value =
        serde_json::from_str(&bench.run(&format!("show {} --json", one["run"].as_str().unwrap())).out)
            .unwrap();
    assert_eq!((&stored["runs"], &stored["run"]), (&one["runs"], &one["run"]));
    assert_eq!(document("--store none")["run"], Value::Null);
}

/// Neither a home nor a store is needed to measure: one line says that nothing is stored. With --store none none does, as it
/// was asked for.
#[test]
fn a_measurement_needs_no_home_and_no_store() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let line = format!("measure 127.0.0.1:{} -t 0.2 --idle 0.1 --forward", server.port);
    let homeless = |line: &str| {
        let mut command = bench.bdp(line);
        command.env_remove("XDG_DATA_HOME").env_remove("XDG_STATE_HOME");
        command
    };
    let ended = start(homeless(&line)).wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert_eq!(ended.err.matches("not stored").count(), 1, "{}", ended.err);
    assert!(ended.err.contains("XDG_DATA_HOME") && ended.err.contains("--store PATH"), "{}", ended.err);
    assert!(!ended.out.contains("bdp report"), "there is no run to report on: {}", ended.out);
    let ended =
        start(homeless(&format!("{line} --store none --report page.html --title Lunchtime --csv"))).wait();
    assert_eq!((ended.code(), ended.out.lines().count()), (0, 2), "{}", ended.err);
    assert!(!ended.err.contains("store"), "{}", ended.err);
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("<h1>Lunchtime</h1>") && page.contains("</html>"), "{page}");
    assert!(!bench.store().exists());
    // Nor does one that can't be written keep anybody from measuring, where nobody asked for it.
    let mut command = homeless(&line);
    command.env("HOME", "/dev/null");
    let ended = start(command).wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert!(ended.err.contains("not stored") && ended.err.contains("/dev/null"), "{}", ended.err);
    assert!(bench.run(&format!("{line} --store /dev/null/x")).refusal(3).contains("/dev/null"));
    // A service has a state directory, and no home.
    let mut command = homeless(&format!("{line} --label kept --json"));
    command.env("XDG_STATE_HOME", bench.path("state"));
    assert_eq!(start(command).wait().code(), 0);
    assert!(bench.path("state/bdp/bdp.sqlite").is_file());
}

/// Each command that a measurement ends with is run as it stands, by a shell.
#[test]
fn what_comes_next_can_be_pasted() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let ended = bench.run(
        &format!("measure 127.0.0.1:{} -t 0.2 --idle 0.1 -w 64K -v --store 'a b.sqlite'", server.port)
            .replace("'a b.sqlite'", "ab.sqlite"),
    );
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert_eq!(bench.run_next(&ended.out).len(), 3, "{}", ended.out);
    let again = bench.run("show --store ab.sqlite");
    assert_eq!(bench.run_next(&again.out).len(), 2, "{}", again.out);
}

#[test]
fn a_textfile_collector_finds_the_figures() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let line = format!(
        "measure 127.0.0.1:{} -t 0.4 --idle 0.1 --prometheus bdp.prom --expect to.goodput>=1k --expect to.goodput>=9000G",
        server.port
    );
    assert_eq!(bench.run(&line).code(), 1);
    let metrics = bench.metrics("bdp.prom");
    let value = |series: &str| *metrics.get(series).unwrap_or_else(|| panic!("no {series} in {metrics:?}"));
    assert!(value("bdp_goodput_bits_per_second{host=\"127.0.0.1\",direction=\"from\"}") > 1e6);
    let median = value("bdp_rtt_loaded_seconds{host=\"127.0.0.1\",direction=\"to\",quantile=\"0.5\"}");
    assert!(median > 1e-7 && median < 10.0, "{median}");
    assert_eq!(value("bdp_measurement_success{host=\"127.0.0.1\"}"), 1.0);
    let met = |expectation: &str| {
        value(&format!("bdp_expectation_met{{host=\"127.0.0.1\",expectation=\"{expectation}\"}}"))
    };
    assert_eq!((met("to.goodput>=1k"), met("to.goodput>=9000G")), (1.0, 0.0));
    assert!(metrics.len() > 10);
    let there = format!("measure 127.0.0.1:{} -t 0.1 --idle 0 --forward", server.port);
    for option in ["--prometheus", "--report"] {
        let line = bench.run(&format!("{there} {option} nowhere/out")).refusal(3).to_owned();
        assert!(line.contains("no folder nowhere"), "{line}");
    }
    assert_eq!(bench.run("runs --json").json()["runs"].as_array().unwrap().len(), 1, "it was measured");
    let left = std::fs::read_dir(bench.folder())
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with(".bdp"));
    assert_eq!(left.count(), 0, "half of a file was left");
    // A measurement that comes to nothing says so there.
    drop(server);
    assert_eq!(bench.run(&line).code(), 3);
    assert_eq!(bench.metrics("bdp.prom")["bdp_measurement_success{host=\"127.0.0.1\"}"], 0.0);
}

#[test]
fn a_pipeline_is_told_by_the_exit_code() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let brief = format!("measure 127.0.0.1:{} -t 0.2 --idle 0.1 --forward", server.port);
    let met = bench.run(&format!("{brief} --runs 6 --label before --json --expect to.goodput>=1k"));
    assert_eq!(met.code(), 0, "{}", met.err);
    let document = met.json();
    assert_fits_schema(&document);
    assert_eq!((&document["schema"], &document["summary"]["n"]), (&json!("bdp.measurements/1"), &json!(6)));
    let judged = &document["expectations"];
    assert_eq!(judged.as_array().unwrap().len(), 1);
    assert_eq!(
        (&judged[0]["met"], &judged[0]["wanted"], &judged[0]["unit"]),
        (&json!(true), &json!(1e3), &json!("bps"))
    );

    let missed = bench
        .run(&format!("{brief} --label missed --expect to.goodput>=9000G --expect to.rtt.loaded.p50<=100s"));
    assert_eq!(missed.code(), 1, "{}", missed.err);
    assert_eq!(missed.err.matches("9000").count(), 1, "{}", missed.err);
    let met = missed.err.lines().find(|line| line.starts_with("MET     to.rtt.loaded.p50<=100s: "));
    assert!(met.is_some_and(|line| line.ends_with('s')), "one that is met is printed: {}", missed.err);

    // A window of 2 KiB over loopback is far below what it was without.
    let worse = bench.run(&format!("{brief} --runs 6 --label after -w 2K --baseline before"));
    assert_eq!(worse.code(), 1, "{}{}", worse.out, worse.err);
    let unlike = worse.err.lines().find(|line| line.starts_with("NOTE  baseline ")).unwrap_or_default();
    assert!(unlike.ends_with(" was measured with no -w, this with -w 2K"), "{}", worse.err);
    let alike = bench.run(&format!("{brief} --label again --baseline before"));
    assert!(!alike.err.contains("NOTE"), "{}", alike.err);
    let compared = bench.run("compare before after --json");
    assert_eq!(compared.code(), 1, "{}", compared.err);
    assert!(compared.out.contains("\"confidence\""), "{}", compared.out);
    assert_eq!(bench.run("compare after before").code(), 0);
    // A single run has no interval, and that is no regression.
    let few = bench.run(&format!("{brief} -w 2K --baseline before"));
    assert_eq!(few.code(), 0, "{}{}", few.out, few.err);
    assert!(few.out.contains("unknown with 6 and 1 runs: needs 6 runs on each side"), "{}", few.out);
}

/// The one direction of a measurement that is told as a stream, and that halts for longer than all of it takes as soon as bytes come.
#[track_caller]
fn halted(bench: &Bench, line: &str) -> Value {
    let mut running = start(bench.bdp(line));
    running.wait_until("bytes come", |p| p.out().contains(r#""stage":"from""#));
    running.signal("STOP");
    thread::sleep(Duration::from_millis(2500));
    running.signal("CONT");
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{line}: {}", ended.err);
    let last: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
    last["measurement"]["directions"][0].clone()
}

#[test]
fn a_receiver_that_halts_through_what_is_to_be_counted_tells_what_it_has() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    for flow in ["-R", "-R -u -b 20M"] {
        let line = format!("measure 127.0.0.1:{} {flow} -O 1.5 -t 0.5 --idle 0.1 --json-stream", server.port);
        let direction = halted(&bench, &line);
        let figure = |name: &str| direction[name].as_f64().unwrap();
        assert!(
            figure("omit_ns") < figure("duration_ns") && figure("goodput_bps") > 0.0,
            "{flow}: {direction}"
        );
    }
}

#[test]
fn what_comes_in_one_piece_has_no_rate() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    for flow in
        ["--forward -n 1", "-R -n 1", "--iperf3 -R -n 1", "-n 1", "--forward -u -b 1M -n 1000 -l 1000"]
    {
        let line = format!("measure 127.0.0.1:{} {flow} --idle 0.1", server.port);
        let ended = bench.run(&line);
        assert!(ended.refusal(3).contains("arrived in one read"), "{flow}: {}", ended.err);
    }
}

/// Over loopback nothing is lost but what a full socket drops.
#[test]
fn what_a_receiver_drops_that_halts_until_after_the_end_is_no_loss_of_the_path() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    // Long enough to fill its socket of 64 MiB on a busy machine too, and over before it goes on.
    let line = format!("measure 127.0.0.1:{} -R -u -b 2G -t 2 --idle 0.1 --json-stream", server.port);
    let udp = &halted(&bench, &line)["udp"];
    let count = |name: &str| udp[name].as_u64().unwrap();
    assert!(count("lost") > count("sent") / 10, "{udp}");
    assert!(count("dropped_by_receiver") >= count("lost") - count("lost") / 50, "{udp}");
}

#[test]
fn intervals_scroll_on_standard_output_where_they_are_asked_for() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let run = |options: &str| {
        let ended = bench.run(&format!("measure 127.0.0.1:{} --idle 0.1 {options}", server.port));
        assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
        ended.out
    };
    let text = run("-t 0.6 -O 0.2 -i 0.2 -P 2");
    for heading in ["to 127.0.0.1\n", "\nfrom 127.0.0.1\n"] {
        assert_eq!(text.matches(heading).count(), 1, "no {heading:?} in\n{text}");
    }
    let rows = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert!(rows("[ ID] Interval") == 2 && rows("[  1]") >= 4 && rows("[  1]") == rows("[SUM]"), "{text}");
    let of_sender = text.lines().find(|line| line.starts_with("[ ID]")).unwrap();
    assert!(of_sender.contains("Transfer") && of_sender.contains("Retr") && of_sender.contains("Cwnd"));
    assert!(text.contains("(omitted)\n"), "{text}");
    // The result follows the lines.
    assert!(text.find("[SUM]") < text.find("goodput"), "{text}");
    let text = run("-t 0.4 -i 0.2 -u -b 8M -l 1000 --bidir -f K");
    for part in ["to and from 127.0.0.1", "[  1][TX]", "[  1][RX]", "Jitter", "Lost/Total", "KiB/s"] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(!run("-t 0.3").contains("Interval"));
    assert!(run("-t 0.3 -i 0.2 --json").starts_with('{'));
}
