//! Limits in plain language, for readers who are no network engineers.

use bdp_model::finding::{At, Cause, Confidence, Finding, Limit};

/// What limits a transfer, and what to do about it.
pub(crate) fn reason(finding: &Finding, from: &str, to: &str) -> Vec<String> {
    let (cause, advice) = match finding.limit {
        Limit::ReceiveWindow => (
            format!("{to} accepts too little data at a time for a path this long"),
            format!("A larger receive window on {to} makes it faster."),
        ),
        Limit::SendBuffer => (
            format!("{from} sends too little data at a time for a path this long"),
            format!("A larger send buffer on {from} makes it faster."),
        ),
        Limit::Ceiling => (
            "the connection is full".to_owned(),
            "No setting makes it faster, only a faster connection does.".to_owned(),
        ),
        Limit::PathRate => (
            "the slowest part of the path is full".to_owned(),
            "No setting makes it faster, only a faster path does.".to_owned(),
        ),
        Limit::RandomLoss => (
            "data is lost on the way although the path is not full".to_owned(),
            "Look for a faulty cable, port or radio link between the two.".to_owned(),
        ),
        Limit::ShallowQueue => (
            "a queue on the path is too short for the bursts that come".to_owned(),
            "A longer queue there, or a sender that spaces its packets, makes it faster.".to_owned(),
        ),
        Limit::HalfDuplex => (
            "the connection carries one direction at a time".to_owned(),
            "A connection that carries both at once (full duplex) is faster.".to_owned(),
        ),
        Limit::CrossTraffic => (
            "others use the same connection".to_owned(),
            "It is faster when they do not, or on a faster connection.".to_owned(),
        ),
        Limit::EcnMarks => (
            "a device on the path asks senders to slow down before its queue grows long".to_owned(),
            "That keeps delays short; only a faster path carries more.".to_owned(),
        ),
        Limit::CongestionLoss => (
            "the slowest part of the path is full and discards what does not fit".to_owned(),
            "Only a faster path carries more.".to_owned(),
        ),
        Limit::SackMissing => (
            "lost data is sent again one packet at a time".to_owned(),
            format!("Selective acknowledgements (SACK) between {from} and {to} make it faster."),
        ),
        Limit::TimestampsMissing => (
            "a sender cannot always tell whether lost data was lost".to_owned(),
            format!("TCP timestamps between {from} and {to} show it."),
        ),
        Limit::Policer => (
            "something on the path discards whatever exceeds a certain rate".to_owned(),
            "Ask the provider which rate was agreed, or send no faster than that.".to_owned(),
        ),
        Limit::Reordering => (
            "data arrives in another order than it was sent in".to_owned(),
            "Look for a path that spreads the packets of one connection over several links.".to_owned(),
        ),
        Limit::ReversePath => (
            format!("the answers of {to} get lost on their way back"),
            format!("Look for a congested or faulty link on the way from {to} to {from}."),
        ),
        Limit::MtuBlackHole => (
            "large packets vanish on the way, and small ones come through".to_owned(),
            format!("A smaller MTU on {from}, or a tunnel that reports its own, cures it."),
        ),
        Limit::PathChanged => {
            ("the path changed while it was measured".to_owned(), "Measure again, and for longer.".to_owned())
        }
        Limit::SlowStart => (
            "the transfer was too short to reach full speed".to_owned(),
            "A larger transfer over the same connection is faster.".to_owned(),
        ),
        Limit::AskedRate if finding.cause == Some(Cause::KeptByHost) => (
            format!("{from} sends at a rate that it keeps by itself"),
            format!(
                "Look at the queue of its device (tc qdisc show) and at the limits of the program on {from}."
            ),
        ),
        Limit::AskedRate => (
            "the test asked for this rate and no more".to_owned(),
            "To find the most that the path carries, ask for more.".to_owned(),
        ),
        Limit::ClientIdle => (
            "nobody had asked for anything".to_owned(),
            "Neither the network nor the server holds it back.".to_owned(),
        ),
        Limit::RoundTrips if matches!(finding.cause, Some(Cause::TlsSetup | Cause::Handshake)) => (
            "making the connection took most of the time".to_owned(),
            "A connection that is kept open, and used again, makes it faster.".to_owned(),
        ),
        Limit::RoundTrips => (
            "each question waits for the answer to the one before".to_owned(),
            "A program that asks for more at a time, or a shorter path, makes it faster.".to_owned(),
        ),
        Limit::ProgramWindow => (
            "the programs let only so much be on its way at a time".to_owned(),
            "Look for a setting of the program: buffers, requests at a time, its own window.".to_owned(),
        ),
        Limit::PeerGone => {
            (format!("{to} answers no more"), format!("Find whether {to} still runs and can be reached."))
        }
        Limit::NotEstablished => (
            "the connection was never made".to_owned(),
            "Look for a firewall on the way, and for a program that listens there.".to_owned(),
        ),
        Limit::SlowWriter if finding.cause == Some(Cause::ResponseTime) => {
            let host = host(finding, from, to);
            (
                format!("{host} takes long to begin its answers"),
                format!("Look for what keeps the program on {host} busy."),
            )
        }
        Limit::SlowWriter => (
            format!("the program on {from} hands over data more slowly than the path carries it"),
            format!("Look for what keeps that program on {from} waiting."),
        ),
        Limit::SlowReader => (
            format!("{to} reads data more slowly than it arrives"),
            format!("A faster processor, or less other work, on {to} helps."),
        ),
        Limit::Nagle => (
            format!("{from} waits for an answer before it sends the next small piece"),
            format!("The program on {from} should send larger pieces, or not wait (TCP_NODELAY)."),
        ),
        Limit::Cpu => {
            let host = host(finding, from, to);
            match finding.cause {
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
            }
        }
        Limit::HostDrops => {
            let host = host(finding, from, to);
            (
                format!("{host} discards packets that have already arrived there"),
                format!("Larger receive queues, or a faster processor, on {host} help."),
            )
        }
        Limit::PathLoss => (
            "data is lost on the way".to_owned(),
            "Look for a congested or faulty link between the two, or send more slowly.".to_owned(),
        ),
        Limit::ReceivingHost => (
            format!("{to} reads data more slowly than it arrives"),
            format!("A faster processor, or less other work, on {to} helps."),
        ),
        Limit::SendingHost => (
            format!("{from} can't send any faster"),
            format!("A faster processor, or less other work, on {from} helps."),
        ),
        Limit::Unknown => return vec!["The limit is unknown.".to_owned()],
    };
    let sure = match finding.confidence {
        Confidence::High => "The reason is that",
        Confidence::Medium => "The probable reason is that",
        Confidence::Low => "A possible reason is that",
    };
    vec![format!("{sure} {cause}."), advice]
}

/// The end that a finding is about.
fn host<'a>(finding: &'a Finding, from: &'a str, to: &'a str) -> &'a str {
    match finding.place.at {
        At::Sender => from,
        At::Receiver => to,
        _ => finding.place.name.as_deref().unwrap_or("one of the two"),
    }
}
