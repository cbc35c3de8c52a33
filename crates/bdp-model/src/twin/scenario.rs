//! Writes a twin as a scenario of the lab.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::path::{Twin, TwinFlow};
use super::variant::TwinVariant;
use super::way::{Discipline, TwinJitter, TwinLoss, TwinOutage, TwinWay};
use crate::flow::payload::Zerocopy;
use crate::measurement::ends::{Direction, End};
use crate::tuning::setting::Setting;

/// Largest start offset of a repetition, so that no two are identical on the virtual clock.
const START_SPREAD_MS: u64 = 20;

impl Twin {
    /// Returns the scenario of the unchanged twin: `runs` repetitions with this seed.
    pub fn scenario(&self, runs: u32, seed: u64) -> String {
        self.scenario_of(&TwinVariant::default(), runs, seed)
    }

    /// Returns the scenario of the twin with a variant's changes.
    pub fn scenario_of(&self, variant: &TwinVariant, runs: u32, seed: u64) -> String {
        let mut text = String::new();
        let title =
            format!("Twin of {} and {}, data {}", self.near.name, self.far.name, self.direction.name());
        line(&mut text, "title", &quoted(&title));
        line(&mut text, "clock", "\"virtual\"");
        if let Some(stack) = &self.stack {
            line(&mut text, "stack", &quoted(stack));
        }
        if self.ipv6 {
            line(&mut text, "family", "\"ipv6\"");
        }
        line(&mut text, "seed", &seed.to_string());
        line(&mut text, "repetitions", &runs.to_string());
        for end in [End::Near, End::Far] {
            self.write_host(&mut text, end, variant);
        }
        self.write_link(&mut text);
        self.write_flow(&mut text, &self.flow, self.direction, variant);
        if let Some(other) = &self.other_flow {
            self.write_flow(&mut text, other, self.direction.opposite(), &TwinVariant::default());
        }
        if let Some(competitor) = &variant.competitor {
            let [from, to] = ends(self.direction);
            let seconds = (self.flow.duration_ns.saturating_sub(competitor.start_ns)) as f64 / 1e9;
            text.push_str("\n[[flow]]\n");
            line(&mut text, "from", &quoted(from));
            line(&mut text, "to", &quoted(to));
            line(&mut text, "congestion", &quoted(&competitor.congestion));
            line(&mut text, "background", "true");
            line(&mut text, "start", &time(competitor.start_ns));
            line(&mut text, "duration", &format!("\"{:.3}s\"", seconds.max(0.1)));
            line(&mut text, "omit", "0");
        }
        text
    }

    fn write_host(&self, text: &mut String, end: End, variant: &TwinVariant) {
        let host = self.host(end);
        let mut sysctls: BTreeMap<&str, &str> =
            host.sysctls.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let changed = match end {
            End::Near => &variant.near_sysctls,
            End::Far => &variant.far_sysctls,
        };
        sysctls.extend(changed.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        // A requested window sets the receiver's buffer.
        let window = |flow: &TwinFlow| flow.window_bytes.is_some();
        let asked = match self.direction.sender() == end {
            true => self.other_flow.as_ref().is_some_and(window),
            false => window(&self.flow) || variant.window_bytes.is_some(),
        };
        if asked {
            sysctls.remove(Setting::TcpRmem.name);
        }
        let scaled = sysctls
            .get(Setting::TcpRmem.name)
            .zip(host.window_factor)
            .map(|(value, factor)| scaled(value, factor));
        if let Some(value) = &scaled {
            sysctls.insert(Setting::TcpRmem.name, value);
        }
        let initial = variant.initial_window.filter(|_| self.direction.sender() == end);
        let _ = write!(text, "\n[hosts.{}]\n", end.name());
        if let Some(segments) = initial {
            line(text, "initial_window", &segments.to_string());
        }
        if !sysctls.is_empty() {
            let all: Vec<String> =
                sysctls.iter().map(|(name, value)| format!("{} = {}", quoted(name), quoted(value))).collect();
            line(text, "sysctls", &format!("{{ {} }}", all.join(", ")));
        }
    }

    fn write_link(&self, text: &mut String) {
        text.push_str("\n[[link]]\nbetween = [\"near\", \"far\"]\n");
        if self.mtu != 1500 {
            line(text, "mtu", &self.mtu.to_string());
        }
        for (name, way) in [("forward", &self.to), ("reverse", &self.from)] {
            let _ = write!(text, "\n[link.{name}]\n");
            write_way(text, way);
        }
    }

    fn write_flow(&self, text: &mut String, flow: &TwinFlow, direction: Direction, variant: &TwinVariant) {
        let [from, to] = ends(direction);
        text.push_str("\n[[flow]]\n");
        line(text, "from", &quoted(from));
        line(text, "to", &quoted(to));
        line(text, "congestion", &quoted(variant.congestion.as_deref().unwrap_or(&flow.congestion)));
        let streams = variant.streams.unwrap_or(flow.streams);
        if streams > 1 {
            line(text, "streams", &streams.to_string());
        }
        if let Some(bytes) = variant.window_bytes.or(flow.window_bytes) {
            line(text, "window", &bytes.to_string());
        }
        if let Some(mss) = flow.mss {
            line(text, "mss", &mss.to_string());
        }
        if flow.nodelay {
            line(text, "nodelay", "true");
        }
        if flow.zerocopy != Zerocopy::Off {
            line(text, "zerocopy", &quoted(flow.zerocopy.name()));
        }
        line(text, "duration", &time(flow.duration_ns));
        line(text, "omit", &time(flow.omit_ns));
        if let Some(bytes) = flow.bytes {
            line(text, "bytes", &bytes.to_string());
        }
        for (key, rate) in [("writer", variant.writer_bps.or(flow.writer_bps)), ("reader", flow.reader_bps)] {
            if let Some(bps) = rate {
                line(text, key, &format!("{{ rate = {} }}", bps.clamp(8_000, 1_000_000_000)));
            }
        }
        line(text, "start_spread", &format!("\"{START_SPREAD_MS}ms\""));
    }
}

/// Scales the largest size of a buffer so that it gives the same window on the twin's kernel.
fn scaled(value: &str, factor: f64) -> String {
    let mut sizes: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
    if let Some(largest) = sizes.get_mut(2)
        && let Ok(bytes) = largest.parse::<f64>()
    {
        *largest = format!("{:.0}", bytes * factor);
    }
    sizes.join(" ")
}

/// Returns the hosts of a direction, the sender first.
const fn ends(direction: Direction) -> [&'static str; 2] {
    match direction {
        Direction::To => ["near", "far"],
        Direction::From => ["far", "near"],
    }
}

fn write_way(text: &mut String, way: &TwinWay) {
    line(text, "delay", &time(way.delay_ns));
    match &way.jitter {
        None => {}
        Some(TwinJitter::Uniform { spread_ns }) => {
            line(text, "jitter", &format!("{{ uniform = {} }}", time(*spread_ns)));
        }
        Some(TwinJitter::Normal { deviation_ns, correlation_ns: None }) => {
            line(text, "jitter", &format!("{{ normal = {} }}", time(*deviation_ns)));
        }
        Some(TwinJitter::Normal { deviation_ns, correlation_ns: Some(within) }) => {
            let (deviation, within) = (time(*deviation_ns), time(*within));
            line(text, "jitter", &format!("{{ normal = {deviation}, correlation_time = {within} }}"));
        }
        Some(TwinJitter::Table { quantiles_ns }) => {
            let all: Vec<String> = quantiles_ns.iter().map(|ns| format!("\"{}us\"", ns / 1000)).collect();
            line(text, "jitter", &format!("{{ table = [{}] }}", all.join(", ")));
        }
    }
    if let Some(bottleneck) = &way.bottleneck {
        let rate = |bps: f64| (bps.round() as u64).max(1_000).to_string();
        match bottleneck.steps.is_empty() {
            true => line(text, "rate", &rate(bottleneck.rate_bps)),
            false => {
                let later =
                    bottleneck.steps.iter().map(|(at, bps)| format!("[{}, {}]", time(*at), rate(*bps)));
                let all: Vec<String> =
                    std::iter::once(format!("[0, {}]", rate(bottleneck.rate_bps))).chain(later).collect();
                line(text, "rate", &format!("{{ steps = [{}] }}", all.join(", ")));
            }
        }
        line(text, "limit", &bottleneck.limit_packets.max(1).to_string());
        let managed = |kind: &str, target: u64, ecn: bool| {
            format!("{{ kind = \"{kind}\", target = {}, ecn = {ecn} }}", time(target))
        };
        match bottleneck.discipline {
            Discipline::DropTail => {}
            Discipline::Codel { target_ns, ecn } => line(text, "queue", &managed("codel", target_ns, ecn)),
            Discipline::FqCodel { target_ns, ecn } => {
                line(text, "queue", &managed("fq_codel", target_ns, ecn));
            }
        }
        if let Some(packets) = bottleneck.mark_packets {
            line(text, "ecn_threshold", &packets.max(1).to_string());
        }
    }
    match way.loss {
        None => {}
        Some(TwinLoss::Random { share }) => line(text, "loss", &fraction(share)),
        Some(TwinLoss::Bursts { begins, packets }) => {
            let ends = 1.0 / packets.max(1.0);
            line(text, "loss", &format!("{{ to_bad = {}, to_good = {} }}", fraction(begins), fraction(ends)));
        }
    }
    if let Some(policer) = way.policer {
        let rate = policer.rate_bps.round() as u64;
        line(text, "policer", &format!("{{ rate = {rate}, burst = {} }}", policer.burst_bytes));
    }
    if let Some(reorder) = way.reorder {
        let (share, by) = (fraction(reorder.share), time(reorder.by_ns));
        line(text, "reorder", &format!("{{ probability = {share}, by = {by} }}"));
    }
    if !way.outages.is_empty() {
        let one = |o: &TwinOutage| {
            format!("{{ at = {}, for = {}, drop = {} }}", time(o.at_ns), time(o.for_ns), o.drops)
        };
        let all: Vec<String> = way.outages.iter().map(one).collect();
        line(text, "outage", &format!("[{}]", all.join(", ")));
    }
    if way.strips_window_scaling {
        line(text, "window_scale", "\"strip\"");
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    let _ = writeln!(text, "{key} = {value}");
}

/// Formats a time for the scenario, in microseconds.
fn time(ns: u64) -> String {
    format!("\"{}us\"", (ns + 500) / 1000)
}

/// Formats a share for the scenario.
fn fraction(share: f64) -> String {
    format!("{:.7}", share.clamp(0.0, 1.0))
}

/// Quotes text as a TOML string.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.chars().filter(|c| !c.is_control()).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_scaled_by_its_largest_size() {
        assert_eq!(scaled("4096 131072 262144", 1.25), "4096 131072 327680");
        assert_eq!(scaled("4096\t131072\t262144", 1.0), "4096 131072 262144");
        assert_eq!(scaled("", 2.0), "");
    }
}
