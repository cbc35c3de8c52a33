//! Rates that are asked for and kept, and how soon things come about.

use crate::support::Bench;
use crate::support::fidelity::timed;
use crate::support::serving::serve;

#[test]
fn connections_are_held_to_a_rate() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let line = format!("measure 127.0.0.1:{} -t 1 -P 2 -b 20M --idle 0.1 --json", server.port);
    let (ended, timing) = timed("-b 20M -P 2", || bench.run(&line));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    for direction in ended.json()["directions"].as_array().unwrap() {
        let goodput = direction["goodput_bps"].as_f64().unwrap();
        // The first window goes at once, on loopback some hundred KiB each.
        assert!((0.0..60e6).contains(&goodput), "{goodput}: {}", direction["pacing"]);
        timing.judge(|| assert!(goodput >= 10e6, "{goodput}: {}", direction["pacing"]));
    }
    let told = bench.run(&format!("measure 127.0.0.1:{} -b 20M -t 0.2 --idle 0.1 --forward", server.port));
    assert!(told.out.contains("20 Mbit/s, kept to by TCP itself"), "{}{}", told.out, told.err);
    assert!(told.out.contains(" -b 20000000 "), "{}", told.out);
}

#[test]
fn what_the_server_sends_keeps_to_its_rate_and_the_reader_is_told() {
    let bench = Bench::new();
    let server = serve(&bench, "--max-rate 40M");
    // The kernel's first burst is not paced.
    let line = format!("measure 127.0.0.1:{} -R -t 1.5 -O 0.5 --idle 0.1 -P 2 --json", server.port);
    let (ended, timing) = timed("-R -P 2", || bench.run(&line));
    let measured = ended.json();
    let goodput = measured["directions"][0]["goodput_bps"].as_f64().unwrap();
    assert!((0.0..60e6).contains(&goodput), "{goodput}");
    timing.judge(|| assert!(goodput >= 5e6, "{goodput}"));
    let caveats = measured["caveats"].to_string();
    assert!(caveats.contains("--max-rate"), "{caveats}");
}
