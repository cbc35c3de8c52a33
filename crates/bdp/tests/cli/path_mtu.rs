//! A router between two machines that passes less than the devices hold: what it refuses it says so, and what may be fragmented
//! it fragments; or it says nothing, and what holds is found by what comes back.

use crate::support::cable::isolated;
use crate::support::{Bench, Ended};
use serde_json::Value;

/// Three namespaces: 10.77.1.1 and fd77:1::1 here, a router, and a server at 10.77.2.1 and fd77:2::1. All devices have an MTU of
/// 1500; the router's routes have 1300 to the server, and 1280 back. All ends with the process that is started.
const ROUTE: &str = r#"
    export XDG_DATA_HOME="$PWD"
    ip link set lo up
    unshare --net sleep 80 & router=$!
    unshare --net sleep 80 & there=$!
    at() { pid=$1; shift; nsenter -t $pid -n "$@"; }
    for pid in $router $there; do
        while [ "$(readlink /proc/$pid/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
    done
    ip link add near0 type veth peer name near1; ip link set near1 netns $router
    at $router ip link add far1 type veth peer name far0; at $router ip link set far0 netns $there
    ip addr add 10.77.1.1/24 dev near0; ip addr add fd77:1::1/64 dev near0 nodad; ip link set near0 up
    at $router ip addr add 10.77.1.2/24 dev near1; at $router ip addr add fd77:1::2/64 dev near1 nodad
    at $router ip addr add 10.77.2.2/24 dev far1; at $router ip addr add fd77:2::2/64 dev far1 nodad
    at $router ip link set near1 up; at $router ip link set far1 up
    at $router ip route change 10.77.2.0/24 dev far1 mtu 1300; at $router ip -6 route replace fd77:2::/64 dev far1 metric 256 mtu 1300
    at $router ip route change 10.77.1.0/24 dev near1 mtu 1280; at $router ip -6 route replace fd77:1::/64 dev near1 metric 256 mtu 1280
    at $router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
    at $there ip link set lo up
    at $there ip addr add 10.77.2.1/24 dev far0; at $there ip addr add fd77:2::1/64 dev far0 nodad; at $there ip link set far0 up
    ip route add 10.77.2.0/24 via 10.77.1.2; ip -6 route add fd77:2::/64 via fd77:1::2
    at $there ip route add 10.77.1.0/24 via 10.77.2.2; at $there ip -6 route add fd77:1::/64 via fd77:2::2
    # Not through `at`, whose shell would be the process that is killed.
    nsenter -t $there -n "$BDP" serve --token abc >serve.out 2>serve.err & server=$!
    until grep -q listening serve.err; do kill -0 $server; sleep 0.02; done
    # Whatever the kernels have learned is forgotten before each.
    measure() {
        name=$1; shift; code=0
        for flush in "ip" "ip -6" "at $there ip" "at $there ip -6"; do $flush route flush cache; done
        "$BDP" measure "$@" -u -b 500K -t 0.5 --idle 0.2 --token abc --json >$name.out 2>$name.err || code=$?
        echo $code >$name.code
    }
"#;

/// Runs a script behind the route; `None`, with the reason printed, where this machine can't.
fn route(bench: &Bench, script: &str) -> Option<Ended> {
    isolated(bench, &format!("{ROUTE}\n{script}"))
}

/// What a measurement said: exit code, document, standard error.
fn said(bench: &Bench, name: &str) -> (i32, Value, String) {
    let (code, out, err) = crate::support::cable::said(bench, name);
    (code, crate::support::the_measurement(serde_json::from_str(&out).unwrap_or(Value::Null)), err)
}

/// The payload of each direction's datagrams, after nothing was lost for its size.
#[track_caller]
fn payloads(bench: &Bench, name: &str) -> Vec<u64> {
    let (code, document, err) = said(bench, name);
    assert_eq!(code, 0, "{name}: {err}");
    let directions = document["directions"].as_array().unwrap();
    for direction in directions {
        let udp = &direction["udp"];
        // A machine that stalls may lose some, and what is too long is lost in whole.
        assert!(udp["received"].as_u64() > Some(udp["sent"].as_u64().unwrap() / 2), "{name}: {udp:#}");
    }
    directions.iter().map(|d| d["udp"]["datagram_bytes"].as_u64().unwrap()).collect()
}

fn has_fragments(bench: &Bench, name: &str, mtu: u32) -> bool {
    let caveats = said(bench, name).1["caveats"].to_string();
    caveats.contains(&format!("went as fragments, since the path's MTU is {mtu}"))
}

#[test]
fn the_first_datagrams_are_as_long_as_the_path_holds_and_longer_ones_are_fragmented() {
    let bench = Bench::new();
    let laid = route(
        &bench,
        "measure four 10.77.2.1
         measure six fd77:2::1
         measure back 10.77.2.1 --reverse
         measure both 10.77.2.1 --bidir
         measure whole 10.77.2.1 --forward --dont-fragment
         measure long 10.77.2.1 -l 1400
         measure long6 fd77:2::1 -l 1400
         measure torn 10.77.2.1 --forward -l 1400 --dont-fragment
         # A larger device there says nothing of the path.
         at $there ip link set far0 mtu 9000
         measure jumbo 10.77.2.1 --reverse",
    );
    if laid.is_none() {
        return;
    }
    for (name, wanted) in [
        ("four", vec![1272, 1252]),
        ("six", vec![1252, 1232]),
        ("back", vec![1252]),
        ("both", vec![1272, 1252]),
        ("whole", vec![1272]),
        ("jumbo", vec![1252]),
    ] {
        assert_eq!(payloads(&bench, name), wanted, "{name}");
        assert!(![1300, 1280].iter().any(|&mtu| has_fragments(&bench, name, mtu)), "{name}");
    }
    let (_, four, _) = said(&bench, "four");
    assert_eq!((&four["path"]["mtu_to"], &four["path"]["mtu_from"]), (&1300.into(), &1280.into()));
    for name in ["long", "long6"] {
        assert_eq!(payloads(&bench, name), [1400, 1400], "{name}");
        assert!(has_fragments(&bench, name, 1300) && has_fragments(&bench, name, 1280), "{name}");
    }
    let (code, _, err) = said(&bench, "torn");
    assert!(code == 3 && err.contains("--dont-fragment"), "{code}: {err}");
}

#[test]
fn fragments_that_are_dropped_are_named() {
    let bench = Bench::new();
    let laid = route(
        &bench,
        "# A host without memory for fragments drops them all, as firewalls do.
         at $there sh -c 'cd /proc/sys/net/ipv4; echo 0 >ipfrag_low_thresh; echo 0 >ipfrag_high_thresh'
         measure long 10.77.2.1 -l 1400 --forward
         measure fits 10.77.2.1 -l 1272 --forward",
    );
    if laid.is_none() {
        return;
    }
    let (code, _, err) = said(&bench, "long");
    assert_eq!((code, err.lines().count()), (3, 1), "{err}");
    for part in ["1400 B (-l)", "MTU of 1300", "fragments are dropped", "at most -l 1272"] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert_eq!(payloads(&bench, "fits"), [1272]);
}

/// Whatever the router refuses, its ICMP finds no route; but for neighbours' addresses, which ask for none.
const MUTE: &str = "at $router ip rule add pref 1 ipproto icmp blackhole
     at $router ip -6 rule add pref 1 ipproto ipv6-icmp blackhole";

/// The caveat of a black hole, where there is one.
fn black_hole(document: &Value) -> Option<&str> {
    let mut caveats = document["caveats"].as_array().unwrap().iter();
    let hole = caveats.find(|caveat| caveat["kind"] == "mtu_black_hole")?;
    hole["text"].as_str().filter(|text| text.contains("black hole"))
}

#[test]
fn what_a_silent_router_passes_is_found_and_told() {
    let bench = Bench::new();
    let laid = route(
        &bench,
        &format!(
            "{MUTE}
             measure four 10.77.2.1
             measure six fd77:2::1
             measure whole 10.77.2.1 --dont-fragment
             measure long6 fd77:2::1 -l 1400 --forward
             measure long4 10.77.2.1 -l 1400 --forward
             measure short 10.77.2.1 -l 200 --forward
             # All of it holds.
             at $router ip route change 10.77.2.0/24 dev far1; at $router ip route change 10.77.1.0/24 dev near1
             measure held 10.77.2.1"
        ),
    );
    if laid.is_none() {
        return;
    }
    for (name, headers) in [("four", 28), ("six", 48), ("whole", 28)] {
        assert_eq!(payloads(&bench, name), [1280 - headers, 1280 - headers], "{name}");
        let (_, document, _) = said(&bench, name);
        let path = &document["path"];
        assert_eq!((&path["mtu_to"], &path["mtu_from"]), (&1280.into(), &1280.into()), "{name}");
        let hole = serde_json::json!({ "mtu": 1280, "known_mtu": 1500, "exact": true });
        assert_eq!(path["mtu_black_hole"], hole, "{name}");
        let told = black_hole(&document).unwrap();
        let message = if name == "six" { "packet too big" } else { "fragmentation needed" };
        for part in ["MTU of 1280,", "knows of 1500,", message, "tcp_mtu_probing"] {
            assert!(told.contains(part), "{name}: {told}");
        }
    }
    // What is asked for is sent, as fragments or in vain, and is told.
    let (code, _, err) = said(&bench, "long6");
    assert!(code == 3 && err.contains("MTU of 1280") && err.contains("at most -l 1232"), "{code}: {err}");
    let (_, long, _) = said(&bench, "long4");
    assert!(black_hole(&long).is_some_and(|told| told.contains("1400 B (-l)")), "{long:#}");
    assert_eq!(long["directions"][0]["udp"]["datagram_bytes"], 1400);
    let (_, short, _) = said(&bench, "short");
    assert!(black_hole(&short).is_some_and(|told| !told.contains("(-l)")), "{short:#}");
    assert_eq!(short["directions"][0]["udp"]["datagram_bytes"], 200);
    let (_, held, _) = said(&bench, "held");
    assert_eq!((payloads(&bench, "held"), black_hole(&held)), (vec![1472, 1472], None));
    assert_eq!(held["path"]["mtu_black_hole"], Value::Null);
}

/// TCP over a path that swallows long segments: what small ones show is the finding.
#[test]
fn a_silent_router_that_swallows_segments_is_a_finding() {
    let bench = Bench::new();
    let laid = route(
        &bench,
        &format!(
            "{MUTE}
             # The router can't ask its neighbours whether they are still there, either.
             address() {{ sed 's/.*ether \\([^ ]*\\).*/\\1/'; }}
             near=$(ip -o link show near0 | address); far=$(at $there ip -o link show far0 | address)
             at $router ip -6 neigh replace fd77:1::1 lladdr $near dev near1 nud permanent
             at $router ip -6 neigh replace fd77:2::1 lladdr $far dev far1 nud permanent
             measure_tcp() {{
                 name=$1; shift; code=0
                 \"$BDP\" measure \"$@\" -t 1 --idle 0.2 --token abc --json >$name.out 2>$name.err || code=$?
                 echo $code >$name.code
             }}
             measure_tcp four 10.77.2.1 & four=$!
             measure_tcp six fd77:2::1 & six=$!
             measure_tcp both 10.77.2.1 --bidir -P 2
             wait $four $six"
        ),
    );
    if laid.is_none() {
        return;
    }
    for name in ["four", "six", "both"] {
        let (code, document, err) = said(&bench, name);
        assert_eq!(code, 0, "{name}: {err}");
        for direction in document["directions"].as_array().unwrap() {
            let finding = &direction["findings"][0];
            assert_eq!(finding["limit"], "mtu_black_hole", "{name}: {finding:#}");
            assert_eq!(direction["bytes"], 0, "{name}");
        }
        assert_eq!(document["directions"].as_array().unwrap().len(), 2, "{name}");
    }
}
