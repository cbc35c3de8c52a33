//! What goes wrong around a running lab: no permission, no device, a full disk, processes that are killed. Each is one
//! line with the cause and the way out; what was measured is kept, and nothing is left behind.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::Stdio;

use crate::support::machine::{self, Traces};
use crate::support::scenario::Scenario;
use crate::support::{BDP, Bench, Ended, every_case_is_valid, start};
use serde_json::Value;

/// Six cases side by side, of a second each.
const SIX: &str = "[sweep]\nlink.delay = [\"20ms\", \"21ms\", \"22ms\", \"23ms\", \"24ms\", \"25ms\"]";

/// A bench with `one.toml`, a single case, `six.toml`, and `long.toml`: six that don't end before they are ended.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("one.toml", Scenario::default().text());
    bench.write("six.toml", Scenario { more: SIX, ..Default::default() }.text());
    bench.write("long.toml", Scenario { flow: "duration = \"60s\"", more: SIX, ..Default::default() }.text());
    bench
}

/// The cases of a document, each attempt by itself.
fn cases(document: &Value) -> &Vec<Value> {
    document["cases"].as_array().unwrap()
}

/// An ordinary user, given by the arguments of `setpriv`.
const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";

#[test]
fn without_permission_for_the_device_the_way_out_is_named() {
    if !machine::can_isolate() {
        return;
    }
    let bench = bench();
    let copy = bench.open_to_all();
    let device = "mount -t tmpfs -o mode=755 none /dev/net; mknod -m 600 /dev/net/tun c 10 200";
    let script = format!("{device}; exec {NOBODY} {} lab run one.toml --store s.sqlite", copy.display());
    let ended = start(bench.isolated(&script)).wait();
    let refusal = ended.refusal(3);
    for part in ["open /dev/net/tun", "Permission denied", "run as root", "chmod 666 /dev/net/tun"] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    assert_nothing_entered(&bench);
    let ended = start(bench.isolated(&format!("{device}; exec {NOBODY} {}", copy.display()))).wait();
    assert_eq!(ended.code(), 0);
    assert!(ended.out.contains("lab on this machine: no: "), "{}", ended.out);
}

#[test]
fn without_a_device_the_way_out_is_named() {
    if !machine::can_isolate() {
        return;
    }
    let bench = bench();
    let script = |line| format!("mount -t tmpfs none /dev/net; exec $BDP {line}");
    let ended = start(bench.isolated(&script("lab run one.toml --store s.sqlite"))).wait();
    let refusal = ended.refusal(3);
    for part in ["open /dev/net/tun", "No such file", "modprobe tun", "--device /dev/net/tun"] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    assert_nothing_entered(&bench);
    let ended = start(bench.isolated(&script(""))).wait();
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
    assert!((8..=13).contains(&ended.out.lines().count()), "{}", ended.out);
    assert!(ended.out.contains("lab on this machine: no: "), "{}", ended.out);
}

#[test]
fn without_user_namespaces_the_way_out_is_named() {
    if !machine::can_isolate() || !machine::has("unshare", &["--user", "--map-root-user", "true"]) {
        return;
    }
    let bench = bench();
    // Root of a user namespace that allows no other in it, and then without any capability.
    let script = "exec unshare --user --map-root-user sh -ec 'echo 0 > /proc/sys/user/max_user_namespaces; \
                  exec setpriv --bounding-set=-all --inh-caps=-all $BDP lab run one.toml --store s.sqlite'";
    let ended = start(bench.isolated(script)).wait();
    let refusal = ended.refusal(3);
    for part in ["unshare user and network namespace", "run as root", "user.max_user_namespaces"] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    assert_nothing_entered(&bench);
}

/// A run that could not even begin is not there to be resumed.
fn assert_nothing_entered(bench: &Bench) {
    let ended = bench.run("runs --json --store s.sqlite");
    assert_eq!(ended.json()["runs"], Value::Array(Vec::new()));
}

#[test]
fn an_ordinary_user_with_user_namespaces_has_the_whole_lab() {
    if !machine::can_isolate() || !machine::has("setpriv", &["--reuid=65534", "unshare", "-Urn", "true"]) {
        return;
    }
    let Some(_lab) = machine::own_lab() else { return };
    let bench = bench();
    let copy = bench.open_to_all();
    bench.write(
        "user.toml",
        Scenario {
            flow: "window = \"8K\"\ncongestion = \"cubic\"",
            more: "[hosts.far]\nsysctls = { \"net.ipv4.tcp_sack\" = 0 }",
            ..Default::default()
        }
        .text(),
    );
    bench.write(
        "wrong.toml",
        Scenario { more: "[hosts.far]\nsysctls = { \"net.ipv4.no_such\" = 0 }", ..Default::default() }.text(),
    );
    // The device in place of the machine's own, and only here.
    let script = format!(
        "mount -t tmpfs -o mode=755 none /dev/net; mknod /dev/net/tun c 10 200; chmod 666 /dev/net/tun; \
         exec {NOBODY} {} lab run user.toml wrong.toml --json --store s.sqlite",
        copy.display()
    );
    let ended = start(bench.isolated(&script)).wait();
    let document = ended.json();
    let (failed, measured): (Vec<&Value>, Vec<&Value>) =
        cases(&document).iter().partition(|case| !case["error"].is_null());
    assert_eq!(ended.code(), 3, "{}", ended.err);
    let last = measured.last().unwrap();
    assert_eq!(last["environment"]["privilege"], "user namespace");
    assert_eq!(last["environment"]["sysctls"]["far"]["net.ipv4.tcp_sack"], "0");
    assert_eq!(last["window"]["on_the_wire_bytes"].as_u64().unwrap() / 1448, 5);
    // On a machine too busy for 40 ms it takes all its attempts; anything else would be the user's handicap.
    if last["valid"] != true {
        assert_eq!(measured.len(), 4, "{}", ended.err);
        assert!(!every_case_is_valid(5, &ended.err));
    }
    // A sysctl that isn't there is the scenario's mistake for every user, not a lack of permission.
    assert_eq!(failed.len(), 1);
    let error = failed[0]["error"].as_str().unwrap();
    assert!(error.contains("net.ipv4.no_such = 0: no such sysctl"), "{error}");
}

#[test]
fn limits_on_files_and_processes_are_named() {
    let prlimit = ["--nofile=64:64", "true"];
    if !machine::can_isolate() || !machine::has("prlimit", &prlimit) {
        return;
    }
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let copy = bench.open_to_all();
    let lab = "lab run six.toml --attempts 1 --json --store s.sqlite";
    let files = format!("exec prlimit --nofile=20:20 $BDP {lab}");
    // Root has no such limit; a user that no other test is does.
    let processes = format!(
        "mount -t tmpfs -o mode=755 none /dev/net; mknod /dev/net/tun c 10 200; chmod 666 /dev/net/tun; rm -f s.sqlite*; \
         exec setpriv --reuid=65533 --regid=65533 --clear-groups prlimit --nproc=12:12 {} {lab}",
        copy.display()
    );
    for (script, limit) in [(files, "'ulimit -n'"), (processes, "'ulimit -u'")] {
        let ended = start(bench.isolated(&script)).wait();
        assert_eq!(ended.code(), 3, "{}", ended.err);
        assert!(!ended.err.contains("internal error"), "{}", ended.err);
        let document = ended.json();
        let errors: Vec<&str> = cases(&document).iter().filter_map(|case| case["error"].as_str()).collect();
        assert!(!errors.is_empty() && errors.iter().all(|error| error.contains(limit)), "{errors:#?}");
    }
}

/// What was measured is on standard output, and what was stored can be read.
#[track_caller]
fn assert_measured_but_not_all_stored(ended: &Ended, stored: &Value) {
    assert_eq!(ended.code(), 3, "{}", ended.err);
    let document = ended.json();
    let measured: BTreeSet<String> = cases(&document).iter().map(|c| c["params"].to_string()).collect();
    assert_eq!(measured.len(), 6, "{}", ended.err);
    assert!(cases(&document).iter().all(|c| c["error"].is_null() && c["goodput_bps"].as_f64() > Some(0.0)));
    let run = &stored["runs"][0];
    assert_eq!(run["state"], "unfinished");
    assert!(run["cases_recorded"].as_u64().unwrap() < 6, "{run}");
    assert!(ended.last_line().contains("--resume' then continues"), "{}", ended.err);
}

#[test]
fn a_full_disk_loses_nothing_that_was_measured() {
    if !machine::can_isolate() {
        return;
    }
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    std::fs::create_dir(bench.path("small")).unwrap();
    // Room for the store and a few records; JSON goes to the pipe.
    let script = "mount -t tmpfs -o size=128k none small; code=0; \
                  $BDP lab run six.toml --attempts 1 --json --store small/s.sqlite || code=$?; \
                  $BDP runs --json --store small/s.sqlite > stored.json; exit $code";
    let ended = start(bench.isolated(script)).wait();
    let stored = std::fs::read_to_string(bench.path("stored.json")).unwrap();
    assert_measured_but_not_all_stored(&ended, &serde_json::from_str(&stored).unwrap());
    let error = ended.last_line();
    assert!(error.starts_with("bdp: no space left to write small/s.sqlite; free some"), "{error}");
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_not_the_end() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    // In blocks of 512 bytes, as POSIX has it: 75 KiB for a log that six records fill with more.
    let mut command = std::process::Command::new("sh");
    let script = format!("ulimit -f 150; exec {BDP} lab run six.toml --attempts 1 --json --store s.sqlite");
    command.args(["-c", &script]).current_dir(bench.folder()).env("XDG_DATA_HOME", bench.folder());
    let ended = start(command).wait();
    let stored = bench.run("runs --json --store s.sqlite").json();
    assert_measured_but_not_all_stored(&ended, &stored);
    let error = ended.last_line();
    assert!(error.contains("cannot write store s.sqlite") && error.contains("ulimit -f"), "{error}");
}

#[test]
fn a_standard_error_that_is_full_or_closed_stops_no_run() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = bench.bdp("lab run one.toml --attempts 1 --json");
    let output = command.stdin(Stdio::null()).stderr(full).output().unwrap();
    every_case_is_valid(output.status.code().unwrap(), &String::from_utf8_lossy(&output.stdout));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(cases(&document).len(), 1);
}

#[test]
fn a_standard_output_that_is_full_is_told_and_the_run_is_stored() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = bench.bdp("lab run one.toml --attempts 1");
    let output = command.stdin(Stdio::null()).stdout(full).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{complaint}");
    let last = complaint.lines().last().unwrap();
    assert!(last.contains("cannot write to standard output") && last.contains("'bdp show "), "{last}");
    let runs = bench.run("runs --json").json();
    assert_eq!(runs["runs"][0]["state"], "finished");
}

/// What a host has received when its idle round trip is measured, and when its flow runs.
const PROBES: u64 = 1;
const DATA: u64 = 64 << 10;

/// Starts a run and waits until so many hosts are there, one of which has received so many bytes.
fn running_with(bench: &Bench, line: &str, hosts: usize, bytes: u64) -> (crate::support::Running, Traces) {
    let mut running = start(bench.bdp(line));
    let mut traces = Traces::of(running.pid());
    running.wait_until("hosts are made", |running| {
        traces.look_again();
        machine::agents_of(running.pid()).len() >= hosts && traces.networks() >= hosts
    });
    running.wait_until("bytes arrive", |running| {
        bytes == 0 || machine::agents_of(running.pid()).into_iter().any(|a| machine::received_by(a) >= bytes)
    });
    (running, traces)
}

#[test]
fn a_host_that_is_killed_fails_its_case_and_no_other() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    // Side by side under one driver, and alone under one that spins.
    for (line, cases_in_all, hosts) in [("six.toml", 6, 12), ("one.toml --jobs 1", 1, 2)] {
        let line = format!("lab run {line} --attempts 1 --json");
        let (running, traces) = running_with(&bench, &line, hosts, DATA);
        let agents = machine::agents_of(running.pid());
        machine::signal("KILL", &agents[0].to_string());
        let ended = running.wait();
        assert_eq!(ended.code(), 3, "{}", ended.err);
        let document = ended.json();
        let failed: Vec<&Value> = cases(&document).iter().filter(|case| !case["error"].is_null()).collect();
        assert_eq!((cases(&document).len(), failed.len()), (cases_in_all, 1), "{}", ended.err);
        let error = failed[0]["error"].as_str().unwrap();
        assert!(error.contains("the agent of host '") && error.contains("run the case again"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        // It was noticed at once and not by a deadline.
        assert!(failed[0]["environment"]["took_ms"].as_u64().unwrap() < 5000);
        traces.assert_gone();
    }
}

#[test]
fn every_host_that_is_killed_while_it_is_made_fails_its_case() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    // With a window, so that hosts on which it is calibrated are among them.
    bench.write("six.toml", Scenario { flow: "window = \"8K\"", more: SIX, ..Default::default() }.text());
    let mut running = start(bench.bdp("lab run six.toml --attempts 1 --json --jobs 1"));
    let traces = Traces::of(running.pid());
    // The first that is made shows whether a lab can be built here; after it, the cases' own.
    let mut killed = BTreeSet::new();
    running.wait_until("three hosts are killed", |running| {
        if running.err().contains("about") {
            for child in machine::children_of(running.pid()) {
                if killed.insert(child) {
                    machine::signal("KILL", &child.to_string());
                    break;
                }
            }
        }
        killed.len() >= 3
    });
    let ended = running.wait();
    assert_eq!(ended.code(), 3, "{}", ended.err);
    let document = ended.json();
    let errors: Vec<&str> = cases(&document).iter().filter_map(|case| case["error"].as_str()).collect();
    assert_eq!(cases(&document).len(), 6, "{}", ended.err);
    assert!((1..=3).contains(&errors.len()), "{errors:?}");
    assert!(errors.iter().all(|e| e.contains("host '") && e.lines().count() == 1), "{errors:?}");
    traces.assert_gone();
}

#[test]
fn bdp_that_is_killed_leaves_nothing() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    // While hosts are made, while the idle round trip is measured, while flows run.
    for (line, hosts, bytes) in [
        ("lab run long.toml --store a.sqlite", 1, 0),
        ("lab run long.toml --store b.sqlite", 3, 0),
        ("lab run long.toml --store c.sqlite", 12, PROBES),
        ("lab run long.toml --store d.sqlite", 12, DATA),
        ("lab run long.toml --jobs 1 --store e.sqlite", 2, DATA),
    ] {
        let (running, mut traces) = running_with(&bench, line, hosts, bytes);
        traces.look_again();
        assert!(traces.networks() >= hosts);
        running.signal("KILL");
        let ended = running.wait();
        assert_eq!(ended.status.code(), None, "{line}: {}", ended.err);
        traces.assert_gone();
    }
}

#[test]
fn bdp_of_an_ordinary_user_that_is_killed_leaves_nothing() {
    if !machine::can_isolate() || !machine::has("setpriv", &["--reuid=65534", "unshare", "-Urn", "true"]) {
        return;
    }
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let copy = bench.open_to_all();
    let script = format!(
        "mount -t tmpfs -o mode=755 none /dev/net; mknod /dev/net/tun c 10 200; chmod 666 /dev/net/tun; \
         exec {NOBODY} {} lab run long.toml --store s.sqlite",
        copy.display()
    );
    // The same process from shell to bdp.
    let mut running = start(bench.isolated(&script));
    let mut traces = Traces::of(running.pid());
    running.wait_until("hosts are made", |running| {
        traces.look_again();
        machine::agents_of(running.pid()).len() >= 12 && traces.networks() >= 12
    });
    running.signal("KILL");
    running.wait();
    traces.assert_gone();
}

#[test]
fn bdp_that_is_asked_to_end_says_how_to_go_on_and_leaves_nothing() {
    use std::os::unix::process::ExitStatusExt;
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    for (signal, number, to_all) in
        [("INT", 2, true), ("INT", 2, false), ("TERM", 15, true), ("TERM", 15, false), ("HUP", 1, true)]
    {
        let (running, traces) = running_with(&bench, "lab run long.toml --store s.sqlite", 12, PROBES);
        if to_all {
            // As a terminal does for Ctrl-C: the hosts' processes get it too.
            running.signal_group(signal);
        } else {
            running.signal(signal);
        }
        let ended = running.wait();
        assert_eq!(ended.status.signal(), Some(number), "{}", ended.err);
        let last = ended.last_line();
        assert!(last.contains(&format!("ended by SIG{signal}")), "{}", ended.err);
        assert!(last.contains("'bdp lab run long.toml --store s.sqlite --resume' continues"), "{last}");
        assert!(!ended.err.contains("FAILED"), "a case was blamed for the end: {}", ended.err);
        traces.assert_gone();
    }
    // No case was recorded as failed by what ended the run: all are still to be run.
    let runs = bench.run("runs --json --store s.sqlite").json();
    assert!(runs["runs"].as_array().unwrap().iter().all(|run| run["cases_recorded"] == 0), "{runs}");
}

#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let mut command = std::process::Command::new("sh");
    let script = format!("trap '' HUP; exec {BDP} lab run one.toml --attempts 1 --store s.sqlite");
    command.args(["-c", &script]).current_dir(bench.folder());
    let mut running = start(command);
    running.wait_until("hosts are made", |running| machine::agents_of(running.pid()).len() >= 2);
    running.signal_group("HUP");
    running.wait().every_case_is_valid();
}

#[test]
fn a_binary_that_is_replaced_meanwhile_changes_nothing() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let copy = bench.open_to_all();
    let mut command = std::process::Command::new(&copy);
    command.args([
        "lab",
        "run",
        "six.toml",
        "--jobs",
        "2",
        "--attempts",
        "1",
        "--json",
        "--store",
        "s.sqlite",
    ]);
    let mut running = start({
        command.current_dir(bench.folder());
        command
    });
    running.wait_until("hosts are made", |running| machine::agents_of(running.pid()).len() >= 4);
    std::fs::remove_file(&copy).unwrap();
    std::fs::write(&copy, "#!/bin/sh\nexit 1\n").unwrap();
    let ended = running.wait();
    let document = ended.json();
    assert_eq!(cases(&document).len(), 6, "{}", ended.err);
    assert!(cases(&document).iter().all(|case| case["error"].is_null()), "{}", ended.err);
}

#[test]
fn a_machine_that_cannot_keep_up_makes_every_attempt_invalid() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let mut running = start(bench.bdp("lab run one.toml --attempts 2 --json"));
    let stutter = machine::stutter(running.pid());
    running
        .wait_until("the first attempt is INVALID", |running| running.err().contains("INVALID (attempt 1)"));
    let ended = running.wait();
    stutter.join().unwrap();
    assert_eq!(ended.code(), 5, "{}", ended.err);
    let document = ended.json();
    let attempts = cases(&document);
    assert_eq!(attempts.len(), 2);
    for attempt in attempts {
        assert_eq!(attempt["valid"], false);
        assert!(attempt["goodput_bps"].as_f64() > Some(0.0), "it ran, and says what it would have been");
        let broken = attempt["fidelity"]["broken"].to_string();
        // Which bound it breaks first is chance: both are of the time that it could not keep.
        let late = broken.contains("beyond the links") || broken.contains("above the configured");
        assert!(late, "{broken}");
    }
    // The second came a second after the first had ended, and differs in its draws.
    let moment = |attempt: &Value, key: &str| attempt["environment"][key].as_u64().unwrap();
    let first_end = moment(&attempts[0], "started_unix_ms") + moment(&attempts[0], "took_ms");
    assert!(moment(&attempts[1], "started_unix_ms") >= first_end + 900);
    let summary = &document["summary"][0];
    assert_eq!((&summary["n_valid"], &summary["n_invalid"]), (&0.into(), &2.into()));
    assert_eq!(summary["goodput_median_bps"], Value::Null);
}
