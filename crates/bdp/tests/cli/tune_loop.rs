//! The whole loop as commands, on paths of the lab and by the virtual clock: measure, plan, rehearse, apply, verify, revert. The commands know nothing of a path but
//! what they measure.

use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::schema::assert_in_schema;
use crate::support::{Bench, start};

const PLAN: &str = include_str!("../../../../docs/plan.schema.json");
const REHEARSAL: &str = include_str!("../../../../docs/rehearsal.schema.json");
const VERIFICATION: &str = include_str!("../../../../docs/verification.schema.json");

/// A path, and what is measured on it.
struct Loop {
    bench: Bench,
    /// Options of the measurement.
    way: &'static str,
}

/// What came of it.
struct Documents {
    plan: Value,
    rehearsal: Value,
    verification: Value,
}

impl Loop {
    fn new(path: &str, way: &'static str) -> Option<Self> {
        let bench = Bench::new();
        if !guests_boot(&bench) {
            return None;
        }
        bench.write("path.toml", path);
        Some(Self { bench, way })
    }

    /// Runs a script on the near host, beside a server on the far one.
    fn on_hosts(&self, script: &str) {
        self.bench.write("script.sh", script);
        self.run(
            "bdp lab exec path.toml -q --clock virtual --store none --serve 'far=bdp serve --token t' --host near -- sh -e script.sh",
        );
    }

    fn run(&self, line: &str) -> String {
        let ended = start(self.bench.shell(line)).wait();
        assert_eq!(ended.code(), 0, "{line}: {}{}", ended.out, ended.err);
        ended.out
    }

    fn json(&self, line: &str, schema: &str) -> Value {
        let text = self.run(line);
        let document = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_in_schema(&document, schema);
        document
    }

    /// Goes around once. With `also` a second measurement shows what the path carries.
    fn go_around(&self, also: Option<&str>) -> Documents {
        let way = self.way;
        self.on_hosts(&format!("bdp measure far --token t {way} -t 8 --label before --store s.db"));
        let mut named = "before --store s.db --json".to_owned();
        if let Some(options) = also {
            self.on_hosts(&format!(
                "bdp measure far --token t {way} -t 4 {options} --label more --store s.db"
            ));
            named.push_str(" --also more");
        }
        let plan = self.json(&format!("bdp tune plan {named}"), PLAN);
        let rehearsal = self.json(&format!("bdp rehearse {named}"), REHEARSAL);
        self.on_hosts(
            "export BDP_TUNE_JOURNAL=$PWD/journal
            settings() { cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem /proc/sys/net/ipv4/tcp_congestion_control; ls journal 2>/dev/null | grep json || true; }
            settings > before.txt
            bdp tune apply before --for 10m --yes --store s.db > applied.txt
            bdp verify before --token t --store s.db --json > verified.json
            bdp tune confirm > confirmed.txt
            bdp tune revert > reverted.txt
            settings > after.txt",
        );
        let read = |name| std::fs::read_to_string(self.bench.path(name)).unwrap();
        let verification = serde_json::from_str(&read("verified.json")).unwrap();
        assert_in_schema(&verification, VERIFICATION);
        assert_eq!(read("after.txt"), read("before.txt"), "{}", read("reverted.txt"));
        assert!(
            read("applied.txt").contains("applied") && read("reverted.txt").contains("back"),
            "{}",
            read("reverted.txt")
        );
        Documents { plan, rehearsal, verification }
    }
}

impl Documents {
    fn change(&self) -> &Value {
        let name = self.rehearsal["choice"].as_str().unwrap();
        let all = self.rehearsal["variants"].as_array().unwrap();
        &all.iter().find(|variant| variant["name"] == name).unwrap()["changes"][0]
    }

    /// Before, predicted, now, and the verdict, of a figure.
    fn figure(&self, name: &str) -> (f64, f64, f64, &str) {
        let figure = &self.verification["directions"][0][name];
        let number = |key: &str| figure[key].as_f64().unwrap_or_else(|| panic!("{key}: {figure}"));
        (number("before"), number("predicted"), number("now"), figure["verdict"].as_str().unwrap())
    }
}

#[test]
fn a_window_that_is_too_small_is_fixed_as_predicted() {
    let path = "title = \"a small receive buffer\"\n[hosts.near]\nreceive_buffer = \"128K\"\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"25M\"\ndelay = \"20ms\"\nlimit = 100\n";
    let Some(way) = Loop::new(path, "-R") else { return };
    let came = way.go_around(Some("-P 8"));
    assert_eq!(came.plan["path"]["directions"][0]["limit"], "receive_window");
    assert_eq!(
        (&came.change()["target"]["name"], &came.change()["end"]),
        (&"net.ipv4.tcp_rmem".into(), &"near".into())
    );
    let (before, predicted, now, verdict) = came.figure("goodput_bps");
    assert!(
        before < 15e6 && predicted > 21e6 && now > 21e6 && verdict == "held",
        "{before} {predicted} {now} {verdict}"
    );
}

#[test]
fn a_run_that_was_given_no_plan_is_applied_and_exported_as_the_guide_says() {
    let path = "title = \"a long queue\"\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"10M\"\ndelay = \"15ms\"\nlimit = 200\n";
    let Some(way) = Loop::new(path, "--forward") else { return };
    way.on_hosts(
        "export BDP_TUNE_JOURNAL=$PWD/journal
        bdp measure far --token t --forward -t 5 --label first --store s.db
        bdp tune apply first --for 10m --yes --store s.db > applied.txt 2> said.txt
        bdp tune revert > reverted.txt
        bdp tune export first --as sh --store s.db > export.sh
        bdp tune plan first --store s.db > plan.txt",
    );
    let read = |name| std::fs::read_to_string(way.bench.path(name)).unwrap();
    assert!(read("applied.txt").contains("applied  1 setting, journal 1"), "{}", read("applied.txt"));
    assert!(read("said.txt").contains("had no plan; made one ('bdp tune plan "), "{}", read("said.txt"));
    assert!(read("export.sh").starts_with("#!/bin/sh") && read("export.sh").contains("congctl"));
    // No guest boots on a host of the virtual clock: rehearsing is no next step there.
    let plan = read("plan.txt");
    assert!(
        plan.contains("\nnext        bdp tune apply ")
            && plan.contains(" --for 10m\nnot here    bdp rehearse "),
        "{plan}"
    );
}

#[test]
fn a_queue_that_is_too_long_is_emptied_as_predicted() {
    let path = "title = \"a long queue\"\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"10M\"\ndelay = \"15ms\"\nlimit = 200\n";
    let Some(way) = Loop::new(path, "--forward") else { return };
    let came = way.go_around(None);
    assert_eq!(came.plan["changes"][0]["target"]["attribute"], "congctl");
    // Pacing empties the queue as well.
    assert!(["plan", "pace"].contains(&came.rehearsal["choice"].as_str().unwrap()), "{:#}", came.rehearsal);
    let (before, predicted, now, verdict) = came.figure("loaded_p50_ns");
    assert!(before > 150e6 && predicted < 60e6 && now < 60e6, "{before} {predicted} {now}");
    assert!(["held", "exceeded"].contains(&verdict), "{before} {predicted} {now} {verdict}");
    let (before, _, now, verdict) = came.figure("goodput_bps");
    assert!(now > 0.9 * before && verdict == "held", "{before} {now} {verdict}");
}

#[test]
fn loss_with_the_wrong_congestion_control_is_fixed_as_predicted() {
    let path = "title = \"random loss\"\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"25M\"\ndelay = \"20ms\"\nlimit = 150\n[link.forward]\nloss = \"0.5%\"\n";
    let Some(way) = Loop::new(path, "--forward") else { return };
    let came = way.go_around(Some("-P 8 -C bbr"));
    assert_eq!(came.plan["path"]["directions"][0]["limit"], "random_loss");
    assert_eq!(
        (&came.change()["target"]["attribute"], &came.change()["to"]),
        (&"congctl".into(), &"bbr".into())
    );
    let (before, predicted, now, verdict) = came.figure("goodput_bps");
    assert!(before < 12.5e6 && predicted > 17.5e6 && now > 17.5e6, "{before} {predicted} {now}");
    assert!(["held", "exceeded"].contains(&verdict), "{before} {predicted} {now} {verdict}");
}
