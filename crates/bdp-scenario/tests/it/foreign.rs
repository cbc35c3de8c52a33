//! Paths as other emulators state them, there and back.

use bdp_model::link::{DirectionConfig, Jitter, JitterDistribution, LinkConfig, Reorder};
use bdp_scenario::foreign::{self, Imported, import, netem, netem_commands, netem_of, rattan};

use super::*;

fn share(fraction: f64) -> Probability {
    Probability::new(fraction).unwrap()
}

fn links(imported: &Imported) -> LinkConfig {
    plan(&imported.text).remove(0).links.remove(0).config
}

fn forward(command: &str) -> (DirectionConfig, Vec<String>) {
    let imported = netem(&[command]).unwrap_or_else(|e| panic!("{command}: {e}"));
    (links(&imported).forward, imported.left_out)
}

#[test]
fn a_netem_command_becomes_a_direction() {
    let (config, left_out) =
        forward("tc qdisc add dev eth0 root handle 1: netem delay 50ms 10ms loss 1% rate 10mbit limit 100");
    let jitter = Jitter {
        distribution: JitterDistribution::Uniform { spread: Nanos::millis(10) },
        reorder: true,
        correlation_time: None,
    };
    assert_eq!(
        (config.delay, config.jitter, config.loss),
        (Nanos::millis(50), Some(jitter), Loss::Independent(share(0.01)))
    );
    assert_eq!((config.rate, config.overhead_bytes), (Some(Rate::mbps(10)), 14));
    // 50 ms at 10 Mbit/s hold 42 packets of 1514 bytes, which netem counts.
    assert_eq!(config.limit, QueueLimit::Packets(100 - 42));
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn netem_s_other_words_are_read() {
    let (config, left_out) =
        forward("netem loss gemodel 1% 25% 80% 0.1% corrupt 0.5% duplicate 2% rate 1mbps 24");
    let bursts = Loss::GilbertElliott {
        to_bad: share(0.01),
        to_good: share(0.25),
        loss_bad: share(0.8),
        loss_good: share(0.001),
    };
    assert_eq!((config.loss, config.corrupt, config.duplicate), (bursts, share(0.005), share(0.02)));
    // mbps are bytes.
    assert_eq!((config.rate, config.overhead_bytes, left_out.len()), (Some(Rate::mbps(8)), 38, 0));
    let (config, _) = forward("delay 10ms reorder 25% 50%");
    assert_eq!(
        (config.delay, config.reorder),
        (Nanos::ZERO, Some(Reorder { probability: share(0.75), by: Nanos::millis(10) }))
    );
    let (config, left_out) =
        forward("delay 100000 10000 25% distribution pareto limit 50 slot 20ms 40ms ecn");
    assert_eq!(config.delay, Nanos::millis(100));
    assert!(matches!(config.jitter.unwrap().distribution, JitterDistribution::Normal { .. }));
    let named: Vec<&str> = left_out.iter().map(|line| line.split(':').nth(1).unwrap().trim()).collect();
    assert_eq!(named, ["delay", "slot", "ecn", "limit", "distribution pareto"]);
}

#[test]
fn what_is_exported_is_imported_as_it_was() {
    for lines in [
        "rate = '10M'\ndelay = '20ms'\nlimit = 60\noverhead = 38",
        "rate = '1234567'\ndelay = '12.345678ms'\nlimit = 5\noverhead = 14\nloss = '0.1%'\ncorrupt = 1e-5\nduplicate = '3%'",
        "delay = '1ms'\njitter = { uniform = '0.5ms', reorder = true }\nloss = { to_bad = '1%', to_good = '33.3%', loss_bad = 0.7, loss_good = 0.01 }",
        "rate = '2G'\njitter = { normal = '100us', reorder = true }\ndelay = '1s'",
        "rate = '9M'\nlimit = 33\nreorder = { probability = '10%', by = '7ms' }",
    ] {
        let text = BASE.replacen("rate = \"100M\"", lines, 1).replacen("delay = \"20ms\"\n", "", 1);
        let case = plan(&text).remove(0);
        let commands = netem_commands(&case);
        assert!(!commands.contains("# not:"), "{commands}");
        let mut back = links(&import(&commands).unwrap_or_else(|e| panic!("{commands}{e}")));
        let mut config = case.links[0].config.clone();
        // Without a rate they mean nothing.
        for direction in [&mut back.forward, &mut back.reverse, &mut config.forward, &mut config.reverse] {
            if direction.rate.is_none() {
                (direction.limit, direction.overhead_bytes) = (QueueLimit::Unlimited, 0);
            }
        }
        assert_eq!(back, config, "{commands}");
    }
}

#[test]
fn an_exported_command_is_what_the_kernel_is_asked_for() {
    let lines = "rate = '10M'\ndelay = '20ms'\nlimit = 60\nloss = { to_bad = '1%', to_good = '20%', loss_good = 0.01 }\nduplicate = '3%'";
    let text = BASE.replacen("rate = \"100M\"", lines, 1).replacen("delay = \"20ms\"\n", "", 1);
    let printed = netem_commands(&plan(&text).remove(0));
    let command = printed.lines().find(|line| line.starts_with("tc ")).unwrap();
    let netem = netem_of(command).unwrap();
    // 10 Mbit/s for 20 ms are 16.25 full packets of 1538 bytes.
    assert_eq!((netem.limit_packets, netem.overhead_bytes), (77, 38));
    assert_eq!((netem.rate, netem.delay), (Some(Rate::mbps(10)), Nanos::millis(20)));
    let states = netem.loss_in_states.unwrap();
    let shares = [states.to_bad, states.to_good, states.loss_bad, states.loss_good].map(|p| p.fraction());
    assert_eq!((shares, netem.loss.fraction()), ([0.01, 0.2, 1.0, 0.01], 0.0));
    assert_eq!(netem.duplicate.fraction(), 0.03);
    assert_eq!(netem_of("loss 2%").unwrap().loss.fraction(), 0.02);
    assert_eq!(netem_of("loss gemodel 1% 20%").unwrap().loss_in_states.unwrap().loss_bad.fraction(), 1.0);
    for wordless in ["corrupt 1%", "delay 1ms 1ms distribution normal", "loss 1% 25%", "ecn", "slot 1ms"] {
        let error = netem_of(wordless).unwrap_err().to_string();
        assert!(error.contains("not supported") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn what_netem_can_t_is_named() {
    let lines = "profile = 'leo-satellite'\nforward.policer = { rate = '10M', burst = '32K' }\nloss = { every = 100 }";
    let case = plan(&BASE.replacen("rate = \"100M\"", lines, 1)).remove(0);
    let text = netem_commands(&case);
    for what in [
        "trace",
        "outages",
        "correlated in time",
        "order under jitter",
        "policer",
        "given packets",
        "full-size packets",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with("# not: ") && line.contains(what)),
            "{what}: {text}"
        );
    }
    assert_eq!(text.matches("\ntc qdisc add dev eth0 root netem ").count(), 2);
}

#[test]
fn commands_and_traces_of_mahimahi_become_a_path() {
    let imported =
        import("mm-delay 20 mm-loss uplink 0.01 mm-link --uplink-queue=droptail --uplink-queue-args=\"packets=100\" up.trace down.trace -- curl x")
            .unwrap();
    for line in [
        "rate = { trace = \"up.trace\" }",
        "rate = { trace = \"down.trace\" }",
        "delay = \"20ms\"",
        "loss = \"1%\"",
        "limit = 100",
        "limit = \"none\"",
    ] {
        assert!(imported.text.contains(line), "{line}: {}", imported.text);
    }
    assert_eq!(imported.left_out, ["'curl' and all after it; use 'bdp lab exec' to run programs"]);
    let text = foreign::mahimahi_trace(&["a\"b.trace"]).unwrap().text;
    assert!(text.contains(r#"rate = { trace = "a\"b.trace" }"#), "{text}");
}

const RATTAN: &str = r#"
[cells.up_1]
type = "Bw"
bandwidth = "30Mbps"
bw_type = "LinkLayer"
queue = "DropTail"
queue_config = { packet_limit = 60 }
[cells.up_2]
type = "Delay"
delay = "20ms"
[cells.down_1]
type = "Bw"
bandwidth = { gbps = 1, bps = 200000000 }
queue = "CoDel"
queue_config = { target = "3ms", packet_limit = 90 }
[cells.down_2]
type = "Loss"
pattern = [0.1, 0.2]
[cells.down_3]
type = "DelayReplay"
trace = "x.json"
[links]
left = "up_1"
up_1 = "up_2"
up_2 = "right"
right = "down_1"
down_1 = "down_2"
down_2 = "down_3"
down_3 = "left"
"#;

#[test]
fn a_configuration_of_rattan_becomes_a_path() {
    let imported = rattan(RATTAN).unwrap();
    assert_eq!(import(RATTAN), Ok(imported.clone()));
    let LinkConfig { forward, reverse, .. } = links(&imported);
    assert_eq!(
        (forward.rate, forward.overhead_bytes, forward.delay),
        (Some(Rate::mbps(30)), 38, Nanos::millis(20))
    );
    assert_eq!(forward.limit, QueueLimit::Packets(60));
    assert_eq!((reverse.rate, reverse.overhead_bytes), (Some(Rate::bps(1_200_000_000)), 0));
    assert_eq!(
        (reverse.loss, reverse.queue.map(|queue| queue.name())),
        (Loss::Independent(share(0.1)), Some("codel"))
    );
    assert_eq!(
        imported.left_out,
        [
            "cell 'down_2': the losses after a loss; only the first rate is used",
            "cell 'down_3': its type DelayReplay"
        ]
    );
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    for (text, expected) in [
        ("", "it is empty"),
        ("hello", "unknown format"),
        ("netem delay", "'delay' has no value"),
        ("netem delay 5parsec", "'5parsec' is not a time such as 50ms"),
        ("netem loss 200%", "'200%' is not a percentage"),
        ("netem rate 0", "'0' is not a rate such as 10mbit, above 0"),
        ("netem wobble 3", "'wobble' is not an option of netem; options: limit, delay"),
        ("netem delay 1ms\nnetem delay 1ms\nnetem delay 1ms", "3 netem commands"),
        ("mm-delay x", "mm-delay needs a delay in ms"),
        ("mm-link up", "mm-link needs two traces"),
        ("mm-loss up 1", "mm-loss needs a direction"),
        ("[links]\nleft = 'a'", "needs [cells] and [links]"),
        ("[cells.a]\ntype = 'Delay'\n[links]\nleft = 'a'\na = 'a'", "form a loop at 'a'"),
        ("[cells.a]\ntype = 'Delay'\n[links]\nleft = 'a'", "'a' has no link"),
        (
            "[cells.a]\ntype = 'Bw'\nbandwidth = 'x'\n[links]\nleft = 'a'\na = 'right'\nright = 'left'",
            "'x' is not a rate",
        ),
        ("[links", "s.toml"),
    ] {
        let Err(error) = import(text) else { panic!("accepted: {text}") };
        let error = error.to_string();
        assert!(
            error.contains(expected.trim_start_matches("s.toml")) && !error.contains('\n'),
            "{text}: {error}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn text_of_any_kind_is_imported_or_refused(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "netem", "delay", "10ms", "loss", "1%", "gemodel", "rate", "10mbit", "-9223372036854775808", "9223372036854775807", "limit",
                "18446744073709551615", "reorder", "gap", "distribution", "normal", "slot", "mm-delay", "20", "mm-link", "a.trace",
                "--uplink-queue-args=\"bytes=1\"", "mm-loss", "uplink", "0.5", "\n", "[cells.a]", "[links]", "left = 'a'", "a = 'right'",
                "right = 'left'", "type = 'Bw'", "bandwidth = '1Mbps'", "tc", "qdisc", "class", "filter", "add", "change", "del", "dev", "eth0", "root", "parent", "1:", "1:1",
                "handle", "classid", "tbf", "htb", "cake", "fq_codel", "prio", "burst", "latency", "default", "ceil", "bandwidth", "police", "'", "\"", "$X", ";",
                "X=1", "\\\n", "\u{e9}", "999999999999gbit", "3600s",
            ]),
            0..24,
        ),
    ) {
        if let Ok(imported) = import(&words.join(" ")) {
            let _ = Scenario::parse("s", &imported.text);
        }
        let _ = netem(&[&words.join(" ")]);
        let _ = import(&words.join("\n"));
    }
}
