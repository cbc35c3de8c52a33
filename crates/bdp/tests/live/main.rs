//! Behaviour in real time, and with real peers: rates that are kept, how soon things end. `make test-live` runs these
//! in guests where these boot, whose time is exact on any machine (`in_guest`), as many side by side as there are processors. What runs outside
//! has the machine for itself (`alone`), and is judged where that kept time while it was taken; where it did not, that is printed.

#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod clocks;
mod figures;
mod iperf2;
mod iperf3;
mod iperf3_by_hand;
mod iperf3_json;
mod iperf3_udp;
mod iperf_figures;
mod processors;
mod stopped;

/// A body that runs neither in a guest nor alone would be judged beside whatever runs then, and spoil what is judged.
#[test]
fn each_test_runs_in_a_guest_or_alone() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live");
    let mut tests = 0;
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.ends_with("main.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&entry).unwrap();
        for test in text.split("#[test]").skip(1) {
            let body = test.split("\n}\n").next().unwrap();
            let ways = ["in_guest(||", "in_guest_with_iperf3(||", "only_in_guest(||", "alone(||"];
            let name = test.split('(').next().unwrap().trim();
            assert!(ways.iter().any(|way| body.contains(way)), "{}: {name}", entry.display());
            tests += 1;
        }
    }
    assert!(tests > 50, "{tests}");
}
