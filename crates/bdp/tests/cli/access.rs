//! Who may use `bdp serve`, and how much of it, as its options say.

use crate::support::serving::{measure, serve};
use crate::support::{Bench, start};

#[test]
fn addresses_that_are_denied_are_told_so_and_others_are_served() {
    let bench = Bench::new();
    let server = serve(&bench, "--deny 127.0.0.2 --deny 127.9.0.0/16");
    for address in ["127.0.0.2", "127.9.1.1"] {
        let ended = bench.run(&format!("{} -B {address}", measure(server.port)));
        let line = ended.refusal(3);
        assert!(line.contains(address) && line.contains("--deny"), "{line}");
    }
    server.assert_unharmed(&bench);
    let told = server.process.err();
    assert!(told.contains("turned away 127.0.0.2:"), "{told}");
}

#[test]
fn an_exclusive_server_tells_others_that_it_is_busy() {
    let bench = Bench::new();
    let mut server = serve(&bench, "--exclusive");
    let first = start(bench.bdp(&format!("measure 127.0.0.1:{} -t 60 --idle 0.1 -P 2", server.port)));
    server.process.wait_until("the first session began", |p| p.err().contains(" started, "));
    let busy = bench.run(&measure(server.port));
    assert!(busy.refusal(3).contains("busy"), "{}", busy.err);
    first.signal("KILL");
    first.wait();
    server.process.wait_until("the first session ended", |p| p.err().contains("ended after"));
    server.assert_unharmed(&bench);
}

#[test]
fn an_address_gets_its_share_of_sessions_and_streams_and_no_more() {
    let bench = Bench::new();
    let mut server = serve(&bench, "--max-sessions-per-address 1 --max-streams-per-address 3");
    let wide = bench.run(&format!("{} -P 4", measure(server.port)));
    assert!(wide.refusal(3).contains("--max-streams-per-address"), "{}", wide.err);
    assert_eq!(bench.run(&format!("{} -P 3", measure(server.port))).code(), 0);
    let began = server.process.err().matches(" started, ").count();
    let first = start(bench.bdp(&format!("measure 127.0.0.1:{} -t 60 --idle 0.1", server.port)));
    server.process.wait_until("a session began", |p| p.err().matches(" started, ").count() > began);
    let second = bench.run(&measure(server.port));
    assert!(second.refusal(3).contains("--max-sessions-per-address"), "{}", second.err);
    let neighbour = bench.run(&format!("{} -B 127.0.0.2", measure(server.port)));
    assert_eq!(neighbour.code(), 0, "{}", neighbour.err);
    first.signal("KILL");
}

#[test]
fn ranges_and_rates_that_mean_nothing_are_refused() {
    let bench = Bench::new();
    for (options, part) in [
        ("--allow 10.0.0.1/8", "10.0.0.0/8"),
        ("--allow ams1", "192.0.2.0/24"),
        ("--deny ::/129", "128 bits"),
        ("--max-rate 0", "--max-rate"),
        ("--exclusive --max-sessions 3", "--max-sessions"),
    ] {
        let ended = bench.run(&format!("serve --listen 127.0.0.1:1 {options}"));
        assert_eq!(ended.code(), 2, "{options}: {}", ended.err);
        assert!(ended.err.contains(part), "{options}: {}", ended.err);
    }
}
