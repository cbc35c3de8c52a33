//! Remedies in words.

use bdp_model::finding::fact::OfWindowRate;
use bdp_model::finding::remedy::{Connections, Hosts, Kind, Load, Path, Windows};
use bdp_model::finding::{Action, Cause, Finding, Limit, Remedy};
use bdp_model::tuning::setting::Setting;

use super::evidence::streams;
use super::quantity::{rate, size};

const PASS_THE_OPTION: &str = "find the firewall, proxy or load balancer that removes the window scale option from SYN segments, \
                               and have it pass";

/// Returns what to change, if anything can be.
pub(crate) fn text(finding: &Finding) -> Option<String> {
    finding.remedy.as_ref().map(|remedy| chain(finding, remedy))
}

/// Returns a remedy and additional measures.
pub(super) fn chain(finding: &Finding, remedy: &Remedy) -> String {
    let also = remedy.also.as_deref();
    match remedy.action {
        // Needed in addition, not instead.
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

/// Returns the size of a smaller window.
fn about(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!(", about {}", size(value)))
}

/// Returns what twice the window would carry, unless another limit is known to bind first.
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

/// Returns a remedy alone.
fn phrase(finding: &Finding, remedy: &Remedy) -> String {
    let host = remedy.host.as_deref().unwrap_or("the host");
    match remedy.action.kind() {
        Kind::Windows(action) => of_windows(action, finding, remedy, host),
        Kind::Load(action) => of_load(action, remedy),
        Kind::Hosts(action) => of_hosts(action, remedy, host),
        Kind::Path(action) => of_path(action, remedy, host),
        Kind::Connections(action) => of_connections(action, host),
    }
}

fn of_windows(action: Windows, finding: &Finding, remedy: &Remedy, host: &str) -> String {
    let (setting, value) = (setting(remedy), remedy.value);
    match action {
        Windows::RaiseMaximum => {
            let to = value.map_or_else(String::new, |value| format!(" to {} or more", size(value)));
            format!("raise the last number of {setting} on {host}{to}")
        }
        Windows::Set => format!("set {setting} = {} on {host}", value.unwrap_or(1.0)),
        Windows::AskWindow => {
            let each = if streams(finding) > 1 { " for each stream" } else { "" };
            let at_least = value.map_or_else(String::new, |value| format!(", {} or more{each}", size(value)));
            format!("ask for a larger window ({setting}{at_least}), or for none")
        }
        Windows::AskSocketBuffer => match (setting, &remedy.host) {
            ("SO_SNDBUF" | "SO_RCVBUF", Some(host)) => format!(
                "ask for a larger {setting} in the program on {host}, or for none: once setsockopt({setting}) is \
                 called, the kernel no longer sizes the buffer, whatever {} says",
                if setting == "SO_SNDBUF" { Setting::TcpWmem.short } else { Setting::TcpRmem.short }
            ),
            _ => format!(
                "ask for a larger socket buffer ({setting}, which sets SO_SNDBUF and SO_RCVBUF), or for none"
            ),
        },
        Windows::LargerSocketBuffer => {
            let than = value.map_or_else(String::new, |value| format!(" than {}", size(value)));
            format!("a larger socket buffer{than} ({setting})")
        }
        Windows::SmallerWindow => {
            format!("a smaller window ({setting}{}) keeps the goodput and empties the queue", about(value))
        }
        Windows::SmallerWindowOneWay => format!(
            "a smaller window ({setting}{}) for this direction alone keeps the goodput and empties the queue; with \
             --bidir it binds both",
            about(value)
        ),
        Windows::PassWindowScaling => match finding.cause {
            Some(Cause::ScalingHalfStripped) => PASS_THE_OPTION.to_owned(),
            _ => format!("{PASS_THE_OPTION}; a larger {} does not help", Setting::TcpRmem.short),
        },
        Windows::FindWindowScaling => {
            "turn window scaling on at the other end, or find the middlebox that removes the option from SYN segments"
                .to_owned()
        }
    }
}

fn of_load(action: Load, remedy: &Remedy) -> String {
    let setting = setting(remedy);
    match (action, remedy.value, &remedy.host) {
        (Load::LeaveOut, ..) => format!("leave {setting} out to measure what the path carries"),
        (Load::SearchRate, ..) => format!("{setting} finds the highest rate without loss"),
        (Load::LowerRate, Some(bps), _) => format!("a rate below {} ({setting})", rate(bps)),
        (Load::BoundRate, Some(bps), _) => format!("a rate of {} at most ({setting})", rate(bps)),
        (Load::LowerRate | Load::BoundRate, None, _) => format!("a lower rate ({setting})"),
        (Load::MoreStreams, _, Some(host)) => {
            format!("more streams ({setting}), or a faster processor on {host}")
        }
        (Load::MoreStreams, _, None) => format!("more streams ({setting})"),
        (Load::LargerDatagrams, ..) => format!("larger datagrams ({setting})"),
    }
}

fn of_hosts(action: Hosts, remedy: &Remedy, host: &str) -> String {
    match action {
        Hosts::QuieterHost if remedy.host.is_none() => "a quieter host".to_owned(),
        Hosts::QuieterHost => format!("less other work on {host}"),
        Hosts::FreeReader => format!(
            "find what keeps the receiving process on {host} from reading: a processor quota, other load, a stop; a \
             larger {} only bridges pauses",
            Setting::TcpRmem.short
        ),
        Hosts::FreeWriter => format!(
            "find what keeps the sending process on {host} from writing: a slow disk, a processor quota, too few \
             requests at a time"
        ),
        Hosts::FreeServer => format!(
            "find what keeps the server's program on {host} from answering: a slow disk, a database, a processor quota"
        ),
        Hosts::AskMore => {
            "ask for more with each question, or for several at a time (pipelining, parallel requests)"
                .to_owned()
        }
        Hosts::LargerProgramWindow => {
            "find the program's own window: requests at a time, channel buffers, flow control of HTTP/2"
                .to_owned()
        }
        Hosts::OpenPort => format!(
            "see that a program listens on {host}, and that no firewall on the way keeps it from being reached"
        ),
        Hosts::FindHost => format!("find whether {host} still runs and can be reached"),
        Hosts::DisableNagle => {
            format!("set TCP_NODELAY in the program on {host}, or have it write more at once")
        }
        Hosts::RaiseQuota => format!("raise the processor quota of its control group on {host}"),
        Hosts::MoveMachine => {
            format!("move {host} to a machine with processors to spare, or reserve some for it")
        }
        Hosts::RaiseRing => format!(
            "enlarge the rings of {} on {host} (ethtool -G), or spread its queues over more processors",
            setting(remedy)
        ),
        Hosts::RaiseBacklog => {
            let to = remedy.value.map_or_else(String::new, |value| format!(" to {value:.0} or more"));
            format!("raise {} on {host}{to}, or spread receiving over more processors (RPS)", setting(remedy))
        }
    }
}

fn of_path(action: Path, remedy: &Remedy, host: &str) -> String {
    // The sender's congestion control, unless it already is the suggested one.
    let changes = remedy.setting.is_some();
    let words = match action {
        Path::ProbeMtu if remedy.host.is_none() => {
            "clamp the MSS at the router, or let ICMP 'fragmentation needed' pass"
        }
        Path::ProbeMtu => {
            return format!(
                "set {} = 1 on {host}, clamp the MSS at the router, or let ICMP 'fragmentation needed' pass",
                Setting::TcpMtuProbing
            );
        }
        Path::FindOutage => "look for a link or a route that failed at that moment, and measure again",
        Path::ShapeToRate => {
            "ask which rate is agreed for this path; shape to that rate at the sender (fq, tbf) to lose less"
        }
        Path::FindErrors => {
            let until = if changes { "; until then bbr at the sender goes less by losses" } else { "" };
            return format!(
                "look for errors on the way (a cable, an optic, a duplex mismatch, radio){until}"
            );
        }
        Path::FindSpreading => {
            "find what spreads one connection's packets over several links: load balancing by packet, a bonded link, radio \
             retransmission"
        }
        Path::FixWayBack => return format!("look for a faulty or congested link on the way to {host}"),
        Path::DeepenQueue => {
            let queue = remedy
                .value
                .map_or("rate x round trip".to_owned(), |v| format!("rate x round trip ({})", size(v)));
            let pace = if changes { ", or pace the sender (fq, bbr) so that bursts fit" } else { "" };
            return format!("lengthen the queue before the bottleneck to {queue}{pace}");
        }
        Path::FixDuplex => {
            "have both ends of the link use full duplex (ethtool); a radio channel carries one direction at a time"
        }
        Path::FindTraffic => {
            "find the other traffic (ss, a capture at the bottleneck), or measure when it is gone; more streams take a larger \
             share from it"
        }
        Path::AddCapacity => return add_capacity(changes, remedy.value),
        Path::RaiseMarking => {
            "let the queue mark later, where it is yours: a threshold below rate x round trip leaves the bottleneck idle at times; \
             beyond its rate only a faster one carries more"
        }
    };
    words.to_owned()
}

fn add_capacity(changes: bool, queue: Option<f64>) -> String {
    let control =
        changes.then(|| "a congestion control that reduces its window less (cubic, bbr)".to_owned());
    let queue = queue.map(|value| format!("a queue of rate x round trip ({})", size(value)));
    let busier: Vec<String> = control.into_iter().chain(queue).collect();
    match busier.is_empty() {
        true => "only a faster bottleneck carries more".to_owned(),
        false => format!(
            "{} keeps the bottleneck busier; beyond its rate only a faster one carries more",
            busier.join(", or ")
        ),
    }
}

fn of_connections(action: Connections, host: &str) -> String {
    let words = match action {
        Connections::EnableSack => {
            return format!(
                "set {} = 1 on {host}, or have the middlebox that removes the option let it pass",
                Setting::TcpSack
            );
        }
        Connections::EnableTimestamps => {
            return format!(
                "set {} = 1 at both ends, or have the middlebox that removes the option let it pass",
                Setting::TcpTimestamps
            );
        }
        Connections::ReuseConnection => {
            "keep the connection open and use it again, or resume TLS sessions (TLS 1.3 takes a round trip less than TLS 1.2)"
        }
        Connections::KeepConnection => {
            "keep the connection open for several transfers, or begin with a larger window (ip route ... initcwnd)"
        }
    };
    words.to_owned()
}
