//! Programs that hold back, in guests: what they let through, to the percent, and what the kernels show of it.

use crate::support::Bench;
use crate::support::guests::guests_boot;
use bdp_model::facts::Facts;
use bdp_model::measurement::ends::Task;
use bdp_model::record::Record;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/lab-run.schema.json");

/// The record of a flow with these keys, on a path of 100 Mbit/s and 20 ms.
fn record(bench: &Bench, keys: &str) -> Value {
    record_over(bench, "", keys)
}

/// The same with more keys of the link.
fn record_over(bench: &Bench, link: &str, keys: &str) -> Value {
    let text = format!(
        "title = \"programs\"\nclock = \"virtual\"\nidle = \"200ms\"\n[[link]]\nbetween = [\"near\", \"far\"]\n\
         rate = \"100M\"\ndelay = \"10ms\"\n{link}\n[[flow]]\nduration = \"4s\"\nomit = \"1s\"\n{keys}\n"
    );
    bench.write("programs.toml", &text);
    let ended = bench.run("lab run programs.toml --json");
    assert_eq!(ended.code(), 0, "{keys}: {}", ended.err);
    let document = ended.json();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(complaints, Vec::<String>::new());
    document["cases"][0].clone()
}

fn mbps(record: &Value) -> f64 {
    record["goodput_bps"].as_f64().unwrap() / 1e6
}

fn last_sent<'a>(record: &'a Value, member: &str) -> &'a Value {
    &record["flows"][0]["sent"].as_array().unwrap().last().unwrap()[member]
}

#[test]
fn a_program_of_10_mbps_gives_10_mbps_and_shows_at_its_own_end() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let reader = record(&bench, "reader = { rate = \"10M\" }");
    let writer = record(&bench, "writer = { rate = \"10M\" }");
    for record in [&reader, &writer] {
        assert!((9.9..10.1).contains(&mbps(record)), "{}", mbps(record));
        assert_eq!(record["expected_by"], "application: 10 Mbit/s");
        assert_eq!(record["expected_bps"], 1e7);
    }
    let [reading, writing] =
        [&reader, &writer].map(|record| last_sent(record, "rwnd_limited_ns").as_u64().unwrap());
    let busy = last_sent(&reader, "busy_ns").as_u64().unwrap();
    assert!(reading * 10 > busy * 9, "the window is closed: {reading} of {busy}");
    assert_eq!((writing, last_sent(&writer, "app_limited")), (0, &true.into()));
    // Who waited for whom: parts of the time from the first sample to the last.
    let part = |record: &Value, end: &str, member: &str| {
        let samples = record["flows"][0][end].as_array().unwrap();
        let at = |i: usize, member: &str| samples[i][member].as_u64().unwrap() as f64;
        let last = samples.len() - 1;
        (at(last, member) - at(0, member)) / (at(last, "at_ns") - at(0, "at_ns"))
    };
    assert!(part(&reader, "sent", "write_blocked_ns") > 0.9, "the sender waits for its socket");
    assert!(part(&reader, "received", "read_paused_ns") > 0.95, "the reader holds back");
    let unread = &reader["flows"][0]["received"][20]["unread_bytes"];
    assert!(unread.as_u64().unwrap() > 20_000, "{unread}");
    assert!(part(&writer, "sent", "write_idle_ns") > 0.95, "the writer has nothing to write");
    assert!(part(&writer, "sent", "write_blocked_ns") < 0.01);
    assert!(part(&writer, "received", "read_waited_ns") > 0.95, "the reader waits for data");
    assert_eq!(writer["flows"][0]["received"][20]["unread_bytes"], 0);
    let connection = &reader["flows"][0]["connection"];
    assert_eq!(connection["sack"], true, "{connection}");
    assert_eq!(connection["ecn"], false, "{connection}");
    assert!(connection["receiver_window_shift"].as_u64().unwrap() > 0, "{connection}");
    let stack = |record: &Value, host: &str, member: &str| record["counters"][host]["stack"][member].clone();
    assert_eq!(stack(&writer, "near", "timeouts"), 0);
    assert_eq!(stack(&writer, "far", "prune_called"), 0);
    assert_eq!(
        reader["case"]["flows"][0]["application"],
        serde_json::json!({"reader": {"kind": "rate", "rate_bps": 10_000_000}})
    );
}

#[test]
fn a_program_that_pauses_leaves_no_model() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let pausing = record(&bench, "writer = { pause = \"900ms\", every = \"1s\" }");
    // What the send buffer takes in 100 ms goes on in the pause.
    assert!((5.0..60.0).contains(&mbps(&pausing)), "{}", mbps(&pausing));
    assert!(pausing["expected_bps"].is_null());
}

/// RFC 896 holds the body back until the header is acknowledged; the ACK of a header alone is delayed by 40 ms.
#[test]
fn a_message_in_two_writes_stalls_by_the_delayed_ack_unless_it_has_nodelay() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let each_ms = |keys: &str| 1000.0 * 8.0 / (mbps(&record(&bench, keys)) * 1e3);
    let whole = each_ms("messages = { size = \"1000\", writes = 1 }");
    let held = each_ms("messages = { size = \"1000\" }");
    let at_once = each_ms("messages = { size = \"1000\" }\nnodelay = true");
    let round_trip = 20.0;
    for prompt in [whole, at_once] {
        assert!((round_trip..round_trip + 1.0).contains(&prompt), "{prompt} ms");
    }
    // A round trip for the ACK of the header, and its delay.
    assert!((2.0 * round_trip + 39.0..2.0 * round_trip + 45.0).contains(&held), "{held} ms");
}

/// The facts of the only flow, as rules have them.
fn facts(record: &Value) -> Facts {
    let record: Record = serde_json::from_value(record.clone()).unwrap();
    Facts::emulated(&record, 0).unwrap()
}

#[test]
fn the_facts_say_who_waited_for_whom_and_where_probes_were_lost() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let reader = facts(&record(&bench, "reader = { rate = \"10M\" }"));
    assert!(reader.sender_blocked().unwrap() > 0.9 && reader.sender_idle().unwrap() < 0.1);
    assert!(reader.receiver_held_back().unwrap() > 0.95 && reader.unread_bytes().unwrap() > 20_000.0);
    let writer = facts(&record(&bench, "writer = { rate = \"10M\" }"));
    assert!(writer.sender_idle().unwrap() > 0.95 && writer.receiver_waited().unwrap() > 0.95);
    assert_eq!(writer.unread_bytes(), Some(0.0));
    assert_eq!(writer.sender.stack().and_then(|stack| stack.timeouts), Some(0));
    // Nothing takes time in a guest.
    assert_eq!(writer.thread_cpu_over_time(Task::Sending), []);

    let lossy = |way: &str| {
        let link = format!("[link.{way}]\nloss = \"10%\"");
        facts(&record_over(&bench, &link, "writer = { rate = \"1M\" }")).probes_lost.unwrap()
    };
    let (there, back) = (lossy("forward"), lossy("reverse"));
    assert!(there.own_way > 0 && there.way_back == 0, "{there:?}");
    assert!(back.way_back > 0 && back.own_way == 0, "{back:?}");
}
