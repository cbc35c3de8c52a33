//! The loop of a driver by a clock that stands still while anything runs, as a guest's does: packets are
//! delivered exactly when due, and one system call delivers, takes and waits. Nothing can be late, so it never
//! spins.
//!
//! Packets that a router merely forwards go from link to link without it ([`super::router`]), and no thread is
//! woken for that: the steps in between are caught up with, each at its own moment, when the thread wakes next.
//! It wakes before anything can reach a host, and for packets that hosts send, unless the kernel timestamps each
//! packet and none of them can reach a host before the next wake.

use std::sync::mpsc::{Receiver, TryRecvError};

use bdp_link::Packet;
use bdp_sys::poll::Waker;
use bdp_sys::still_clock::StillClock;
use bdp_sys::tun::{Framing, VirtioHeader};
use bdp_sys::tun_ring::{RingEvent, TunRing};

use super::moving::{Leaving, MovingLink};
use super::order::Order;
use super::router::{self, Port, Router};
use crate::{Result, offload};

/// Packets of a direction that are followed to their ends to compute the next wake; it always wakes before the ones behind them.
const FOLLOWED: usize = 32;
/// Smallest IP packet.
const SMALLEST_BYTES: usize = 20;

/// State of the thread.
pub(super) struct VirtualTime {
    ring: TunRing,
    clock: StillClock,
    inbox: Receiver<Order>,
    links: Vec<Held>,
    routers: Vec<Router>,
    /// Links that packets cross from host to host.
    ways: Vec<Vec<Port>>,
    /// Shortest time for a packet of one host to reach another.
    ahead_ns: u64,
    /// Since when links are being removed: nothing due later leaves any of them, until all are.
    closed: Option<u64>,
}

/// A link, and what is known of the packets inside.
struct Held {
    link: MovingLink,
    /// The router, if any, at each of its devices.
    routers: [Option<usize>; 2],
    /// Lower bound of when a packet inside reaches a host; `None` while it is empty.
    wake: Option<u64>,
    /// Whether `wake` is outdated.
    changed: bool,
    /// Shortest crossing time from each of its ends.
    crossing_ns: [u64; 2],
}

impl Held {
    /// Creates an empty one.
    fn new(link: MovingLink) -> Self {
        let smallest = Packet::from(vec![0; SMALLEST_BYTES]);
        let crossing_ns = [0, 1].map(|end| link.least(end, &smallest));
        Self { link, routers: [None; 2], wake: None, changed: false, crossing_ns }
    }

    /// Whether every packet that leaves by a device fits into another link by a device there.
    fn fits_into(&self, device: usize, to: &Self, enters: usize) -> bool {
        let framings = [&self.link.devices[device], &to.link.devices[enters]].map(|device| device.framing());
        self.link.mtu <= to.link.mtu
            && (framings[0] == Framing::Segments || framings[1] == Framing::SuperPackets)
    }
}

impl VirtualTime {
    pub(super) fn new(waker: &Waker, inbox: Receiver<Order>) -> Result<Self> {
        Ok(Self {
            ring: TunRing::new(waker)?,
            clock: StillClock::find(),
            inbox,
            links: Vec::new(),
            routers: Vec::new(),
            ways: Vec::new(),
            ahead_ns: 0,
            closed: None,
        })
    }

    pub(super) fn run(&mut self) {
        let mut events = Vec::new();
        let mut now = self.clock.now_ns();
        loop {
            let until = self.next_wake();
            // Whatever arrives from now on reaches no host before then.
            let gather = self.clock.stamps() && until.is_some_and(|until| until <= now + self.ahead_ns);
            let Ok(reached) = self.ring.wait(until, gather, &mut events) else { return };
            // Packets that arrived while the clock stood at the awaited moment arrived at that moment. Whether it stands there is noted.
            now = match until {
                Some(until) if reached => until,
                _ => self.clock.now_ns(),
            };
            let woken = events.iter().any(|event| matches!(event, RingEvent::Woken));
            // Orders may have arrived meanwhile.
            let orders = if woken { self.asked() } else { Vec::new() };
            for order in &orders {
                if let Order::StartClock { key, at_ns } = order {
                    self.start_clock(*key, *at_ns);
                }
            }
            for event in events.drain(..) {
                self.note(event, now);
            }
            let removed = orders.iter().filter_map(|order| match order {
                Order::Remove { at_ns, .. } => Some(*at_ns),
                _ => None,
            });
            self.closed = self.closed.into_iter().chain(removed).min();
            self.release(now, now);
            if woken {
                if !self.carry_out(orders) {
                    return;
                }
                self.ahead_ns = self.ahead();
            }
        }
    }

    fn note(&mut self, event: RingEvent, now: u64) {
        let (token, event) = match event {
            RingEvent::Received { token, packet, header, stamp } => {
                let at = stamp.and_then(|stamp| self.clock.of_stamp(stamp)).map_or(now, |at| at.min(now));
                // Packets due at that moment leave after those that arrived then.
                self.release(now, at.saturating_sub(1));
                (token, Arrival::Packet { data: packet, header, at })
            }
            RingEvent::Sent { taken: true, .. } | RingEvent::Woken => return,
            RingEvent::Sent { token, .. } => (token, Arrival::Refusal),
            RingEvent::Failed { token, error } => (token, Arrival::Fault(error)),
        };
        let end = (token & 1) as usize;
        let Some(held) = self.links.iter_mut().find(|held| held.link.key == token >> 1) else { return };
        let link = &mut held.link;
        match event {
            Arrival::Packet { data, header, at } => {
                link.meters[end].found_at_once();
                link.take_in(end, Packet { data, offload: offload::decode(header) }, at);
                held.changed = true;
            }
            Arrival::Refusal => link.meters[1 - end].refused_after_all(),
            Arrival::Fault(error) => link.fault = Some(format!("read from a TUN device: {error}")),
        }
    }

    /// Releases everything due by `until`, which is not later than `now`, in order of due times; at equal times in order of the links.
    fn release(&mut self, now: u64, until: u64) {
        let until = self.closed.map_or(until, |closed| closed.min(until));
        let due = |held: &Held| held.link.next.filter(|&next| next <= until);
        while let Some((at, index)) =
            self.links.iter().enumerate().filter_map(|(i, held)| Some((due(held)?, i))).min()
        {
            let held = &mut self.links[index];
            held.changed = true;
            let Some(leaving) = held.link.leave(at) else { continue };
            match self.onward((index, leaving.device), &leaving.packet, 0) {
                Some((router, next)) => self.pass_on(index, leaving, router, next),
                None => self.hand_over(index, leaving, now),
            }
        }
    }

    fn hand_over(&mut self, index: usize, leaving: Leaving, now: u64) {
        let link = &mut self.links[index].link;
        // If the clock can be read for free, it gives the lateness.
        link.handed_over(&leaving, self.clock.seen_ns().map_or(now, |seen| seen.max(now)), true);
        let header = offload::encode(&leaving.packet);
        let token = link.key << 1 | leaving.device as u64;
        let router = self.links[index].routers[leaving.device].map(|router| &self.routers[router]);
        let lifted = router.and_then(|router| router.for_kernel(&leaving.packet.data));
        let link = &mut self.links[index].link;
        let data = lifted.unwrap_or(leaving.packet.data);
        if let Err(e) = self.ring.send(&link.devices[leaving.device], token, data, header) {
            link.fault = Some(format!("write to a TUN device: {e}"));
        }
    }

    fn pass_on(&mut self, index: usize, leaving: Leaving, router: usize, (next, device): (usize, usize)) {
        let due = leaving.due();
        self.links[index].link.passed_on(&leaving, due);
        let mut packet = leaving.packet;
        self.routers[router].pass(&mut packet.data);
        let held = &mut self.links[next];
        held.link.meters[device].passed_through();
        held.link.take_in(device, packet, due);
        held.changed = true;
    }

    /// The router that forwards a packet, the link that it enters next, and by which device; the packet leaves a link
    /// by the given device after `hops` more hops than its header says. `None` if the host there takes it.
    fn onward(
        &self,
        (index, device): (usize, usize),
        packet: &Packet,
        hops: u8,
    ) -> Option<(usize, (usize, usize))> {
        let Held { link, routers, .. } = &self.links[index];
        let came_by = Port { link: link.key, end: device };
        let router = routers[device]?;
        let way = self.routers[router].way(packet, came_by, hops)?;
        let next = self.links.iter().position(|held| held.link.key == way.link)?;
        let to = &self.links[next].link;
        router::fits(packet, to.mtu, to.devices[way.end].framing()).then_some((router, (next, way.end)))
    }

    /// Lower bound of when a packet inside the links reaches a host.
    fn next_wake(&mut self) -> Option<u64> {
        if self.closed.is_some() {
            return None;
        }
        for i in 0..self.links.len() {
            if std::mem::take(&mut self.links[i].changed) {
                let wake = self.wake_of(i);
                self.links[i].wake = wake;
            }
        }
        self.links.iter().filter_map(|held| held.wake).min()
    }

    fn wake_of(&self, index: usize) -> Option<u64> {
        let Held { link, routers, .. } = &self.links[index];
        if routers.iter().all(Option::is_none) {
            return link.next;
        }
        let mut wake: Option<u64> = None;
        for device in [0, 1] {
            for (followed, (at, packet)) in link.upcoming(device).enumerate() {
                if wake.is_some_and(|wake| wake <= at) {
                    break;
                }
                let reaches = match packet {
                    Some(packet) if followed < FOLLOWED => self.reaches_host(index, device, packet, at),
                    _ => at,
                };
                wake = Some(wake.map_or(reaches, |wake| wake.min(reaches)));
            }
        }
        wake
    }

    /// Lower bound of when a packet that leaves a link by the given device at `at` or later reaches a host.
    fn reaches_host(&self, mut index: usize, mut device: usize, packet: &Packet, mut at: u64) -> u64 {
        let mut hops = 0;
        // Paths through switches alone must end, too.
        for _ in 0..u8::MAX {
            let Some((router, (next, enters))) = self.onward((index, device), packet, hops) else { break };
            hops += self.routers[router].hops();
            at = self.links[next].link.soonest(enters, packet, at);
            (index, device) = (next, 1 - enters);
        }
        at
    }

    /// Shortest time for a packet of one host to reach another; zero if the paths are unknown.
    fn ahead(&self) -> u64 {
        self.ways.iter().map(|way| self.crossing(way)).min().unwrap_or(0)
    }

    /// Shortest time for a packet on this path to reach a host, or the kernel of a router.
    fn crossing(&self, way: &[Port]) -> u64 {
        let held = |port: &Port| self.links.iter().find(|held| held.link.key == port.link);
        let mut crossing = 0;
        for (i, port) in way.iter().enumerate() {
            let Some(link) = held(port) else { break };
            crossing += link.crossing_ns[port.end];
            let goes_on = link.routers[1 - port.end].is_some();
            let Some(next) = way.get(i + 1).filter(|_| goes_on) else { break };
            if !held(next).is_some_and(|to| link.fits_into(1 - port.end, to, next.end)) {
                break;
            }
        }
        crossing
    }

    /// Pending orders; the end if the sender is gone.
    fn asked(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        loop {
            match self.inbox.try_recv() {
                Ok(order) => orders.push(order),
                Err(TryRecvError::Empty) => return orders,
                Err(TryRecvError::Disconnected) => {
                    orders.push(Order::End);
                    return orders;
                }
            }
        }
    }

    fn start_clock(&mut self, key: u64, at_ns: u64) {
        if let Some(held) = self.links.iter_mut().find(|held| held.link.key == key) {
            held.link.start_clock(at_ns);
            // Predictions about packets forwarded through it are outdated.
            self.links.iter_mut().for_each(|held| held.changed = true);
        }
    }

    /// Carries out orders; `false` when the thread must end.
    fn carry_out(&mut self, orders: Vec<Order>) -> bool {
        for order in orders {
            match order {
                Order::Add { config, seed, devices, taps, key } => {
                    self.closed = None;
                    let mut link = MovingLink::new(&config, seed, devices, taps, key, self.clock.now_ns());
                    let longest = usize::try_from(config.mtu).unwrap_or(usize::MAX);
                    for (end, device) in link.devices.iter().enumerate() {
                        if let Err(e) = self.ring.add(device, key << 1 | end as u64, longest) {
                            link.fault = Some(e.to_string());
                        }
                    }
                    self.links.push(Held::new(link));
                }
                Order::Route(router) if self.routers.iter().any(|known| known.ports == router.ports) => {
                    let known = self.routers.iter_mut().find(|known| known.ports == router.ports);
                    known.into_iter().for_each(|known| known.ways.clone_from(&router.ways));
                    // Predictions about packets forwarded through it are outdated.
                    self.links.iter_mut().for_each(|held| held.changed = true);
                }
                Order::Route(router) => {
                    for port in &router.ports {
                        for held in self.links.iter_mut().filter(|held| held.link.key == port.link) {
                            held.routers[port.end] = Some(self.routers.len());
                            held.changed = true;
                        }
                    }
                    self.routers.push(router);
                }
                Order::Path(way) => {
                    if !self.ways.contains(&way) {
                        self.ways.push(way);
                    }
                }
                // Handled before newer packets.
                Order::StartClock { .. } => {}
                Order::Remove { key, outcome, .. } => {
                    if let Some(i) = self.links.iter().position(|held| held.link.key == key) {
                        let Held { link, .. } = self.links.swap_remove(i);
                        for (end, device) in link.devices.iter().enumerate() {
                            let _ = self.ring.remove(device, key << 1 | end as u64);
                        }
                        let _ = outcome.send(link.end(false));
                        // Packets that would have been forwarded through it no longer are.
                        self.links.iter_mut().for_each(|held| held.changed = true);
                    }
                    if self.links.is_empty() {
                        self.closed = None;
                    }
                }
                Order::End => return false,
            }
        }
        true
    }
}

/// An event of a device.
enum Arrival {
    Packet { data: Vec<u8>, header: VirtioHeader, at: u64 },
    Refusal,
    Fault(std::io::Error),
}
