//! Probes one by one in a record, and working latency behind a deep queue and behind one that manages itself.

use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::{Bench, start};

/// Ten milliseconds each way and a stack that runs in steps: nothing of it takes this machine's time.
const STEPPED: &str = "title = \"probes\"\nclock = \"virtual\"\nidle = \"1s\"\n[hosts.a]\nstack = \"smoltcp\"\n[hosts.b]\nstack = \"smoltcp\"\n\
    [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"10M\"\ndelay = \"10ms\"\n\
    [flow]\nfrom = \"a\"\nto = \"b\"\nduration = \"2s\"\nomit = \"500ms\"\n";

fn stepped(seed: u32) -> Value {
    let bench = Bench::new();
    bench.write("probes.toml", STEPPED);
    let ended = bench.run(&format!("lab run probes.toml --json --seed {seed}"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    ended.json()["cases"][0].take()
}

fn integers(series: &Value, member: &str) -> Vec<Option<i64>> {
    series[member].as_array().unwrap().iter().map(Value::as_i64).collect()
}

#[test]
fn each_probe_is_in_the_record_at_a_time_that_the_seed_draws() {
    let record = stepped(7);
    let pair = &record["probes"][0];
    assert_eq!((&pair["from"], &pair["to"]), (&"a".into(), &"b".into()));
    let idle = integers(&pair["idle"], "rtt_ns");
    assert_eq!(idle.len() as i64, record["rtt_ns"]["idle"]["sent"].as_i64().unwrap());
    assert!(idle.iter().all(|rtt| rtt.is_some_and(|ns| ns >= 20_000_000)), "{idle:?}");

    // Under load are those that were sent while the flow was counted, and no other.
    let flow = &record["flows"][0];
    let of_flow = |member: &str| flow[member].as_i64().unwrap();
    let (start, omit, length) = (of_flow("start_ns"), of_flow("omit_ns"), of_flow("duration_ns"));
    let loaded = &pair["loaded"];
    let (due, sent) = (integers(loaded, "due_ns"), integers(loaded, "sent_ns"));
    assert_eq!(due, sent, "a clock that is a number is never late");
    let counted = sent.iter().flatten().filter(|&&at| (start + omit..start + length).contains(&at)).count();
    assert_eq!(counted as i64, flow["rtt_ns"]["loaded"]["sent"].as_i64().unwrap());
    assert!(counted < sent.len(), "some were sent before and after");

    // No two gaps in a row are alike.
    let gaps: Vec<i64> = due.windows(2).map(|pair| pair[1].unwrap() - pair[0].unwrap()).collect();
    assert!(gaps.windows(2).all(|pair| pair[0] != pair[1]), "{gaps:?}");
    assert_eq!(stepped(7)["probes"], record["probes"], "the seed decides");
    assert_ne!(stepped(8)["probes"], record["probes"]);
}

/// What `bdp measure --rpm` came to over a link of 10 Mbit/s and 10 ms each way with this queue.
fn working_latency(queue: &str) -> Option<Value> {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return None;
    }
    let path = "title = \"a path\"\n[[link]]\nbetween = [\"client\", \"server\"]\nrate = \"10M\"\ndelay = \"10ms\"\n";
    bench.write("path.toml", format!("{path}{queue}\n"));
    let line = "bdp lab exec path.toml -q --clock virtual --serve 'server=bdp serve --open' --host client -- \
        bdp measure server --responsiveness --forward --json --store none";
    let ended = start(bench.shell(line)).wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    let direction = document.pointer("/directions/0").cloned();
    Some(direction.unwrap_or_else(|| panic!("no direction: {} {}", ended.out, ended.err)))
}

#[test]
fn what_has_no_working_conditions_is_refused() {
    let bench = Bench::new();
    for more in ["-u", "-n 1M", "--bidir", "-O 1", "-P 2", "--iperf3"] {
        let ended = bench.run(&format!("measure 127.0.0.1:9 --responsiveness {more}"));
        assert_eq!(ended.code(), 2, "{more}: {}", ended.err);
        assert!(ended.err.contains("--responsiveness"), "{more}: {}", ended.err);
    }
}

#[test]
fn responsiveness_is_low_behind_a_deep_queue_and_high_behind_fq_codel() {
    let Some(deep) = working_latency("limit = 500") else { return };
    let Some(managed) = working_latency("queue = \"fq_codel\"") else { return };
    let number = |direction: &Value, path: &str| {
        direction.pointer(&format!("/responsiveness/{path}")).and_then(Value::as_f64).unwrap()
    };
    for direction in [&deep, &managed] {
        // At rest a round trip takes 20 ms and the time of its bytes on the wire: 3000 a minute.
        let idle = number(direction, "idle/foreign_rpm");
        assert!((2_750.0..3_000.0).contains(&idle), "{idle}");
        let goodput = number(direction, "goodput_bps");
        // What a retransmission releases may have come before the moments that are counted: up to 500 packets within four seconds.
        assert!((8.5e6..11.5e6).contains(&goodput), "{goodput}");
        assert_eq!(direction["responsiveness"]["goodput_confidence"], "high");
        assert!(number(direction, "connections") >= 8.0);
    }
    // Five hundred packets take 600 ms on the wire: some hundred round trips a minute.
    let (low, high) = (number(&deep, "working/rpm"), number(&managed, "working/rpm"));
    assert!((80.0..250.0).contains(&low), "{low}");
    assert!((1_500.0..3_000.0).contains(&high), "{high}");
    // Of its own flows fq_codel lets new ones pass: the loaded ones wait for themselves.
    assert!(number(&managed, "working/foreign_rpm") > number(&managed, "working/self_rpm"));
}
