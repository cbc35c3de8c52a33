//! From the limit of a direction to changes.

use bdp_model::case::Family;
use bdp_model::finding::threshold::NOTICEABLE_DELAY;
use bdp_model::finding::{Action, Cause, Finding, Limit};
use bdp_model::measurement::ends::End;
use bdp_model::path::overhead::{Transport, header_bytes};
use bdp_model::tuning::setting::Setting;
use bdp_model::tuning::{Change, Gain, Reason, RouteAttribute, Target, Why};
use bdp_model::units::Nanos;

use super::buffers;
use super::draft::Draft;
use super::host::Host;
use super::path::Way;
use crate::remedies::BY_RATE;

/// A queue of this share of the idle round trip is worth a change.
const LONG_QUEUE: f64 = 0.5;
/// Share of the wire rate at which a sender is paced, so that no queue grows.
const PACED: f64 = 0.97;
/// Largest initial congestion window, segments: ten times the kernel's default is a burst that short queues do not hold.
const LARGEST_INITIAL: u64 = 64;
/// Number of timeouts worth a change, if the kernel's minimum timeout, 200 ms, is many round trips.
const TIMEOUTS_MIN: u64 = 5;
const SHORT_ROUND_TRIP: Nanos = Nanos::millis(10);
/// Minimum timeout / round trip, and in milliseconds: a delayed acknowledgement may take 40 ms, and a late one only costs a needless retransmission.
const SHORTER_TIMEOUT: u64 = 5;
const LEAST_TIMEOUT_MS: u64 = 10;
/// Factor by which the backlog is lengthened to hold what the kernel dropped.
const LONGER_BACKLOG: u64 = 4;

/// Adds the changes that a direction needs.
pub(super) fn add(draft: &mut Draft, way: &Way, near: &Host<'_>, far: &Host<'_>) {
    let host = |end| if end == End::Near { near } else { far };
    let ends = Ends { way, sender: host(way.sender()), receiver: host(way.receiver()), near, far };
    for (rank, finding) in way.findings.iter().enumerate() {
        // Additional findings are changed if they are a setting; otherwise only the first, the limit.
        ends.remedy(draft, finding, rank == 0);
    }
    ends.timeouts(draft);
    buffers::add(draft, way, near, far);
}

/// Enables what every path needs and this host has disabled.
pub(super) fn add_what_is_off(draft: &mut Draft, host: &Host<'_>) {
    for setting in
        [Setting::TcpWindowScaling, Setting::TcpModerateRcvbuf, Setting::TcpSack, Setting::TcpTimestamps]
    {
        turn_on(draft, End::Near, host, setting);
    }
}

/// Enables a flag if it is off; returns whether it was.
fn turn_on(draft: &mut Draft, end: End, host: &Host<'_>, setting: Setting) -> bool {
    if host.value(setting) != Some("0") {
        return false;
    }
    let (from, to) = (Some("0".to_owned()), "1".to_owned());
    draft.change(Change { end, target: Target::sysctl(setting), from, to, reason: Reason::Off, gain: None });
    true
}

struct Ends<'a> {
    way: &'a Way,
    sender: &'a Host<'a>,
    receiver: &'a Host<'a>,
    near: &'a Host<'a>,
    far: &'a Host<'a>,
}

impl Ends<'_> {
    fn remedy(&self, draft: &mut Draft, finding: &Finding, is_first: bool) {
        let facts = &self.way.facts;
        match finding.limit {
            Limit::ReceiveWindow => self.receive_window(draft, finding),
            // Both buffers are planned for every direction.
            Limit::SendBuffer | Limit::Ceiling => {}
            Limit::RandomLoss | Limit::CongestionLoss | Limit::Reordering => {
                let loss = facts.retransmitted().map_or(0.0, |(_, share)| share);
                let congestion_control = facts.congestion_control.clone();
                self.by_rate(draft, Reason::RandomLoss { loss, congestion_control }, None);
            }
            Limit::PathRate => self.standing_queue(draft),
            Limit::ShallowQueue => {
                self.by_rate(draft, Reason::ShallowQueue, None);
                self.spaced(draft, "fq", Reason::ShallowQueue, None);
            }
            Limit::Policer => {
                let reason = Reason::Policer { rate_bps: facts.goodput_bps };
                self.by_rate(draft, reason.clone(), None);
                self.spaced(draft, "pace", reason, Some(facts.goodput_bps));
            }
            Limit::SlowStart => self.slow_start(draft),
            Limit::MtuBlackHole => self.set(draft, Setting::TcpMtuProbing, "1", Reason::MtuBlackHole),
            Limit::HostDrops if finding.cause == Some(Cause::BacklogDrops) => self.backlog(draft, finding),
            limit => match finding.remedy.as_ref().map(|remedy| remedy.action) {
                Some(Action::EnableSack) => self.option(draft, finding, Setting::TcpSack),
                Some(Action::EnableTimestamps) => self.option(draft, finding, Setting::TcpTimestamps),
                _ if is_first => self.not_of_hosts(draft, limit),
                _ => {}
            },
        }
    }

    fn not_of_hosts(&self, draft: &mut Draft, limit: Limit) {
        draft.refuse(None, None, Why::NotOfHosts { direction: self.way.direction, limit });
    }

    fn receive_window(&self, draft: &mut Draft, finding: &Finding) {
        match finding.cause {
            Some(Cause::ScalingOff) => {
                for (end, host) in [(End::Near, self.near), (End::Far, self.far)] {
                    turn_on(draft, end, host, Setting::TcpWindowScaling);
                }
            }
            Some(Cause::AutotuningOff) => {
                turn_on(draft, self.way.receiver(), self.receiver, Setting::TcpModerateRcvbuf);
            }
            Some(Cause::ScalingStripped | Cause::ScalingHalfStripped | Cause::ScalingMissing) => {
                self.not_of_hosts(draft, finding.limit);
            }
            _ => {}
        }
    }

    /// A TCP option that both ends must have on.
    fn option(&self, draft: &mut Draft, finding: &Finding, setting: Setting) {
        let turned = [(End::Near, self.near), (End::Far, self.far)]
            .into_iter()
            .filter(|(end, host)| turn_on(draft, *end, host, setting))
            .count();
        if turned == 0 {
            self.not_of_hosts(draft, finding.limit);
        }
    }

    /// A sysctl of the sender.
    fn set(&self, draft: &mut Draft, setting: Setting, to: &str, reason: Reason) {
        let from = self.sender.value(setting).map(str::to_owned);
        let end = self.way.sender();
        let target = Target::sysctl(setting);
        match &from {
            Some(value) if value != "0" => {
                draft.refuse(end, target, Why::Enough { value: value.clone(), needed: to.to_owned() });
            }
            None => draft.refuse(end, target, Why::Unknown),
            Some(_) => draft.change(Change { end, target, from, to: to.to_owned(), reason, gain: None }),
        }
    }

    fn standing_queue(&self, draft: &mut Draft) {
        let facts = &self.way.facts;
        let Some((added, idle)) = facts.standing_queue().map(|queue| queue.added).zip(facts.rtt_idle())
        else {
            return self.not_of_hosts(draft, Limit::PathRate);
        };
        if added < NOTICEABLE_DELAY || added.as_secs_f64() < LONG_QUEUE * idle.as_secs_f64() {
            return self.not_of_hosts(draft, Limit::PathRate);
        }
        let reason = Reason::StandingQueue { added_ns: added.as_ns() };
        self.by_rate(draft, reason.clone(), Some(added));
        self.spaced(draft, "pace", reason, Some(facts.goodput_bps));
    }

    /// A rate-based congestion control, on the route to the other end only, or for the whole host if requested.
    fn by_rate(&self, draft: &mut Draft, reason: Reason, less: Option<Nanos>) {
        let end = self.way.sender();
        let facts = &self.way.facts;
        let (to, from) = (BY_RATE.to_owned(), facts.congestion_control.clone());
        let for_all = Target::sysctl(Setting::TcpCongestionControl);
        if facts.asked.congestion.is_some() {
            return draft.refuse(end, for_all, Why::Asked { option: "--congestion".to_owned() });
        }
        if facts.sends_by_model() {
            return draft.refuse(end, for_all, Why::Enough { value: from, needed: to });
        }
        match self.sender.has_congestion_control(BY_RATE) {
            Some(true) => {}
            Some(false) => return draft.refuse(end, for_all, Why::NotAvailable { name: to }),
            None => return draft.refuse(end, for_all, Why::Unknown),
        }
        let goodput = facts.goodput_bps;
        let gain = Gain {
            direction: self.way.direction,
            before_bps: goodput,
            after_bps: if less.is_some() { goodput } else { self.way.rate_bps.unwrap_or(goodput) },
            next: None,
            loaded_rtt_less_ns: less.map(Nanos::as_ns),
        };
        let gain = Some(gain).filter(|gain| less.is_some() || gain.after_bps > goodput);
        let call = format!("setsockopt(TCP_CONGESTION, \"{BY_RATE}\")");
        let Some(address) = self.receiver.address() else {
            return draft.refuse(end, for_all, Why::Unknown);
        };
        let on_route = Target::Route { to: address, attribute: RouteAttribute::Congctl };
        draft.program(end, call, on_route.clone());
        draft.alternative(
            "host",
            vec![Change {
                end,
                target: for_all,
                from: Some(from),
                to: to.clone(),
                reason: reason.clone(),
                gain,
            }],
        );
        draft.change(Change { end, target: on_route, from: None, to, reason, gain });
    }

    /// `fq` on the sender's device, at a rate if one is given: an alternative.
    fn spaced(&self, draft: &mut Draft, name: &str, reason: Reason, goodput: Option<f64>) {
        let end = self.way.sender();
        let Some((device, qdisc)) = self.sender.device() else { return };
        let target = Target::Qdisc { device: device.to_owned() };
        let to = match goodput.map(|bps| self.on_the_wire(bps) * PACED) {
            Some(bps) => format!("fq maxrate {bps:.0}bit"),
            None => "fq".to_owned(),
        };
        if let Some(bps) = goodput {
            draft.program(
                end,
                format!("setsockopt(SO_MAX_PACING_RATE, {:.0})", bps * PACED / 8.0),
                target.clone(),
            );
        }
        let from = qdisc.map(str::to_owned);
        draft.alternative(name, vec![Change { end, target, from, to, reason, gain: None }]);
    }

    /// A goodput as the device counts it, with IP and Ethernet headers.
    fn on_the_wire(&self, bps: f64) -> f64 {
        const ETHERNET: u64 = 14;
        let headers = (ETHERNET + header_bytes(Family::Ipv4, Transport::TcpTimestamps)) as f64;
        let mss = self.way.facts.mss_bytes.map_or(1448.0, |mss| mss as f64);
        bps * (mss + headers) / mss
    }

    fn slow_start(&self, draft: &mut Draft) {
        let facts = &self.way.facts;
        let Some((rtt, mss)) = facts.rtt_idle().zip(facts.mss_bytes) else { return };
        let Some(address) = self.receiver.address() else { return };
        let segments = facts.bytes / mss.max(1) / u64::from(facts.streams());
        let to = segments.clamp(11, LARGEST_INITIAL);
        let round_trips = facts.duration_ns as f64 / rtt.as_ns().max(1) as f64;
        let (end, reason) = (self.way.sender(), Reason::SlowStart { round_trips });
        let target = Target::Route { to: address, attribute: RouteAttribute::Initcwnd };
        draft.change(Change { end, target, from: None, to: to.to_string(), reason, gain: None });
    }

    /// A shorter minimum timeout on the route, if timeouts occurred and the round trip is a small part of the kernel's minimum.
    fn timeouts(&self, draft: &mut Draft) {
        let facts = &self.way.facts;
        let timeouts = facts.sent.last().and_then(|last| last.timeouts).unwrap_or(0);
        let Some(rtt) = facts.rtt_loaded().or_else(|| facts.rtt_idle()) else { return };
        if timeouts < TIMEOUTS_MIN || rtt > SHORT_ROUND_TRIP {
            return;
        }
        let Some(address) = self.receiver.address() else { return };
        let to = (SHORTER_TIMEOUT * rtt.as_ns()).div_ceil(1_000_000).max(LEAST_TIMEOUT_MS);
        let target = Target::Route { to: address, attribute: RouteAttribute::RtoMin };
        let (end, reason) = (self.way.sender(), Reason::Timeouts { timeouts });
        draft.change(Change { end, target, from: None, to: format!("{to}ms"), reason, gain: None });
    }

    fn backlog(&self, draft: &mut Draft, finding: &Finding) {
        let remedy = finding.remedy.as_ref().filter(|remedy| remedy.action == Action::RaiseBacklog);
        let at_sender = remedy.and_then(|r| r.host.as_deref()) == Some(self.way.facts.sender.name.as_str());
        let (end, host) = match at_sender {
            true => (self.way.sender(), self.sender),
            false => (self.way.receiver(), self.receiver),
        };
        let target = Target::sysctl(Setting::NetdevMaxBacklog);
        let Some(value) = host.value(Setting::NetdevMaxBacklog).and_then(|value| value.parse::<u64>().ok())
        else {
            return draft.refuse(end, target, Why::Unknown);
        };
        let packets = host.dropped_backlog();
        let (from, to) = (Some(value.to_string()), (value * LONGER_BACKLOG).to_string());
        draft.change(Change { end, target, from, to, reason: Reason::HostDrops { packets }, gain: None });
    }
}
