//! Remedies in words.

use bdp_model::finding::fact::OfWindowRate;
use bdp_model::finding::{Action, Cause, Finding, Limit, Remedy};

use super::limit::streams;
use super::quantity::{rate, size};

const PASS_THE_OPTION: &str = "find the firewall, proxy or load balancer that removes the window scale option from SYN segments, \
                               and have it pass";

/// What to change, where something can be.
pub(crate) fn text(finding: &Finding) -> Option<String> {
    finding.remedy.as_ref().map(|remedy| chain(finding, remedy))
}

/// A remedy and what helps besides.
pub(super) fn chain(finding: &Finding, remedy: &Remedy) -> String {
    let also = remedy.also.as_deref();
    match remedy.action {
        // What is needed with it, not instead of it.
        Action::AskWindow | Action::AskSocketBuffer => {
            let scaling = also.map_or_else(String::new, |also| {
                format!("; for more than 64 KiB also {}", chain(finding, also))
            });
            format!("{}{scaling}{}", phrase(finding, remedy), twice(finding, remedy))
        }
        Action::FindErrors => {
            let sack = also.map_or_else(String::new, |also| format!("; and {}", chain(finding, also)));
            format!("{}{sack}", phrase(finding, remedy))
        }
        _ => {
            let mut phrases = vec![phrase(finding, remedy)];
            let mut next = also;
            while let Some(this) = next {
                phrases.push(match this.action {
                    Action::SearchRate => format!("{}, which finds one", setting(this)),
                    _ => phrase(finding, this),
                });
                next = this.also.as_deref();
            }
            let text = match phrases.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, others)) => format!("{}, or {last}", others.join(", ")),
                None => String::new(),
            };
            match (remedy.action, remedy.value, finding.limit) {
                (Action::LowerRate, None, Limit::PathLoss) => {
                    format!("{text}; loss that remains does not depend on the rate")
                }
                _ => text,
            }
        }
    }
}

/// The size of a smaller window.
fn about(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!(", about {}", size(value)))
}

/// What twice the window would carry, unless something else is known to bind before.
fn twice(finding: &Finding, remedy: &Remedy) -> String {
    let carried = finding.figures().map(|of_rate: OfWindowRate| of_rate.carries.0);
    let fits = |bps: f64| finding.next.is_none_or(|next| next.goodput_bps >= 2.0 * bps);
    carried.filter(|&bps| remedy.action == Action::AskWindow && fits(bps)).map_or_else(String::new, |bps| {
        format!("; twice the window would carry {}, if the path does", rate(bps * 2.0))
    })
}

fn setting(remedy: &Remedy) -> &str {
    remedy.setting.as_deref().unwrap_or("the setting")
}

/// A remedy alone.
fn phrase(finding: &Finding, remedy: &Remedy) -> String {
    let (setting, host) = (setting(remedy), remedy.host.as_deref().unwrap_or("the host"));
    let value = remedy.value;
    // The sender's congestion control, unless it is what it could be changed to.
    let changes = remedy.setting.is_some();
    let words = match remedy.action {
        Action::RaiseMaximum => {
            let to = value.map_or_else(String::new, |value| format!(" to {} or more", size(value)));
            return format!("raise the last number of {setting} on {host}{to}");
        }
        Action::Set => return format!("set {setting} = {} on {host}", value.unwrap_or(1.0)),
        Action::AskWindow => {
            let each = if streams(finding) > 1 { " for each stream" } else { "" };
            let at_least = value.map_or_else(String::new, |value| format!(", {} or more{each}", size(value)));
            return format!("ask for a larger window ({setting}{at_least}), or for none");
        }
        Action::AskSocketBuffer => {
            return match (setting, &remedy.host) {
                ("SO_SNDBUF" | "SO_RCVBUF", Some(host)) => format!(
                    "ask for a larger {setting} in the program on {host}, or for none: once setsockopt({setting}) is \
                     called, the kernel no longer sizes the buffer, whatever {} says",
                    if setting == "SO_SNDBUF" { "tcp_wmem" } else { "tcp_rmem" }
                ),
                _ => format!(
                    "ask for a larger socket buffer ({setting}, which sets SO_SNDBUF and SO_RCVBUF), or for none"
                ),
            };
        }
        Action::LargerSocketBuffer => {
            let than = value.map_or_else(String::new, |value| format!(" than {}", size(value)));
            return format!("a larger socket buffer{than} ({setting})");
        }
        Action::SmallerWindow => {
            return format!(
                "a smaller window ({setting}{}) keeps the goodput and empties the queue",
                about(value)
            );
        }
        Action::SmallerWindowOneWay => {
            return format!(
                "a smaller window ({setting}{}) for this direction alone keeps the goodput and empties the queue; with \
                 --bidir it binds both",
                about(value)
            );
        }
        Action::PassWindowScaling => match finding.cause {
            Some(Cause::ScalingHalfStripped) => PASS_THE_OPTION,
            _ => return format!("{PASS_THE_OPTION}; a larger tcp_rmem does not help"),
        },
        Action::FindWindowScaling => {
            "turn window scaling on at the other end, or find the middlebox that removes the option from SYN segments"
        }
        Action::LeaveOut => return format!("leave {setting} out to measure what the path carries"),
        Action::SearchRate => return format!("{setting} finds the highest rate without loss"),
        Action::LowerRate => match value {
            Some(bps) => return format!("a rate below {} ({setting})", rate(bps)),
            None => return format!("a lower rate ({setting})"),
        },
        Action::BoundRate => match value {
            Some(bps) => return format!("a rate of {} at most ({setting})", rate(bps)),
            None => return format!("a lower rate ({setting})"),
        },
        Action::MoreStreams => match &remedy.host {
            Some(host) => return format!("more streams ({setting}), or a faster processor on {host}"),
            None => return format!("more streams ({setting})"),
        },
        Action::LargerDatagrams => return format!("larger datagrams ({setting})"),
        Action::QuieterHost => match &remedy.host {
            Some(host) => return format!("less other work on {host}"),
            None => "a quieter host",
        },
        Action::FreeReader => {
            return format!(
                "find what keeps the receiving process on {host} from reading: a processor quota, other load, a stop; a \
                 larger tcp_rmem only bridges pauses"
            );
        }
        Action::FreeWriter => {
            return format!(
                "find what keeps the sending process on {host} from writing: a slow disk, a processor quota, too few \
                 requests at a time"
            );
        }
        Action::FreeServer => {
            return format!(
                "find what keeps the server's program on {host} from answering: a slow disk, a database, a processor quota"
            );
        }
        Action::AskMore => {
            "ask for more with each question, or for several at a time (pipelining, parallel requests)"
        }
        Action::LargerProgramWindow => {
            "find the program's own window: requests at a time, channel buffers, flow control of HTTP/2"
        }
        Action::OpenPort => {
            return format!(
                "see that a program listens on {host}, and that no firewall on the way keeps it from being reached"
            );
        }
        Action::FindHost => return format!("find whether {host} still runs and can be reached"),
        Action::DisableNagle => {
            return format!("set TCP_NODELAY in the program on {host}, or have it write more at once");
        }
        Action::RaiseQuota => return format!("raise the processor quota of its control group on {host}"),
        Action::MoveMachine => {
            return format!("move {host} to a machine with processors to spare, or reserve some for it");
        }
        Action::RaiseRing => {
            return format!(
                "enlarge the rings of {setting} on {host} (ethtool -G), or spread its queues over more processors"
            );
        }
        Action::RaiseBacklog => {
            let to = value.map_or_else(String::new, |value| format!(" to {value:.0} or more"));
            return format!("raise {setting} on {host}{to}, or spread receiving over more processors (RPS)");
        }
        Action::ProbeMtu if remedy.host.is_none() => {
            "clamp the MSS at the router, or let ICMP 'fragmentation needed' pass"
        }
        Action::ProbeMtu => {
            return format!(
                "set net.ipv4.tcp_mtu_probing = 1 on {host}, clamp the MSS at the router, or let ICMP 'fragmentation \
                 needed' pass"
            );
        }
        Action::FindOutage => "look for a link or a route that failed at that moment, and measure again",
        Action::ShapeToRate => {
            "ask which rate is agreed for this path; shape to that rate at the sender (fq, tbf) to lose less"
        }
        Action::FindErrors => {
            let until = if changes { "; until then bbr at the sender goes less by losses" } else { "" };
            return format!(
                "look for errors on the way (a cable, an optic, a duplex mismatch, radio){until}"
            );
        }
        Action::FindSpreading => {
            "find what spreads one connection's packets over several links: load balancing by packet, a bonded link, radio \
             retransmission"
        }
        Action::FixWayBack => return format!("look for a faulty or congested link on the way to {host}"),
        Action::DeepenQueue => {
            let queue =
                value.map_or("rate x round trip".to_owned(), |v| format!("rate x round trip ({})", size(v)));
            let pace = if changes { ", or pace the sender (fq, bbr) so that bursts fit" } else { "" };
            return format!("lengthen the queue before the bottleneck to {queue}{pace}");
        }
        Action::FixDuplex => {
            "have both ends of the link use full duplex (ethtool); a radio channel carries one direction at a time"
        }
        Action::FindTraffic => {
            "find the other traffic (ss, a capture at the bottleneck), or measure when it is gone; more streams take a larger \
             share from it"
        }
        Action::AddCapacity => {
            let control =
                changes.then(|| "a congestion control that reduces its window less (cubic, bbr)".to_owned());
            let queue = value.map(|value| format!("a queue of rate x round trip ({})", size(value)));
            let busier: Vec<String> = control.into_iter().chain(queue).collect();
            return match busier.is_empty() {
                true => "only a faster bottleneck carries more".to_owned(),
                false => format!(
                    "{} keeps the bottleneck busier; beyond its rate only a faster one carries more",
                    busier.join(", or ")
                ),
            };
        }
        Action::RaiseMarking => {
            "let the queue mark later, where it is yours: a threshold below rate x round trip leaves the bottleneck idle at times; \
             beyond its rate only a faster one carries more"
        }
        Action::EnableSack => {
            return format!(
                "set net.ipv4.tcp_sack = 1 on {host}, or have the middlebox that removes the option let it pass"
            );
        }
        Action::EnableTimestamps => {
            "set net.ipv4.tcp_timestamps = 1 at both ends, or have the middlebox that removes the option let it pass"
        }
        Action::ReuseConnection => {
            "keep the connection open and use it again, or resume TLS sessions (TLS 1.3 takes a round trip less than TLS 1.2)"
        }
        Action::KeepConnection => {
            "keep the connection open for several transfers, or begin with a larger window (ip route ... initcwnd)"
        }
    };
    words.to_owned()
}
