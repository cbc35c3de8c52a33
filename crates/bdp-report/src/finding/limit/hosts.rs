//! Hosts: their processors, what they drop, and those that answer no more.

use bdp_model::finding::Cause;

use super::{Words, end, first_line, name, plain};

pub(super) const PEER_GONE: Words = Words {
    noun: "the other end, which answers no more",
    subject: |finding| format!("an end that answers no more, {}", name(finding)),
    claim: |finding| format!("{} answers no more", name(finding)),
    figures: first_line,
    reason: |_, _, to| {
        Some((format!("{to} answers no more"), format!("Find whether {to} still runs and can be reached.")))
    },
};

pub(super) const NOT_ESTABLISHED: Words = Words {
    noun: "a connection that was never made",
    subject: |_| "a connection that was never made".to_owned(),
    claim: |finding| match finding.cause {
        Some(Cause::Refused) => {
            format!("the connection was never made: {} refused it by a reset", name(finding))
        }
        Some(Cause::Unreachable) => {
            "the connection was never made: ICMP said that it can't be reached, or is prohibited".to_owned()
        }
        _ => format!("the connection was never made: {} did not answer", name(finding)),
    },
    figures: first_line,
    reason: |_, _, _| {
        plain(
            "the connection was never made",
            "Look for a firewall on the way, and for a program that listens there.",
        )
    },
};

pub(super) const CPU: Words = Words {
    noun: "the processor",
    subject: |finding| match finding.cause {
        Some(Cause::Throttled) => format!("processor quota of {}", name(finding)),
        _ => format!("processor of {}", name(finding)),
    },
    claim: |finding| {
        let what = match finding.cause {
            Some(Cause::Throttled) => return format!("limited by the processor quota of {}", name(finding)),
            Some(Cause::Stolen) => ", of which its hypervisor takes a part",
            Some(Cause::ProcessorShared) => ", which other programs use",
            _ => "",
        };
        format!("limited by the processor of {}{what}", name(finding))
    },
    figures: first_line,
    reason: |finding, from, to| {
        let host = end(finding, from, to);
        Some(match finding.cause {
            Some(Cause::Throttled) => (
                format!("{host} may use no more of its processors"),
                format!("A larger quota of processor time on {host} makes it faster."),
            ),
            Some(Cause::Stolen) => (
                format!("other virtual machines use the processors of {host}"),
                format!("Processors of its own for {host} make it faster."),
            ),
            Some(Cause::ProcessorShared) => (
                format!("other programs use the processors of {host}"),
                format!("Less other work on {host} makes it faster."),
            ),
            _ => (
                format!("a processor of {host} is busy all the time"),
                format!("A faster processor on {host}, or more streams, makes it faster."),
            ),
        })
    },
};

pub(super) const HOST_DROPS: Words = Words {
    noun: "packet drops of the host",
    subject: |finding| match finding.cause {
        Some(Cause::DeviceDrops) => format!("network device of {}", name(finding)),
        _ => format!("receive backlog of {}", name(finding)),
    },
    claim: |finding| match finding.cause {
        Some(Cause::DeviceDrops) => {
            format!("limited by packets that the network device of {} drops", name(finding))
        }
        _ => format!("limited by packets that the kernel of {} drops", name(finding)),
    },
    figures: first_line,
    reason: |finding, from, to| {
        let host = end(finding, from, to);
        Some((
            format!("{host} discards packets that have already arrived there"),
            format!("Larger receive queues, or a faster processor, on {host} help."),
        ))
    },
};
