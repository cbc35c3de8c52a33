//! `bdp pcap A B` of two ends of one path, beside what the emulator did between them.

use std::fs;

use bdp_pcap::{Block, Direction, blocks};
use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::schema::assert_in_schema;
use crate::support::{BDP, Bench, start};

const SCHEMA: &str = include_str!("../../../../docs/pcap.schema.json");

const LINUX: &str = "title = 'paired'\nclock = 'virtual'\nidle = '200ms'\n[[link]]\nbetween = ['near', 'far']\n\
    rate = '20M'\ndelay = '20ms'\nLINK\n[[flow]]\nfrom = 'near'\nto = 'far'\nbytes = '4M'\nduration = '60s'\nomit = '100ms'\n";

/// The captures of a run at both ends, of a transfer that ends before they do, and what its links did in each direction.
fn captured(bench: &Bench, link: &str) -> ([String; 2], Value) {
    bench.write("paired.toml", LINUX.replace("LINK", link));
    let ended = bench.run("lab run paired.toml --store none --capture captures --json");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    let case = &document["cases"][0];
    let files = ["near", "far"].map(|host| {
        let all = case["captures"].as_array().unwrap();
        let own = all.iter().find(|capture| capture["host"] == host).unwrap();
        own["path"].as_str().unwrap().to_owned()
    });
    (files, case["fidelity"]["directions"].clone())
}

/// The document of both, which keeps to its schema.
fn compared(bench: &Bench, line: &str) -> Value {
    let ended = start(bench.shell(&format!("exec {BDP} pcap {line} --json"))).wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    assert_in_schema(&document, SCHEMA);
    document
}

/// The TCP packets that this end sent and the emulator dropped, by its own verdict on each.
fn dropped(bench: &Bench, file: &str) -> u64 {
    let bytes = fs::read(bench.path(file)).unwrap();
    let is_dropped = |block: &Block<'_>| {
        matches!(block, Block::Packet { data, direction: Some(Direction::Outbound), comments, .. }
            if data[0] >> 4 == 4 && data[9] == 6 && comments.iter().any(|comment| comment.starts_with("dropped")))
    };
    blocks(&bytes).filter(|block| is_dropped(block.as_ref().unwrap())).count() as u64
}

fn count(way: &Value, name: &str) -> u64 {
    way[name].as_u64().unwrap()
}

#[test]
fn losses_between_two_captures_are_those_of_the_emulator() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    for link in
        ["loss = '1%'\nlimit = 200", "limit = 20", "limit = 400\nreverse.loss = '5%'\nduplicate = '1%'"]
    {
        let (files, _) = captured(&bench, link);
        let document = compared(&bench, &format!("{} {}", files[0], files[1]));
        let pair = &document["pairs"][0];
        assert_eq!(pair["captures"], serde_json::json!([0, 1]));
        let connection = &pair["connections"][0];
        assert_eq!(
            (&connection["nearer_a"], &connection["order_by"]),
            (&Value::from(0), &Value::from("times"))
        );
        let mut lost_at_all = 0;
        for (way, file) in connection["directions"].as_array().unwrap().iter().zip(&files) {
            let lost = count(way, "lost_segments") + count(way, "lost_acks");
            assert_eq!(lost, dropped(&bench, file), "{link}: {way:#}");
            assert_eq!(count(way, "missed_by_capture"), 0, "{link}");
            lost_at_all += lost;
        }
        assert!(lost_at_all > 0, "{link}");
        // Two ways of 20 ms, and what the smallest packets take.
        let rtt = count(connection, "rtt_between_ns");
        assert!((40_000_000..40_200_000).contains(&rtt), "{link}: {rtt}");
        let there = &connection["directions"][0];
        assert_eq!(count(there, "duplicated") > 0, link.contains("duplicate"), "{link}");
        assert_eq!(count(there, "reordered"), 0, "{link}");
        if !link.contains("reverse") {
            assert!(count(there, "retransmitted_after_loss") > 0, "{link}");
        }
    }
}

#[test]
fn a_queue_between_two_captures_is_as_deep_as_the_emulator_says() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let (files, directions) = captured(&bench, "limit = 300");
    let document = compared(&bench, &format!("{} {}", files[1], files[0]));
    let connection = &document["pairs"][0]["connections"][0];
    // The far end is named first.
    assert_eq!((&connection["nearer_a"], &connection["explained_by"]), (&Value::from(1), &Value::from(1)));
    let most = count(&connection["directions"][0]["queueing"], "max_ns");
    let configured = directions[0]["queueing_max_ns"].as_u64().unwrap();
    // A full packet takes 0.6 ms on the wire, which the least delay has not; probes wait, too.
    assert!(most.abs_diff(configured) < 1_300_000, "{most} of {configured}");
    assert!(count(&connection["directions"][1]["queueing"], "max_ns") < 1_000_000);
    let delays = connection["directions"][0]["delays"].as_array().unwrap();
    assert!((200..=1000).contains(&delays.len()), "{}", delays.len());
    let drift = document["pairs"][0]["clock"]["drift_ppm"].as_f64().unwrap();
    assert!(drift.abs() < 10.0, "{drift}");
}

#[test]
fn packets_overtaken_between_two_captures_are_no_losses() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let (files, directions) =
        captured(&bench, "limit = 400\nforward.reorder = { probability = '1%', by = '3ms' }");
    let document = compared(&bench, &format!("{} {}", files[0], files[1]));
    let there = &document["pairs"][0]["connections"][0]["directions"][0];
    assert_eq!(count(there, "lost_segments"), dropped(&bench, &files[0]));
    let held_back = directions[0]["held_back"].as_u64().unwrap();
    let reordered = count(there, "reordered");
    assert!(reordered <= held_back && 10 * reordered >= 9 * held_back, "{reordered} of {held_back}");
}

#[test]
fn an_option_taken_out_on_the_way_is_named_and_explains_the_window() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let (files, _) = captured(&bench, "limit = 400\nreverse.window_scale = 'strip'");
    let both = format!("{} {}", files[0], files[1]);
    let document = compared(&bench, &both);
    let connection = &document["pairs"][0]["connections"][0];
    let change = connection["changes"].as_array().unwrap();
    let change = change.iter().find(|change| change["what"] == "window_scale").unwrap();
    assert_eq!((&change["direction"], &change["arrived"]), (&Value::from(1), &Value::Null));
    assert!(change["sent"].as_u64().is_some());
    let finding =
        |document: &Value| document["captures"][0]["flows"][0]["directions"][0]["findings"][0].clone();
    let own = finding(&document);
    assert_eq!((&own["limit"], &own["cause"]), (&"receive_window".into(), &"scaling_half_stripped".into()));
    // One capture alone shows it by windows that are all far smaller than the first one.
    let separate = compared(&bench, &format!("{both} --separate"));
    assert_eq!(separate["pairs"], serde_json::json!([]));
    assert_eq!(finding(&separate)["cause"], "scaling_half_stripped");
    let text = bench.run(&format!("pcap {both}"));
    assert_eq!(text.code(), 0, "{}", text.err);
    for expected in
        ["1 connection passed both", "between ", "window scale in the SYN of", "arrived none", "lost back"]
    {
        assert!(text.out.contains(expected), "{expected}: {}", text.out);
    }
    assert_eq!(text.out.matches("LIMIT").count(), 1, "{}", text.out);
    let page = bench.run(&format!("pcap {both} --report page.html"));
    assert_eq!(page.code(), 0, "{}", page.err);
    let page = fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("Queueing delay of the data") && page.contains("1 connection passed both"));
}

#[test]
fn three_captures_are_compared_in_their_order_on_the_path() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    bench.write(
        "three.toml",
        "title = 'three'\nclock = 'virtual'\nidle = '200ms'\n[hosts.near]\n[hosts.middle]\nrouter = true\n[hosts.far]\n\
         [[link]]\nbetween = ['near', 'middle']\nrate = '50M'\ndelay = '5ms'\nlimit = 200\ncapture = 'both'\n\
         [[link]]\nbetween = ['middle', 'far']\nrate = '20M'\ndelay = '20ms'\nlimit = 200\nloss = '0.5%'\ncapture = 'far'\n\
         [[flow]]\nfrom = 'near'\nto = 'far'\nbytes = '2M'\nduration = '60s'\nomit = '100ms'\n",
    );
    let ended = bench.run("lab run three.toml --store none --json");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    let captures = document["cases"][0]["captures"].as_array().unwrap();
    let path = |host: &str| {
        let own = captures.iter().find(|capture| capture["host"] == host).unwrap();
        own["path"].as_str().unwrap()
    };
    // Not in that order.
    let document = compared(&bench, &format!("{} {} {}", path("far"), path("near"), path("middle")));
    let pairs = document["pairs"].as_array().unwrap();
    let between: Vec<&Value> = pairs.iter().map(|pair| &pair["captures"]).collect();
    assert_eq!(between, [&serde_json::json!([1, 2]), &serde_json::json!([0, 2])]);
    let lost = |pair: &Value, way: usize| count(&pair["connections"][0]["directions"][way], "lost_segments");
    assert_eq!(lost(&pairs[0], 0), 0, "{pairs:#?}");
    assert!(lost(&pairs[1], 0) > 0, "{pairs:#?}");
}
