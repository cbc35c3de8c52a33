//! Lines of `tc` as people write them, in manuals, in answers, in scripts of their own, and as it prints them: each becomes what it does, or is refused by
//! name. Nothing is dropped in silence.

use bdp_scenario::foreign::{import, mahimahi_commands};

use super::*;

/// What becomes of a text.
enum Is {
    /// Keys of the direction there, and back; and what else is named, a part of each line.
    Path(&'static str, &'static str, &'static [&'static str]),
    /// An error with this in it.
    Refused(&'static str),
}
use Is::{Path, Refused};

const NONE: &[&str] = &[];
const LIMIT: &[&str] = &["netem drops all beyond 1000 packets"];

/// Where lines like these stand, the lines, and what becomes of them.
const LINES: &[(&str, &str, Is)] = &[
    (
        "tc-netem(8): delay",
        "tc qdisc add dev eth0 root netem delay 100ms",
        Path("delay = \"100ms\"", "", LIMIT),
    ),
    (
        "the Linux Foundation's page on netem: jitter with correlation",
        "tc qdisc change dev eth0 root netem delay 100ms 10ms 25%",
        Path(
            "delay = \"100ms\"; jitter = { uniform = \"10ms\", reorder = true }",
            "",
            &["its correlation", "beyond 1000 packets"],
        ),
    ),
    (
        "the same page: a distribution",
        "tc qdisc change dev eth0 root netem delay 100ms 20ms distribution normal",
        Path("delay = \"100ms\"; jitter = { normal = \"20ms\", reorder = true }", "", LIMIT),
    ),
    (
        "the same page: loss in bursts",
        "tc qdisc change dev eth0 root netem loss 0.3% 25%",
        Path("loss = \"0.3%\"", "", &["loss: its correlation"]),
    ),
    (
        "the same page: duplication",
        "tc qdisc change dev eth0 root netem duplicate 1%",
        Path("duplicate = \"1%\"", "", NONE),
    ),
    (
        "the same page: corruption",
        "tc qdisc change dev eth0 root netem corrupt 0.1%",
        Path("corrupt = \"0.1%\"", "", NONE),
    ),
    (
        "the same page: reordering",
        "tc qdisc change dev eth0 root netem delay 10ms reorder 25% 50%",
        Path(
            "reorder = { probability = \"75%\", by = \"10ms\" }",
            "",
            &["reorder: its correlation", "beyond 1000 packets"],
        ),
    ),
    (
        "the same page: every fifth packet",
        "tc qdisc change dev eth0 root netem gap 5 delay 10ms",
        Path(
            "reorder = { probability = \"80%\", by = \"10ms\" }",
            "",
            &["gap: any packet", "beyond 1000 packets"],
        ),
    ),
    (
        "reordering beside jitter, of many answers",
        "tc qdisc add dev eth0 root netem delay 50ms 20ms reorder 25%",
        Path(
            "delay = \"50ms\"; jitter = { uniform = \"20ms\", reorder = true }",
            "",
            &["reorder: the share that netem sends at once", "beyond 1000 packets"],
        ),
    ),
    (
        "the same page: netem above a token bucket",
        "tc qdisc add dev eth0 root handle 1:0 netem delay 100ms\n\
         tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 256kbit buffer 1600 limit 3000",
        Path("delay = \"100ms\"; rate = \"256k\"; overhead = 14; limit = \"3000B\"", "", NONE),
    ),
    (
        "the same page: netem for some of the traffic",
        "tc qdisc add dev eth0 root handle 1: prio\n\
         tc qdisc add dev eth0 parent 1:3 handle 30: tbf rate 20kbit buffer 1600 limit 3000\n\
         tc qdisc add dev eth0 parent 30:1 handle 31: netem delay 200ms 10ms distribution normal\n\
         tc filter add dev eth0 protocol ip parent 1:0 prio 3 u32 match ip dst 65.172.181.4/32 flowid 1:3",
        Path(
            "delay = \"200ms\"; jitter = { normal = \"10ms\", reorder = true }; rate = \"20k\"; overhead = 14; limit = 999",
            "",
            &["filters", "prio: its bands"],
        ),
    ),
    (
        "tc-netem(8): a rate with overhead",
        "tc qdisc add dev eth0 root netem delay 100ms rate 5kbit 20 100 5",
        Path("rate = \"5k\"; overhead = 34; limit = 999; delay = \"100ms\"", "", &["rate: cells"]),
    ),
    (
        "a rate of netem with its limit implied, and more in its delay",
        "tc qdisc add dev eth0 root netem rate 1gbit delay 50ms",
        Path("rate = \"1G\"; overhead = 14; limit = 1; delay = \"50ms\"", "", &["its delay holds 4129"]),
    ),
    (
        "one script, tried again with other values",
        "sudo tc qdisc add dev eth0 root netem delay 50ms rate 10mbit\nsudo tc qdisc change dev eth0 root netem delay 80ms loss 2%",
        Path("rate = \"10M\"; overhead = 14; limit = 933; delay = \"80ms\"; loss = \"2%\"", "", NONE),
    ),
    (
        "replace, and del before",
        "tc qdisc del dev eth0 root 2>/dev/null\ntc qdisc replace dev eth0 root netem loss 5%\ntc qdisc replace dev eth0 root netem loss 1%",
        Path("loss = \"1%\"", "", NONE),
    ),
    (
        "two devices of a router",
        "tc qdisc add dev eth0 root netem delay 20ms limit 100000\ntc qdisc add dev eth1 root netem delay 30ms limit 100000",
        Path("delay = \"20ms\"", "delay = \"30ms\"", &["forward: limit", "reverse: limit"]),
    ),
    (
        "hosts in namespaces",
        "ip netns exec h1 tc qdisc add dev veth1 root netem loss 1%; ip netns exec h2 /sbin/tc -s qdisc add dev veth2 root netem loss 2%",
        Path("loss = \"1%\"", "loss = \"2%\"", NONE),
    ),
    (
        "tc-tbf(8)",
        "tc qdisc add dev ppp0 root tbf rate 220kbit latency 50ms burst 1540",
        Path("rate = \"220k\"; overhead = 14; limit = \"2915B\"", "", NONE),
    ),
    (
        "tc-tbf(8), with a peak rate",
        "# tc qdisc add dev eth0 handle 10: root tbf rate 0.5mbit \\\n   burst 5kb latency 70ms peakrate 1mbit \\\n   minburst 1540\n\
         tc qdisc add dev eth0 handle 10: root tbf rate 0.5mbit \\\n   burst 5kb latency 70ms peakrate 1mbit \\\n   minburst 1540",
        Path(
            "rate = \"500k\"; overhead = 14; limit = \"9495B\"",
            "",
            &["peakrate 1mbit", "burst of 5120 bytes"],
        ),
    ),
    (
        "tldr: rate, burst and latency",
        "sudo tc qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms",
        Path("rate = \"1M\"; overhead = 14; limit = \"54096B\"", "", &["burst of 4096 bytes"]),
    ),
    (
        "a token bucket above netem",
        "tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 1600 limit 15000\n\
         tc qdisc add dev eth0 parent 1:1 handle 10: netem delay 25ms limit 200",
        Path("delay = \"25ms\"; rate = \"10M\"; overhead = 14; limit = 179", "", NONE),
    ),
    (
        "tc-htb(8) with one class, and netem in it",
        "tc qdisc add dev eth0 root handle 1: htb default 12\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 100kbps ceil 100kbps\n\
         tc class add dev eth0 parent 1:1 classid 1:12 htb rate 60kbps ceil 100kbps\n\
         tc qdisc add dev eth0 parent 1:12 handle 120: netem delay 40ms",
        Path("delay = \"40ms\"; rate = \"800k\"; overhead = 14; limit = 997", "", NONE),
    ),
    (
        "htb with classes of which the default one is meant",
        "tc qdisc add dev eth0 root handle 1: htb default 30\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 6mbit burst 15k\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit burst 15k\n\
         tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit ceil 6mbit burst 15k\n\
         tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1kbit ceil 6mbit burst 15k\n\
         tc qdisc add dev eth0 parent 1:10 handle 10: sfq perturb 10",
        Path(
            "rate = \"6M\"; overhead = 14; limit = 1000",
            "",
            &["htb classes other than 1:30", "burst of 15360", "burst of 15360"],
        ),
    ),
    (
        "htb with classes that filters choose from",
        "tc qdisc add dev eth0 root handle 1: htb\n\
         tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
         tc class add dev eth0 parent 1: classid 1:20 htb rate 3mbit",
        Refused("htb has several classes (1:10, 1:20)"),
    ),
    (
        "a class that may not lend: no class is above it",
        "tc qdisc add dev eth0 root handle 1: htb default 1\ntc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit ceil 8mbit prio 0 quantum 1514",
        Path("rate = \"2M\"; overhead = 14; limit = 1000", "", NONE),
    ),
    (
        "RED and PIE behind token buckets",
        "tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 1540 latency 50ms\n\
         tc qdisc add dev eth0 parent 1: red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 10mbit probability 0.02 ecn adaptive\n\
         tc qdisc add dev ifb0 root handle 1: tbf rate 5mbit burst 1540 latency 50ms\n\
         tc qdisc add dev ifb0 parent 1: pie limit 100p target 20ms tupdate 30ms alpha 3 beta 25 noecn nobytemode\n\
         tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ifb0",
        Path(
            "rate = \"10M\"; overhead = 14; queue = { kind = \"red\", limit = \"400000B\", min = 30000, max = 90000, avpkt = 1000, burst = 55, probability = \"2%\", ecn = true }",
            "rate = \"5M\"; overhead = 14; queue = { kind = \"pie\", limit = 100, target = \"20ms\", tupdate = \"30ms\", alpha = 3, beta = 25, ecn = false }",
            &["red: adaptive"],
        ),
    ),
    (
        "RED with thresholds that tc computes",
        "tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 1540 latency 50ms\n\
         tc qdisc add dev eth0 parent 1: red limit 240000 avpkt 1000\n\
         tc qdisc add dev ifb0 root handle 1: tbf rate 5mbit burst 1540 latency 50ms\n\
         tc qdisc add dev ifb0 parent 1: red limit 240000 min 5000 avpkt 1000\n\
         tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ifb0",
        Path(
            "rate = \"10M\"; overhead = 14; queue = { kind = \"red\", limit = \"240000B\", avpkt = 1000, min = 20000, max = 60000 }",
            "rate = \"5M\"; overhead = 14; queue = { kind = \"red\", limit = \"240000B\", min = 5000, avpkt = 1000, max = 15000 }",
            NONE,
        ),
    ),
    (
        "a home router's shaper with fq_codel in it",
        "DEV=wan0\nUP=9mbit\ntc qdisc add dev $DEV root handle 1: htb default 11\n\
         tc class add dev $DEV parent 1: classid 1:11 htb rate ${UP}\n\
         tc qdisc add dev \"$DEV\" parent 1:11 fq_codel target 10ms limit 600 noecn",
        Path(
            "rate = \"9M\"; overhead = 14; queue = { kind = \"fq_codel\", target = \"10ms\", limit = 600, ecn = false }",
            "",
            NONE,
        ),
    ),
    (
        "tc-cake(8)",
        "tc qdisc replace dev eth1 root cake bandwidth 20Mbit besteffort rtt 30ms nat overhead 18",
        Path(
            "rate = \"20M\"; overhead = 18; queue = { kind = \"cake\", diffserv = \"besteffort\", rtt = \"30ms\" }",
            "",
            &["cake: nat"],
        ),
    ),
    (
        "what arrives, by way of ifb",
        "modprobe ifb\nip link set dev ifb0 up\ntc qdisc add dev eth0 ingress\n\
         tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ifb0\n\
         tc qdisc add dev ifb0 root netem delay 750ms limit 200000\ntc qdisc add dev eth0 root netem loss 3%",
        Path(
            "loss = \"3%\"",
            "delay = \"750ms\"",
            &["'modprobe ifb'", "'ip link set dev ifb0 up'", "reverse: limit"],
        ),
    ),
    (
        "a policer of what arrives",
        "tc qdisc add dev eth0 handle ffff: ingress\n\
         tc filter add dev eth0 parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 police rate 1mbit burst 10k drop flowid :1",
        Path("", "policer = { rate = \"1M\", burst = \"10240B\" }", NONE),
    ),
    (
        "what tc qdisc show prints",
        "qdisc noqueue 0: dev lo root refcnt 2\nqdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 50ms  10ms loss 1% rate 10Mbit packetoverhead 20\n \
         Sent 9870 bytes 81 pkt (dropped 1, overlimits 0 requeues 0)\n backlog 0b 0p requeues 0",
        Path(
            "rate = \"10M\"; overhead = 34; limit = 959; delay = \"50ms\"; jitter = { uniform = \"10ms\", reorder = true }; loss = \"1%\"",
            "",
            NONE,
        ),
    ),
    (
        "what it prints of two devices with a bucket and a model of losses",
        "qdisc tbf 8003: dev eth0 root refcnt 2 rate 1Mbit burst 32Kb lat 400ms \n\
         qdisc netem 8004: dev eth1 root refcnt 9 limit 100000 loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%",
        Path(
            "rate = \"1M\"; overhead = 14; limit = \"82768B\"",
            "loss = { to_bad = \"1%\", to_good = \"10%\", loss_bad = \"70%\", loss_good = \"0.1%\" }",
            &["burst of 32768 bytes"],
        ),
    ),
    (
        "what tc qdisc show and tc class show print of htb",
        "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000\n\
         class htb 1:1 root rate 20Mbit ceil 20Mbit burst 1600b cburst 1600b\n\
         class htb 1:10 parent 1:1 leaf 10: prio 0 rate 5Mbit ceil 50Mbit burst 1600b cburst 1600b\n\
         qdisc netem 10: dev eth0 parent 1:10 limit 500 delay 10ms",
        Path("delay = \"10ms\"; rate = \"20M\"; overhead = 14; limit = 483", "", NONE),
    ),
    (
        "two netem, one in the other",
        "tc qdisc add dev eth0 root handle 1: netem delay 10ms loss 1%\ntc qdisc add dev eth0 parent 1:1 handle 2: netem rate 5mbit delay 5ms limit 100",
        Path("rate = \"5M\"; overhead = 14; limit = 93; delay = \"15ms\"; loss = \"1%\"", "", NONE),
    ),
    (
        "two rates, one in the other",
        "tc qdisc add dev eth0 root handle 1: netem rate 100mbit delay 5ms limit 5000\n\
         tc qdisc add dev eth0 parent 1:1 tbf rate 8mbit burst 1600 limit 30000",
        Path("delay = \"5ms\"; rate = \"8M\"; overhead = 14; limit = \"30000B\"", "", &["netem: its rate"]),
    ),
    ("hfsc", "tc qdisc add dev eth0 root handle 1: hfsc default 1", Refused("qdisc 'hfsc' is not supported")),
    (
        "a variable that nobody set",
        "tc qdisc add dev eth0 root netem rate $RATE",
        Refused("'$RATE' is not a rate"),
    ),
    (
        "a loop",
        "for i in 1 2 3; do tc qdisc change dev eth0 root netem delay ${i}0ms; done",
        Refused("loops and conditions"),
    ),
    (
        "a share of the device's rate",
        "tc qdisc add dev eth0 root tbf rate 50% burst 5kb limit 10k",
        Refused("'50%' is not a rate"),
    ),
    (
        "no queue at all",
        "tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb",
        Refused("neither limit nor latency"),
    ),
    (
        "an option of tomorrow",
        "tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb limit 10k sparkle 3",
        Refused("tbf: option 'sparkle' is not supported"),
    ),
    (
        "three devices",
        "tc qdisc add dev a root netem loss 1%\ntc qdisc add dev b root netem loss 1%\ntc qdisc add dev c root netem loss 1%",
        Refused("more than two devices"),
    ),
    (
        "nothing left",
        "tc qdisc add dev eth0 root netem loss 1%\ntc qdisc del dev eth0 root",
        Refused("no delay, loss, rate or queue"),
    ),
    (
        "a part alone",
        "tc qdisc add dev eth0 parent 1:1 handle 10: netem delay 100ms",
        Refused("the root is not given"),
    ),
    ("fq_codel alone", "tc qdisc replace dev eth0 root fq_codel", Refused("no queue without a rate")),
];

/// The keys of a direction of what was imported.
fn keys(text: &str, direction: &str) -> String {
    let mut lines = text.lines().skip_while(|line| *line != format!("[link.{direction}]")).skip(1);
    let own: Vec<&str> =
        lines.by_ref().take_while(|line| !line.is_empty() && !line.starts_with('[')).collect();
    own.join("; ")
}

#[test]
fn each_line_becomes_what_it_does_or_is_refused_by_name() {
    let mut wrong = Vec::new();
    for (source, text, expected) in LINES {
        let imported = import(text);
        match (&imported, expected) {
            (Ok(imported), Path(forward, reverse, named)) => {
                if let Err(error) = Scenario::parse("imported", &imported.text) {
                    wrong.push(format!("{source}: {error}"));
                }
                let found = [keys(&imported.text, "forward"), keys(&imported.text, "reverse")];
                if found != [*forward, *reverse] {
                    wrong.push(format!("{source}: {found:?} and not {:?}", [forward, reverse]));
                }
                let is_named = |part: &&&str| imported.left_out.iter().any(|line| line.contains(**part));
                if imported.left_out.len() != named.len() || !named.iter().all(|part| is_named(&part)) {
                    wrong.push(format!("{source}: named {:?} and not {named:?}", imported.left_out));
                }
            }
            (Err(error), Refused(part)) if error.to_string().contains(part) => {}
            (found, _) => wrong.push(format!("{source}: {found:?}")),
        }
    }
    assert!(LINES.len() >= 40, "{}", LINES.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arguments_of_mahimahi_may_be_quoted_and_go_on_in_the_next_line() {
    let imported = mahimahi_commands(
        "mm-delay 20 \\\n  mm-link --uplink-queue=droptail --uplink-queue-args='packets=50' \\\n  'my traces/up trace' \"down.trace\" -- bash",
    )
    .unwrap();
    assert_eq!(
        keys(&imported.text, "forward"),
        "limit = 50; rate = { trace = \"my traces/up trace\" }; delay = \"20ms\""
    );
    assert_eq!(imported.left_out, ["'bash' and all after it; use 'bdp lab exec' to run programs"]);
    let error = mahimahi_commands("mm-link $UP $DOWN").unwrap_err().to_string();
    assert!(error.contains("'$UP' is a shell variable"), "{error}");
    assert!(mahimahi_commands("mm-link 'up down").unwrap_err().to_string().contains("not closed"));
}
