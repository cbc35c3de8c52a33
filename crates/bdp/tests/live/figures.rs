//! Rates that are asked for and kept, and how soon things come about.

use crate::support::Bench;
use crate::support::cable::{lay, said};
use crate::support::fidelity::timed;
use crate::support::inside::{in_guest, is_inside};
use crate::support::serving::serve;
use serde_json::Value;

#[test]
fn connections_are_held_to_a_rate() {
    in_guest(|| {
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
        let told =
            bench.run(&format!("measure 127.0.0.1:{} -b 20M -t 0.2 --idle 0.1 --forward -v", server.port));
        assert!(told.out.contains("20 Mbit/s, paced by TCP itself"), "{}{}", told.out, told.err);
        assert!(told.out.contains(" -b 20M "), "{}", told.out);
    });
}

#[test]
fn what_the_server_sends_keeps_to_its_rate_and_the_reader_is_told() {
    in_guest(|| {
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
    });
}

#[test]
fn a_rate_that_the_path_carries_is_found_and_held() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "--max-rate 40M");
        let line = format!(
            "measure 127.0.0.1:{} -u -b auto --loss-ratio 1% --trial-time 0.1 --forward -t 0.3 --idle 0.1 -v",
            server.port
        );
        let (told, timing) = timed("-u -b auto", || bench.run(&line));
        assert_eq!(told.code(), 0, "{}", told.err);
        let whole = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
        timing.judge(|| {
            for part in ["highest rate with 1.00 % lost at most: ", "trials: 40", "held passed"] {
                assert!(whole.contains(part), "{part}: {}", told.out);
            }
        });
    });
}

#[test]
fn ends_report_window_scaling_and_a_rate_that_was_reached_is_the_finding() {
    in_guest(|| {
        let bench = Bench::new();
        let script = "serve --open
             measure scaled 10.77.0.2 -b 5M -t 1.5 --idle 0.2 --bidir --json
             far sh -c 'echo 0 >/proc/sys/net/ipv4/tcp_window_scaling'
             measure unscaled 10.77.0.2 -b 5M -t 0.5 --idle 0.2 --json";
        let (laid, timing) = timed("two machines", || lay(&bench, script));
        if laid.is_none() {
            return;
        }
        for (name, scaling) in [("scaled", true), ("unscaled", false)] {
            let (code, out, err) = said(&bench, name);
            assert_eq!(code, 0, "{name}: {err}");
            let document: Value = crate::support::the_measurement(serde_json::from_str(&out).unwrap());
            for direction in document["directions"].as_array().unwrap() {
                assert_eq!(direction["sender_window_scaling"], scaling, "{name}");
                assert_eq!(direction["receiver_window_scaling"], scaling, "{name}");
                for end in ["sender_thread_cpu", "receiver_thread_cpu"] {
                    // A thread has one processor; the clocks of time and of processor time differ by ticks.
                    let share = direction[end].as_f64().unwrap();
                    // What runs in a guest takes no time of its clock.
                    assert_eq!(share > 0.0, !is_inside(), "{name}, {end}: {share}");
                    timing.judge_time(|| assert!(share < 1.1, "{name}, {end}: {share}"));
                }
                if name == "scaled" {
                    let finding = &direction["findings"][0];
                    timing.judge(|| assert_eq!(finding["limit"], "asked_rate", "{direction:#}"));
                }
            }
        }
    });
}
