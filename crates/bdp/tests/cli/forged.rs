//! Datagrams whose source is somebody else's: whoever that is gets nothing sent that weighs more than what was sent in its
//! name, unless the server was told to.

use std::collections::BTreeMap;

use crate::support::Bench;
use crate::support::cable::{lay, said};
use crate::support::machine::has;
use crate::support::untested::skip;

/// A third machine, 10.78.0.9, at a port of the server's own. This one sends in its name: what the server answers gets there.
/// `sent` and `victim` give the bytes of IP that left here and that came there since `mark`.
const VICTIM: &str = r#"
    unshare --net sleep 80 & victim=$!
    while [ "$(readlink /proc/$victim/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
    aside() { nsenter -t $victim -n "$@"; }
    far ip link add toward0 type veth peer name vict0
    far ip link set vict0 netns $victim
    far ip addr add 10.78.0.1/24 dev toward0; far ip link set toward0 up
    aside ip link set lo up; aside ip addr add 10.78.0.9/24 dev vict0; aside ip link set vict0 up
    far sh -c 'for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$file; done'
    ip addr add 10.78.0.9/32 dev lo
    # octets FIELD [aside]: a count of this machine, or of the third.
    octets() { field=$1; shift; "$@" awk -v name=$field '/^IpExt:/ { if (at) print $at; else for (i = 1; i <= NF; i++) if ($i == name) at = i }' /proc/net/netstat; }
    mark() { out=$(octets OutOctets); in=$(octets InOctets); reached=$(octets InOctets aside); }
    # tell NAME: what passed since the mark, once nothing more is under way.
    tell() { sleep 0.7; echo "$1 $(($(octets OutOctets) - out)) $(($(octets InOctets) - in)) $(($(octets InOctets aside) - reached))" >>told; }
    # What is opened from now on has the address of the victim as its source, or again its own.
    lie() { ip route add 10.77.0.2/32 dev near0 src 10.78.0.9; }
    confess() { ip route del 10.77.0.2/32; }
    ends() { kill $server; wait $server || true; }
"#;

/// What passed, bytes of IP: sent from here, received here, received by the victim.
struct Passed {
    sent: u64,
    here: u64,
    victim: u64,
}

fn told(bench: &Bench) -> BTreeMap<String, Passed> {
    let text = std::fs::read_to_string(bench.path("told")).unwrap();
    let row = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let mut next = || words.next()?.parse().ok();
        Some((name, Passed { sent: next()?, here: next()?, victim: next()? }))
    };
    text.lines().map(|line| row(line).unwrap_or_else(|| panic!("{text}"))).collect()
}

/// Runs it by bash, whose `/dev/udp` sends any bytes; `None`, with the reason printed, where this machine can't.
fn passed(bench: &Bench, script: &str) -> Option<BTreeMap<String, Passed>> {
    if !has("bash", &["--version"]) || !has("awk", &["BEGIN {}"]) {
        return None;
    }
    lay(bench, &format!("{VICTIM}\n{script}"))?;
    Some(told(bench))
}

#[test]
fn iperf2_sends_datagrams_beyond_this_machine_only_as_it_was_told_to() {
    let bench = Bench::new();
    let passed = passed(
        &bench,
        "duplex() { command -v iperf >/dev/null || return 0; mark; timeout -k 1 5 iperf -c 10.77.0.2 -u -b 2M -t 1 --full-duplex >$1.out 2>&1 || true; tell $1; }
         serve --allow 10.77.0.0/24 --allow 10.78.0.0/24 --iperf2-port 5001
         mark
         measure refused-R 10.77.0.2:5001 --iperf2 -u -b 4M -t 1 --flood -R & asked=$!
         measure forged-R 10.77.0.2:5001 --iperf2 -u -b 4M -t 1 --flood -R -B 10.78.0.9
         wait $asked; tell refused
         duplex refused-duplex
         ends
         serve --allow 10.77.0.0/24 --iperf2-port 5001 --iperf2-udp-reverse --max-rate 2M
         mark
         measure granted-R 10.77.0.2:5001 --iperf2 -u -b 4M -t 1 --flood -R
         measure granted-both 10.77.0.2:5001 --iperf2 -u -b 2M -t 1 --flood --bidir
         tell granted
         duplex granted-duplex
         mark; measure unlisted-R 10.77.0.2:5001 --iperf2 -u -b 4M -t 1 --flood -R -B 10.78.0.9; tell unlisted
         ends",
    );
    let Some(passed) = passed else { return };
    for (name, Passed { sent, here, victim }) in &passed {
        println!("{name}: {sent} bytes sent, {here} came here, {victim} to whose address was forged");
    }
    // 2 Mbit/s for a second, and again at once with as much from here.
    let granted = 2_000_000 / 8;
    for name in ["refused-R", "forged-R", "unlisted-R"] {
        let (code, _, err) = said(&bench, name);
        assert_eq!(code, 3, "{name}: {err}");
    }
    for name in ["refused", "unlisted"] {
        let Passed { sent, here, victim } = passed[name];
        assert!(sent > 1000 && here < sent && victim == 0, "{name}: {sent} {here} {victim}");
    }
    for name in ["granted-R", "granted-both"] {
        let (code, _, err) = said(&bench, name);
        assert_eq!(code, 0, "{name}: {err}");
    }
    let here = passed["granted"].here;
    assert!((granted..3 * granted).contains(&here), "{here} bytes came for {granted} in each of two");
    match (passed.get("refused-duplex"), passed.get("granted-duplex")) {
        (Some(refused), Some(granted_duplex)) => {
            assert!(refused.here < refused.sent / 10, "{} of {}", refused.here, refused.sent);
            assert!(
                (granted / 2..2 * granted).contains(&granted_duplex.here),
                "{} bytes came",
                granted_duplex.here
            );
        }
        _ => skip("'iperf' is not installed, for --full-duplex"),
    }
}

#[test]
fn ends_of_flows_in_anothers_name_weigh_no_less_than_their_reports() {
    let bench = Bench::new();
    // Sixteen bytes are the shortest datagram: number, seconds, microseconds, and the number's upper half.
    let attack = r#"lie; mark
         bash -ec 'zeros=\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0
             for flow in {1..20}; do
                 exec 3>/dev/udp/10.77.0.2/5001
                 printf "\0\0\0\1$zeros" >&3
                 sleep 0.02
                 for end in {1..30}; do printf "\xff\xff\xff\xfe$zeros" >&3; done
             done'
         tell NAME; confess"#;
    let passed = passed(
        &bench,
        &format!(
            "serve --open --iperf2-port 5001
             {}
             ends
             serve --allow 10.78.0.0/24 --iperf2-port 5001
             {}
             ends",
            attack.replace("NAME", "open"),
            attack.replace("NAME", "allowed")
        ),
    );
    let Some(passed) = passed else { return };
    for name in ["open", "allowed"] {
        let Passed { sent, victim, .. } = passed[name];
        // 620 datagrams of 44 bytes.
        assert!(sent > 27_000, "{name}: {sent}");
        assert!(victim > 0, "{name}: no report at all, so this showed nothing");
        assert!(victim <= sent, "{name}: {victim} bytes for {sent}");
        println!("{name}: {sent} bytes sent, {victim} came to whose address was forged");
    }
}

#[test]
fn hellos_of_iperf3_in_anothers_name_get_no_answer() {
    let bench = Bench::new();
    // A test of datagrams, reversed, whose control connection is this machine's own, and which waits for its stream.
    let passed = passed(
        &bench,
        r#"serve --allow 10.77.0.0/24 --allow 10.78.0.0/24
         cat >attack.sh <<'END'
             exec 4<>/dev/tcp/10.77.0.2/5201
             printf '%s\0' aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&4
             state() { head -c 1 <&4 | od -An -tu1 | tr -d ' '; }
             [ "$(state)" = 9 ]
             asked='{"udp":true,"omit":0,"time":10,"parallel":1,"len":1400,"bandwidth":8000000,"reverse":true,"client_version":"3.12"}'
             printf "\0\0\0\x$(printf %02x ${#asked})" >&4; printf %s "$asked" >&4
             [ "$(state)" = 10 ]
             hellos() {
                 exec 3>/dev/udp/10.77.0.2/5201
                 for i in {1..20}; do printf '\x39\x38\x37\x36' >&3; printf '\x15\xcd\x5b\x07' >&3; printf '\x36\x37\x38\x39' >&3; done
             }
             ip route add 10.77.0.2/32 dev near0 src 10.78.0.9
             hellos
             sleep 0.7
             ip route del 10.77.0.2/32
             # It still waits, and takes its own.
             exec 3<>/dev/udp/10.77.0.2/5201
             for i in {1..5}; do printf '\x39\x38\x37\x36' >&3; sleep 0.1; done
             [ "$(state)" = 1 ]
END
         mark; bash -e attack.sh; tell hellos
         ends"#,
    );
    let Some(passed) = passed else { return };
    let Passed { sent, victim, .. } = passed["hellos"];
    assert!(sent > 60 * 32, "{sent}");
    assert_eq!(victim, 0, "bytes that came to whose address was forged");
}
