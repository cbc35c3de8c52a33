//! Experiments after a test, and tests that end early, on paths by the virtual clock.

use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::{Bench, start};

/// A measurement over such a path of 3 ms, with these options; `None` without a guest.
fn measured(link: &str, options: &str) -> Option<Value> {
    measured_over("1500us", link, options)
}

/// The same with such a delay each way.
fn measured_over(delay: &str, link: &str, options: &str) -> Option<Value> {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return None;
    }
    let path =
        format!("title = \"a path\"\n[[link]]\nbetween = [\"near\", \"far\"]\ndelay = \"{delay}\"\n{link}\n");
    bench.write("path.toml", path);
    let line = format!(
        "bdp lab exec path.toml -q --clock virtual --serve 'far=bdp serve --open' --host near -- \
         bdp measure far --forward --json --store none {options}"
    );
    let ended = start(bench.shell(&line)).wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    Some(ended.json())
}

/// What is found first, how sure it is, and the experiments that were run.
fn found(document: &Value) -> (&str, &str, Vec<&str>) {
    let text = |value: &'_ Value| value.as_str().map(str::to_owned);
    let first = &document["directions"][0]["findings"][0];
    assert!(text(&first["limit"]).is_some() && text(&first["confidence"]).is_some(), "{first}");
    let changes = document["experiments"].as_array().into_iter().flatten();
    let changes = changes.map(|experiment| experiment["change"].as_str().unwrap()).collect();
    (first["limit"].as_str().unwrap(), first["confidence"].as_str().unwrap(), changes)
}

/// A sender by a model keeps a policer's losses up and its rate steady, as behind a short queue: four connections show that none is there.
const POLICED: &str =
    "rate = \"100M\"\nlimit = 100\n[link.forward]\npolicer = { rate = \"40M\", burst = \"64K\" }\n";

#[test]
fn a_policer_is_told_from_a_queue_by_four_connections() {
    let Some(document) = measured(POLICED, "-t 4 -C bbr") else { return };
    assert_eq!(found(&document).0, "policer", "{document:#}");
    let experiment = &document["experiments"][0];
    assert_eq!((&experiment["change"], &experiment["streams"]), (&"streams".into(), &4.into()));
    let sent = |value: &Value| value["bytes"].as_u64().unwrap();
    assert!(sent(experiment) <= sent(&document["directions"][0]), "it sends no more than the test did");
    // Two seconds and a burst, beside the test and its idle round trips.
    let took_ms = document["took_ms"].as_u64().unwrap();
    assert!((7_900..14_000).contains(&took_ms), "{took_ms}");
}

#[test]
fn a_full_path_is_sure_without_an_experiment() {
    let Some(document) = measured("rate = \"50M\"\nlimit = 60\n", "-t 4") else { return };
    assert_eq!(found(&document), ("path_rate", "high", vec![]), "{document:#}");
}

#[test]
fn a_short_queue_is_named_once_a_burst_has_overflowed_it() {
    let link = "rate = \"60M\"\nlimit = 12\n";
    let Some(document) = measured_over("10ms", link, "-t 4 -C reno") else { return };
    // How sure it is depends on how the four connections of the first experiment fared.
    let (limit, _, changes) = found(&document);
    assert_eq!((limit, changes), ("shallow_queue", vec!["streams", "burst"]), "{document:#}");
    let experiment = &document["experiments"][1];
    // Twelve packets of 1514 bytes at 60 Mbit/s.
    let delay_ms = experiment["burst"]["delay_added_ns"].as_f64().unwrap() / 1e6;
    assert!((2.0..2.7).contains(&delay_ms), "{experiment:#}");
    let sent = experiment["burst"]["sent"].as_u64().unwrap();
    let lost = experiment["burst"]["lost"].as_u64().unwrap();
    assert!(lost >= sent / 2 && sent == experiment["datagrams"], "{experiment:#}");
    // They arrive at the rate of the link at most.
    assert!(experiment["goodput_bps"].as_f64().unwrap() < 60e6, "{experiment:#}");
}

#[test]
fn a_test_is_left_as_it_is_where_no_experiment_is_wanted() {
    let Some(with) = measured(POLICED, "-t 4 -C bbr") else { return };
    let Some(without) = measured(POLICED, "-t 4 -C bbr --no-experiments") else { return };
    assert_eq!(found(&without).2, Vec::<&str>::new());
    assert_eq!(without["request"]["no_experiments"], true);
    // To the byte: what follows a test changes nothing of it.
    for member in ["goodput_bps", "bytes", "retransmits", "duration_ns"] {
        assert_eq!(with["directions"][0][member], without["directions"][0][member], "{member}");
    }
    assert_eq!(without.get("experiments"), None);
}

#[test]
fn a_goodput_that_has_settled_ends_the_test_and_says_what_the_whole_would_come_to() {
    let link = "rate = \"50M\"\nlimit = 60\n";
    let Some(short) = measured(link, "--until settled --no-experiments") else { return };
    let Some(whole) = measured(link, "--no-experiments") else { return };
    let of = |document: &Value| document["directions"][0].clone();
    let (short, whole) = (of(&short), of(&whole));
    assert_eq!((&short["ended"], &whole["ended"]), (&"settled".into(), &"duration".into()));
    let number = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_f64).unwrap();
    assert!(number(&short, "/bytes") < 0.3 * number(&whole, "/bytes"), "{short:#}");
    assert!(number(&short, "/settled/error") <= 0.035);
    let off = number(&short, "/settled/goodput_bps") / number(&whole, "/goodput_bps") - 1.0;
    assert!(off.abs() < 0.03, "{off}");
    assert_eq!(whole.get("settled"), None);
}
