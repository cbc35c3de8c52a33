//! Floods and scans in words: failed flows, counted together.

use bdp_model::capture::{AttemptOutcome, CapturedAttempts, FlowProtocol, ReadCapture};

use crate::number::three_digits;

/// `1,000,000 SYNs to 10.255.0.1:80 unanswered, from 1,000,000 addresses in 10.0 s (100,000/s)`, for each kind.
pub(crate) fn attempts(capture: &ReadCapture) -> Vec<String> {
    capture.summary.attempts.iter().map(words).collect()
}

fn words(all: &CapturedAttempts) -> String {
    let flows = grouped(all.flows);
    // For answers, the captured sender is the host that was addressed.
    let is_answer = all.outcome == AttemptOutcome::AnswerAlone;
    let target = target(all);
    let source =
        all.from.map_or_else(|| counted(all.sources, "address", "addresses"), |from| from.to_string());
    let ports = match all.port {
        None if all.ports > 1 => format!(", {} ports", grouped(all.ports)),
        _ => String::new(),
    };
    let mut words = match is_answer {
        true => format!("{flows} SYN-ACKs from {target} to {source} without a SYN{ports}"),
        false => format!("{flows} {} to {target} {}{ports}, from {source}", what(all), became(all)),
    };
    let seconds = all.to_ns.saturating_sub(all.from_ns) as f64 / 1e9;
    words.push_str(&format!(" in {} s", three_digits(seconds)));
    if seconds > 0.0 {
        words.push_str(&format!(" ({}/s)", grouped((all.flows as f64 / seconds).round() as u64)));
    }
    if all.outcome == AttemptOutcome::Unanswered && all.packets > all.flows {
        words.push_str(&format!("; {} packets with retransmissions", grouped(all.packets)));
    }
    if all.further_packets > 0 {
        words.push_str(&format!(
            "; {} further packets to it were counted and not followed",
            grouped(all.further_packets)
        ));
    }
    words
}

const fn what(all: &CapturedAttempts) -> &'static str {
    match (all.protocol, all.outcome) {
        (FlowProtocol::Tcp, AttemptOutcome::Stray) => "TCP flows",
        (FlowProtocol::Tcp, AttemptOutcome::ResetAlone) => "resets (RST)",
        (FlowProtocol::Tcp, _) => "SYNs",
        (FlowProtocol::Udp, _) => "UDP flows",
        (FlowProtocol::Icmp, _) => "ICMP flows",
        (FlowProtocol::Other, _) => "flows of other protocols",
    }
}

const fn became(all: &CapturedAttempts) -> &'static str {
    match all.outcome {
        AttemptOutcome::Unanswered => "unanswered",
        AttemptOutcome::Refused => "refused by RST",
        AttemptOutcome::HalfOpen => "answered by SYN-ACK, never acknowledged",
        AttemptOutcome::Abandoned => "answered by SYN-ACK, then reset by who began",
        AttemptOutcome::AnswerAlone => "without a SYN",
        AttemptOutcome::ResetAlone => "of no connection in the capture",
        AttemptOutcome::Stray => "of one to three segments without a handshake",
    }
}

/// `10.255.0.1:80`, `250 addresses, port 443`.
fn target(all: &CapturedAttempts) -> String {
    match (all.to, all.port) {
        (Some(to), Some(port)) => std::net::SocketAddr::new(to, port).to_string(),
        (Some(to), None) => to.to_string(),
        (None, Some(port)) => {
            format!("port {port} of {}", counted(all.destinations, "address", "addresses"))
        }
        (None, None) => counted(all.destinations, "address", "addresses"),
    }
}

fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { several })
}

/// `1,000,000`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flood() -> CapturedAttempts {
        CapturedAttempts {
            protocol: FlowProtocol::Tcp,
            outcome: AttemptOutcome::Unanswered,
            from: None,
            to: Some([10, 255, 0, 1].into()),
            port: Some(80),
            flows: 1_000_000,
            packets: 1_000_000,
            bytes: 40_000_000,
            sources: 999_983,
            destinations: 1,
            ports: 1,
            further_packets: 0,
            from_ns: 0,
            to_ns: 10_000_000_000,
        }
    }

    #[test]
    fn a_flood_is_a_sentence() {
        assert_eq!(
            words(&flood()),
            "1,000,000 SYNs to 10.255.0.1:80 unanswered, from 999,983 addresses in 10.0 s (100,000/s)"
        );
        let scan = CapturedAttempts {
            outcome: AttemptOutcome::Refused,
            from: Some([10, 0, 0, 9].into()),
            port: None,
            flows: 65_535,
            packets: 131_070,
            ports: 65_535,
            further_packets: 12,
            ..flood()
        };
        assert_eq!(
            words(&scan),
            "65,535 SYNs to 10.255.0.1 refused by RST, 65,535 ports, from 10.0.0.9 in 10.0 s (6,554/s); 12 further packets to \
             it were counted and not followed"
        );
        let sweep =
            CapturedAttempts { to: None, port: Some(443), destinations: 2000, packets: 3_000_000, ..flood() };
        assert!(
            words(&sweep)
                .starts_with("1,000,000 SYNs to port 443 of 2,000 addresses unanswered, from 999,983")
        );
        assert!(words(&sweep).ends_with("; 3,000,000 packets with retransmissions"));
        let answers = CapturedAttempts { outcome: AttemptOutcome::AnswerAlone, ..flood() };
        let words = words(&answers);
        assert!(
            words.starts_with("1,000,000 SYN-ACKs from 10.255.0.1:80 to 999,983 addresses without a SYN in"),
            "{words}"
        );
    }
}
