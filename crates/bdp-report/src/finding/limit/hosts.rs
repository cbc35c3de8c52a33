//! Processors and devices of hosts.

use bdp_model::finding::limit::Hosts;
use bdp_model::finding::{Cause, Finding};

use super::words::{Words, name};

pub fn words(limit: Hosts, finding: &Finding) -> Words {
    let name = name(finding);
    match limit {
        Hosts::Cpu => processor(finding.cause, name),
        Hosts::HostDrops => {
            let [subject, drops] = match finding.cause {
                Some(Cause::DeviceDrops) => ["network device", "network device"],
                _ => ["receive backlog", "kernel"],
            };
            let claim = format!("limited by packets that the {drops} of {name} drops");
            Words::new(format!("{subject} of {name}"), claim).because(
                "{host} discards packets that have already arrived there",
                "Larger receive queues, or a faster processor, on {host} help.",
            )
        }
    }
}

fn processor(cause: Option<Cause>, name: &str) -> Words {
    let of = |what: &str, more: &str| {
        Words::new(format!("{what} of {name}"), format!("limited by the {what} of {name}{more}"))
    };
    match cause {
        Some(Cause::Throttled) => of("processor quota", "").because(
            "{host} may use no more of its processors",
            "A larger quota of processor time on {host} makes it faster.",
        ),
        Some(Cause::Stolen) => of("processor", ", of which its hypervisor takes a part").because(
            "other virtual machines use the processors of {host}",
            "Processors of its own for {host} make it faster.",
        ),
        Some(Cause::ProcessorShared) => of("processor", ", which other programs use").because(
            "other programs use the processors of {host}",
            "Less other work on {host} makes it faster.",
        ),
        _ => of("processor", "").because(
            "a processor of {host} is busy all the time",
            "A faster processor on {host}, or more streams, makes it faster.",
        ),
    }
}
