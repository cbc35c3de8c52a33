//! A link between two devices as a driver moves packets through it: entering packets, departures, and the notes on both.

use bdp_link::{Departure, End, Link, Packet};
use bdp_model::link::LinkConfig;
use bdp_model::units::Nanos;
use bdp_sys::tun::Tun;
use bdp_wire::probe::Probe;

use super::order::Driven;
use crate::agent::is_unicast;
use crate::capture::{Event, Tap};
use crate::meter::Meter;
use crate::offload;

/// A link that packets are moved through: by a driver, between two devices; or between stacks without devices.
pub(crate) struct MovingLink<D = Tun> {
    pub(super) key: u64,
    pub(super) devices: [D; 2],
    pub(crate) meters: [Meter; 2],
    /// Next event, by the monotonic clock.
    pub(crate) next: Option<u64>,
    pub(super) fault: Option<String>,
    /// MTU of its devices.
    pub(crate) mtu: u32,
    link: Link,
    taps: [Option<Tap>; 2],
}

/// A packet leaving the link for a device.
pub(crate) struct Leaving {
    /// Index of the device.
    pub(crate) device: usize,
    pub(crate) packet: Packet,
    due: Nanos,
    segments: u32,
    ip_bytes: u64,
}

impl<D> MovingLink<D> {
    pub(crate) fn new(
        config: &LinkConfig,
        seed: u64,
        devices: [D; 2],
        taps: [Option<Tap>; 2],
        key: u64,
        now: u64,
    ) -> Self {
        let mut link = Link::new(config, seed);
        if taps.iter().any(Option::is_some) {
            link.keep_removed();
        }
        Self {
            key,
            mtu: config.mtu,
            link,
            devices,
            taps,
            meters: [
                Meter::new(&config.forward, &config.reverse, now),
                Meter::new(&config.reverse, &config.forward, now),
            ],
            next: None,
            fault: None,
        }
    }

    /// Ends it; returns the emulator and the meters.
    pub(crate) fn end(self, slept: bool) -> Driven<D> {
        let Self { link, meters, fault, devices, .. } = self;
        Driven { link, meters, fault, devices, slept }
    }

    /// Sets time zero of everything that changes over time.
    pub(crate) fn start_clock(&mut self, at: u64) {
        self.link.start_clock(Nanos(at));
        self.next = self.link.next_event().map(Nanos::as_ns);
    }

    /// Shortest transit of a packet that enters by a device and is no shorter than this one, whenever it enters.
    pub(super) fn least(&self, device: usize, packet: &Packet) -> u64 {
        self.link.least(end_of(device), packet).as_ns()
    }

    /// Takes a packet that host `end` sent.
    pub(crate) fn take_in(&mut self, end: usize, packet: Packet, now: u64) {
        if !is_unicast(&packet.data) {
            self.meters[end].not_ours += 1;
            if let Some(tap) = &self.taps[end]
                && let Some(kept) = tap.keep(&packet.data)
            {
                tap.note(now, kept, Event::NotOurs);
            }
            return;
        }
        if let Some(probe) = Probe::of_packet(&packet.data) {
            self.meters[end].crossings.enter(probe, now);
        }
        let from = end_of(end);
        let now = Nanos(now);
        match &self.taps[end] {
            None => self.link.enqueue_each(from, packet, now, &mut |_| {}),
            Some(tap) => {
                // As the host sent it: the link may rewrite it.
                let mut kept = offload::wire_segments(&packet)
                    .map(|segment| tap.keep(&segment))
                    .collect::<Vec<_>>()
                    .into_iter();
                self.link.enqueue_each(from, packet, now, &mut |verdict| {
                    if let Some(Some(kept)) = kept.next() {
                        tap.note(now.as_ns(), kept, Event::Entered(verdict));
                    }
                });
            }
        }
        self.note_removed();
        self.next = self.link.next_event().map(Nanos::as_ns);
    }

    /// Notes admitted packets that queues dropped.
    fn note_removed(&mut self) {
        for (end, tap) in self.taps.iter().enumerate() {
            let Some(tap) = tap else { continue };
            for (at, cause, packet) in self.link.take_removed(end_of(end)) {
                if let Some(kept) = tap.keep(&packet.data) {
                    tap.note(at.as_ns(), kept, Event::Removed(cause));
                }
            }
        }
    }

    /// Upcoming departures by a device, soonest first: a lower bound of the time, and the packet if known, as in [`Link::upcoming`].
    pub(super) fn upcoming(&self, device: usize) -> impl Iterator<Item = (u64, Option<&Packet>)> {
        self.link.upcoming(end_of(device)).map(|(at, packet)| (at.as_ns(), packet))
    }

    /// Lower bound of the departure of a packet that enters by a device at `now` or later.
    pub(super) fn soonest(&self, device: usize, packet: &Packet, now: u64) -> u64 {
        self.link.soonest(end_of(device), packet, Nanos(now)).as_ns()
    }

    /// Takes the next packet due at `now`. A link without rate and delay is due at once.
    pub(crate) fn leave(&mut self, now: u64) -> Option<Leaving> {
        while self.next.is_some_and(|next| next <= now) {
            let departure = self.link.pop(Nanos(now));
            self.note_removed();
            self.next = self.link.next_event().map(Nanos::as_ns);
            let Some(Departure { to, due, packet, segments, ip_bytes }) = departure else { continue };
            let device = usize::from(to == End::B);
            return Some(Leaving { device, packet, due, segments, ip_bytes });
        }
        None
    }

    /// Notes that a packet was delivered at `now`, and whether its device took it.
    pub(crate) fn handed_over(&mut self, leaving: &Leaving, now: u64, taken: bool) {
        let meter = self.released(leaving, now);
        if taken {
            meter.delivered += 1;
        } else {
            meter.device_refused += u64::from(leaving.segments);
        }
        self.note_end(leaving, now, taken);
    }

    /// Notes that a packet entered the next link at `now`, bypassing the kernel of the device's host.
    pub(crate) fn passed_on(&mut self, leaving: &Leaving, now: u64) {
        self.released(leaving, now);
        self.note_end(leaving, now, true);
    }

    fn released(&mut self, leaving: &Leaving, now: u64) -> &mut Meter {
        let Leaving { device, packet, due, segments, ip_bytes } = leaving;
        let meter = &mut self.meters[1 - device];
        meter.note_release(due.as_ns(), now, *segments, *ip_bytes);
        if let Some(probe) = Probe::of_packet(&packet.data) {
            meter.crossings.release(probe, due.as_ns(), now);
        }
        meter
    }

    fn note_end(&self, leaving: &Leaving, now: u64, taken: bool) {
        if let Some(tap) = &self.taps[leaving.device] {
            let late = Nanos(now).saturating_sub(leaving.due);
            for kept in offload::wire_segments(&leaving.packet).filter_map(|segment| tap.keep(&segment)) {
                let event = if taken { Event::Delivered { late } } else { Event::Refused };
                tap.note(now, kept, event);
            }
        }
    }
}

impl Leaving {
    /// When it is due.
    pub(crate) fn due(&self) -> u64 {
        self.due.as_ns()
    }
}

/// The link end at a device.
fn end_of(device: usize) -> End {
    if device == 0 { End::A } else { End::B }
}
