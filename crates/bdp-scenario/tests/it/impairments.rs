//! The keys of a link that impair what passes: what each becomes, and what is said where it is wrong.

use bdp_model::link::{
    Delivery, DirectionConfig, Jitter, JitterDistribution, LinkConfig, Medium, Policer, Reorder, Turns,
};
use bdp_model::units::Offset;

use super::*;

/// The link of [`BASE`] with further lines.
fn link(lines: &str) -> LinkConfig {
    plan(&with(lines))[0].links[0].config.clone()
}

fn with(lines: &str) -> String {
    BASE.replacen("rate =", &format!("{lines}\nrate ="), 1)
}

fn direction(lines: &str) -> DirectionConfig {
    let config = link(lines);
    assert_eq!(config.forward, config.reverse, "a link's key holds for each direction");
    config.reverse
}

fn share(fraction: f64) -> Probability {
    Probability::new(fraction).unwrap()
}

#[test]
fn loss_has_memory_or_a_list() {
    let burst = |loss_good, loss_bad| Loss::GilbertElliott {
        to_bad: share(0.01),
        to_good: share(0.25),
        loss_good: share(loss_good),
        loss_bad: share(loss_bad),
    };
    for (text, expected) in [
        ("{ to_bad = '1%', to_good = 0.25 }", burst(0.0, 1.0)),
        ("{ to_bad = '1%', to_good = '25%', loss_bad = 0.5, loss_good = '0.1%' }", burst(0.001, 0.5)),
        ("{ packets = [3, 17] }", Loss::List(vec![3, 17])),
        ("{ packets = [0] }", Loss::List(vec![0])),
    ] {
        assert_eq!(direction(&format!("loss = {text}")).loss, expected, "{text}");
    }
}

#[test]
fn jitter_has_three_distributions() {
    let uniform = JitterDistribution::Uniform { spread: Nanos::millis(2) };
    let normal = JitterDistribution::Normal { deviation: Nanos::millis(1) };
    let table = JitterDistribution::Table([-1_000_000, 0, 4_500_000].map(Offset::ns).to_vec());
    for (text, distribution, reorder) in [
        ("'2ms'", &uniform, false),
        ("{ uniform = '2ms' }", &uniform, false),
        ("{ normal = '1ms', reorder = true }", &normal, true),
        ("{ table = ['4.5ms', '-1ms', 0], reorder = false }", &table, false),
    ] {
        let expected = Jitter { distribution: distribution.clone(), reorder, correlation_time: None };
        assert_eq!(direction(&format!("jitter = {text}")).jitter, Some(expected), "{text}");
    }
    assert_eq!(direction("jitter = 0").jitter, None);
    assert_eq!(direction("jitter = 'none'").jitter, None);
}

#[test]
fn the_rest_has_one_form_each() {
    let config = direction(
        "reorder = { probability = '1%', by = '5ms' }\nduplicate = '0.1%'\ncorrupt = 1e-5\ndrop_above = 1500\n\
         policer = { rate = '10M', burst = '32K' }\necn_threshold = 20",
    );
    assert_eq!(config.reorder, Some(Reorder { probability: share(0.01), by: Nanos::millis(5) }));
    assert_eq!((config.duplicate, config.corrupt), (share(0.001), share(1e-5)));
    assert_eq!((config.drop_above, config.ecn_threshold), (Some(1500), Some(QueueLimit::Packets(20))));
    assert_eq!(config.policer, Some(Policer { rate: Rate::mbps(10), burst: ByteCount::kib(32) }));
    let threshold = direction("ecn_threshold = '30K'").ecn_threshold;
    assert_eq!(threshold, Some(QueueLimit::Bytes(ByteCount::kib(30))));
    let none = "reorder = 'none'\nduplicate = 'none'\ncorrupt = 'none'\ndrop_above = 'none'\npolicer = 'none'\n\
                ecn_threshold = 'none'\nhalf_duplex = 'none'";
    assert_eq!(link(none), link(""));
}

#[test]
fn the_medium_and_the_delivery_are_the_link_s() {
    let turns = Turns { guard: Nanos::micros(50), turn: Nanos::millis(2) };
    let config = link("half_duplex = { guard = '50us', turn = '2ms' }\ndelivery = 'super'");
    assert_eq!((config.medium, config.delivery), (Medium::HalfDuplex(turns), Delivery::Super));
    assert_eq!(link("delivery = 'segment'").delivery, Delivery::Segment);
    let own = with("[link.forward]\ndelivery = 'super'\n[link]").replacen("[[link]]", "[link]", 1);
    assert!(Scenario::parse("s", &own).is_err());
    let text = format!("{BASE}[link.forward]\nhalf_duplex = 'none'\n").replacen("[[link]]", "[link]", 1);
    assert!(error(&text).contains("unknown key 'half_duplex' in [link.forward]"), "{}", error(&text));
}

#[test]
fn tables_are_values_in_points_and_their_scalars_can_be_swept() {
    let text = format!(
        "{}[[point]]\nlink.loss = {{ packets = [1, 2] }}\nlink.jitter = {{ normal = '1ms' }}\n\
         [[point]]\nlink.loss = {{ to_bad = 0.1, to_good = 0.2 }}\n\
         [sweep]\nlink.half_duplex.guard = {{ from = '1us', to = '100us', steps = 3, scale = 'log' }}\n\
         link.forward.policer.rate = ['1M', '2M']\nlink.duplicate = [0, '1%']\n",
        with("half_duplex = { guard = 0, turn = '1ms' }\nforward.policer = { rate = '1M', burst = '2K' }"),
    );
    let cases = plan(&text);
    assert_eq!(cases.len(), 2 * 3 * 2 * 2);
    let guard = |case: &CaseSpec| match case.links[0].config.medium {
        Medium::HalfDuplex(turns) => turns.guard,
        Medium::FullDuplex => panic!("half duplex"),
    };
    let mut guards: Vec<Nanos> = cases.iter().map(guard).collect();
    guards.dedup();
    assert_eq!(guards, [1, 10, 100, 1, 10, 100].map(Nanos::micros));
    let forward = |case: &CaseSpec| case.links[0].config.forward.clone();
    assert_eq!(forward(&cases[0]).loss, Loss::List(vec![1, 2]));
    assert!(forward(&cases[0]).jitter.is_some() && forward(&cases[12]).jitter.is_none());
    assert!(matches!(forward(&cases[12]).loss, Loss::GilbertElliott { .. }));
    assert_eq!(forward(&cases[2]).policer.map(|p| p.rate), Some(Rate::mbps(2)));
    assert_eq!(forward(&cases[1]).duplicate, share(0.01));
    assert_eq!(cases[0].links[0].config.reverse.policer, None);
}

#[test]
fn mistakes_are_shown_with_what_would_have_been_right() {
    for (line, expected) in [
        (
            "loss = { to_bad = '1%' }",
            "link.loss = a table: expected a fraction such as \"5%\" or 0.05, { every = 1000 }, { packets = [3, 17] }, \
             { to_bad = \"1%\", to_good = \"25%\" }, { good_for = \"10s\", bad_for = \"200ms\" }, { steps = [...] }, { ramp = [...] }, or \"none\"",
        ),
        (
            "loss = { to_bad = '1%', to_god = '25%' }",
            "unknown key 'to_god' in link.loss's table, did you mean 'to_good'?; keys here: every, packets, to_bad, \
             to_good, loss_bad, loss_good",
        ),
        (
            "loss = { to_bad = '101%', to_good = 1 }",
            "link.loss.to_bad: '101%' is out of range for a fraction (0 to 100 %); expected a fraction such as \"1%\" or 0.01",
        ),
        (
            "loss = { packets = [3, 3] }",
            "link.loss.packets = 3: expected a list of ascending packet indexes, counted from 0, such as [3, 17]",
        ),
        (
            "loss = { packets = [] }",
            "link.loss.packets = a list of 0: expected a list of ascending packet indexes, counted from \
             0, such as [3, 17]",
        ),
        (
            "jitter = { normal = '1ms', uniform = '1ms' }",
            "link.jitter = a table: expected a time up to 1h such as \"2ms\" (evenly to both sides of the delay), { normal = \
             \"1ms\" }, { uniform = \"2ms\" }, { table = [\"-1ms\", \"0ms\", \"4ms\"] }, each with \
             reorder = true if packets may overtake, or \"none\"",
        ),
        (
            "jitter = { table = ['--1ms'] }",
            "link.jitter.table: '--1ms' is not a time: it must start with a number, for example -1.5ms or 2ms; expected a \
             list of deviations from the delay, each up to 1h, such as [\"-1ms\", \"0ms\", \"4ms\"]",
        ),
        (
            "jitter = { table = ['-2h'] }",
            "link.jitter.table = \"-2h\": expected a list of deviations from the delay, each up to 1h, \
             such as [\"-1ms\", \"0ms\", \"4ms\"]",
        ),
        ("jitter = { normal = '1ms', reorder = 1 }", "link.jitter.reorder = 1: expected true or false"),
        (
            "reorder = '1%'",
            "link.reorder = \"1%\": expected { probability = \"1%\", by = \"5ms\" }, or \"none\"",
        ),
        (
            "reorder = { probability = '1%', by = 0 }",
            "link.reorder.by = 0: expected the time that a packet is held back, above 0 and up to 1h, such as \"5ms\"",
        ),
        (
            "duplicate = -1",
            "link.duplicate: '-1' is out of range for a fraction (0 to 100 %); expected a fraction such as \
          \"0.1%\" or 1e-3, or \"none\"",
        ),
        (
            "drop_above = 0",
            "link.drop_above = 0: expected the longest IP packet in bytes that passes, 1 to 65535, or \"none\"",
        ),
        (
            "policer = '10M'",
            "link.policer = \"10M\": expected { rate = \"10M\", burst = \"32K\" }, or \"none\"",
        ),
        (
            "policer = { rate = 0, burst = '32K' }",
            "link.policer.rate = 0: expected a bit rate of IP packets above 0, such as \"10M\"",
        ),
        (
            "policer = { rate = '10M', burst = 1000 }",
            "link.forward.policer = a burst of 1000 B conflicts with an MTU of 1500: no full-size packet would pass; use at \
             least 1500 bytes",
        ),
        (
            "ecn_threshold = 0",
            "link.ecn_threshold = 0: expected the queue length from which packets are marked: packets \
             such as 20 or \"20p\", wire bytes with a unit such as \"30K\", or \"none\"",
        ),
        (
            "half_duplex = { guard = '50us' }",
            "link.half_duplex = a table: expected { guard = \"50us\", turn = \"2ms\" }, or \"none\"",
        ),
        (
            "half_duplex = { guard = '11s', turn = 0 }",
            "link.half_duplex.guard = \"11s\": expected the gap when the sending end changes, up to 10s, such as \"50us\"",
        ),
        ("delivery = 'whole'", "link.delivery = \"whole\": expected \"auto\" or \"segment\" or \"super\""),
    ] {
        assert_eq!(error(&with(line)), format!("s.toml:6: {expected}"), "{line}");
    }
}
