//! What an ordinary user has, and a container that was given nothing: no capability, none to be got, no home.

use std::process::Command;

use crate::support::machine::{can_isolate, is_installed};
use crate::support::nobody::{as_nobody, can_be_nobody};
use crate::support::serving::free_port;
use crate::support::{Bench, Running, start};
use serde_json::Value;

fn json(ran: Running) -> Value {
    let ended = ran.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    ended.json()
}

#[test]
fn icmp_without_permission_is_the_environments_refusal() {
    if !can_be_nobody() || !is_installed("unshare") {
        return;
    }
    let bench = Bench::new();
    let copy = bench.open_to_all();
    // Nobody's group may ping in a network namespace that is new.
    let nobody = as_nobody(&bench, &copy, "ping 127.0.0.1 --icmp -c 1");
    let mut command = Command::new("unshare");
    command.arg("--net").arg(nobody.get_program()).args(nobody.get_args()).current_dir(bench.folder());
    let ended = start(command).wait();
    let line = ended.refusal(3);
    assert!(line.contains("run as root") && line.contains("ping_group_range"), "{line}");
}

#[test]
fn nobody_serves_and_measures_with_no_capability() {
    if !can_be_nobody() {
        return;
    }
    let bench = Bench::new();
    let copy = bench.open_to_all();
    let (port, iperf2) = (free_port(), free_port());
    let mut server =
        start(as_nobody(&bench, &copy, &format!("serve --listen {port} --iperf2-port {iperf2}")));
    server.wait_until("it listens", |p| p.err().contains("iperf2's clients"));
    let run = |line: &str| json(start(as_nobody(&bench, &copy, line)));

    let common = format!("127.0.0.1:{port} -t 0.3 --idle 0.1 --store store.sqlite --json");
    let tcp = run(&format!("measure {common}"));
    for direction in tcp["directions"].as_array().unwrap() {
        assert!(direction["goodput_bps"].as_f64().unwrap() > 0.0, "{direction}");
        assert!(direction["each_way_ns"]["loaded"]["there"]["p50"].is_i64(), "{direction}");
    }
    assert_eq!(tcp["directions"].as_array().unwrap().len(), 2);
    let udp = run(&format!("measure {common} -u -b 8M"));
    for direction in udp["directions"].as_array().unwrap() {
        assert!(direction["udp"]["received"].as_u64().unwrap() > 0, "{direction}");
    }
    assert_answered(&run(&format!("ping 127.0.0.1:{port} -c 3 -i 10ms --json")));
    server.signal("INT");
    let ended = server.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

/// Each of three probes.
fn assert_answered(ping: &Value) {
    assert_eq!(ping["probes"]["received"], 3, "{ping:#}");
}

/// As a service of systemd has it, or a container with `--read-only`.
#[test]
fn a_server_runs_where_nothing_can_be_written() {
    if !can_be_nobody() || !can_isolate() {
        return;
    }
    let bench = Bench::new();
    let copy = bench.open_to_all();
    let (port, iperf2) = (free_port(), free_port());
    let nobody = as_nobody(&bench, &copy, &format!("serve --listen {port} --iperf2-port {iperf2}"));
    let mut words = vec![nobody.get_program()];
    words.extend(nobody.get_args());
    let line: Vec<String> = words.iter().map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut server = start(bench.isolated(&format!(
        "mount --make-rprivate /
         for place in $(cut -d' ' -f2 /proc/mounts | sort -u); do mount -o remount,bind,ro \"$place\" 2>/dev/null || true; done
         for file in ./probe /tmp/probe /dev/shm/probe; do ! touch $file 2>/dev/null || {{ echo \"$file was written\" >&2; exit 9; }}; done
         exec {}",
        line.join(" ")
    )));
    server.wait_until("it listens", |p| p.err().contains("iperf2's clients"));
    let brief = "-t 0.3 --json";
    for line in [
        format!("measure 127.0.0.1:{port} --idle 0.1 {brief}"),
        format!("measure 127.0.0.1:{port} --idle 0.1 -u -b 8M {brief}"),
        format!("measure 127.0.0.1:{port} --iperf3 --forward -t 1 --json"),
        format!("measure 127.0.0.1:{port} --iperf3 -R -u -b 8M -t 1 --json"),
        format!("measure 127.0.0.1:{iperf2} --iperf2 {brief}"),
        format!("measure 127.0.0.1:{iperf2} --iperf2 -u -b 8M {brief}"),
    ] {
        let ended = bench.run(&line);
        assert_eq!(ended.code(), 0, "{line}: {}{}", ended.err, server.err());
        for direction in ended.json()["directions"].as_array().unwrap() {
            assert!(direction["goodput_bps"].as_f64().unwrap() > 0.0, "{line}: {direction}");
        }
    }
    let ping = bench.run(&format!("ping 127.0.0.1:{port} -c 3 -i 10ms --json"));
    assert_answered(&ping.json());
    server.signal("INT");
    let ended = server.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
}
