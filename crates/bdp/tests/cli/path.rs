//! `bdp path`: on paths of the lab, where what a hop does is known; and documents that keep their schema.
//!
//! The path is the one of `docs/path.md`. Where guests boot it runs by the virtual clock, and figures are exact; routers whose kernel
//! is to do more than pass packets on (several ways, other marks) are those of the real clock, as the kernels of guests have neither.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use crate::support::guests::guests_boot;
use crate::support::machine::{Lab, is_installed, own_lab};
use crate::support::untested::{not_judged, skip};
use crate::support::{BDP, Bench, Ended, start};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/path.schema.json");
const PAGE: &str = include_str!("../../../../docs/path.md");

#[track_caller]
fn in_schema(document: Value) -> Value {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let complaints: Vec<String> =
        validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(complaints, Vec::<String>::new(), "{document:#}");
    document
}

/// The scenario that the page shows.
fn five_hops() -> String {
    let (_, behind) = PAGE.split_once("```toml\n").unwrap();
    behind.split_once("```").unwrap().0.to_owned()
}

/// The same with something else in the place of a line.
fn changed(line: &str, by: &str) -> String {
    let scenario = five_hops();
    assert_eq!(scenario.matches(line).count(), 1, "{line}");
    scenario.replace(line, by)
}

/// The line of the slow link.
const SLOW_LINK: &str = "limit = \"64KiB\"\n";

/// Where a path of the lab is: in a guest where guests boot, else here with nothing else of the lab beside.
struct Place {
    bench: Bench,
    clock: &'static str,
    _lab: Option<Lab>,
}

impl Place {
    /// `None` where there is neither.
    fn choose() -> Option<Self> {
        let bench = Bench::new();
        if guests_boot(&bench) {
            return Some(Self { bench, clock: "--clock virtual", _lab: None });
        }
        Some(Self { bench, clock: "", _lab: Some(own_lab()?) })
    }

    /// What a command comes to on the client of a scenario.
    fn run(&self, scenario: &str, options: &str, command: &str) -> Ended {
        self.bench.write("path.toml", scenario);
        let line = format!("bdp lab exec path.toml -q {} {options} --host client -- {command}", self.clock);
        start(self.bench.shell(&line)).wait()
    }
}

/// The document of `bdp path` from the client of a scenario. `None` without a lab.
fn traced(scenario: &str, options: &str, line: &str) -> Option<Value> {
    Some(traced_at(&Place::choose()?, scenario, options, line))
}

fn traced_at(place: &Place, scenario: &str, options: &str, line: &str) -> Value {
    let ended = place.run(scenario, options, &path(line));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    in_schema(ended.json())
}

fn path(line: &str) -> String {
    format!("{BDP} path {line} --json")
}

fn hops(document: &Value) -> &Vec<Value> {
    document["hops"].as_array().unwrap()
}

#[test]
fn the_hop_before_which_the_queue_stands_is_named_under_load() {
    let serve = format!("--serve 'server={BDP} serve --open'");
    let Some(place) = Place::choose() else { return };
    let document = traced_at(&place, &five_hops(), &serve, "server --load --no-mtu --flows 1");
    assert_eq!(hops(&document).len(), 5);
    assert_eq!(document["reached"], true);
    let step = &document["queue"]["steps"][0];
    assert_eq!((&step["after"], &step["hop"]), (&2.into(), &3.into()), "{:#}", document["queue"]);
    let added = step["added_ns"].as_u64().unwrap();
    let goodput = document["load"]["goodput_bps"].as_f64().unwrap();
    if place.clock.is_empty() {
        // How much of the queue a sender fills in real time is this machine's.
        assert!(added > 1_000_000 && goodput < 10e6, "{added} {goodput}");
        return;
    }
    // 64 KiB at 10 Mbit/s are 52 ms; cubic keeps most of it full.
    assert!((10_000_000..60_000_000).contains(&added), "{added}");
    assert!((7e6..10e6).contains(&goodput), "{goodput}");
    // Without load the path takes 11 ms each way.
    let idle = hops(&document)[4]["idle"]["rtt_min_ns"].as_u64().unwrap();
    assert!((22_000_000..30_000_000).contains(&idle), "{idle}");
}

#[test]
fn a_black_hole_is_found_behind_its_hop() {
    let Some(document) = traced(&changed(SLOW_LINK, "drop_above = 1400\n"), "", "server -c 3 --flows 1")
    else {
        return;
    };
    let hole = &document["mtu"]["black_hole"];
    assert_eq!((&hole["after"], &hole["before"]), (&2.into(), &3.into()), "{:#}", document["mtu"]);
    assert_eq!((&hole["passes_bytes"], &hole["vanishes_bytes"]), (&1400.into(), &1401.into()));
    let reached: Vec<u64> = hops(&document).iter().map(|hop| hop["mtu_bytes"].as_u64().unwrap()).collect();
    assert_eq!(reached, [1500, 1500, 1400, 1400, 1400]);
}

#[test]
fn the_router_that_says_what_its_link_carries_is_named() {
    let Some(document) = traced(&changed(SLOW_LINK, "mtu = 1300\n"), "", "server -c 3 --flows 1") else {
        return;
    };
    let told = &document["mtu"]["told"][0];
    assert_eq!((&told["hop"], &told["mtu_bytes"]), (&2.into(), &1300.into()), "{:#}", document["mtu"]);
    assert_eq!((&document["mtu"]["bytes"], &document["mtu"]["black_hole"]), (&1300.into(), &Value::Null));
}

#[test]
fn losses_are_found_at_their_link_and_a_limit_on_answers_is_none() {
    // The first router limits its answers, by what Linux has as its default.
    let limited = five_hops().replacen("sysctls = { \"net.ipv4.icmp_ratelimit\" = 0 }\n", "", 1);
    let link = "between = [\"r3\", \"r4\"]\n";
    assert_eq!(limited.matches(link).count(), 1);
    let lossy = limited.replace(link, &format!("{link}forward = {{ loss = \"15%\" }}\n"));
    let Some(document) = traced(&lossy, "", "server -c 80 -i 100ms --no-mtu --flows 1") else { return };
    let steps = document["loss"]["steps"].as_array().unwrap();
    let places: Vec<_> = steps.iter().map(|step| (step["after"].as_u64(), step["hop"].as_u64())).collect();
    assert_eq!(places, [(Some(3), Some(4))], "{:#}", document["loss"]);
    assert!(steps[0]["loss"]["low"].as_f64().unwrap() < 0.15, "{:#}", steps[0]);
    assert!(steps[0]["loss"]["high"].as_f64().unwrap() > 0.15, "{:#}", steps[0]);
    let kinds: Vec<&Value> = hops(&document).iter().map(|hop| &hop["loss"]["kind"]).collect();
    assert_eq!(kinds, ["rate_limit", "none", "none", "path", "none"]);
    let pace = hops(&document)[0]["loss"]["answers_per_s"].as_f64().unwrap();
    assert!((0.8..1.2).contains(&pace), "{pace}");
}

#[test]
fn a_destination_that_limits_its_answers_loses_nothing() {
    // Linux gives one "port unreachable" a second.
    let Some(document) = traced(&five_hops(), "", "server --udp --no-mtu --flows 1") else { return };
    assert_eq!(document["loss"]["steps"], Value::Array(Vec::new()), "{:#}", document["loss"]);
    assert_eq!(hops(&document)[4]["loss"]["kind"], "rate_limit", "{:#}", hops(&document)[4]);
}

#[test]
fn every_protocol_and_version_finds_the_same_hops() {
    let v6 = format!(
        "family = \"ipv6\"\n{}",
        five_hops().replace("net.ipv4.icmp_ratelimit", "net.ipv6.icmp.ratelimit")
    );
    for (scenario, version) in [(&five_hops(), "4"), (&v6, "6")] {
        for protocol in ["icmp", "udp", "tcp"] {
            let ecn = if protocol == "tcp" { "" } else { "--ecn" };
            let line = format!("server -{version} --{protocol} -c 3 --flows 1 --dscp af41 {ecn} --samples");
            let Some(document) = traced(scenario, "", &line) else { return };
            let kinds: Vec<&Value> = hops(&document).iter().map(|hop| &hop["kind"]).collect();
            assert_eq!(kinds, ["router", "router", "router", "router", "destination"], "{line}");
            assert_eq!(document["method"]["protocol"], protocol);
            assert_eq!(document["mtu"]["bytes"], 1500, "{line}: {:#}", document["mtu"]);
            assert_eq!(
                document["samples"].as_array().unwrap().len() as u64,
                document["probes"].as_u64().unwrap()
            );
            // Nothing changes them, and all routers quote them.
            assert_eq!(document["marks"]["changes"], Value::Array(Vec::new()), "{line}");
            assert!(
                document["marks"]["seen_until"].as_u64().unwrap() >= 4,
                "{line}: {:#}",
                document["marks"]
            );
        }
    }
}

#[test]
fn without_privilege_the_same_is_found_but_for_marks() {
    if !is_installed("setpriv") {
        return skip("setpriv is not installed");
    }
    let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all";
    let lab = Place::choose();
    let Some(lab) = &lab else { return };
    if lab.run(&five_hops(), "", &format!("{nobody} {BDP} --version")).code() != 0 {
        return skip("nobody may not run bdp here, or there is one user alone");
    }
    let ended = lab.run(&five_hops(), "", &format!("{nobody} {}", path("server -c 5 --dscp ef")));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = in_schema(ended.json());
    assert_eq!(hops(&document).len(), 5);
    let method = &document["method"];
    assert_eq!((&method["protocol"], &method["fallback"]), (&"udp".into(), &true.into()));
    assert_eq!((&document["quotes"], &document["marks"]["unknown"]), (&false.into(), &"privilege".into()));
    assert_eq!(document["mtu"]["bytes"], 1500);
    // What was asked for by name is not replaced.
    let ended = lab.run(&five_hops(), "", &format!("{nobody} {BDP} path server --icmp"));
    assert!(ended.refusal(3).contains("ping_group_range"), "{}", ended.err);
}

/// Has programs run on two hosts by the real clock, whose kernels do what no guest's can: on a router a line that sets something up, and
/// then on the client the lines. `None` where the machine disturbed it.
fn beside_a_router(bench: &Bench, (router, setup): (&str, &str), lines: &[String]) -> Option<Vec<Value>> {
    let folder = bench.folder().display().to_string();
    let router_line =
        format!("{setup} && touch {folder}/set; while ! test -e {folder}/done; do sleep 0.05; done");
    let mut client = format!("while ! test -e {folder}/set; do sleep 0.05; done");
    for (n, line) in lines.iter().enumerate() {
        client.push_str(&format!("; {line} > {folder}/{n}.json"));
    }
    client.push_str(&format!("; touch {folder}/done"));
    let on = format!("--on '{router}={router_line}' --on 'client={client}'");
    let ended = start(bench.shell(&format!("bdp lab exec path.toml --json --time-limit 100 {on}"))).wait();
    let record: Value = serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{e}: {}", ended.err));
    if record["cases"][0]["valid"] != true {
        not_judged("probes through kernels of routers", "the machine did not keep time");
        return None;
    }
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let found = |n: usize| fs::read_to_string(bench.path(&format!("{n}.json"))).unwrap();
    Some((0..lines.len()).map(|n| in_schema(serde_json::from_str(&found(n)).unwrap())).collect())
}

#[test]
fn branches_of_a_router_are_found() {
    if !is_installed("ip") {
        return skip("ip is not installed");
    }
    let bench = Bench::new();
    let Some(_lab) = own_lab() else { return };
    let quick = "sysctls = { \"net.ipv4.icmp_ratelimit\" = 0, \"net.ipv4.fib_multipath_hash_policy\" = 1 }";
    let mut scenario = "title = \"two ways\"\n".to_owned();
    for host in ["r1", "a", "b", "r2"] {
        scenario.push_str(&format!("[hosts.{host}]\nrouter = true\n{quick}\n"));
    }
    for (one, other) in
        [("client", "r1"), ("r1", "a"), ("r1", "b"), ("a", "r2"), ("b", "r2"), ("r2", "server")]
    {
        scenario.push_str(&format!("[[link]]\nbetween = [\"{one}\", \"{other}\"]\n"));
    }
    bench.write("path.toml", scenario);
    let split = "ip route replace $BDP_ADDRESS_server nexthop via $BDP_ADDRESS_a nexthop via $BDP_ADDRESS_b";
    let lines: Vec<String> = ["", "", "--tcp", "--tcp"]
        .map(|protocol| path(&format!("server -c 1 -W 3 --no-mtu {protocol}")))
        .into();
    let Some(found) = beside_a_router(&bench, ("r1", split), &lines) else { return };
    let mut most = 0;
    for document in found {
        let counts: Vec<[u64; 3]> = document["branches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|b| ["hop", "branches", "flows"].map(|member| b[member].as_u64().unwrap()))
            .collect();
        // The rule misses one of two branches in 1 of 32 searches: six flows by the same.
        let second = counts[1];
        assert!(second == [2, 1, 6] || second[..2] == [2, 2] && second[2] >= 11, "{counts:?}");
        assert_eq!((counts[0], counts[2]), ([1, 1, 6], [3, 1, 6]), "{counts:?}");
        assert!(
            document["branches"].as_array().unwrap().iter().all(|b| b["confidence"].as_f64() >= Some(0.95))
        );
        assert_eq!(document["branches"][1]["per_packet"], false);
        most = most.max(second[1]);
    }
    // All four miss it in one of a million runs of this test.
    assert_eq!(most, 2);
}

#[test]
fn a_code_point_that_a_router_changes_is_found_behind_it() {
    if !is_installed("nft") {
        return skip("nft is not installed");
    }
    let bench = Bench::new();
    let Some(_lab) = own_lab() else { return };
    let table = "table ip marks { chain out { type filter hook postrouting priority 0; ip dscp set cs1; }; }";
    bench.write("marks.nft", table);
    bench.write("path.toml", five_hops());
    let set = format!("nft -f {}", bench.path("marks.nft").display());
    let add = "nft add table ip marks";
    if start(bench.shell(&format!("bdp lab exec path.toml -q --host r2 -- {add}"))).wait().code() != 0 {
        return skip("this kernel has no nftables, or not for this user");
    }
    let line = path("server -c 3 -W 3 --dscp ef --ecn --flows 1 --no-mtu");
    let Some(found) = beside_a_router(&bench, ("r2", &set), &[line]) else { return };
    let marks = &found[0]["marks"];
    assert_eq!(marks["changes"].as_array().unwrap().len(), 1, "{marks:#}");
    let change = &marks["changes"][0];
    assert_eq!((&change["after"], &change["hop"]), (&2.into(), &3.into()), "{marks:#}");
    assert_eq!((&change["from"]["dscp"], &change["to"]["dscp"]), (&46.into(), &8.into()));
    assert_eq!((&change["from"]["ecn"], &change["to"]["ecn"]), (&2.into(), &2.into()));
}

#[test]
fn what_cant_be_is_one_line_and_its_code() {
    let bench = Bench::new();
    for (line, hint) in [
        ("path", "HOST"),
        ("path :80", "contains no host"),
        ("path h --udp --tcp", "cannot be used with"),
        ("path h -W 0", "-W must be above 0"),
        ("path h -c 10000 -i 1s", "take longer than"),
        ("path h --hops 65", "not in 1 to 64"),
        ("path h --tcp --ecn", "never ECN-capable"),
        ("path h --samples", "--json"),
        ("path 127.0.0.1 -6", "IPv4 address"),
        ("path 127.0.0.1 -B 192.0.2.1", "no such address"),
    ] {
        assert!(bench.run(line).refusal(2).contains(hint), "{line}");
    }
    let unknown = bench.run("path no-such-host.invalid");
    assert!(unknown.refusal(3).contains("resolve host 'no-such-host.invalid'"), "{}", unknown.err);
    // Nothing listens there.
    let unserved = bench.run("path 127.0.0.1:9 --load -c 1");
    assert!(unserved.refusal(3).contains("start 'bdp serve' there"), "{}", unserved.err);
    let Some(place) = Place::choose() else { return };
    let ended = place.run(&five_hops(), "", &format!("{BDP} path 203.0.113.9"));
    assert!(ended.refusal(3).contains("no route"), "{}", ended.err);
}

#[test]
fn an_interrupt_prints_what_there_is() {
    let bench = Bench::new();
    // A moment of the rounds can't be seen from outside: an interrupt may find the search, on a busy machine a later one too.
    let sent = [500, 2_000, 10_000].into_iter().find_map(|ms| {
        let mut running = start(bench.bdp("path 127.0.0.1 --tcp -c 10000 -i 5ms --json --samples"));
        std::thread::sleep(std::time::Duration::from_millis(ms));
        assert!(!running.has_ended());
        running.signal("INT");
        let ended = running.wait();
        assert_eq!(ended.status.signal(), Some(2), "{}", ended.err);
        in_schema(ended.json())["hops"][0]["idle"]["sent"].as_u64()
    });
    assert!(sent.is_some_and(|sent| (1..10_000).contains(&sent)), "{sent:?}");
}

#[test]
fn a_queue_that_others_fill_is_found_without_load_of_ours() {
    // The transfer begins after the first probes, and lasts longer than the last.
    let serve = format!("--serve 'server={BDP} serve --open'");
    let load = format!("{BDP} measure server --forward -t 8 --idle 1.5");
    let command =
        format!("sh -c '{load} > measured 2>&1 & {}; wait'", path("server --no-mtu --flows 1 -c 30"));
    let Some(place) = Place::choose() else { return };
    let ended = place.run(&five_hops(), &serve, &command);
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = in_schema(ended.json());
    let step = &document["queue"]["steps"][0];
    assert_eq!((&step["after"], &step["hop"]), (&2.into(), &3.into()), "{:#}", document["queue"]);
    assert_eq!(document["load"], Value::Null);
}

#[test]
fn loopback_is_one_hop() {
    let bench = Bench::new();
    for (host, protocol) in
        [("127.0.0.1", "--udp"), ("::1", "--udp"), ("127.0.0.1", "--tcp"), ("::1", "--tcp")]
    {
        let document = in_schema(bench.run(&format!("path {host} {protocol} -c 3 -i 20ms --json")).json());
        assert_eq!(hops(&document).len(), 1);
        assert_eq!(document["hops"][0]["kind"], "destination");
        assert_eq!(document["hops"][0]["addresses"][0]["address"], host);
    }
}
