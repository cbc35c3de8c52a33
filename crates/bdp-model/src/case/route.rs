//! The route of a flow through the links of its case: for the data, and back for the acknowledgements.

use crate::case::network::{Hop, Network, changes};
use crate::case::{CaseFlow, CaseSpec, LinkSpec};
use crate::link::{DirectionConfig, LinkConfig, Medium};
use crate::path::loss::SegmentLoss;
use crate::path::{turns, udp};
use crate::units::{Nanos, Rate};

/// The two paths between a pair of hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Route<'a> {
    links: &'a [LinkSpec],
    /// Hops of the data.
    pub there: Vec<Hop>,
    /// Hops of the acknowledgements.
    pub back: Vec<Hop>,
    /// Hops of the data after each time at which routes of the case change.
    later: Vec<Vec<Hop>>,
}

impl<'a> Route<'a> {
    /// Returns the route of a flow; `None` if its hosts are not connected, which a scenario cannot have.
    pub fn of(case: &'a CaseSpec, flow: &CaseFlow) -> Option<Self> {
        Self::between(case, &flow.from, &flow.to)
    }

    /// Returns the route from one host to another and back.
    pub fn between(case: &'a CaseSpec, from: &str, to: &str) -> Option<Self> {
        let network = Network::new(&case.hosts, &case.links);
        let (there, back) = (network.path(from, to).ok()?, network.path(to, from).ok()?);
        let at = |moment| Network::new(&case.hosts, &case.links).as_of(moment).path(from, to).ok();
        let later = changes(&case.hosts).into_iter().map(at).collect::<Option<_>>()?;
        Some(Self { links: &case.links, there, back, later })
    }

    /// Returns the largest IP packet that every device on the data path takes.
    pub fn mtu(&self) -> u32 {
        let hops = self.ways().flatten();
        hops.map(|hop| self.links[hop.link].config.mtu).min().unwrap_or(1500)
    }

    /// Returns the successive paths of the data.
    fn ways(&self) -> impl Iterator<Item = &Vec<Hop>> {
        std::iter::once(&self.there).chain(&self.later)
    }

    /// Returns the link that delivers data to the receiver, and its configuration in that direction.
    pub fn last(&self) -> Option<(&'a LinkConfig, &'a DirectionConfig)> {
        let last = *self.there.last()?;
        Some((&self.links[last.link].config, last.direction(self.links)))
    }

    /// Returns the propagation delay there and back.
    pub fn delay(&self) -> Nanos {
        self.hops().fold(Nanos::ZERO, |sum, hop| sum + hop.direction(self.links).delay)
    }

    /// Whether any of its links has jitter.
    pub fn jitters(&self) -> bool {
        self.hops().any(|hop| hop.direction(self.links).jitter.is_some())
    }

    /// Whether routes or links change over time, so that no model with constants applies.
    pub fn changes(&self) -> bool {
        !self.later.is_empty() || self.hops().any(|hop| hop.direction(self.links).changes())
    }

    /// Returns the largest rate that its slowest link ever has; `None` if no link has one.
    pub fn fastest(&self) -> Option<Rate> {
        let slowest = |way: &Vec<Hop>| way.iter().filter_map(|hop| hop.direction(self.links).fastest()).min();
        let rates: Option<Vec<_>> = self.ways().map(slowest).collect();
        rates?.into_iter().max()
    }

    /// Returns the number of links on the longest of its data paths.
    pub fn length(&self) -> usize {
        self.ways().map(Vec::len).max().unwrap_or(0).max(self.back.len())
    }

    /// Returns the link directions that data passes, in order.
    pub fn data(&self) -> impl Iterator<Item = &'a DirectionConfig> + '_ {
        self.there.iter().map(|hop| hop.direction(self.links))
    }

    /// Returns the hop with the lowest rate of packets of this size, and its rate; `None` if no hop has one.
    pub fn slowest(&self, ip_bytes: u64) -> Option<(Hop, Rate)> {
        let time = |hop: Hop| serialisation(hop.direction(self.links), ip_bytes);
        let rated = self.there.iter().filter_map(|&hop| Some((hop, hop.direction(self.links).rate?)));
        // The first of equals: nothing queues behind it.
        rated.min_by_key(|&(hop, _)| std::cmp::Reverse(time(hop)))
    }

    /// Returns how the links lose or corrupt data segments.
    pub fn segment_loss(&self) -> SegmentLoss {
        SegmentLoss::of(self.data())
    }

    /// Returns the effect of each hop on datagrams with this payload and these headers, of which `offered` are sent. They are not
    /// acknowledged, so a half-duplex medium carries only them.
    pub fn datagram_hops(&self, payload: u64, headers: u64, offered: u64) -> Vec<udp::Hop> {
        let ip_bytes = payload + headers;
        let per_second = |rate: Rate, bytes: u64| rate.as_bps() as f64 / (8 * bytes) as f64;
        self.data()
            .map(|d| udp::Hop {
                loss: d.loss.expected(offered) / offered.max(1) as f64,
                corrupt: d.corrupt.fraction(),
                duplicate: d.duplicate.fraction(),
                policer_pps: d.policer.map(|policer| per_second(policer.rate, ip_bytes)),
                wire_pps: d.rate.map(|rate| per_second(rate, ip_bytes + u64::from(d.overhead_bytes))),
            })
            .collect()
    }

    /// Returns the capacity of each hop for full segments of `mss` and `headers` bytes: the hop, payload bit/s, and
    /// what limits it. Hops without a rate and without a policer are left out.
    pub fn rooms(&self, mss: u64, headers: u64) -> impl Iterator<Item = (Hop, f64, &'static str)> + '_ {
        self.there.iter().flat_map(move |&hop| {
            let direction = hop.direction(self.links);
            let wire = self.wire_room(hop, mss, headers).map(|(bps, by)| (hop, bps, by));
            let policed = direction.policer.map(|policer| {
                let bps = policer.rate.as_bps() as f64 * mss as f64 / (mss + headers) as f64;
                (hop, bps / copies(direction), "policer")
            });
            wire.into_iter().chain(policed)
        })
    }

    /// Returns the capacity of each hop for datagrams. They are not acknowledged, so a half-duplex medium carries only them.
    pub fn one_way_rooms(&self, payload: u64, headers: u64) -> Vec<(Hop, f64, &'static str)> {
        let bits = (8 * payload) as f64;
        let hops = self.there.iter().zip(self.datagram_hops(payload, headers, 1));
        hops.flat_map(|(&hop, of)| {
            let wire = of.wire_pps.map(|pps| (hop, pps * bits, "ceiling"));
            let policed = of.policer_pps.map(|pps| (hop, pps * bits, "policer"));
            wire.into_iter().chain(policed)
        })
        .collect()
    }

    /// Returns the capacity of a hop's wire, allowing for its medium's turns and for duplicated packets.
    fn wire_room(&self, hop: Hop, mss: u64, headers: u64) -> Option<(f64, &'static str)> {
        let direction = hop.direction(self.links);
        let on_wire = mss + headers + u64::from(direction.overhead_bytes);
        let bps = direction.rate?.as_bps() as f64 * mss as f64 / on_wire as f64 / copies(direction);
        let Medium::HalfDuplex(medium) = self.links[hop.link].config.medium else {
            let by = if copies(direction) > 1.0 { "ceiling with its copies" } else { "ceiling" };
            return Some((bps, by));
        };
        let secs = |d: &DirectionConfig, bytes| serialisation(d, bytes).as_secs_f64();
        let back = Hop { forward: !hop.forward, ..hop };
        // If acknowledgements take another way back, the medium carries only data.
        if !self.back.contains(&back) {
            return Some((bps, "ceiling"));
        }
        let share =
            turns::share(medium, secs(direction, mss + headers), secs(back.direction(self.links), headers));
        Some((bps * share, "half-duplex ceiling"))
    }

    /// Returns the first hop that silently drops IP packets of this size, and the largest it passes.
    pub fn black_hole(&self, ip_bytes: u64) -> Option<(Hop, u32)> {
        let above =
            |hop: &Hop| hop.direction(self.links).drop_above.filter(|&most| ip_bytes > u64::from(most));
        self.there.iter().find_map(|hop| above(hop).map(|most| (*hop, most)))
    }

    /// Returns the sum of both delays, every serialisation of an IP packet of `there` bytes and of its answer, the median jitter, and
    /// the wait of an answer that returns over a half-duplex medium before its guard time ends.
    pub fn round_trip(&self, there: u64, back: u64) -> Nanos {
        let plain =
            one_way(self.links, &self.there, there, usual) + one_way(self.links, &self.back, back, usual);
        self.there.iter().enumerate().fold(plain, |sum, (i, hop)| {
            let Medium::HalfDuplex(turns) = self.links[hop.link].config.medium else { return sum };
            let Some(j) = self.back.iter().position(|answer| answer.link == hop.link) else { return sum };
            let elapsed = usual(hop.direction(self.links))
                + one_way(self.links, &self.there[i + 1..], there, usual)
                + one_way(self.links, &self.back[..j], back, usual);
            sum + turns.guard.saturating_sub(elapsed)
        })
    }

    /// Returns the round trip with the least jitter.
    pub fn least_round_trip(&self, there: u64, back: u64) -> Nanos {
        one_way(self.links, &self.there, there, least) + one_way(self.links, &self.back, back, least)
    }

    /// Returns how much longer a full segment takes than a probe on all data links except the slowest, which models count separately.
    pub fn store_and_forward(&self, segment_ip_bytes: u64, probe_ip_bytes: u64) -> Nanos {
        let slowest = self.slowest(segment_ip_bytes).map(|(hop, _)| hop);
        self.there.iter().filter(|&&hop| Some(hop) != slowest).fold(Nanos::ZERO, |sum, hop| {
            let d = hop.direction(self.links);
            sum + serialisation(d, segment_ip_bytes).saturating_sub(serialisation(d, probe_ip_bytes))
        })
    }

    /// Returns the names of a hop's hosts: `r1->r2`.
    pub fn name(&self, hop: Hop) -> String {
        format!("{}->{}", hop.from(self.links), hop.to(self.links))
    }

    fn hops(&self) -> impl Iterator<Item = Hop> + '_ {
        self.there.iter().chain(&self.back).copied()
    }
}

/// Returns the packets on the wire per packet that enters.
fn copies(direction: &DirectionConfig) -> f64 {
    1.0 + direction.duplicate.fraction()
}

/// Returns the time of an IP packet over some hops, with `delay` for their delays.
fn one_way(links: &[LinkSpec], hops: &[Hop], bytes: u64, delay: fn(&DirectionConfig) -> Nanos) -> Nanos {
    hops.iter()
        .map(|hop| hop.direction(links))
        .fold(Nanos::ZERO, |sum, d| sum + delay(d) + serialisation(d, bytes))
}

/// Returns the delay with the median jitter.
fn usual(direction: &DirectionConfig) -> Nanos {
    shifted(direction.delay, direction.jitter.as_ref().map_or(0, |jitter| jitter.least_and_median_ns().1))
}

/// Returns the delay with the least jitter.
fn least(direction: &DirectionConfig) -> Nanos {
    shifted(direction.delay, direction.jitter.as_ref().map_or(0, |jitter| jitter.least_and_median_ns().0))
}

fn shifted(delay: Nanos, by_ns: i64) -> Nanos {
    Nanos(delay.as_ns().saturating_add_signed(by_ns))
}

/// Returns the time of an IP packet on the wire of a direction; zero without a rate.
pub fn serialisation(direction: &DirectionConfig, ip_bytes: u64) -> Nanos {
    direction.rate.map_or(Nanos::ZERO, |r| r.serialisation(ip_bytes + u64::from(direction.overhead_bytes)))
}
