//! Meaning of a plan's changes, independent of Linux's names.

use std::net::IpAddr;

use bdp_model::measurement::ends::End;
use bdp_model::tuning::setting::Setting;
use bdp_model::tuning::{Change, Plan, RouteAttribute, Target};

/// Purpose of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Largest receive buffer that autotuning may reach.
    ReceiveBuffer { bytes: u64 },
    /// Largest send buffer that autotuning may reach.
    SendBuffer { bytes: u64 },
    /// Largest receive buffer that a program may request.
    AskedReceiveBuffer { bytes: u64 },
    /// Largest send buffer that a program may request.
    AskedSendBuffer { bytes: u64 },
    /// Congestion control, for all connections or for those to one address.
    CongestionControl { name: String, to: Option<IpAddr> },
    /// Window scaling (RFC 7323).
    WindowScaling { on: bool },
    /// Selective acknowledgements (RFC 2018).
    Sack { on: bool },
    /// Timestamps (RFC 7323).
    Timestamps { on: bool },
    /// Slow start after an idle period.
    RestartAfterIdle { on: bool },
    /// Congestion window of a new connection.
    InitialWindow { segments: u32, to: IpAddr },
    /// Receive window that a new connection advertises.
    InitialReceiveWindow { segments: u32, to: IpAddr },
    /// Minimum retransmission timeout.
    LeastTimeout { ms: u32, to: IpAddr },
    /// Pacing of each connection, at most at `rate_bps` if given.
    Pacing { device: String, rate_bps: Option<u64> },
    /// Queueing discipline of a device.
    Queue { device: String, discipline: String },
    /// Queueing discipline of future devices.
    DefaultQueue { discipline: String },
    /// ECN, requested by connections that the host opens (RFC 3168).
    Ecn { asks: bool },
    /// Packetization-layer path MTU discovery (RFC 4821).
    MtuProbing { on: bool },
    /// Packets queued for the kernel.
    Backlog { packets: u64 },
    /// A setting that only Linux has.
    Linux,
}

/// A change and its purpose.
#[derive(Debug)]
pub(super) struct Meant<'a> {
    /// The change.
    pub change: &'a Change,
    /// Purpose of the change.
    pub meaning: Meaning,
}

/// Returns the changes at an end.
pub(super) fn of_end(plan: &Plan, end: End) -> Vec<Meant<'_>> {
    plan.changes_at(end).map(|change| Meant { change, meaning: of(&change.target, &change.to) }).collect()
}

/// Returns the largest receive and send buffers set by the plan, bytes.
pub(super) fn largest_buffers(meant: &[Meant<'_>]) -> (Option<u64>, Option<u64>) {
    let (mut receive, mut send) = (None, None);
    for one in meant {
        match one.meaning {
            Meaning::ReceiveBuffer { bytes } | Meaning::AskedReceiveBuffer { bytes } => {
                receive = receive.max(Some(bytes));
            }
            Meaning::SendBuffer { bytes } | Meaning::AskedSendBuffer { bytes } => {
                send = send.max(Some(bytes))
            }
            _ => {}
        }
    }
    (receive, send)
}

fn of(target: &Target, to: &str) -> Meaning {
    match target {
        Target::Sysctl { .. } => target.setting().and_then(|setting| of_sysctl(setting, to.trim())),
        Target::Route { to: address, attribute } => of_route(*address, *attribute, to.trim()),
        Target::Qdisc { device } => of_qdisc(device, to.trim()),
    }
    .unwrap_or(Meaning::Linux)
}

/// Returns `None` if the value is not in Linux's format.
fn of_sysctl(setting: Setting, to: &str) -> Option<Meaning> {
    let number = || to.parse::<u64>().ok();
    let largest = || to.split_whitespace().nth(2)?.parse::<u64>().ok();
    let on = || to.parse::<u64>().ok().map(|value| value != 0);
    Some(match setting {
        Setting::TcpRmem => Meaning::ReceiveBuffer { bytes: largest()? },
        Setting::TcpWmem => Meaning::SendBuffer { bytes: largest()? },
        Setting::RmemMax => Meaning::AskedReceiveBuffer { bytes: number()? },
        Setting::WmemMax => Meaning::AskedSendBuffer { bytes: number()? },
        Setting::TcpCongestionControl => Meaning::CongestionControl { name: to.to_owned(), to: None },
        Setting::TcpWindowScaling => Meaning::WindowScaling { on: on()? },
        Setting::TcpSack => Meaning::Sack { on: on()? },
        Setting::TcpTimestamps => Meaning::Timestamps { on: on()? },
        Setting::TcpSlowStartAfterIdle => Meaning::RestartAfterIdle { on: on()? },
        Setting::DefaultQdisc => Meaning::DefaultQueue { discipline: to.to_owned() },
        // 2, the default, accepts ECN without requesting it.
        Setting::TcpEcn => Meaning::Ecn { asks: number()? == 1 },
        Setting::TcpMtuProbing => Meaning::MtuProbing { on: on()? },
        Setting::NetdevMaxBacklog => Meaning::Backlog { packets: number()? },
        _ => return None,
    })
}

fn of_route(to: IpAddr, attribute: RouteAttribute, value: &str) -> Option<Meaning> {
    Some(match attribute {
        RouteAttribute::Congctl => Meaning::CongestionControl { name: value.to_owned(), to: Some(to) },
        RouteAttribute::Initcwnd => Meaning::InitialWindow { segments: value.parse().ok()?, to },
        RouteAttribute::Initrwnd => Meaning::InitialReceiveWindow { segments: value.parse().ok()?, to },
        RouteAttribute::RtoMin => Meaning::LeastTimeout { ms: value.strip_suffix("ms")?.parse().ok()?, to },
    })
}

fn of_qdisc(device: &str, words: &str) -> Option<Meaning> {
    let device = device.to_owned();
    let mut rest = words.split_whitespace();
    if rest.next()? != "fq" {
        return Some(Meaning::Queue { device, discipline: words.to_owned() });
    }
    let mut rate_bps = None;
    while let Some(word) = rest.next() {
        if word == "maxrate" {
            rate_bps = rest.next().and_then(of_tc_rate);
        }
    }
    Some(Meaning::Pacing { device, rate_bps })
}

/// Parses `95000000bit` or `95Mbit` as bit/s (tc(8), PARAMETERS).
fn of_tc_rate(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let times = match unit {
        "" | "bit" => 1,
        "kbit" => 1_000,
        "mbit" => 1_000_000,
        "gbit" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_words_are_understood() {
        let to = "192.0.2.7".parse().unwrap();
        let sysctl = |name: &str| Target::sysctl(name);
        let route = |attribute| Target::Route { to, attribute };
        let qdisc = Target::Qdisc { device: "eth0".to_owned() };
        for (target, value, meaning) in [
            (
                sysctl("net.ipv4.tcp_rmem"),
                "4096\t131072\t8388608",
                Meaning::ReceiveBuffer { bytes: 8_388_608 },
            ),
            (sysctl("net.ipv4.tcp_rmem"), "lots", Meaning::Linux),
            (sysctl("net.ipv4.tcp_sack"), "1", Meaning::Sack { on: true }),
            (sysctl("net.ipv4.tcp_timestamps"), "0", Meaning::Timestamps { on: false }),
            (sysctl("net.ipv4.tcp_notsent_lowat"), "131072", Meaning::Linux),
            (route(RouteAttribute::Initcwnd), "20", Meaning::InitialWindow { segments: 20, to }),
            (route(RouteAttribute::RtoMin), "50ms", Meaning::LeastTimeout { ms: 50, to }),
            (qdisc.clone(), "fq", Meaning::Pacing { device: "eth0".to_owned(), rate_bps: None }),
            (
                qdisc.clone(),
                "fq maxrate 95Mbit",
                Meaning::Pacing { device: "eth0".to_owned(), rate_bps: Some(95_000_000) },
            ),
            (
                qdisc,
                "fq_codel",
                Meaning::Queue { device: "eth0".to_owned(), discipline: "fq_codel".to_owned() },
            ),
        ] {
            assert_eq!(of(&target, value), meaning, "{target} {value}");
        }
    }
}
