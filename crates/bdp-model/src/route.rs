//! The route of a flow through the links of its case: there, and back for what is acknowledged.

use crate::case::{CaseFlow, CaseSpec, LinkSpec};
use crate::link::{DirectionConfig, LinkConfig, Medium};
use crate::path::loss::SegmentLoss;
use crate::path::{turns, udp};
use crate::scenario::route::{Hop, Network, changes};
use crate::units::{Nanos, Rate};

/// Two paths between the same hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Route<'a> {
    links: &'a [LinkSpec],
    /// Hops of the data.
    pub there: Vec<Hop>,
    /// Hops of the acknowledgements.
    pub back: Vec<Hop>,
    /// Hops of the data from each moment on at which routes of the case change.
    later: Vec<Vec<Hop>>,
}

impl<'a> Route<'a> {
    /// Of a flow; `None` where no links and routers join its hosts, which a scenario that was read excludes.
    pub fn of(case: &'a CaseSpec, flow: &CaseFlow) -> Option<Self> {
        Self::between(case, &flow.from, &flow.to)
    }

    /// From one host to another and back.
    pub fn between(case: &'a CaseSpec, from: &str, to: &str) -> Option<Self> {
        let network = Network::new(&case.hosts, &case.links);
        let (there, back) = (network.path(from, to).ok()?, network.path(to, from).ok()?);
        let at = |moment| Network::new(&case.hosts, &case.links).as_of(moment).path(from, to).ok();
        let later = changes(&case.hosts).into_iter().map(at).collect::<Option<_>>()?;
        Some(Self { links: &case.links, there, back, later })
    }

    /// Largest IP packet that every device on the way there takes.
    pub fn mtu(&self) -> u32 {
        let hops = self.ways().flatten();
        hops.map(|hop| self.links[hop.link].config.mtu).min().unwrap_or(1500)
    }

    /// The ways of the data, one after another.
    fn ways(&self) -> impl Iterator<Item = &Vec<Hop>> {
        std::iter::once(&self.there).chain(&self.later)
    }

    /// The link that delivers data to the receiver, and what it does in that direction.
    pub fn last(&self) -> Option<(&'a LinkConfig, &'a DirectionConfig)> {
        let last = *self.there.last()?;
        Some((&self.links[last.link].config, last.direction(self.links)))
    }

    /// Propagation there and back.
    pub fn delay(&self) -> Nanos {
        self.hops().fold(Nanos::ZERO, |sum, hop| sum + hop.direction(self.links).delay)
    }

    /// Whether any of its links varies its delay.
    pub fn jitters(&self) -> bool {
        self.hops().any(|hop| hop.direction(self.links).jitter.is_some())
    }

    /// Whether routes, or what any of its links does, change in time, so that no model of constants holds.
    pub fn changes(&self) -> bool {
        !self.later.is_empty() || self.hops().any(|hop| hop.direction(self.links).changes())
    }

    /// The largest rate that its slowest link ever has; `None` where no link has one.
    pub fn fastest(&self) -> Option<Rate> {
        let slowest = |way: &Vec<Hop>| way.iter().filter_map(|hop| hop.direction(self.links).fastest()).min();
        let rates: Option<Vec<_>> = self.ways().map(slowest).collect();
        rates?.into_iter().max()
    }

    /// Links that a packet crosses on the longest of its paths.
    pub fn length(&self) -> usize {
        self.ways().map(Vec::len).max().unwrap_or(0).max(self.back.len())
    }

    /// What the links do to data, in order.
    pub fn data(&self) -> impl Iterator<Item = &'a DirectionConfig> + '_ {
        self.there.iter().map(|hop| hop.direction(self.links))
    }

    /// The hop that lets the fewest packets of so many bytes through, with its rate; `None` where no hop has one.
    pub fn slowest(&self, ip_bytes: u64) -> Option<(Hop, Rate)> {
        let time = |hop: Hop| serialisation(hop.direction(self.links), ip_bytes);
        let rated = self.there.iter().filter_map(|&hop| Some((hop, hop.direction(self.links).rate?)));
        // The first of equals: behind it nothing queues.
        rated.min_by_key(|&(hop, _)| std::cmp::Reverse(time(hop)))
    }

    /// How the links lose data segments, or corrupt them.
    pub fn segment_loss(&self) -> SegmentLoss {
        SegmentLoss::of(self.data())
    }

    /// What each hop does to datagrams of so many bytes of payload and of headers, of which `offered` are sent. Nothing
    /// acknowledges them, so that a half-duplex medium is theirs alone.
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

    /// What each hop leaves of its rate to full segments of `mss` and `headers` bytes: the hop, payload bits a second, and
    /// what bounds them there. Hops without a rate and without a policer are not in it.
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

    /// The same of datagrams, which nothing acknowledges: a half-duplex medium is theirs alone.
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

    /// What the wire of a hop leaves, its medium's turns and the copies that the link makes considered.
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
        // Where acknowledgements come back another way, the medium is the data's alone.
        if !self.back.contains(&back) {
            return Some((bps, "ceiling"));
        }
        let share =
            turns::share(medium, secs(direction, mss + headers), secs(back.direction(self.links), headers));
        Some((bps * share, "half-duplex ceiling"))
    }

    /// The first hop that swallows IP packets of so many bytes, and what it lets through.
    pub fn black_hole(&self, ip_bytes: u64) -> Option<(Hop, u32)> {
        let above =
            |hop: &Hop| hop.direction(self.links).drop_above.filter(|&most| ip_bytes > u64::from(most));
        self.there.iter().find_map(|hop| above(hop).map(|most| (*hop, most)))
    }

    /// Both delays and every serialisation of an IP packet of `there` bytes and of its answer, the median of the jitter, and
    /// what an answer waits where it comes back over a half-duplex medium sooner than its guard ends.
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

    /// The same where all jitter is the least that there is.
    pub fn least_round_trip(&self, there: u64, back: u64) -> Nanos {
        one_way(self.links, &self.there, there, least) + one_way(self.links, &self.back, back, least)
    }

    /// What a full segment takes longer than a probe on all links there but the slowest, which a model counts by itself.
    pub fn store_and_forward(&self, segment_ip_bytes: u64, probe_ip_bytes: u64) -> Nanos {
        let slowest = self.slowest(segment_ip_bytes).map(|(hop, _)| hop);
        self.there.iter().filter(|&&hop| Some(hop) != slowest).fold(Nanos::ZERO, |sum, hop| {
            let d = hop.direction(self.links);
            sum + serialisation(d, segment_ip_bytes).saturating_sub(serialisation(d, probe_ip_bytes))
        })
    }

    /// The names of a hop's hosts: `r1->r2`.
    pub fn name(&self, hop: Hop) -> String {
        format!("{}->{}", hop.from(self.links), hop.to(self.links))
    }

    fn hops(&self) -> impl Iterator<Item = Hop> + '_ {
        self.there.iter().chain(&self.back).copied()
    }
}

/// Packets on the wire for each that enters.
fn copies(direction: &DirectionConfig) -> f64 {
    1.0 + direction.duplicate.fraction()
}

/// What an IP packet takes over some hops, with this reading of their delays.
fn one_way(links: &[LinkSpec], hops: &[Hop], bytes: u64, delay: fn(&DirectionConfig) -> Nanos) -> Nanos {
    hops.iter()
        .map(|hop| hop.direction(links))
        .fold(Nanos::ZERO, |sum, d| sum + delay(d) + serialisation(d, bytes))
}

/// The delay with the median of its jitter.
fn usual(direction: &DirectionConfig) -> Nanos {
    shifted(direction.delay, direction.jitter.as_ref().map_or(0, |jitter| jitter.least_and_median_ns().1))
}

/// The delay with the least of its jitter.
fn least(direction: &DirectionConfig) -> Nanos {
    shifted(direction.delay, direction.jitter.as_ref().map_or(0, |jitter| jitter.least_and_median_ns().0))
}

fn shifted(delay: Nanos, by_ns: i64) -> Nanos {
    Nanos(delay.as_ns().saturating_add_signed(by_ns))
}

/// Time that an IP packet takes on the wire of a direction; none where it has no rate.
pub fn serialisation(direction: &DirectionConfig, ip_bytes: u64) -> Nanos {
    direction.rate.map_or(Nanos::ZERO, |r| r.serialisation(ip_bytes + u64::from(direction.overhead_bytes)))
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    use super::*;

    fn case(text: &str) -> CaseSpec {
        Scenario::parse("t.toml", text).unwrap().plan(&Default::default()).unwrap().remove(0)
    }

    /// What full segments of 1448 bytes find on the way of the first flow of a scenario with this link.
    fn rooms(link: &str) -> Vec<(String, f64, &'static str)> {
        let text = format!("title = 't'\n[link]\nbetween = ['near', 'far']\n{link}\n[flow]\n");
        let case = case(&text);
        let route = Route::of(&case, &case.flows[0]).unwrap();
        route.rooms(1448, 52).map(|(hop, bps, by)| (route.name(hop), (bps / 1e3).round() / 1e3, by)).collect()
    }

    #[test]
    fn each_impairment_that_takes_room_is_considered() {
        let near = "near->far".to_owned();
        assert_eq!(rooms(""), []);
        assert_eq!(rooms("rate = '20M'"), [(near.clone(), 18.83, "ceiling")]);
        assert_eq!(
            rooms("rate = '20M'\nforward.policer = { rate = '5M', burst = '32K' }"),
            [(near.clone(), 18.83, "ceiling"), (near.clone(), 4.827, "policer")]
        );
        assert_eq!(
            rooms("rate = '20M'\nduplicate = '2%'"),
            [(near.clone(), 18.46, "ceiling with its copies")]
        );
        // 4 segments of 615.2 us, 2 acknowledgements of 36 us, 2 guards of 500 us: 2460.8 / 3532.8.
        assert_eq!(
            rooms("rate = '20M'\nhalf_duplex = { guard = '500us', turn = '2ms' }"),
            [(near, 13.116, "half-duplex ceiling")]
        );
    }

    #[test]
    fn what_is_corrupted_is_lost_too() {
        let text = "title = 't'\n[link]\nbetween = ['a', 'b']\nloss = '10%'\ncorrupt = '10%'\n[flow]\n";
        let case = case(text);
        let loss = Route::of(&case, &case.flows[0]).unwrap().segment_loss();
        let SegmentLoss::Independent(p) = loss else { panic!("{loss:?}") };
        assert!((p - 0.19).abs() < 1e-12, "{p}");
    }
}
