//! `bdp pcap --live`: what passes an interface, in network namespaces of the tests' own.

use crate::support::cable::{isolated, said};
use crate::support::nobody::{as_nobody, can_be_nobody};
use crate::support::schema::assert_in_schema;
use crate::support::{Bench, start};
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../../docs/pcap.schema.json");

/// A server on loopback. `capture NAME ARGUMENTS` begins a capture, `ended` waits for its end and keeps what it printed and its exit code
/// under that name.
const LOOPBACK: &str = r#"
    export XDG_DATA_HOME="$PWD"
    ip link set lo up
    "$BDP" serve --open >serve.out 2>serve.err & server=$!
    until grep -q listening serve.err; do kill -0 $server; sleep 0.02; done
    capture() {
        name=$1; shift; : >$name.err
        # A shell has what it starts in the background ignore interrupts.
        env --default-signal=INT "$BDP" pcap "$@" --json >$name.out 2>$name.err & live=$!
        until grep -q capturing $name.err; do kill -0 $live; sleep 0.02; done
    }
    ended() { code=0; wait $live || code=$?; echo $code >$name.code; }
    transfer() { "$BDP" measure 127.0.0.1 --forward -n 8M -b 100M --idle 0.1 --store none --json >measured.json; }
"#;

/// The document of a capture by its name, which keeps to its schema, and its exit code and standard error.
fn captured(bench: &Bench, name: &str) -> (Value, i32, String) {
    let (code, out, err) = said(bench, name);
    let document: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{name}: {e}: {out}{err}"));
    assert_in_schema(&document, SCHEMA);
    (document["captures"][0].clone(), code, err)
}

/// Bytes of IP and of payload, of the way of a capture's flows that carried most.
fn largest(capture: &Value) -> (u64, u64) {
    let flows = capture["flows"].as_array().unwrap();
    let ways = flows.iter().flat_map(|flow| flow["directions"].as_array().unwrap());
    let figures = ways.map(|way| (way["bytes"].as_u64().unwrap(), way["payload_bytes"].as_u64().unwrap()));
    figures.max_by_key(|&(_, payload)| payload).unwrap()
}

#[test]
fn transfer_over_loopback_is_captured_once_until_the_interrupt() {
    let bench = Bench::new();
    for (name, words) in [("lo", "interface lo"), ("any", "all interfaces")] {
        let script = format!(
            "{LOOPBACK}
            capture {name} --live {name} --write own.pcapng
            transfer
            kill -INT $live; ended
            name=read; code=0; \"$BDP\" pcap own.pcapng --json >read.out 2>read.err || code=$?; echo $code >read.code"
        );
        if isolated(&bench, &script).is_none() {
            return;
        }
        let (capture, code, err) = captured(&bench, name);
        assert_eq!((code, err.lines().count()), (0, 1), "{err}");
        assert_eq!(capture["name"], words);
        assert_eq!((&capture["broke"], &capture["dropped"]), (&Value::Null, &0.into()), "{capture:#}");
        let (bytes, payload) = largest(&capture);
        let sent = 8 << 20;
        assert!((sent..sent + 65_536).contains(&payload), "{payload}");
        // Each packet would be counted when it leaves and when it comes.
        assert!((payload..payload + payload / 5).contains(&bytes), "{bytes} of IP for {payload}");
        // What was written says the same.
        let (read, code, err) = captured(&bench, "read");
        assert_eq!(code, 0, "{err}");
        assert_eq!((&read["packets"], &read["flows"]), (&capture["packets"], &capture["flows"]));
    }
}

#[test]
fn a_measurement_captures_itself_and_explains_that() {
    let bench = Bench::new();
    let script = format!(
        "{LOOPBACK}
        name=text; code=0
        \"$BDP\" measure 127.0.0.1 --forward -n 8M -b 100M --idle 0.1 --store none --capture own.pcapng >text.out 2>text.err || code=$?
        echo $code >text.code
        name=read; code=0; \"$BDP\" pcap own.pcapng --json >read.out 2>read.err || code=$?; echo $code >read.code"
    );
    if isolated(&bench, &script).is_none() {
        return;
    }
    let (code, out, err) = said(&bench, "text");
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("all interfaces: ") && out.contains("limited by"), "{out}");
    let (read, _, _) = captured(&bench, "read");
    let (_, payload) = largest(&read);
    let sent = 8 << 20;
    assert!((sent..sent + 65_536).contains(&payload), "{payload}");
    // Nothing but the test: each flow has its port.
    for flow in read["flows"].as_array().unwrap() {
        let ends = ["a", "b"].map(|end| flow[end].as_str().unwrap().ends_with(":5201"));
        assert_eq!(ends.iter().filter(|&&is_server| is_server).count(), 1, "{flow:#}");
    }
}

#[test]
fn measurement_is_whole_where_its_capture_finds_a_full_disk() {
    let bench = Bench::new();
    let script = format!(
        "{LOOPBACK}
        name=full; code=0
        \"$BDP\" measure 127.0.0.1 --forward -n 8M -b 100M --idle 0.1 --capture /dev/full --json >full.out 2>full.err || code=$?
        echo $code >full.code
        name=kept; code=0; \"$BDP\" runs --json >kept.out 2>kept.err || code=$?; echo $code >kept.code"
    );
    if isolated(&bench, &script).is_none() {
        return;
    }
    let (code, out, err) = said(&bench, "full");
    assert_eq!(code, 3, "{err}");
    let words = "bdp: the capture is incomplete: write /dev/full: No space left on device";
    assert!(
        err.lines().any(|line| line.starts_with(words) && line.ends_with("; the measurement is complete")),
        "{err}"
    );
    let measured: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    let direction = &measured["runs"][0]["directions"][0];
    assert_eq!((&direction["bytes"], &direction["ended"]), (&json!(8 << 20), &json!("bytes")), "{measured}");
    let (code, out, err) = said(&bench, "kept");
    assert!(code == 0 && out.contains("127.0.0.1"), "{out}{err}");
}

#[test]
fn time_and_interface_end_a_capture_and_the_filter_counts() {
    let bench = Bench::new();
    let script = format!(
        "{LOOPBACK}
        capture time --live lo --for 300ms --write some.pcapng --filter 'udp port 9'
        transfer
        ended
        capture down --live lo --snap 96
        transfer
        ip link set lo down
        ended
        code=0; \"$BDP\" pcap --live lo >refused.out 2>refused.err || code=$?; echo $code >refused.code"
    );
    if isolated(&bench, &script).is_none() {
        return;
    }
    let (capture, code, err) = captured(&bench, "time");
    assert_eq!((code, err.lines().count()), (0, 1), "{err}");
    assert_eq!((&capture["flows"], &capture["filtered"]), (&Value::Array(Vec::new()), &capture["packets"]));
    // No packet meets the filter: the section, the interface and its statistics are left.
    let file = std::fs::read(bench.path("some.pcapng")).unwrap();
    assert!(bdp_pcap::blocks(&file).all(|block| !matches!(block.unwrap(), bdp_pcap::Block::Packet { .. })));

    let (capture, code, err) = captured(&bench, "down");
    assert_eq!((code, err.lines().count()), (3, 2), "{err}");
    assert!(err.contains("interface lo: the interface went down"), "{err}");
    assert_eq!(capture["broke"], "the interface went down");
    assert!(largest(&capture).1 >= 8 << 20, "{capture:#}");
    let (code, out, err) = said(&bench, "refused");
    assert_eq!((code, out.as_str(), err.lines().count()), (3, "", 1), "{err}");
    assert!(err.contains("'lo' is down") && err.contains("ip link set lo up"), "{err}");
}

#[test]
fn what_cannot_be_captured_is_one_line() {
    let bench = Bench::new();
    for (line, words) in [
        ("pcap --live nowhere0", "interface 'nowhere0' does not exist"),
        ("pcap file --live lo", "cannot be used with"),
        ("pcap file --for 3s", "cannot be used with"),
        ("pcap file --write other", "cannot be used with"),
        ("pcap --live lo --flow 1", "cannot be used with"),
        ("pcap --live lo --for 0", "captures nothing"),
        ("pcap --live lo --snap 10", "64 to 262144"),
        ("pcap --for 3s", "--live"),
    ] {
        let ended = bench.run(line);
        assert!(ended.refusal(2).contains(words), "{line}: {}", ended.err);
    }
    if !can_be_nobody() {
        return;
    }
    let copy = bench.open_to_all();
    let ended = start(as_nobody(&bench, &copy, "pcap --live lo")).wait();
    let line = ended.refusal(3);
    assert!(line.contains("CAP_NET_RAW") && line.contains("sudo bdp pcap --live lo"), "{line}");
}
