//! Facts about datagrams and drops by devices and kernels.

use bdp_model::finding::Limit;
use bdp_model::finding::fact::{Datagrams, DroppedByDevice};

use super::super::quantity::{percent, rate, time};
use super::seen::Seen;

pub fn of_datagrams(seen: &Seen<'_>, fact: Datagrams) -> String {
    let (value, host) = (seen.value, seen.host());
    match fact {
        Datagrams::RateHeld(held) => {
            let whole = if held.lost == 0 { " without loss" } else { "" };
            format!("{} for {}{whole}", rate(value), time(held.time))
        }
        Datagrams::LostAtRate(of) => format!(
            "at {} {} of {} datagrams were lost, {}",
            rate(value),
            of.lost,
            of.sent,
            percent(of.share.0)
        ),
        Datagrams::AllArrived(all) => format!(
            "all {value:.0} datagrams came through, {} of payload in {:.0} B each",
            rate(all.goodput.0),
            all.payload.0
        ),
        Datagrams::DatagramsLost(of) => {
            format!("{value:.0} of {} datagrams were lost, {}", of.sent, percent(of.share.0))
        }
        Datagrams::LostAsAllowed(of) => {
            let allowed = seen.evidence.at_most;
            let allowed =
                allowed.map_or_else(String::new, |most| format!(", where {} was allowed", percent(most)));
            format!("{} of {} datagrams were lost, {}{allowed}", of.lost, of.sent, seen.share())
        }
        Datagrams::DroppedBySocket(_) if value == 0.0 => {
            format!("none of them was dropped by {host}, whose socket was never full")
        }
        Datagrams::DroppedBySocket(of) => {
            let how_many = if value >= of.lost as f64 { "all".to_owned() } else { format!("{value:.0}") };
            format!("{how_many} of them were dropped by {host}, whose socket was full (SO_RXQ_OVFL)")
        }
        Datagrams::DroppedByDevice(dropped) => by_device(seen, dropped),
        Datagrams::DroppedByBacklog(dropped) => {
            let what = match (seen.finding.limit, dropped.retransmitted) {
                (Limit::HostDrops, Some(again)) => {
                    format!(" (softnet), and {again} segments were retransmitted")
                }
                (Limit::HostDrops, None) => " (softnet)".to_owned(),
                _ => ", which may be some of them".to_owned(),
            };
            format!("the kernel of {host} dropped {value:.0} packets of its backlog{what}")
        }
        Datagrams::DroppedByStack(dropped) => format!(
            "{value:.0} segments found no room in a socket of {host}, and {} were retransmitted",
            dropped.retransmitted
        ),
        Datagrams::Skipped(_) => {
            format!("{value:.0} datagrams were skipped: {host} was more than 20 ms behind schedule")
        }
        Datagrams::Received(of) => {
            let none = if of.lost == 0 { ", none lost" } else { "" };
            format!("{} sent, {} received{none}", rate(of.sent.0), rate(value))
        }
        Datagrams::SentOfAsked(of) => {
            format!("{} of the {} asked for were sent, {}", rate(of.sent.0), rate(of.asked.0), seen.share())
        }
        Datagrams::SentUnbounded(_) => format!("{} sent as fast as possible, none lost", rate(value)),
        Datagrams::DatagramQueue(_) => {
            format!("half of them arrived {} or more after the fastest: a standing queue", seen.time())
        }
        Datagrams::DatagramDelay(_) => format!("delay was {} above its least at p95", seen.time()),
    }
}

fn by_device(seen: &Seen<'_>, dropped: DroppedByDevice) -> String {
    let device = seen.evidence.name.as_deref().unwrap_or("its device");
    let packets = format!("{device} on {} dropped {:.0} packets", seen.host(), seen.value);
    match seen.finding.limit {
        Limit::HostDrops => format!("{packets}, and {} segments were retransmitted", dropped.missing),
        Limit::PathLoss => format!("{packets} on the way out, which may be some of them"),
        _ => format!("{packets}, {} datagrams are missing", dropped.missing),
    }
}
