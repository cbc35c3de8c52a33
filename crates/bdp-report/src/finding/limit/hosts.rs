//! Processors and devices of hosts.

use bdp_model::finding::Cause;
use bdp_model::finding::limit::Hosts;

use super::words::{Words, end, first_line, name};

pub const fn words(limit: Hosts) -> &'static Words {
    match limit {
        Hosts::Cpu => &CPU,
        Hosts::HostDrops => &HOST_DROPS,
    }
}

const CPU: Words = Words {
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

const HOST_DROPS: Words = Words {
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
