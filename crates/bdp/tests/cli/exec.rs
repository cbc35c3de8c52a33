//! `bdp lab exec`: programs of the user's on hosts of an emulated path, how they end, and that nothing stays.

use std::fs;

use crate::support::guests::guests_boot;
use crate::support::machine::{Traces, agents_of, is_installed, shared_lab};
use crate::support::{Bench, Ended, start};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/lab-run.schema.json");

/// Two hosts without a flow.
const PATH: &str =
    "title = \"a path\"\n[[link]]\nbetween = [\"client\", \"server\"]\nrate = \"20M\"\ndelay = \"10ms\"\n";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("path.toml", PATH);
    bench
}

fn exec(bench: &Bench, line: &str) -> Ended {
    start(bench.shell(&format!("bdp lab exec path.toml {line}"))).wait()
}

#[test]
fn exit_codes_are_those_of_the_program() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    for (line, code) in [
        ("-q -- true", 0),
        ("-q -- sh -c 'exit 7'", 7),
        ("-q -- sh -c 'kill -KILL $$'", 137),
        ("-q -- no-such-program", 127),
        ("-q -- /etc", 126),
        ("-q --time-limit 0.2 -- sleep 100", 124),
        ("-q --on 'client=exit 0' --on 'server=exit 5'", 5),
        // Its service failed before it could start.
        ("-q --serve 'server=exit 9' -- true", 9),
    ] {
        let ended = exec(&bench, line);
        assert_eq!(ended.code(), code, "{line}: {}", ended.err);
    }
    let ended = exec(&bench, "-q -- no-such-program");
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert!(ended.err.contains("start 'no-such-program' on host 'client'"), "{}", ended.err);
}

#[test]
fn what_is_asked_for_wrongly_is_one_line_and_code_125() {
    let bench = bench();
    bench.write("two.toml", format!("{PATH}[sweep]\nlink.delay = [\"1ms\", \"2ms\"]\n"));
    for (line, words) in [
        (
            "lab exec path.toml --host nobody -- true",
            "path.toml has no host 'nobody'; its hosts: client, server",
        ),
        ("lab exec path.toml", "no command given"),
        ("lab exec path.toml --host client", "the command is missing"),
        ("lab exec path.toml --on server", "HOST=LINE"),
        ("lab exec two.toml -- true", "2 cases, but programs run on one; choose one with --filter"),
        ("lab exec nosuch -- true", "no scenario 'nosuch'"),
        ("lab shell path.toml --host nobody", "no host 'nobody'"),
    ] {
        let ended = start(bench.bdp(line)).wait();
        assert!(ended.refusal(125).contains(words), "{line}: {}", ended.err);
    }
}

#[test]
fn a_program_sees_its_host_and_nothing_else() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    let script = "hostname; echo $BDP_HOST $BDP_ADDRESS $BDP_ADDRESS_server; grep -c server /etc/hosts; \
        ls /proc | grep -c '^[0-9]'; grep -c link0 /proc/net/dev; cat";
    let ended = exec(&bench, &format!("-q -- sh -c '{script}' < path.toml"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let mut lines = ended.out.lines();
    assert_eq!(lines.next(), Some("client"));
    assert_eq!(lines.next(), Some("client 198.18.0.1 198.18.0.2"));
    assert_eq!(lines.next(), Some("1"), "the name of the other host");
    // The first of its namespace, the shell, ls and grep.
    assert!(lines.next().unwrap().parse::<u32>().unwrap() <= 5, "{}", ended.out);
    assert_eq!(lines.next(), Some("1"), "its device");
    assert_eq!(lines.collect::<Vec<_>>().join("\n") + "\n", PATH, "standard input");
}

#[test]
fn a_client_reaches_a_service_and_the_run_is_kept() {
    if !is_installed("iperf3") {
        return;
    }
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    let line =
        "--json --capture caps --serve 'server=iperf3 -s' --host client -- iperf3 -c server -n 200K -J";
    let ended = exec(&bench, line);
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let complaints: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(complaints, Vec::<String>::new());
    let record = &document["cases"][0];
    assert_eq!(record["error"], Value::Null);
    let programs = record["programs"].as_array().unwrap();
    assert_eq!(programs[0]["end"], "stopped");
    assert_eq!((&programs[1]["end"], &programs[1]["exit_code"]), (&"exited".into(), &0.into()));
    assert_eq!(programs[1]["command"][2], "server");
    let forward = &record["fidelity"]["directions"][0];
    assert!(forward["bytes_out"].as_u64().unwrap() > 100_000, "{forward}");
    assert_eq!(forward["conserved"], true, "{forward}");
    let captured = record["captures"][0]["path"].as_str().unwrap();
    assert!(fs::metadata(bench.path(captured)).unwrap().len() > 100_000);
    // It is listed and shown; lab runs and exec runs don't mix.
    let shown = bench.run("show");
    assert_eq!(shown.code(), 0, "{}", shown.err);
    for part in ["exec  path.toml", "iperf3 -s", "stopped", "exit 0", "client->server"] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    assert!(bench.run("runs").out.contains("exec"));
    let page = bench.run("report -o page.html");
    assert_eq!(page.code(), 0, "{}", page.err);
}

#[test]
fn what_a_program_leaves_ends_with_the_run() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    let ended = exec(&bench, "-q -- sh -c 'setsid sleep 98701 & setsid sh -c \"sleep 98701\" & true'");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert!(!sleeps("98701"));
    // Killed without a chance to do anything.
    let mut running = start(bench.bdp("lab exec path.toml -q -- sh -c sleep${IFS}98702&sleep${IFS}98702"));
    running.wait_until("it sleeps", |_| sleeps("98702"));
    let traces = Traces::of(running.pid());
    assert!(!agents_of(running.pid()).is_empty());
    running.signal("KILL");
    running.wait();
    traces.assert_gone();
    crate::support::wait_for("its programs end", || !sleeps("98702"));
}

#[test]
fn a_signal_goes_to_the_program() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    bench.write("trap.sh", "trap 'echo caught; exit 9' TERM\necho ready\nwhile :; do sleep 0.05; done\n");
    let mut running = start(bench.bdp("lab exec path.toml -q -- sh trap.sh"));
    running.wait_until("it is ready", |p| p.out().contains("ready"));
    running.signal("TERM");
    let ended = running.wait();
    assert_eq!((ended.code(), ended.out.as_str()), (9, "ready\ncaught\n"), "{}", ended.err);
}

#[test]
fn by_the_virtual_clock_an_hour_takes_no_time_and_codes_are_the_same() {
    let bench = bench();
    if !guests_boot(&bench) {
        return;
    }
    for (line, code, out) in [
        ("-- sh -c 'sleep 3600; hostname; exit 7'", 7, "client\n"),
        ("-- no-such-program", 127, ""),
        ("--time-limit 10s -- sleep 3600", 124, ""),
        ("--serve 'server=exit 9' -- true", 9, ""),
        // What it leaves ends with it; its files are this machine's.
        ("-- sh -c 'setsid sleep 100000 & cat path.toml > copy.toml; grep -c delay copy.toml'", 0, "1\n"),
        ("--on 'client=echo one' --on 'server=exit 5'", 5, "client: one\n"),
    ] {
        let ended = exec(&bench, &format!("-q --clock virtual {line}"));
        assert_eq!((ended.code(), ended.out.as_str()), (code, out), "{line}: {}", ended.err);
    }
    assert_eq!(fs::read_to_string(bench.path("copy.toml")).unwrap(), PATH);
}

#[test]
fn by_the_virtual_clock_a_program_that_prints_without_end_is_ended() {
    let bench = bench();
    if !guests_boot(&bench) {
        return;
    }
    let ended = exec(&bench, "--clock virtual -q -- dd if=/dev/zero bs=1M status=none");
    assert_eq!(ended.code(), 137, "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert!(ended.err.contains("may write at most 64 MiB"), "{}", ended.err);
    assert!(ended.out.len() <= 64 << 20 && ended.out.starts_with("\0\0"), "{} bytes", ended.out.len());
}

#[test]
fn by_the_virtual_clock_a_program_prints_the_same_bytes() {
    let bench = bench();
    if !guests_boot(&bench) || !is_installed("iperf3") {
        return;
    }
    let line = "--clock virtual --serve 'server=iperf3 -s' --host client -- iperf3 -c server -t 3 -J";
    let ended = [exec(&bench, line), exec(&bench, line)];
    for one in &ended {
        assert_eq!(one.code(), 0, "{}", one.err);
        // iperf3 asks for the time in a loop, and no packet is late for it.
        assert!(one.err.contains("virtual clock") && one.err.contains("fidelity OK"), "{}", one.err);
    }
    assert_eq!(ended[0].out, ended[1].out);
    let rate = ended[0].json()["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    // Of 20 Mbit/s with 38 + 52 bytes around 1448; from the first byte to the last, a queue that is still to be emptied.
    assert!((17.5e6..18.83e6).contains(&rate), "{rate}");
}

#[test]
fn a_program_that_stops_the_virtual_clock_is_one_line() {
    let bench = bench();
    if !guests_boot(&bench) {
        return;
    }
    let mut command = bench.shell("bdp lab exec path.toml -q --clock virtual -- sh -c 'while :; do :; done'");
    command.env("BDP_GUEST_PATIENCE", "0.5");
    let ended = start(command).wait();
    let line = ended.refusal(125);
    assert!(line.contains("did not respond") && line.contains("--clock real"), "{line}");
}

/// Whether any process sleeps for so long.
fn sleeps(seconds: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| line == format!("sleep\0{seconds}\0").as_bytes())
    })
}

/// A rate that nobody knows the path to carry is sent, and lowered after the first second where that lost many.
#[test]
fn datagrams_back_off_where_their_rate_harms() {
    let bench = bench();
    if !guests_boot(&bench) {
        return;
    }
    let measured = |options: &str| {
        let client = format!("bdp measure server -u -b 50M --forward -t 2 --idle 0.2 --store none {options}");
        let ended = exec(
            &bench,
            &format!("--clock virtual -q --serve 'server=bdp serve --open' --host client -- {client}"),
        );
        assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
        ended
    };
    let document = crate::support::the_measurement(measured("--json").json());
    let caveats = document["caveats"].as_array().unwrap();
    let backed_off = caveats.iter().find(|caveat| caveat["kind"] == "backed_off").unwrap();
    assert_eq!(backed_off["asked_bps"], 50e6, "{backed_off}");
    let udp = &document["directions"][0]["udp"];
    let (rate, lost) = (backed_off["rate_bps"].as_f64().unwrap(), udp["loss_ratio"].as_f64().unwrap());
    assert!((15e6..20e6).contains(&rate) && lost < 0.05, "{backed_off} {udp}");
    let flooded = crate::support::the_measurement(measured("--flood --json").json());
    assert!(flooded["directions"][0]["udp"]["loss_ratio"].as_f64().unwrap() > 0.3, "{flooded:#}");
    assert!(!flooded["caveats"].to_string().contains("backed_off"), "{flooded:#}");
    let text = measured("").out;
    assert!(text.lines().take(5).any(|line| line.contains("backed off from 50 Mbit/s")), "{text}");
}

/// Five seconds of silence were what a script waited for nothing.
#[test]
fn server_of_iperf3_is_recognised_within_a_second() {
    let bench = bench();
    if !guests_boot(&bench) || !is_installed("iperf3") {
        return;
    }
    bench.write(
        "timed.sh",
        "a=$(date +%s%N); bdp measure server --forward -t 1 --idle 0 --store none; b=$(date +%s%N); echo took $(((b - a) / 1000000))",
    );
    let ended = exec(&bench, "--clock virtual -q --serve 'server=iperf3 -s' --host client -- sh timed.sh");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert!(ended.out.contains("recognised as one of iperf3"), "{}", ended.out);
    let took = ended.out.lines().find_map(|line| line.strip_prefix("took ")).unwrap();
    // A second of it is the test.
    assert!(took.parse::<u64>().unwrap() < 2_000, "{}", ended.out);
}
