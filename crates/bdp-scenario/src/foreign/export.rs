//! Exports a scenario's links as the closest netem commands, with what netem cannot do as comments.

use super::netem::{COUNTED_HEADER, packets_in_delay};
use super::words::{of_share, of_time, rest};
use bdp_model::case::{CaseSpec, LinkSpec};
use bdp_model::link::over_time::RateOverTime;
use bdp_model::link::{DirectionConfig, JitterDistribution, LinkConfig, Loss, Medium, QueueLimit, Reorder};
use bdp_model::units::{Nanos, Probability};

/// Returns, for each link and direction, a command for the device at its start, and a comment for each thing that netem cannot do.
pub fn netem_commands(case: &CaseSpec) -> String {
    let mut text =
        format!("# {}: approximate netem commands, each for the device of its first host\n", case.scenario);
    for link in &case.links {
        for (forward, config) in [(true, &link.config.forward), (false, &link.config.reverse)] {
            let [from, to] = ends(link, forward);
            let (command, cannot) = netem(config, &link.config);
            text.push_str(&format!("\n# {from} -> {to}\ntc qdisc add dev eth0 root netem{command}\n"));
            cannot.iter().for_each(|line| text.push_str(&format!("# not: {line}\n")));
        }
    }
    text
}

fn ends(link: &LinkSpec, forward: bool) -> [&str; 2] {
    let [a, b] = &link.between;
    if forward { [a, b] } else { [b, a] }
}

fn netem(config: &DirectionConfig, link: &LinkConfig) -> (String, Vec<String>) {
    let mut cannot = Vec::new();
    let mut command = limit(config, link, &mut cannot);
    command.push_str(&delay(config, &mut cannot));
    command.push_str(&loss(&config.loss, &mut cannot));
    for (option, share) in [("corrupt", config.corrupt), ("duplicate", config.duplicate)] {
        if share.fraction() > 0.0 {
            command.push_str(&format!(" {option} {}", of_share(share)));
        }
    }
    if let Some(rate) = config.rate {
        let overhead = i64::from(config.overhead_bytes) - COUNTED_HEADER;
        command.push_str(&format!(" rate {}bit {overhead}", rate.as_bps()));
    }
    match &config.rate_over_time {
        Some(RateOverTime::Trace(trace)) => {
            cannot.push(format!("the trace ({trace}); its mean rate is used"))
        }
        Some(RateOverTime::Timeline(_)) => {
            cannot.push("changes of the rate; use 'tc qdisc change' at each".to_owned())
        }
        None => {}
    }
    if !config.outages.is_empty() {
        cannot.push(
            "outages; 'tc qdisc change ... loss 100%' drops packets instead of delaying them".to_owned(),
        );
    }
    if let Some(queue) = &config.queue {
        cannot.push(format!("its queue {}; a qdisc below netem has no rate limit", queue.name()));
    }
    let others = [
        (config.ecn_threshold.is_some(), "ECN marks"),
        (
            config.policer.is_some(),
            "the policer; use 'tc filter ... action police' on the other end's ingress",
        ),
        (config.drop_above.is_some(), "drops by size"),
        (!config.rewrite.is_none(), "changed TCP headers"),
        (link.medium != Medium::FullDuplex, "the half-duplex medium"),
        (link.mtu != 1500, "the MTU; use 'ip link set dev eth0 mtu'"),
    ];
    cannot.extend(others.iter().filter(|(there, _)| *there).map(|(_, what)| (*what).to_owned()));
    (command, cannot)
}

/// Returns netem's limit, which also counts the packets in its delay.
fn limit(config: &DirectionConfig, link: &LinkConfig, cannot: &mut Vec<String>) -> String {
    // Without a rate there is no queue, and nothing may be dropped.
    const ENOUGH: u64 = 1_000_000;
    let Some(rate) = config.fastest() else { return format!(" limit {ENOUGH}") };
    let overhead = u64::from(config.overhead_bytes);
    let waiting = match config.limit {
        QueueLimit::Packets(packets) => packets,
        QueueLimit::Bytes(bytes) => {
            let packets = (bytes.as_bytes() / (u64::from(link.mtu) + overhead)).max(1);
            cannot.push(format!("a limit of {bytes}, converted to {packets} full-size packets"));
            packets
        }
        QueueLimit::Unlimited => ENOUGH,
    };
    let slowest = config.rate_over_time.as_ref().and(config.rate).unwrap_or(rate);
    let inside = waiting.saturating_add(packets_in_delay(slowest, overhead, longest_delay(config)));
    format!(" limit {}", inside.min(u64::from(u32::MAX)))
}

fn longest_delay(config: &DirectionConfig) -> Nanos {
    let changing = config.delay_over_time.as_ref().and_then(|delay| delay.timeline_ns.most()).map(Nanos);
    held(config).map_or(changing.unwrap_or(config.delay), |reorder| reorder.by)
}

/// Returns the reordering if nothing else delays packets: netem sends the others at once.
fn held(config: &DirectionConfig) -> Option<Reorder> {
    config.reorder.filter(|_| config.delay == Nanos::ZERO && config.jitter.is_none())
}

fn delay(config: &DirectionConfig, cannot: &mut Vec<String>) -> String {
    if config.delay_over_time.is_some() {
        cannot.push("changes of the delay; use 'tc qdisc change' at each".to_owned());
    }
    let mut text = String::new();
    let held = held(config);
    if config.reorder.is_some() && held.is_none() {
        cannot.push("reordering with a delay or jitter: netem does not delay reordered packets".to_owned());
    }
    let delay = held.map_or(config.delay, |reorder| reorder.by);
    if delay > Nanos::ZERO || config.jitter.is_some() {
        text = format!(" delay {}", of_time(delay));
    }
    if let Some(jitter) = &config.jitter {
        let (width, distribution) = match &jitter.distribution {
            JitterDistribution::Uniform { spread } => (Some(*spread), ""),
            JitterDistribution::Normal { deviation } => (Some(*deviation), " distribution normal"),
            JitterDistribution::Table(_) => (None, ""),
        };
        match width {
            Some(width) => text.push_str(&format!(" {}{distribution}", of_time(width))),
            None => cannot
                .push("jitter by a table; netem reads 'distribution' tables from files of tc".to_owned()),
        }
        if !jitter.reorder {
            cannot.push("order under jitter; netem lets packets overtake".to_owned());
        }
        if jitter.correlation_time.is_some() {
            cannot.push("jitter correlated in time; netem draws it for each packet".to_owned());
        }
    }
    if let Some(reorder) = held {
        let at_once = rest(reorder.probability);
        text.push_str(&format!(" reorder {}", of_share(at_once)));
    }
    text
}

fn loss(loss: &Loss, cannot: &mut Vec<String>) -> String {
    match loss {
        Loss::None => String::new(),
        Loss::Independent(p) => format!(" loss random {}", of_share(*p)),
        Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
            let [to_bad, to_good, loss_bad, loss_good] =
                [to_bad, to_good, loss_bad, loss_good].map(|p| of_share(*p));
            format!(" loss gemodel {to_bad} {to_good} {loss_bad} {loss_good}")
        }
        Loss::Periodic(_) | Loss::List(_) => {
            cannot.push("loss of given packets".to_owned());
            String::new()
        }
        Loss::OverTime(_) | Loss::States { .. } => {
            let share = Probability::new((loss.probability() * 1e6).round() / 1e6).unwrap_or_default();
            cannot.push(format!("loss that changes over time; {} of packets is used", of_share(share)));
            if share.fraction() > 0.0 { format!(" loss random {}", of_share(share)) } else { String::new() }
        }
    }
}
