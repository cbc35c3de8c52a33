//! Packets dropped by a host itself: by its device for lack of buffers, or by its kernel. To TCP they look like losses on the path, but
//! each host counts its own.

use bdp_model::facts::{End, Facts, TimeState};
use bdp_model::finding::fact;
use bdp_model::finding::{Action, Cause, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::tuning::setting::Setting;

/// Packets dropped by a host / segments retransmitted from which the drops explain them.
const EXPLAINED: f64 = 0.5;
/// From this share on, hardly any loss is left for the path.
const EXPLAINED_ALL: f64 = 0.9;
/// Fewer drops are noise, since all programs of a host share the counters.
const DROPS_MIN: u64 = 10;
/// Share of the time in which losses held the window back: below it, they are not the limit.
const HELD_BACK: f64 = 0.3;

/// The drops of an end, and where they occurred.
struct Dropped {
    at: At,
    packets: u64,
}

#[derive(Clone, Copy)]
enum At {
    Device,
    Backlog,
    Stack,
}

/// Claims the limit if one end's drops account for most of the retransmissions.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let retransmits = facts.retransmits.filter(|&count| count > 0)?;
    if facts.is_paced() || !losses_hold_back(facts) {
        return None;
    }
    let ends = [
        (Place::receiver(&facts.receiver.name), &facts.receiver, on_receipt(&facts.receiver)),
        (Place::sender(&facts.sender.name), &facts.sender, on_the_way_out(&facts.sender)),
    ];
    let (place, end, dropped) = ends
        .into_iter()
        .filter_map(|(place, end, dropped)| Some((place, end, dropped?)))
        .max_by_key(|(.., dropped)| dropped.packets)?;
    let explained = dropped.packets as f64 / retransmits as f64;
    if dropped.packets < DROPS_MIN || explained < EXPLAINED {
        return None;
    }
    let device = end.host.device.as_ref().map_or("its device", |device| device.name.as_str());
    let confidence = if explained >= EXPLAINED_ALL { Confidence::High } else { Confidence::Medium };
    let remedy = match dropped.at {
        At::Device => Remedy::new(Action::RaiseRing).setting(device),
        At::Backlog => Remedy::new(Action::RaiseBacklog).setting(Setting::NetdevMaxBacklog),
        At::Stack => Remedy::new(Action::QuieterHost),
    };
    let evidence = match dropped.at {
        At::Device => {
            Evidence::count(fact::DroppedByDevice { missing: retransmits }, dropped.packets).named(device)
        }
        At::Backlog => {
            let again = fact::DroppedByBacklog { retransmitted: Some(retransmits) };
            Evidence::count(again, dropped.packets)
        }
        At::Stack => Evidence::count(fact::DroppedByStack { retransmitted: retransmits }, dropped.packets),
    };
    let evidence = evidence.at_least((EXPLAINED * retransmits as f64).max(DROPS_MIN as f64)).on(&end.name);
    let finding = Finding::new(Limit::HostDrops, place, confidence)
        .cause(match dropped.at {
            At::Device => Cause::DeviceDrops,
            At::Backlog | At::Stack => Cause::BacklogDrops,
        })
        .evidence([evidence])
        .evidence(crate::observed::retransmitted(facts))
        .remedy(remedy.host(&end.name));
    Some(finding)
}

/// Whether the congestion window was small because of losses, or losses were being repaired.
fn losses_hold_back(facts: &Facts) -> bool {
    let of_losses =
        |state| matches!(state, TimeState::CongestionAvoidance | TimeState::Recovery | TimeState::Timeout);
    facts.time_spent().is_some_and(|spent| spent.share_of(of_losses) >= HELD_BACK)
}

/// Data that had reached the receiver: the place that dropped most of it.
fn on_receipt(end: &End) -> Option<Dropped> {
    let counters = end.host.counters.as_ref()?;
    let device = counters.device.as_ref().map(|d| d.rx_missed.saturating_add(d.rx_fifo).max(d.rx_dropped));
    let socket = end.stack().and_then(|stack| stack.dropped_on_receipt());
    let all = [(At::Device, device), (At::Backlog, counters.softnet_dropped), (At::Stack, socket)];
    let known = all.into_iter().filter_map(|(at, packets)| Some(Dropped { at, packets: packets? }));
    known.max_by_key(|dropped| dropped.packets)
}

/// Data that had not left the sender.
fn on_the_way_out(end: &End) -> Option<Dropped> {
    let device = end.host.counters.as_ref()?.device.as_ref()?;
    let packets = device.tx_dropped.max(device.tx_fifo);
    Some(Dropped { at: At::Device, packets })
}
