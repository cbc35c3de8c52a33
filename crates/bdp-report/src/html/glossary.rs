//! Glossary of the terms used on a page.

use bdp_model::tuning::setting::Setting;
use maud::{Markup, html};

/// A term, its forms on a page (lower case), and its meaning.
type Term = (&'static str, &'static [&'static str], &'static str);

const TERMS: [Term; 32] = [
    (
        "Autotuning",
        &["autotun"],
        "The kernel sets a socket buffer, and so the window, by itself, up to the last number of tcp_rmem or tcp_wmem.",
    ),
    (
        "Bandwidth-delay product (BDP)",
        &["rate × ", "goodput × ", "bandwidth-delay"],
        "Rate × RTT: the bytes in flight that keep a path full. A window below it leaves the path idle in part.",
    ),
    ("Bottleneck", &["bottleneck"], "The slowest hop of a path, before which a queue stands under load."),
    (
        "Bufferbloat",
        &["bufferbloat"],
        "Round trips that grow under load, since a queue on the path is long and full.",
    ),
    ("Ceiling", &["ceiling"], "The highest goodput that the slowest link allows, headers deducted."),
    (
        "Congestion control",
        &["congestion control"],
        "The sender's algorithm that decides how much may be in flight, such as CUBIC or BBR.",
    ),
    (
        "Congestion window (cwnd)",
        &["congestion window", "cwnd"],
        "What the sender's congestion control allows in flight.",
    ),
    (
        "Datagram",
        &["datagram"],
        "A message of UDP, sent without a connection: it arrives whole or not at all.",
    ),
    (
        "DSACK",
        &["dsack"],
        "The receiver's report that it had a segment already (RFC 2883): it was retransmitted needlessly.",
    ),
    (
        "Equivalent delivery delay",
        &["equivalent delivery delay"],
        "Window / goodput less the idle RTT: how long a byte waits in queues before it is delivered.",
    ),
    (
        "Fidelity, INVALID",
        &["fidelity", "invalid"],
        "Fidelity is how well the emulator kept to the configured rate, delay and loss. An attempt past the bounds is \
         INVALID and enters no figure.",
    ),
    ("Goodput", &["goodput"], "Payload delivered per second: neither headers nor retransmitted bytes count."),
    ("In flight", &["in flight"], "Sent and not yet acknowledged."),
    ("Jitter", &["jitter"], "How much the delay of packets varies from one to the next."),
    (
        "Knee",
        &["knee", "plateau"],
        "The point of a curve from which on a larger window, or more streams, adds little goodput; above it is the plateau.",
    ),
    ("MSS", &["mss"], "Maximum segment size: the payload of a full TCP segment."),
    ("MTU", &["mtu"], "Maximum transmission unit: the largest packet that a link carries."),
    (
        "NIC",
        &["nic ", "nics"],
        "Network interface card: a machine's connection to a network, and the device of that name.",
    ),
    (
        "One-way delay",
        &["one way", "one-way"],
        "The time of a packet from one end to the other. Two clocks take part, so that it is off by what they differ.",
    ),
    ("Pacing", &["paced", "pacing"], "Sending packets evenly spaced at a rate rather than in bursts."),
    (
        "Percentiles (p50, p95, p99)",
        &["p50", "p95", "p99"],
        "95 % of the values are at most p95; p50 is the median.",
    ),
    (
        "Probe",
        &["probe"],
        "A small packet that is sent beside the data and answered at once, to time the round trip.",
    ),
    (
        "Receive window",
        &["receive window", "window / rtt", "window on the wire"],
        "The bytes that the receiver allows in flight. Goodput is at most window / RTT. On the wire is what the receiver \
         advertised, in the socket buffer what its kernel set aside, asked what the user requested.",
    ),
    (
        "Retransmission",
        &["retransmi"],
        "A segment sent once more, since it was lost or not acknowledged in time.",
    ),
    (
        "RPM (responsiveness)",
        &["rpm", "round trips a minute", "round trips per minute"],
        "Round trips per minute under load; the more, the quicker answers come.",
    ),
    (
        "RTT (round trip)",
        &["rtt", "round trip"],
        "Round-trip time: from sending a packet to the arrival of its answer. Idle is before the load, loaded during it.",
    ),
    (
        "Send buffer",
        &["send buffer"],
        "What the sending kernel keeps of a connection until it is acknowledged. No more than that is in flight.",
    ),
    (
        "Slow start",
        &["slow start"],
        "The beginning of a TCP connection, in which its congestion window grows from a few segments.",
    ),
    (
        "Standing queue",
        &["standing queue"],
        "Packets that wait before a bottleneck for as long as the load lasts.",
    ),
    (
        "Steal",
        &["taken by a hypervisor", "steal"],
        "Time in which a hypervisor gave a virtual machine's processors to others.",
    ),
    (
        "Sysctl",
        &["sysctl", Setting::TcpRmem.row().short, Setting::TcpWmem.row().short],
        "A setting of the Linux kernel, as net.ipv4.tcp_rmem.",
    ),
    (
        "Window scaling",
        &["window scal", Setting::TcpWindowScaling.row().short],
        "An option of TCP (RFC 7323) without which no window is larger than 64 KiB. Both ends have to offer it.",
    ),
];

/// Returns a collapsed section.
pub(crate) fn on_demand(id: &str, heading: &str, content: &Markup) -> Markup {
    html! { details id=(id) { summary { h2 { (heading) } } "\n" (content) } "\n" }
}

/// Returns the glossary of a page with this body; empty if it uses no term.
pub(crate) fn glossary(body: &str) -> Markup {
    // The text between all tags, with a space for each tag.
    let parts = body.split('<').filter_map(|part| part.split_once('>'));
    let text = parts.flat_map(|(_, text)| [text, " "]).collect::<String>().to_lowercase();
    let used: Vec<&Term> = TERMS.iter().filter(|(_, signs, _)| signs.iter().any(|s| has(&text, s))).collect();
    let terms = html! { dl { @for (term, _, meaning) in &used { dt { (term) } dd { (meaning) } "\n" } } };
    if used.is_empty() { Markup::default() } else { on_demand("glossary", "Glossary", &terms) }
}

/// Whether a text has a word that begins with `sign`.
fn has(text: &str, sign: &str) -> bool {
    text.match_indices(sign).any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_a_page_uses_are_explained_and_no_others() {
        let body = r#"<p class="knee">Goodput above the round trip; bytes retransmitted.</p>"#;
        let text = glossary(body).into_string();
        for term in ["Goodput", "RTT (round trip)", "Retransmission"] {
            assert!(text.contains(&format!("<dt>{term}</dt>")), "{term}: {text}");
        }
        assert_eq!(text.matches("<dt>").count(), 3, "{text}");
        assert!(glossary("").into_string().is_empty());
    }

    #[test]
    fn terms_are_sorted() {
        assert!(TERMS.windows(2).all(|pair| pair[0].0.to_lowercase() < pair[1].0.to_lowercase()));
    }
}
