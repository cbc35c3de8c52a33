//! System calls of a case in its guest, with the data segments they were for.

use bdp_wire::control::{Received, Sent};

use crate::case::pair::Ends;

/// The file in which a guest's kernel counts system calls (`stacks/linux/bdp_kernel.c`).
const GUEST_CALLS: &str = "/proc/bdp_system_calls";

/// Returns the system calls of all processes of a guest so far, if its kernel counts them.
pub(crate) fn so_far() -> Option<u64> {
    total(&std::fs::read_to_string(GUEST_CALLS).ok()?)
}

/// The first line is the sum; the others say which calls.
fn total(text: &str) -> Option<u64> {
    text.lines().next()?.trim().parse().ok()
}

/// Returns the data segments that flows sent, retransmissions included, counted as full segments; for datagrams,
/// their number. `None` if a flow's segment size is unknown.
pub(crate) fn segments_of(flows: &[Ends]) -> Option<u64> {
    flows.iter().map(|(received, sent)| segments(received, sent)).sum()
}

fn segments(received: &Received, sent: &Sent) -> Option<u64> {
    match &sent.datagrams {
        Some(datagrams) => Some(datagrams.sent),
        None => {
            Some(received.bytes.div_ceil(sent.mss.filter(|&mss| mss > 0)?) + sent.retransmits.unwrap_or(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use bdp_wire::control::DatagramsSent;

    use super::*;

    #[test]
    fn the_sum_comes_before_its_parts() {
        assert_eq!(total("1234\n7 232 bdp\n5 -1 bdp\n"), Some(1234));
        assert_eq!(total(""), None);
    }

    #[test]
    fn segments_are_those_of_data_with_retransmissions() {
        let stream = (
            Received { bytes: 14_481, ..Default::default() },
            Sent { mss: Some(1448), retransmits: Some(3), ..Default::default() },
        );
        let datagrams = DatagramsSent { sent: 40, ..Default::default() };
        let datagrams = (Received::default(), Sent { datagrams: Some(datagrams), ..Default::default() });
        assert_eq!(segments_of(std::slice::from_ref(&stream)), Some(14));
        assert_eq!(segments_of(&[stream, datagrams]), Some(54));
        assert_eq!(segments_of(&[Ends::default()]), None);
    }
}
