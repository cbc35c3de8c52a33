//! Wording shared by the table, the page and the details of a flow.

use bdp_model::capture::{
    CaptureSummary, ExplainedFlow, FlowProtocol, ReadCapture, UnreadPackets, WhyUnread,
};
use bdp_model::finding::{Finding, Limit};

use super::datagrams::{self, protocol};
use crate::finding::{confidence, subject};
use crate::number::three_digits;
use crate::style::Tint;

/// `47715 packets, 45.9 MiB in 7.01 s, 3 flows`.
pub(crate) fn read(capture: &ReadCapture) -> String {
    let CaptureSummary { packets, bytes, duration_ns, .. } = capture.summary;
    let flows = capture.flows.len() as u64 + capture.summary.flows_counted_together();
    format!(
        "{packets} packets, {} in {} s, {flows} flow{}",
        crate::number::size(bytes as f64),
        three_digits(duration_ns as f64 / 1e9),
        if flows == 1 { "" } else { "s" },
    )
}

/// Returns the caveats of a capture.
pub(crate) fn caveats(capture: &ReadCapture) -> Vec<String> {
    let CaptureSummary { cut, dropped, out_of_time, filtered, flows_left_out, began_at_ns, packets, .. } =
        capture.summary;
    let mut all = Vec::new();
    all.extend(
        capture.broke.as_ref().map(|why| format!("reading ended early: {why}; what was read before counts")),
    );
    if packets > 0 && began_at_ns.is_none() {
        all.push("the packets have no times: nothing that depends on them is known".to_owned());
    }
    let mut counted = |count: u64, what: &str| {
        if count > 0 {
            all.push(format!("{count} {what}"));
        }
    };
    counted(filtered, "packets left out by the filter");
    counted(dropped, "packets dropped by the capturing program: losses in the flows may be its own");
    counted(cut, "packets cut short: only their beginning was kept, and payloads were not looked at");
    counted(
        out_of_time,
        "packets with a time before that of an earlier packet; their order in the file counts",
    );
    match capture.summary.memory_limit_reached_bytes {
        Some(limit) => all.push(format!(
            "the memory for flows was used up ({}; --memory sets it): {flows_left_out} packets of further flows and {} flows in part were \
             counted and not followed",
            crate::number::size(limit as f64),
            capture.summary.flows_followed_in_part
        )),
        None => counted(flows_left_out, "packets of further flows left out: too many flows"),
    }
    all.extend(capture.summary.unread.iter().map(unread));
    all
}

fn unread(unread: &UnreadPackets) -> String {
    let UnreadPackets { why, number, packets } = unread;
    let number = number.unwrap_or(0);
    match why {
        WhyUnread::LinkType => format!("{packets} packets of link type {number}, which bdp does not read"),
        WhyUnread::NotIp => format!("{packets} packets that are not IP (Ethernet type {number:#06x})"),
        WhyUnread::Llc => {
            format!("{packets} packets that are not IP (IEEE 802.2 service access point {number:#04x})")
        }
        WhyUnread::LinkControl => {
            format!("{packets} frames that manage or control the link and carry no data")
        }
        WhyUnread::Encrypted => format!("{packets} frames encrypted by the link layer"),
        WhyUnread::Damaged => format!("{packets} frames received with errors (wrong checksum)"),
        WhyUnread::Cut => format!("{packets} packets of which too little was kept"),
        WhyUnread::Malformed => format!("{packets} packets whose headers contradict themselves"),
        WhyUnread::Fragment => format!("{packets} fragments, which have no ports"),
    }
}

/// Figures of a flow's main direction, as in the table; a dash for unknown values.
pub(crate) struct Figures {
    /// Goodput, Mbit/s.
    pub mbps: String,
    /// Payload, MB.
    pub megabytes: String,
    /// Time from the first packet to the last.
    pub seconds: String,
    /// Smallest round trip, ms.
    pub rtt_min_ms: String,
    /// Retransmitted segments.
    pub retransmissions: String,
    /// Loss of a datagram stream, %.
    pub lost_percent: String,
    /// Final interarrival jitter, ms.
    pub jitter_ms: String,
}

/// Returns the figures of a flow's main direction.
pub(crate) fn figures(found: &ExplainedFlow) -> Figures {
    let way = &found.flow.directions[found.main_direction()];
    let dash = || "-".to_owned();
    let main = datagrams::main(found);
    let lost = main.filter(|all| all.expected > 0).map(|all| all.lost as f64 / all.expected as f64);
    let (of_rate, of_time) = (|bps: f64| three_digits(bps / 1e6), |ns: u64| three_digits(ns as f64 / 1e6));
    Figures {
        mbps: way.goodput_bps.map_or_else(dash, of_rate),
        megabytes: three_digits(way.payload_bytes as f64 / 1e6),
        seconds: three_digits((found.flow.to_ns - found.flow.from_ns) as f64 / 1e9),
        rtt_min_ms: way
            .tcp
            .as_ref()
            .and_then(|data| data.rtt_min_ns)
            .or_else(|| datagrams::rtt_min_ns(found))
            .map_or_else(dash, of_time),
        retransmissions: way.tcp.as_ref().map_or_else(dash, |data| data.retransmissions.segments.to_string()),
        lost_percent: lost.map_or_else(dash, |share| three_digits(share * 100.0)),
        jitter_ms: main.and_then(|all| all.jitter_ns).map_or_else(dash, |ns| three_digits(ns / 1e6)),
    }
}

/// Returns `198.18.0.1:48946 -> 198.18.0.2:35193`, main sender first, with the protocol unless it is TCP.
pub(crate) fn ends(found: &ExplainedFlow) -> String {
    let (a, b) = (&found.flow.a, &found.flow.b);
    let (from, to) = if found.main_direction() == 0 { (a, b) } else { (b, a) };
    match found.flow.protocol {
        FlowProtocol::Tcp => format!("{from} -> {to}"),
        FlowProtocol::Udp => format!("{from} -> {to} {}", protocol(found)),
        FlowProtocol::Icmp => format!("{} -> {} icmp", from.ip(), to.ip()),
        FlowProtocol::Other => format!("{} -> {}", from.ip(), to.ip()),
    }
}

/// Returns the subject of a finding and its confidence.
pub(crate) fn words(finding: &Finding) -> String {
    match finding.limit {
        Limit::Unknown => "unknown".to_owned(),
        _ => format!("{} ({})", subject(finding), confidence(finding.confidence)),
    }
}

/// Returns what limits the main direction of a flow, in a few words.
pub(super) fn limit(found: &ExplainedFlow) -> (String, Tint) {
    let Some(finding) = found.findings[found.main_direction()].first() else {
        return ("-".to_owned(), Tint::None);
    };
    (words(finding), if finding.limit == Limit::Unknown { Tint::None } else { Tint::Doubtful })
}
