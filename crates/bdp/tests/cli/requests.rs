//! Wrong requests, stores that can't be used, output that goes nowhere: each is refused in one line that names the
//! cause and the way out, and before anything is measured.

use std::fs::{self, File};
use std::process::Stdio;

use crate::support::machine;
use crate::support::scenario::Scenario;
use crate::support::{BDP, Bench, start};

#[test]
fn wrong_flags_and_units_are_refused_with_the_help_to_read() {
    let bench = Bench::new();
    for (line, hints) in [
        ("--nope", ["'--nope'", "see 'bdp --help'"]),
        ("frobnicate", ["'frobnicate'", "see 'bdp --help'"]),
        ("lab", ["needs one of: run, exec, shell, list, check", "see 'bdp lab --help'"]),
        ("lab rum", ["similar subcommand exists: 'run'", "see 'bdp lab --help'"]),
        ("lab run", ["<SCENARIO>", "see 'bdp lab run --help'"]),
        ("lab run s3-30k --jsn", ["'--json'", "see 'bdp lab run --help'"]),
        ("lab run s3-30k --jobs 0", ["1 to 256", "see 'bdp lab run --help'"]),
        ("lab run s3-30k --jobs many", ["'many'", "see 'bdp lab run --help'"]),
        ("lab run s3-30k --attempts 0", ["1 to 100", "see 'bdp lab run --help'"]),
        ("lab run s3-30k --seed x", ["'x'", "see 'bdp lab run --help'"]),
        ("lab run s3-30k --set flow.duration", ["PATH=VALUE", "see 'bdp lab run --help'"]),
        ("lab run s3-30k --set flow.duration=5x", ["--set flow.duration=5x", "such as \"10s\""]),
        ("lab run s3-30k --set flow.window=5Q", ["'5Q' is not a size", "64K"]),
        ("lab run s3-30k --set link.rate=1x", ["--set link.rate=1x", "10M"]),
        ("lab run s3-30k --set flow.durance=5s", ["durance", "duration"]),
        ("lab run s3-30k --repetitions 0", ["0", "repetitions"]),
        ("lab run nosuch", ["no scenario 'nosuch'", "bdp lab list"]),
        ("lab run s3-30k --filter zzz", ["matches 'zzz'", "--cases"]),
        ("lab run s3-30k s3-30k", ["s3-30k", "twice"]),
        ("lab list nosuch", ["'nosuch'", "bdp lab list"]),
        ("lab check nosuch", ["no scenario 'nosuch'", "bdp lab list"]),
        ("calc bdp --rate 1X --rtt 2ms", ["'1X' is not a rate", "see 'bdp calc bdp --help'"]),
        ("show", ["no run is stored yet", "'bdp measure'"]),
        ("help nosuch", ["'nosuch' is neither", "'bdp help topics'"]),
        ("-s -p 5202", ["use 'bdp serve -p 5202'", "see 'bdp --help'"]),
        ("-c ams1 -t 5", ["use 'bdp measure ams1 -t 5'", "see 'bdp --help'"]),
        ("measure ams1 -d", ["--json-stream", "see 'bdp measure --help'"]),
        ("measure ams1 -S 1", ["ECN", "0x88"]),
        ("measure ams1 -f x", ["'x' is not a unit", "k, m, g or t"]),
        ("measure ams1 -u -b 1M -k 10", ["-k", "-l 1400"]),
        ("measure ams1 -k 1x", ["'1x' is not a number of blocks", "10K"]),
        ("measure ams1 --expect to.jitter<=1ms", ["to.jitter<=1ms", "add -u"]),
        ("measure ams1 -u -b 1M --expect to.retransmits<=9", ["is of TCP", "leave out -u"]),
        ("measure ams1 --idle 0 --expect rtt.idle.p95<=9ms", ["rtt.idle", "--idle 0"]),
        ("measure ams1 -P 10001", ["10001", "1 to 10000"]),
    ] {
        let ended = bench.run(line);
        let refusal = ended.refusal(2);
        assert!(hints.iter().all(|hint| refusal.contains(hint)), "{line}: {refusal}");
    }
    assert!(!bench.store().exists(), "a wrong request made a store");
}

#[test]
fn an_error_is_json_however_json_was_asked_for() {
    let bench = Bench::new();
    for flags in ["--json", "-J", "-RJ", "-JR"] {
        let ended = bench.run(&format!("measure 127.0.0.1:1 {flags}"));
        assert_eq!(
            (ended.code(), &ended.json()["error"]["kind"]),
            (3, &"environment".into()),
            "{}",
            ended.out
        );
    }
    let ended = bench.run("measure ams1 --json-stream -k 1x");
    let line = ended.json();
    assert_eq!((ended.out.lines().count(), &line["event"]), (1, &"error".into()), "{}", ended.out);
    let scenario = &bench.run("lab list s3-30k --json").json()["scenarios"][0];
    assert_eq!(scenario["text"], bench.run("lab list s3-30k").out);
}

#[test]
fn an_argument_that_is_no_text_is_refused_like_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    let mut command = bench.bdp("lab run");
    command.arg(std::ffi::OsStr::from_bytes(b"\xff\x1b[31m"));
    let ended = start(command).wait();
    let refusal = ended.refusal(2);
    assert!(!refusal.contains('\x1b'), "{refusal:?}");
}

#[test]
fn help_and_version_are_data() {
    let bench = Bench::new();
    for (line, word) in [
        ("--help", "Usage: bdp"),
        ("-h", "Usage: bdp"),
        ("help", "Usage: bdp"),
        ("lab run --help", "--resume"),
        ("help lab run", "--resume"),
        ("measure -h", "All options: bdp measure --help"),
        ("help measure", "Interoperability:"),
        ("--version", "bdp 0"),
        ("measure --version", "bdp"),
    ] {
        let ended = bench.run(line);
        assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{line}");
        assert!(ended.out.contains(word), "{line}: {}", ended.out);
    }
}

#[test]
fn a_mistake_in_a_scenario_is_named_by_file_and_line() {
    let bench = Bench::new();
    let good = Scenario::default().text();
    let line_of = |text: &str, word: &str| 1 + text.lines().position(|line| line.contains(word)).unwrap();
    for (from, to, hint) in [
        ("rate = \"5M\"", "rat = \"5M\"", "did you mean 'rate'?"),
        ("delay = \"20ms\"", "delay = true", "such as \"20.5ms\""),
        ("to = \"far\"", "to = \"fra\"", "did you mean 'far'?"),
        ("duration = \"1s\"", "duration = \"1s", "string"),
    ] {
        let text = good.replace(from, to);
        bench.write("bad.toml", &text);
        for command in ["lab run", "lab check"] {
            let ended = bench.run(&format!("{command} bad.toml"));
            let refusal = ended.refusal(2);
            let place = format!("bad.toml:{}: ", line_of(&text, to));
            assert!(refusal.contains(&place) && refusal.contains(hint), "{refusal}");
        }
    }
    // Of several files the wrong one is found before anything runs.
    bench.write("good.toml", &good);
    assert!(bench.run("lab run good.toml bad.toml").refusal(2).contains("bad.toml:"));
    assert!(!bench.store().exists(), "a wrong scenario made a store");
}

#[test]
fn what_is_no_scenario_is_refused() {
    let bench = Bench::new();
    bench.write("binary.toml", [0xff, 0xfe, 0x00, 0x61]);
    bench.write("empty.toml", "");
    fs::create_dir(bench.path("folder.toml")).unwrap();
    fs::write(bench.path("large.toml"), vec![b'#'; 5 << 20]).unwrap();
    for (file, hint) in [
        ("binary.toml", "not UTF-8"),
        ("empty.toml", "title"),
        ("./folder.toml", "directory"),
        ("large.toml", "larger than"),
        ("/dev/null", "title"),
    ] {
        let ended = bench.run(&format!("lab run {file}"));
        let refusal = ended.refusal(2);
        assert!(refusal.contains(file) && refusal.contains(hint), "{refusal}");
    }
}

#[test]
fn the_same_file_by_two_names_is_two_scenarios_and_by_one_name_a_mistake() {
    let bench = Bench::new();
    bench.write("a.toml", Scenario::default().text());
    let ended = bench.run("lab run a.toml a.toml");
    assert!(ended.refusal(2).contains("twice"));
    assert_eq!(bench.run("lab check a.toml ./a.toml").code(), 0);
}

/// A store that a run would write to is looked at before anything is measured.
#[test]
fn a_store_that_cannot_be_used_is_refused_before_anything_runs_and_left_as_it_is() {
    let bench = Bench::new();
    bench.write("a.toml", Scenario::default().text());
    fs::create_dir(bench.path("folder")).unwrap();
    bench.write("text", "no database at all, and long enough to have the header of one. ".repeat(20));
    bench.write("empty", "");
    let made = bench.path("made.sqlite");
    drop(bdp_store::SqliteStore::open(&made).unwrap());
    let sound = fs::read(&made).unwrap();
    // Page 2 on is overwritten; the header, and with it the version of the tables, is changed.
    let mut damaged = sound.clone();
    damaged[4096..].fill(0xa5);
    bench.write("damaged", &damaged);
    let mut newer = sound.clone();
    newer[60..64].copy_from_slice(&99u32.to_be_bytes());
    bench.write("newer", &newer);
    let mut foreign = sound.clone();
    foreign[68..72].copy_from_slice(b"else");
    bench.write("foreign", &foreign);
    bench.write("cut", &sound[..sound.len() - 5000]);
    for (store, cause) in [
        ("folder", "is a folder"),
        ("text", "not a SQLite database"),
        ("empty", "it is empty"),
        ("damaged", "is damaged"),
        ("newer", "newer bdp (version 99"),
        ("foreign", "another program's"),
        ("cut", "is damaged"),
        ("/dev/null", "not a regular file"),
        ("text/deeper/store", "text"),
    ] {
        let before = fs::read(bench.path(store)).ok();
        let ended = bench.run(&format!("lab run a.toml --store {store}"));
        let refusal = ended.refusal(3);
        assert!(refusal.contains(cause) && refusal.contains("--store PATH"), "{store}: {refusal}");
        assert_eq!(fs::read(bench.path(store)).ok(), before, "{store} was changed");
    }
}

#[test]
fn a_store_that_may_only_be_read_is_refused_by_a_run_and_shown_by_the_rest() {
    if !machine::can_isolate() {
        return;
    }
    let bench = Bench::new();
    bench.write("a.toml", Scenario::default().text());
    fs::create_dir(bench.path("kept")).unwrap();
    drop(bdp_store::SqliteStore::open(bench.path("kept/s.sqlite")).unwrap());
    let script = |command: &str| {
        format!(
            "mount --bind kept kept; mount -o remount,bind,ro kept; exec $BDP {command} --store kept/s.sqlite"
        )
    };
    let ended = start(bench.isolated(&script("lab run a.toml"))).wait();
    let refusal = ended.refusal(3);
    assert!(refusal.contains("read-only") || refusal.contains("Read-only"), "{refusal}");
    assert!(refusal.contains("--store PATH"), "{refusal}");
    let ended = start(bench.isolated(&script("runs"))).wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

#[test]
fn a_folder_that_others_own_is_refused() {
    if !machine::can_isolate() {
        return;
    }
    let bench = Bench::new();
    bench.write("a.toml", Scenario::default().text());
    let copy = bench.open_to_all();
    fs::create_dir(bench.path("mine")).unwrap();
    let script = format!(
        "exec setpriv --reuid=65534 --regid=65534 --clear-groups {} lab run a.toml --store mine/s.sqlite",
        copy.display()
    );
    let ended = start(bench.isolated(&script)).wait();
    let refusal = ended.refusal(3);
    assert!(refusal.contains("mine") && refusal.contains("Permission denied"), "{refusal}");
    assert!(refusal.contains("--store PATH"), "{refusal}");
}

#[test]
fn bdp_alone_is_about_ten_lines() {
    let bench = Bench::new();
    let ended = bench.run("");
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
    assert!((8..=13).contains(&ended.out.lines().count()), "{}", ended.out);
    for part in [
        "bdp demo",
        "bdp serve",
        "bdp measure ",
        "bdp fix ",
        "bdp lab ",
        "lab on this machine: ",
        "ICMP on this machine: ",
    ] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    assert!(!bench.store().exists());
}

/// Runs bdp with one of its outputs replaced.
fn with_outputs(bench: &Bench, line: &str, out: Stdio, err: Stdio) -> std::process::Output {
    bench.bdp(line).stdin(Stdio::null()).stdout(out).stderr(err).output().unwrap()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe that nobody reads any more.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn output_that_goes_nowhere_is_no_panic() {
    let bench = Bench::new();
    for line in ["", "lab list", "calc bdp --rate 1G --rtt 41ms", "--help", "lab check s3-loss --cases"] {
        let output = with_outputs(&bench, line, closed(), Stdio::piped());
        assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let output = with_outputs(&bench, line, full(), Stdio::piped());
        assert_eq!(output.status.code(), Some(3), "{line}");
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(complaint.lines().count() == 1 && complaint.contains("standard output"), "{complaint}");
    }
    // A complaint that nobody hears leaves the exit code.
    for err in [full(), closed()] {
        assert_eq!(with_outputs(&bench, "lab run nosuch", Stdio::piped(), err).status.code(), Some(2));
    }
}

#[test]
fn colour_is_for_terminals_and_can_be_refused() {
    if !machine::has("script", &["--version"]) {
        return;
    }
    let bench = Bench::new();
    let mut store = bdp_store::SqliteStore::open(bench.path("s.sqlite")).unwrap();
    let run = stored_run(&mut store);
    drop(store);
    let shown = |colourless: bool| {
        let mut command = std::process::Command::new("script");
        let shell = format!("{BDP} show {run} --store s.sqlite");
        command.args(["--quiet", "--return", "--command", &shell, "/dev/null"]);
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color").current_dir(bench.folder());
        if colourless {
            command.env("NO_COLOR", "1");
        }
        let ended = start(command).wait();
        assert_eq!(ended.code(), 0, "{}", ended.out);
        ended.out
    };
    assert!(shown(false).contains('\x1b'), "no colour on a terminal");
    assert!(!shown(true).contains('\x1b'), "colour in spite of NO_COLOR");
    let piped = bench.run(&format!("show {run} --store s.sqlite"));
    assert!(!piped.out.contains('\x1b'), "colour in a pipe");
}

/// A run with one record, of which something is worth a colour.
fn stored_run(store: &mut bdp_store::SqliteStore) -> String {
    use bdp_store::Store;
    let text = include_str!("../../../bdp-store/tests/it/record.json");
    let mut record: bdp_model::record::Record = serde_json::from_str(text).unwrap();
    record.valid = false;
    record.error = Some("it broke".to_owned());
    let new = bdp_store::NewRun {
        scenario: record.scenario.clone(),
        scenario_text: String::new(),
        plan_digest: String::new(),
        planned: 1,
        command: "bdp".to_owned(),
        bdp: "0".to_owned(),
        started_unix_ms: 0,
        ..Default::default()
    };
    let run = store.begin_run(&new).unwrap();
    store.append(&run, "key", &record, true).unwrap();
    run
}
