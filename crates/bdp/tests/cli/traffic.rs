//! Traffic: hundreds of transfers beside flows, by the virtual clock, in sum and the same for the same seed.

use crate::support::Bench;
use crate::support::guests::guests_boot;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/lab-run.schema.json");

const SCENARIO: &str = r#"title = "traffic"
clock = "virtual"
[[link]]
between = ["server", "client"]
rate = "10M"
delay = "20ms"
limit = "34p"
[[flow]]
duration = "6s"
omit = "1s"
[[flow]]
duration = "6s"
omit = "1s"
[[traffic]]
name = "web"
gap = "25ms"
duration = "5s"
size = { pareto = "10K", shape = 1.5, most = "100K" }
[[traffic]]
name = "video"
pattern = "periodic"
gap = "1s"
duration = "5s"
size = "50K"
"#;

#[test]
fn transfers_come_and_go_and_are_recorded_in_sum() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    bench.write("traffic.toml", SCENARIO);
    let [one, other] = [(); 2].map(|()| bench.run("lab run traffic.toml --json"));
    assert_eq!(one.code(), 0, "{}", one.err);
    let document = one.json();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let complaints: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(complaints, Vec::<String>::new());
    let record = &document["cases"][0];
    assert_eq!(record["flows"].as_array().unwrap().len(), 2, "transfers are no flows of the record");
    assert_eq!(record["case"]["flows"].as_array().unwrap().len(), 2);
    assert_eq!(record["traffic"], other.json()["cases"][0]["traffic"], "the same seed draws the same");
    let [web, video] = [&record["traffic"][0], &record["traffic"][1]];
    // 200 on average.
    assert!((150..250).contains(&web["transfers"].as_u64().unwrap()), "{web}");
    assert_eq!((&video["transfers"], &web["unfinished"]), (&5.into(), &0.into()));
    let at = |percent: usize| web["completion_ns"][percent].as_u64().unwrap();
    // A handshake, and half a round trip for the first byte: 60 ms.
    assert!(at(0) >= 60_000_000 && at(50) >= at(0) && at(100) > at(50), "{web}");
    let shown = bench.run("show");
    for part in ["Jain's", "queue", "web", "video", "p99 ms"] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
}

const QUESTIONS: &str = r#"title = "questions"
clock = "virtual"
[[link]]
between = ["server", "client"]
rate = "8M"
delay = "20ms"
[[traffic]]
pattern = "request-response"
think = "100ms"
clients = 3
duration = "5s"
request = "1000"
size = "1000"
[[traffic]]
name = "new"
pattern = "request-response"
think = "100ms"
connections = "new"
duration = "5s"
request = "1000"
size = "1000"
"#;

const ONE_CLIENT: &str = r#"title = "one client"
clock = "virtual"
[[link]]
between = ["server", "client"]
rate = "8M"
delay = "20ms"
[[traffic]]
pattern = "request-response"
think = { fixed = "100ms" }
duration = "5s"
request = "1000"
size = "14480"
"#;

#[test]
fn a_client_asks_again_when_it_has_had_its_answer_and_thought() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    bench.write("one.toml", ONE_CLIENT);
    let ended = bench.run("lab run one.toml --json");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let traffic = &ended.json()["cases"][0]["traffic"][0];
    // 20 ms each way, a packet of 1052 bytes there, and ten full packets back, which the first window has room for, at 8 Mbit/s; each has 38
    // bytes beside it on the wire.
    let takes = 2 * 20_000_000 + (1_052 + 38) * 1_000 + 10 * (1_500 + 38) * 1_000;
    let took = |percent: usize| traffic["completion_ns"][percent].as_u64().unwrap();
    // The first has a handshake before it; now and then a probe is on the wire.
    assert!((takes..takes + 1_000).contains(&took(0)) && took(90) < takes + 1_000, "{traffic}");
    assert!((takes + 40_000_000..takes + 41_000_000).contains(&took(100)), "{traffic}");
    let asked = traffic["transfers"].as_u64().unwrap();
    let most = 5_000_000_000 / (takes + 100_000_000) + 1;
    assert!((most - 1..=most).contains(&asked), "{asked} of {most}");
    assert_eq!(traffic["received_bytes"], asked * 14_480);
}

#[test]
fn a_request_takes_a_round_trip_and_its_bytes() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    bench.write("questions.toml", QUESTIONS);
    let [one, other] = [(); 2].map(|()| bench.run("lab run questions.toml --json"));
    assert_eq!(one.code(), 0, "{}", one.err);
    let record = &one.json()["cases"][0];
    assert_eq!(record["traffic"], other.json()["cases"][0]["traffic"], "the same seed draws the same");
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&one.json()));
    // One packet of 1052 bytes there and one back at 8 Mbit/s, and 20 ms each way; of a new connection a round trip of small packets before.
    let crossing = 1_052 * 1_000;
    let alone = 2 * (20_000_000 + crossing);
    for (traffic, least) in [(&record["traffic"][0], alone), (&record["traffic"][1], alone + 40_000_000)] {
        let took = |percent: usize| traffic["completion_ns"][percent].as_u64().unwrap();
        // Now and then one waits for others'.
        assert!((least..least + 500_000).contains(&took(0)), "{traffic}");
        assert!(took(50) < least + 3 * crossing, "{traffic}");
        assert_eq!(traffic["unfinished"], 0);
    }
    // Each of three asks once in 142 ms on average for 5 s; the one that connects first, in 182 ms.
    let asked = |entry: usize| record["traffic"][entry]["transfers"].as_u64().unwrap();
    assert!((75..140).contains(&asked(0)) && (14..45).contains(&asked(1)), "{} {}", asked(0), asked(1));
    let idle = record["rtt_idle_ns"].as_u64().unwrap();
    assert!((40_100_000..40_200_000).contains(&idle), "{idle}");
}

#[test]
fn a_transfer_without_a_connection_is_unfinished() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    bench.write(
        "cut.toml",
        "title = 'cut off'\nclock = 'virtual'\n[[link]]\nbetween = ['server', 'client']\nrate = '8M'\ndelay = '20ms'\n\
         outage = { at = '2s', for = '100s' }\n[[traffic]]\npattern = 'periodic'\ngap = '500ms'\nduration = '4s'\nsize = '1K'\n",
    );
    let ended = bench.run("lab run cut.toml --json");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let traffic = &ended.json()["cases"][0]["traffic"][0];
    // Four begin within two seconds.
    assert_eq!((&traffic["transfers"], &traffic["unfinished"]), (&8.into(), &4.into()), "{traffic}");
    assert_eq!(traffic["completion_ns"].as_array().unwrap().len(), 101);
}
