//! `bdp tune show`: the catalogue beside kernels as they start, and settings that followed bad advice.

use std::process::Command;

use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::inside::only_in_guest;
use crate::support::machine::{can_isolate, is_installed};
use crate::support::nobody::{as_nobody, can_be_nobody};
use crate::support::schema::assert_in_schema;
use crate::support::{Bench, Ended, start};

const SCHEMA: &str = include_str!("../../../../docs/tune-show.schema.json");

fn document(ended: &Ended) -> Value {
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    assert_in_schema(&document, SCHEMA);
    document
}

fn settings(document: &Value) -> &Vec<Value> {
    document["settings"].as_array().unwrap()
}

fn setting<'a>(document: &'a Value, name: &str) -> &'a Value {
    settings(document).iter().find(|setting| setting["name"] == name).unwrap()
}

/// bdp in a network namespace that is new, after a line of the shell.
fn in_new_namespace(bench: &Bench, line: &str) -> Ended {
    let script = format!("{line}; exec \"$BDP\" tune show --json --device lo");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--mount", "--", "sh", "-ec", &script]);
    command.env("BDP", crate::support::BDP).env("XDG_DATA_HOME", bench.folder());
    start(command).wait()
}

/// Fails with each setting whose value is not the default that the catalogue has for this kernel.
#[track_caller]
fn assert_fresh(document: &Value, is_fresh: impl Fn(&Value) -> bool) -> usize {
    let compared: Vec<&Value> =
        settings(document).iter().filter(|s| !s["relation"].is_null() && is_fresh(s)).collect();
    let wrong: Vec<String> = compared
        .iter()
        .filter(|setting| setting["relation"] != "equal")
        .map(|s| format!("{} is {}, not {}", s["name"], s["value"], s["default"]["value"]))
        .collect();
    assert_eq!(wrong, Vec::<String>::new(), "on {}", document["kernel"]);
    compared.len()
}

#[test]
fn this_machine_is_shown_with_every_setting_of_the_catalogue() {
    let bench = Bench::new();
    let document = document(&bench.run("tune show --json --device lo"));
    assert!(settings(&document).len() >= 50);
    assert_eq!(document["device"]["name"], "lo");
    assert_eq!(document["device"]["tx_queues"], 1);
    let rmem = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
    assert_eq!(setting(&document, "net.ipv4.tcp_rmem")["value"], rmem.trim().replace('\t', " "));
    // What exists is read, and what is not there has a reason.
    for setting in settings(&document) {
        let file = format!("/proc/sys/{}", setting["name"].as_str().unwrap().replace('.', "/"));
        let is_there = std::fs::read_to_string(&file).is_ok();
        assert_eq!(setting["value"].is_string(), is_there, "{setting}");
        assert_eq!(setting["unreadable"].is_null(), is_there, "{setting}");
    }
}

#[test]
fn a_new_namespace_of_this_machine_has_the_defaults_of_the_catalogue() {
    if !can_isolate() {
        return;
    }
    let bench = Bench::new();
    let document = document(&in_new_namespace(&bench, "true"));
    assert_eq!(document["first_namespace"], false);
    let inherited = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_congestion_control"];
    let compared = assert_fresh(&document, |setting| {
        setting["scope"] == "namespace" && !inherited.iter().any(|name| setting["name"] == *name)
    });
    assert!(compared >= 20, "{compared}");
    let backlog = setting(&document, "net.core.netdev_max_backlog");
    assert_eq!((&backlog["value"], &backlog["unreadable"]), (&Value::Null, &"not_of_namespace".into()));
    assert_eq!(setting(&document, "net.ipv4.tcp_tw_recycle")["unreadable"], "not_of_kernel");
}

#[test]
fn advice_that_was_followed_is_named_with_its_kernel() {
    if !can_isolate() {
        return;
    }
    let bench = Bench::new();
    let sysctls = "cd /proc/sys/net/ipv4; echo 0 > tcp_timestamps; echo 1 > tcp_fack; echo '4096 16777216 16777216' > tcp_rmem";
    let text = in_new_namespace(&bench, &format!("{sysctls}; \"$BDP\" tune show --device lo >&2")).err;
    for wanted in [
        "tcp_timestamps = 0, as Mellanox sysctl tuning and blog advice have it: harmful",
        "tcp_fack = 1, as blog advice has it: stale since Linux 4.15",
        "tcp_rmem = 4096 16777216 16777216, as blog advice has it: harmful",
        "of the whole machine, not shown in this network namespace: tcp_mem",
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(wanted), "{wanted}: {text}");
    }
    let document = document(&in_new_namespace(&bench, sysctls));
    let timestamps = setting(&document, "net.ipv4.tcp_timestamps");
    assert_eq!((&timestamps["relation"], &timestamps["here"]), (&"below".into(), &"off".into()));
    let followed =
        timestamps["advice"].as_array().unwrap().iter().filter(|advice| advice["followed"] == true);
    assert!(followed.count() == 2, "{timestamps}");
}

#[test]
fn absurd_values_are_warned_of_on_the_host_and_in_a_file() {
    if !can_isolate() {
        return;
    }
    let bench = Bench::new();
    let values = [
        ("tcp_syncookies", "0", "a flood of SYNs"),
        ("tcp_rmem", "4096 131072 1073741824", "one connection may hold 1 GiB"),
        ("tcp_retries2", "2", "given up after 2 timeouts in a row, which is about 1.4 s"),
        ("tcp_fin_timeout", "1", "later than 1 s after a program closed"),
    ];
    let sysctls: String = values
        .iter()
        .map(|(name, value, _)| format!("echo '{value}' > /proc/sys/net/ipv4/{name}; "))
        .collect();
    let text = in_new_namespace(&bench, &format!("{sysctls} \"$BDP\" tune show --device lo >&2")).err;
    let lines: String =
        values.iter().map(|(name, value, _)| format!("net.ipv4.{name} = {value}\n")).collect();
    bench.write("99-tune.conf", format!("# all of it\n{lines}vm.swappiness = 1\n"));
    let of_file = bench.run("tune show --file 99-tune.conf");
    assert_eq!(of_file.code(), 0, "{}", of_file.err);
    for text in [&text, &of_file.out] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (name, value, words) in values {
            assert!(flat.contains(&format!("warning {name} = {value}:")) && flat.contains(words), "{text}");
        }
    }
    assert!(
        of_file.out.contains("unread  not in the catalogue of settings: vm.swappiness"),
        "{}",
        of_file.out
    );
    let document = document(&bench.run("tune show --file 99-tune.conf --json"));
    assert_eq!(document["file"]["unknown"], serde_json::json!(["vm.swappiness"]));
    assert_eq!(settings(&document).len(), 4);
    assert!(settings(&document).iter().all(|setting| setting["warning"].is_string()), "{document}");
    assert!(bench.run("tune show --file nothing.conf").refusal(2).contains("cannot read 'nothing.conf'"));
}

/// The first namespace of a kernel that has just started, with 512 MiB. Where a guest begins, bdp writes three settings that would
/// depend on the memory that the kernel found.
#[test]
fn a_kernel_that_has_just_started_has_the_defaults_of_the_catalogue() {
    only_in_guest(|| {
        let bench = Bench::new();
        let document = document(&bench.run("tune show --json --device lo"));
        assert_eq!(document["first_namespace"], true);
        let written = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem"];
        let compared =
            assert_fresh(&document, |setting| !written.iter().any(|name| setting["name"] == *name));
        assert!(compared >= 40, "{compared}");
        // Of 512 MiB the kernel would have made less.
        for name in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_mem"] {
            let setting = setting(&document, name);
            assert_eq!(
                (&setting["default"]["basis"], &setting["relation"]),
                (&"memory".into(), &"above".into())
            );
        }
        assert_eq!(setting(&document, "net.core.rmem_max")["value"], "212992");
    });
}

/// A host of the lab in a guest of 2 GiB, of whose settings the lab itself sets one.
#[test]
fn a_host_of_a_guest_has_the_defaults_of_its_memory() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let line = "bdp lab exec s3-30k --clock virtual --quiet --store none --host near -- bdp tune show --json --device lo";
    let document = document(&start(bench.shell(line)).wait());
    let compared = assert_fresh(&document, |setting| setting["name"] != "net.ipv4.tcp_no_metrics_save");
    assert!(compared >= 30, "{compared}");
    let rmem = setting(&document, "net.ipv4.tcp_rmem");
    assert_eq!(rmem["default"]["value"], "4096 131072 6291456");
    assert_eq!(setting(&document, "net.ipv4.tcp_no_metrics_save")["relation"], "above");
    assert_eq!(setting(&document, "net.core.rmem_max")["unreadable"], "not_of_namespace");
}

#[test]
fn nobody_sees_what_root_sees_and_a_read_only_proc_is_no_obstacle() {
    if !can_be_nobody() || !is_installed("unshare") {
        return;
    }
    let bench = Bench::new();
    let copy = bench.open_to_all();
    let as_root = document(&bench.run("tune show --json --device lo"));
    let nobody = document(&start(as_nobody(&bench, &copy, "tune show --json --device lo")).wait());
    assert_eq!(nobody["settings"], as_root["settings"]);
    assert_eq!(nobody["device"], as_root["device"]);
    let script = "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec \"$BDP\" tune show --json --device lo";
    let read_only = document(&start(bench.isolated(script)).wait());
    assert_eq!(read_only["settings"], as_root["settings"]);
}

#[test]
fn names_are_taken_in_each_of_their_forms_and_wrong_ones_are_refused() {
    let bench = Bench::new();
    for name in ["tcp_rmem", "net.ipv4.tcp_rmem", "net/ipv4/tcp_rmem"] {
        let text = bench.run(&format!("tune show {name} --device lo"));
        assert_eq!(text.code(), 0, "{}", text.err);
        assert!(text.out.starts_with("net.ipv4.tcp_rmem = "), "{}", text.out);
    }
    let document = document(&bench.run("tune show somaxconn tcp_sack --json --device lo"));
    let names: Vec<&Value> = settings(&document).iter().map(|setting| &setting["name"]).collect();
    assert_eq!(names, ["net.core.somaxconn", "net.ipv4.tcp_sack"]);
    for (line, refusal) in [
        ("tune show rmem", "unknown setting 'rmem'; similar: net.ipv4.tcp_rmem"),
        ("tune show nonsense", "unknown setting 'nonsense'; 'bdp help settings' lists all"),
        ("tune show --device nosuch0", "no network device 'nosuch0'"),
        ("tune show --all tcp_rmem", "--all"),
    ] {
        let ended = bench.run(line);
        assert!(ended.refusal(2).contains(refusal), "{line}: {}", ended.err);
    }
}
