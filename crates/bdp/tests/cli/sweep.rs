//! `bdp sweep` as people run it: requests, a stored sweep of the published shape, and a short one on the lab.

use std::collections::BTreeSet;

use crate::support::scenario::Scenario;
use crate::support::{Bench, machine, start};
use bdp_model::record::Record;
use bdp_store::{NewRun, RunKind, SqliteStore, Store};
use serde_json::Value;

/// Stores a sweep over 1 Gbit/s and 2.55 ms: W/RTT up to the ceiling, and beyond it a queue; below a segment 50 kbit/s.
fn stored(bench: &Bench) -> String {
    const RTT_NS: u64 = 2_550_000;
    std::fs::create_dir_all(bench.path("bdp")).unwrap();
    let mut store = SqliteStore::open(bench.store()).unwrap();
    let new =
        NewRun { kind: RunKind::Sweep, scenario: "s0-window-i".into(), planned: 9, ..NewRun::default() };
    let run = store.begin_run(&new).unwrap();
    for window in [576u64, 2896, 8192, 65_536, 262_144, 319_000, 409_600, 655_360, 4_194_304] {
        let text = include_str!("../../../bdp-store/tests/it/record.json");
        let mut record: Record = serde_json::from_str(text).unwrap();
        record.scenario = "s0-window-i".into();
        record.params = [("flow.window".to_owned(), Value::from(window))].into();
        record.case.params = record.params.clone();
        record.case.flows[0].spec.streams = 1;
        let by_window = if window < 1448 { 50e3 } else { window as f64 * 8.0 / (RTT_NS as f64 / 1e9) };
        record.goodput_bps = Some(by_window.min(941.48e6));
        record.expected_bps = record.goodput_bps;
        record.rtt_idle_ns = Some(RTT_NS);
        let queue_ns = (window as f64 * 8.0 / 941.48e6 * 1e9 - RTT_NS as f64).max(0.0) as u64;
        for (summary, more) in
            [(&mut record.rtt_ns.idle, 40_000), (&mut record.rtt_ns.loaded, 60_000 + queue_ns)]
        {
            let summary = summary.as_mut().unwrap();
            (summary.min, summary.p50, summary.p95) = (RTT_NS, RTT_NS + more, Some(RTT_NS + more));
        }
        record.window.asked_bytes = Some(window);
        record.window.on_the_wire_bytes = Some(window);
        record.window.socket_buffer_bytes = Some(2 * window);
        let key = format!("{} {}", record.scenario, record.case.key());
        store.append(&run, &key, &record, true).unwrap();
    }
    store.finish_run(&run, 1_767_225_660_000).unwrap();
    run
}

#[test]
fn a_stored_sweep_is_printed_again_with_its_knee_and_what_to_choose() {
    let bench = Bench::new();
    let id = stored(&bench);
    let shown = bench.run(&format!("show {id}"));
    let text = &shown.out;
    assert_eq!(shown.code(), 0, "{}", shown.err);
    for part in [
        "goodput against window on the wire",
        "knee  312 KiB on the wire (asked 319 kB)",
        "throughput  312 KiB on the wire: 95 % of the plateau and more",
        // 2896 bytes are two segments, 8192 five; at 319 kB the queue is 0.16 ms, a tenth of the round trip is 0.26.
        "latency     8.00 KiB to 312 KiB on the wire",
        "below: under 5.0 % of the idle RTT",
        "memory      of socket buffer for 95 % of the plateau: one window of 312 KiB: 623 KiB (measured); 39 streams",
    ] {
        let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains(&part), "{part}\n{text}");
    }
    // 8 x 576 bytes at 50 kbit/s are 92.2 ms, 2.55 of them the path's.
    let smallest = text.lines().find(|l| l.starts_with("576 B")).unwrap();
    assert!(smallest.trim_end().ends_with("89.6"), "{smallest}");
}

#[test]
fn the_json_of_a_sweep_fits_its_schema() {
    let bench = Bench::new();
    let id = stored(&bench);
    let document = bench.run(&format!("show {id} --json")).json();
    assert_eq!(complaints(&document), Vec::<String>::new());
    assert_eq!((&document["run"], &document["schema"]), (&id.into(), &"bdp.sweep/1".into()));
    let curve = &document["curves"][0];
    assert_eq!((&curve["axis"], &curve["knee"]["where"]), (&"window_on_the_wire".into(), &"at".into()));
    assert_eq!(curve["knee"]["x"], 319_000.0);
    assert_eq!(curve["points"][0]["delivery_delay_ns"], 89_610_000);
    assert_eq!(curve["points"][3]["delivery_delay_below_resolution"], true);
    assert_eq!(document["cases"].as_array().unwrap().len(), 9);
    for (path, value) in
        [("/curves/0/points/0/streams", Value::from("1")), ("/curves/0/axis", "colour".into())]
    {
        let mut wrong = document.clone();
        *wrong.pointer_mut(path).unwrap() = value;
        assert!(!complaints(&wrong).is_empty(), "{path}");
    }
}

#[test]
fn wrong_requests_are_refused_in_a_line() {
    let bench = Bench::new();
    for (line, part) in [
        ("sweep --window 4K..64K", "HOST[:PORT]"),
        ("sweep ams1 --in s1-64k --window 4K..64K", "cannot be used with"),
        ("sweep ams1:x --window 4K..64K", "'x' is not a port"),
        ("sweep ams1 --window 4K..64K --resume", "need --in SCENARIO"),
        ("sweep --in s1-64k --window 4K..64K --bidir", "cannot be used with"),
        ("sweep --in s1-64k --window 4K..64K --dscp ef", "cannot be used with"),
        ("sweep --in s1-64k --window 4K..64K -N", "cannot be used with"),
        ("sweep --in s1-64k --window 4K..64K --notsent-lowat 64K", "cannot be used with"),
        ("sweep ams1 --window 4K..64K --sockbuf 1M", "cannot be used with"),
        ("sweep ams1 --streams 1..4 --sockbuf 0", "no buffer"),
        ("sweep ams1 --window 4K..64K -t 0", "-t 0 measures nothing"),
        ("sweep --in s1-64k", "no parameter is varied"),
        ("sweep --in s1-64k --window 64K", "no parameter is varied"),
        ("sweep --in s1-64k --window 4K..64K --streams 1..4 --mss 536..1448", "3 parameters are varied"),
        ("sweep --in s1-64k --window 64K..4K", "a range must go from a smaller to a larger"),
        ("sweep --in s1-64k --window 4K..x", "'x' is not a size"),
        ("sweep --in nosuch --window 4K..64K", "no scenario 'nosuch'"),
        ("sweep --in s1-64k --window 4K..64K -t soon", "soon"),
        ("sweep --in s1-64k --window 4K..64K --points 1", "--points"),
        ("sweep --in s1-64k --window 4K..64K -R --forward", "--forward"),
    ] {
        let ended = bench.run(line);
        let text = ended.refusal(2);
        assert!(text.contains(part), "{line}: {text}");
    }
}

/// 5 Mbit/s over 40 ms: the product is 25 kB. Judged is what came out valid; the shape of the document always.
#[test]
fn a_sweep_on_the_lab_is_stored_and_refined_and_finds_the_knee() {
    let Some(_lab) = machine::own_lab() else { return };
    let bench = Bench::new();
    bench.write("path.toml", Scenario::default().text());
    let swept =
        bench.run("sweep --in path.toml --window 3K..192K --points 4 -t 0.8 -O 0.4 --label curve --json --prometheus cases.prom");
    let is_valid = swept.every_case_is_valid();
    let attempts = |window: &str| -> f64 {
        let of_it = format!("bdp_case_attempts{{scenario=\"path.toml\",case=\"window={window}\"");
        bench.metrics("cases.prom").iter().filter(|(name, _)| name.starts_with(&of_it)).map(|(_, n)| n).sum()
    };
    assert!(attempts("3K") >= 1.0 && attempts("192K") >= 1.0);
    let document = swept.json();
    assert_eq!(complaints(&document), Vec::<String>::new());
    let run = document["run"].as_str().unwrap();
    let stored = bench.run("runs --json").json();
    assert_eq!((&stored["runs"][0]["run"], &stored["runs"][0]["state"]), (&run.into(), &"finished".into()));
    let cases = stored["runs"][0]["cases_recorded"].as_u64().unwrap();
    assert_eq!(stored["runs"][0]["cases_planned"], cases);
    assert_eq!(bench.run(&format!("show {run} --json")).json()["curves"], document["curves"]);
    assert_eq!(bench.run("show curve --json").json()["run"], run);
    if is_valid {
        let curve = &document["curves"][0];
        assert_eq!(curve["knee"]["where"], "at", "{curve:#}");
        let knee = curve["knee"]["x"].as_f64().unwrap();
        assert!((12e3..=49e3).contains(&knee), "{curve:#}");
        // 3 K, 12 K, 48 K, 192 K, and at least one between 12 and 48.
        assert!(cases > 4, "{curve:#}");
    }
}

/// Over loopback no figure is judged: it has no knee that would be the path's.
#[test]
fn a_sweep_to_a_server_is_stored_point_by_point() {
    let bench = Bench::new();
    let mut server = start(bench.bdp("serve --listen 127.0.0.1:0"));
    let address = |said: &str| {
        let (_, rest) = said.split_once("listening on ")?;
        Some(rest.split(',').next()?.to_owned())
    };
    server.wait_until("it listens", |server| {
        address(&server.err()).or_else(|| address(&server.out())).is_some()
    });
    let at = address(&server.err()).or_else(|| address(&server.out())).unwrap();

    let line = format!(
        "sweep {at} --window 16K,64K,256K,1M --streams 1,2 -t 0.2 -O 0.1 --idle 0.1 --no-refine --label there --json"
    );
    let swept = bench.run(&line);
    assert_eq!(swept.code(), 0, "{}", swept.err);
    let document = swept.json();
    assert_eq!(complaints(&document), Vec::<String>::new());
    // Two directions, one and two streams.
    let curves = document["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 4, "{document:#}");
    assert!(curves.iter().all(|c| c["points"].as_array().unwrap().len() == 4), "{document:#}");
    assert_eq!(document["measurements"].as_array().unwrap().len(), 8);
    // In the order of the windows on the wire, which a machine that stalls may not have seen open.
    let points = curves[0]["points"].as_array().unwrap();
    let asked: BTreeSet<u64> = points.iter().filter_map(|p| p["window_asked_bytes"].as_u64()).collect();
    assert_eq!(asked, [16, 64, 256, 1024].map(|kib| kib * 1024).into());
    assert_eq!(bench.run("show there --json").json(), document);
    let shown = bench.run("show there");
    assert!(shown.out.contains("-> 127.0.0.1 streams 2"), "{}", shown.out);
    // The page of the printed document tells the same curves and points as the page of the store.
    bench.write("swept.json", &swept.out);
    let page = |line: &str| {
        let made = bench.run(line);
        assert_eq!(made.code(), 0, "{}", made.err);
        made.out
    };
    let (of_file, of_store) = (page("report ./swept.json -o -"), page("report there -o -"));
    let drawn =
        |page: &str| page[page.find("class=\"verdict").unwrap()..page.find("conditions").unwrap()].to_owned();
    assert!(of_file.contains("streams 2, window 256 KiB"), "{of_file}");
    assert_eq!(drawn(&of_file), drawn(&of_store));
    assert_eq!(page("report ./swept.json --csv"), page("report there --csv"));
    let same = bench.run("compare there there");
    assert_eq!(same.code(), 0, "{}", same.err);
    assert!(same.out.contains("from streams=2 window=64K"), "{}", same.out);

    // The sockets are opened as those of a measurement are.
    let port = at.rsplit(':').next().unwrap_or_default();
    let flags = "-B 127.0.0.5 --bind-dev lo --dscp ef --sockbuf 64K -N";
    let bound = bench.run(&format!(
        "sweep 127.0.0.1:{port} --streams 1,2 {flags} -t 0.2 -O 0 --idle 0.1 --no-refine --forward --json"
    ));
    assert_eq!(bound.code(), 0, "{}", bound.err);
    let measurements = bound.json()["measurements"].take();
    for m in measurements.as_array().unwrap() {
        assert_eq!(m["near"]["address"], "127.0.0.5");
        assert_eq!(m["request"]["bind_device"], "lo");
        assert_eq!((&m["request"]["dscp"], &m["request"]["nodelay"]), (&46.into(), &true.into()));
        assert_eq!(m["directions"][0]["send_buffer_bytes"], 131_072);
    }

    // Each point has its metrics, and what a sweep ends with can be pasted.
    let printed = bench.run(&format!(
        "sweep {at} --streams 1,2 -t 0.2 -O 0 --idle 0.1 --no-refine --forward --prometheus sweep.prom"
    ));
    assert_eq!(printed.code(), 0, "{}", printed.err);
    let metrics = bench.metrics("sweep.prom");
    for streams in [1, 2] {
        let labels = format!("host=\"127.0.0.1\",case=\"streams={streams}\"");
        assert_eq!(metrics[&format!("bdp_measurement_runs{{{labels}}}")], 1.0, "{metrics:?}");
        let goodput = format!("bdp_goodput_bits_per_second{{{labels},direction=\"to\"}}");
        assert!(metrics[&goodput] > 0.0, "{metrics:?}");
    }
    assert_eq!(bench.run_next(&printed.out).len(), 3, "{}", printed.out);

    // What can't be done at a point is refused in a line, after what could be.
    let refused = bench.run(&format!("sweep {at} --congestion reno,nosuch -t 0.2 -O 0 --idle 0.1 --forward"));
    assert_eq!(refused.code(), 3, "{}", refused.err);
    assert!(refused.last_line().contains("nosuch"), "{}", refused.err);
    let gone = bench.run("sweep 127.0.0.1:9 --window 16K,64K --forward");
    assert!(gone.refusal(3).contains("127.0.0.1:9"), "{}", gone.err);
}

fn complaints(document: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/sweep.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect()
}
