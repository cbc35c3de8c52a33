//! Two machines, each a network namespace with a cable between: what loopback can't show.

mod support;

use serde_json::Value;
use support::{Bench, Ended, machine, start};

/// Two namespaces with a veth pair, 10.77.0.1 and fd77::1 here, 10.77.0.2 and fd77::2 there, in which a server runs.
/// The first script is a part of the second machine's, the other runs here. All ends with the process that is started.
const CABLE: &str = r#"
    export XDG_DATA_HOME="$PWD"
    ip link set lo up
    unshare --net sleep 80 & there=$!
    far() { nsenter -t $there -n "$@"; }
    while [ "$(readlink /proc/$there/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
    ip link add near0 type veth peer name far0
    ip link set far0 netns $there
    ip addr add 10.77.0.1/24 dev near0; ip addr add fd77::1/64 dev near0 nodad; ip link set near0 up
    far ip link set lo up
    far ip addr add 10.77.0.2/24 dev far0; far ip addr add fd77::2/64 dev far0 nodad; far ip link set far0 up
    # Not through `far`, whose shell would be the process that is killed.
    serve() {
        nsenter -t $there -n "$BDP" serve "$@" >serve.out 2>serve.err & server=$!
        until grep -q listening serve.err; do kill -0 $server; sleep 0.02; done
    }
    # measure NAME ARGUMENTS: keeps what it says and its exit code under that name.
    measure() { name=$1; shift; code=0; "$BDP" measure "$@" >$name.out 2>$name.err || code=$?; echo $code >$name.code; }
"#;

/// Runs a script after the cable is laid; `None`, with the reason printed, where this machine can't.
fn lay(bench: &Bench, script: &str) -> Option<Ended> {
    let lab = machine::own_lab()?;
    if !machine::has("ip", &["-V"]) || !machine::has("nsenter", &["--version"]) {
        return None;
    }
    let mut command = std::process::Command::new("unshare");
    // A namespace of processes, whose first takes all others with it.
    command.args([
        "--map-root-user",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--",
        "sh",
        "-ec",
    ]);
    command.arg(format!("{CABLE}\n{script}")).env("BDP", support::BDP).current_dir(bench.folder());
    let ended = start(command).wait();
    assert_eq!(ended.code(), 0, "{}{}", ended.out, ended.err);
    drop(lab);
    Some(ended)
}

/// What a measurement of the script said: exit code, standard output, standard error.
fn said(bench: &Bench, name: &str) -> (i32, String, String) {
    let read = |kind: &str| std::fs::read_to_string(bench.path(&format!("{name}.{kind}"))).unwrap();
    (read("code").trim().parse().unwrap(), read("out"), read("err"))
}

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
             measure text 10.77.0.2 {brief} --token abc
             kill $server; wait $server || true
             serve --open
             measure open 10.77.0.2 {brief} --forward --json
             measure long 10.77.0.2 -t 31"
        ),
    );
    if laid.is_none() {
        return;
    }
    assert_refused(&bench, "none", 3, "needs the token");
    assert_refused(&bench, "wrong", 3, "token is not the one");
    assert_refused(&bench, "long", 2, "--max-duration");
    for (name, mtu_from, far) in
        [("four", 1300, "10.77.0.2"), ("six", 1500, "fd77::2"), ("open", 1300, "10.77.0.2")]
    {
        let (code, out, err) = said(&bench, name);
        assert_eq!(code, 0, "{name}: {err}");
        let document: Value = serde_json::from_str(&out).unwrap();
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
    for part in ["near  near0", "far   far0", "path MTU 1500/1300", "MTU 1500, Linux "] {
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
        ("absent", "no answer within 3 s"),
        ("port", "bdp serve"),
        ("pulled", "went away"),
    ] {
        assert_refused(&bench, name, 3, word);
    }
    let (code, _, err) = said(&bench, "after");
    assert_eq!(code, 0, "{err}");
}

#[test]
fn datagrams_between_machines_keep_to_what_was_measured() {
    let bench = Bench::new();
    let laid = lay(
        &bench,
        "serve --open --max-rate 100G
         measure unknown 10.77.0.2 -u -b 50M --forward
         measure harmless 10.77.0.2 -u -b 1M -t 0.3 --idle 0.1 --forward
         measure tcp 10.77.0.2 -t 0.5 --idle 0.1 --forward
         measure below 10.77.0.2 -u -b 20M -t 0.3 --idle 0.1 --forward
         measure above 10.77.0.2 -u -b 900G --forward
         measure back 10.77.0.2 -u -b 20M -R
         measure flood 10.77.0.2 -u -b 90M -t 0.3 --idle 0.1 -R --flood --json",
    );
    if laid.is_none() {
        return;
    }
    assert_refused(&bench, "unknown", 2, "not known");
    assert_refused(&bench, "above", 2, "stored measurements saw the path carry");
    // What one direction carried says nothing of the other.
    assert_refused(&bench, "back", 2, "not known");
    for name in ["harmless", "tcp", "below", "flood"] {
        let (code, _, err) = said(&bench, name);
        assert_eq!(code, 0, "{name}: {err}");
    }
    let (_, out, _) = said(&bench, "flood");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert!(document["directions"][0]["udp"]["sent"].as_u64().unwrap() > 0, "{document:#}");
}
