//! Captures of a real run, held against the counters that its record has beside them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::Bench;
use crate::support::machine::shared_lab;
use crate::support::scenario::Scenario;
use bdp_pcap::{Block, Direction, Statistics, blocks};
use serde_json::Value;

/// Packets of a file by direction and comment, the lateness left out; and the statistics at its end.
fn read(path: &Path) -> (BTreeMap<(bool, String), u64>, Statistics) {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut packets, mut statistics, mut latest) = (BTreeMap::new(), None, 0);
    for block in blocks(&bytes) {
        match block.unwrap() {
            Block::Packet { at, direction, length, data, comments, .. } => {
                let at = at.expect("each has a stamp").as_ns();
                assert!(at >= latest, "packets are in the order of their stamps");
                latest = at;
                assert_eq!(data.len(), length.min(96) as usize, "the snap length is 96");
                assert!(matches!(data[0] >> 4, 4 | 6), "an IP packet");
                let [comment] = &comments[..] else { panic!("one comment: {comments:?}") };
                let comment = comment.split(", ").next().unwrap_or_default().to_owned();
                *packets.entry((direction == Some(Direction::Outbound), comment)).or_default() += 1;
            }
            Block::Statistics(found) => statistics = Some(found),
            _ => {}
        }
    }
    (packets, statistics.expect("statistics at the end"))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// Every file that the record lists: what entered and what was delivered, by the emulator's own counters.
fn assert_counted(bench: &Bench, case: &Value) {
    let captures = case["captures"].as_array().unwrap();
    for capture in captures {
        let (packets, statistics) = read(&bench.path(capture["path"].as_str().unwrap()));
        assert_eq!(count(&capture["not_captured"]), 0, "{capture}");
        assert_eq!(count(&capture["packets"]), packets.values().sum::<u64>());
        assert_eq!((statistics.received, statistics.dropped), (count(&capture["packets"]), 0));
        let directions = &case["fidelity"]["directions"];
        let near = capture["host"] == "near";
        let (out, back) =
            if near { (&directions[0], &directions[1]) } else { (&directions[1], &directions[0]) };
        let seen = |outbound: bool, comment: &str| {
            packets.get(&(outbound, comment.to_owned())).copied().unwrap_or_default()
        };
        assert_eq!(seen(true, "dropped: loss"), count(&out["dropped"]["loss"]), "{packets:?}");
        assert_eq!(seen(true, "dropped: queue"), count(&out["dropped"]["queue"]), "{packets:?}");
        assert_eq!(seen(false, "delivered"), count(&back["packets_out"]), "{packets:?}");
        let entered: u64 = packets.iter().filter(|((outbound, _), _)| *outbound).map(|(_, n)| n).sum();
        assert_eq!(entered, count(&out["packets_in"]) - count(&out["dropped"]["device_in"]), "{packets:?}");
        assert!(seen(true, "queued") > 20 && seen(false, "delivered") > 20, "{packets:?}");
    }
}

#[test]
fn a_capture_has_each_packet_with_what_became_of_it() {
    let Some(_lab) = shared_lab() else { return };
    let bench = Bench::new();
    let link = "loss = \"5%\"\nlimit = 8\ncapture = \"both\"\ncapture_snap = 96";
    bench.write("captured.toml", Scenario { link, ..Scenario::default() }.text());
    let ended = bench.run("lab run captured.toml --attempts 1 --json");
    let document = ended.json();
    let case = &document["cases"][0];
    assert_eq!(case["error"], Value::Null, "{}", ended.err);
    let hosts: Vec<_> = case["captures"].as_array().unwrap().iter().map(|c| c["host"].clone()).collect();
    assert_eq!(hosts, ["near", "far"]);
    let path = case["captures"][1]["path"].as_str().unwrap();
    assert!(path.starts_with("bdp-captures/captured-") && path.ends_with("-1-link0-far.pcapng"), "{path}");
    assert_counted(&bench, case);
    let dropped = &case["fidelity"]["directions"][0]["dropped"];
    assert!(count(&dropped["loss"]) + count(&dropped["queue"]) > 0, "something was dropped: {dropped}");
}

#[test]
fn a_folder_makes_captures_of_a_scenario_that_asks_for_none() {
    let Some(_lab) = shared_lab() else { return };
    let bench = Bench::new();
    bench.write("plain.toml", Scenario { link: "capture_snap = 96", ..Scenario::default() }.text());
    let ended = bench.run("lab run plain.toml --attempts 1 --json --capture here/and/there");
    let document = ended.json();
    let case = &document["cases"][0];
    assert_eq!(case["captures"].as_array().map(Vec::len), Some(2), "{}", ended.err);
    assert_counted(&bench, case);
    assert_eq!(fs::read_dir(bench.path("here/and/there")).unwrap().count(), 2);

    let ended = bench.run("lab run plain.toml --attempts 1 --json");
    assert_eq!(ended.json()["cases"][0]["captures"], Value::Array(Vec::new()));
    assert!(!bench.path("bdp-captures").exists(), "nothing was asked for");
}

#[test]
fn a_folder_that_can_not_be_made_is_refused_before_anything_runs() {
    let bench = Bench::new();
    bench.write("plain.toml", Scenario::default().text());
    let ended = bench.run("lab run plain.toml --capture plain.toml/captures");
    let line = ended.refusal(3);
    assert!(line.contains("'plain.toml/captures'") && line.contains("--capture"), "{line}");
    assert!(!ended.err.contains("cases"), "{}", ended.err);
}
