//! Two machines, each a network namespace with a cable between: what loopback can't show.

use crate::support::Bench;
use crate::support::cable::{lay, said};

/// One line and this exit code.
#[track_caller]
fn assert_refused(bench: &Bench, name: &str, code: i32, word: &str) {
    let (found, out, err) = said(bench, name);
    assert_eq!((found, out.as_str(), err.lines().count()), (code, "", 1), "{name}: {err}");
    assert!(err.starts_with("bdp: ") && err.contains(word), "{name}: {err}");
}

#[test]
fn both_ends_are_shown_and_strangers_need_the_token() {
    let bench = Bench::new();
    let brief = "-t 0.3 --idle 0.2";
    let laid = lay(
        &bench,
        &format!(
            "serve --token abc
             far ip route change 10.77.0.0/24 dev far0 mtu 1300
             measure none 10.77.0.2 {brief}
             measure wrong 10.77.0.2 {brief} --token abd
             measure four 10.77.0.2 {brief} --token abc --json
             measure six fd77::2 {brief} --token abc --json
             measure text 10.77.0.2 {brief} --token abc -v
             kill $server; wait $server || true
             serve --open
             measure open 10.77.0.2 {brief} --forward --json
             measure long 10.77.0.2 -t 31"
        ),
    );
    if laid.is_none() {
        return;
    }
    assert_refused(&bench, "none", 3, "a token is required");
    assert_refused(&bench, "wrong", 3, "wrong token");
    assert_refused(&bench, "long", 2, "--max-duration");
    for (name, mtu_from, far) in
        [("four", 1300, "10.77.0.2"), ("six", 1500, "fd77::2"), ("open", 1300, "10.77.0.2")]
    {
        let (code, out, err) = said(&bench, name);
        assert_eq!(code, 0, "{name}: {err}");
        let document = crate::support::the_measurement(serde_json::from_str(&out).unwrap());
        let at = |pointer: &str| document.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!((at("/path/mtu_to"), at("/path/mtu_from")), (1500.into(), mtu_from.into()), "{name}");
        assert_eq!(
            (at("/near/device/name"), at("/far/device/name")),
            ("near0".into(), "far0".into()),
            "{name}"
        );
        assert_eq!(at("/far/address"), far, "{name}");
        assert!(at("/far/kernel").is_string() && at("/near/congestion_control").is_string(), "{name}");
    }
    let (_, text, _) = said(&bench, "text");
    for part in ["near     near0", "far      far0", "path MTU 1500/1300", "MTU 1500, Linux "] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn paths_that_lead_nowhere_and_cables_that_are_pulled_end_in_a_line() {
    let bench = Bench::new();
    let laid = lay(
        &bench,
        "serve --token abc
         ip route add blackhole 198.51.100.0/24
         ip route add prohibit 203.0.113.0/24
         measure routeless 192.0.2.1
         measure blackhole 198.51.100.1
         measure prohibited 203.0.113.1
         measure absent 10.77.0.77
         measure port 10.77.0.2:9999
         (sleep 1; far ip link set far0 down) &
         measure pulled 10.77.0.2 --token abc -t 40 --idle 0.2
         far ip link set far0 up
         measure after 10.77.0.2 --token abc -t 0.2 --idle 0.1 --forward",
    );
    if laid.is_none() {
        return;
    }
    for (name, word) in [
        ("routeless", "no route"),
        ("blackhole", "no route"),
        ("prohibited", "no route"),
        // The kernel gives up to ask for its link address when we give up to connect.
        (
            "absent",
            if said(&bench, "absent").2.contains("no route") { "no route" } else { "no answer within 3 s" },
        ),
        ("port", "bdp serve"),
    ] {
        assert_refused(&bench, name, 3, word);
    }
    // What had come by then is printed.
    let (code, out, err) = said(&bench, "pulled");
    assert_eq!(code, 3, "{err}");
    assert!(err.lines().last().is_some_and(|line| line.contains("lost the connection")), "{err}");
    assert!(out.contains("FAILED") && out.contains("lost the connection"), "{out}");
    let (code, _, err) = said(&bench, "after");
    assert_eq!(code, 0, "{err}");
}

#[test]
fn datagrams_between_machines_start_without_a_stored_run() {
    let bench = Bench::new();
    let laid = lay(
        &bench,
        "serve --open --max-rate 100G
         measure unknown 10.77.0.2 -u -b 5M -t 0.3 --idle 0.1 --forward --json --store none
         measure harmless 10.77.0.2 -u -b 1M -t 0.3 --idle 0.1 --forward
         measure tcp 10.77.0.2 -t 0.5 --idle 0.1 --forward
         measure below 10.77.0.2 -u -b 20M -t 0.3 --idle 0.1 --forward
         measure back 10.77.0.2 -u -b 20M -t 0.3 --idle 0.1 -R
         measure flood 10.77.0.2 -u -b 90M -t 0.3 --idle 0.1 -R --flood --json",
    );
    if laid.is_none() {
        return;
    }
    for name in ["unknown", "harmless", "tcp", "below", "back", "flood"] {
        let (code, _, err) = said(&bench, name);
        assert_eq!(code, 0, "{name}: {err}");
    }
    let (_, out, _) = said(&bench, "flood");
    let document = crate::support::the_measurement(serde_json::from_str(&out).unwrap());
    assert!(document["directions"][0]["udp"]["sent"].as_u64().unwrap() > 0, "{document:#}");
}
