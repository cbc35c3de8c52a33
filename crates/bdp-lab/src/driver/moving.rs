//! A link between two devices as a driver moves packets through it: what goes in, what is due, and what is noted of both.

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

/// A link that a driver moves packets for.
pub(super) struct MovingLink {
    pub(super) key: u64,
    pub(super) devices: [Tun; 2],
    pub(super) meters: [Meter; 2],
    /// When something is due, by the monotonic clock.
    pub(super) next: Option<u64>,
    pub(super) fault: Option<String>,
    link: Link,
    taps: [Option<Tap>; 2],
}

/// A packet on its way from the link to a device.
pub(super) struct Leaving {
    /// Which of the two devices.
    pub(super) device: usize,
    pub(super) packet: Packet,
    due: Nanos,
    segments: u32,
}

impl MovingLink {
    pub(super) fn new(
        config: &LinkConfig,
        seed: u64,
        devices: [Tun; 2],
        taps: [Option<Tap>; 2],
        key: u64,
        now: u64,
    ) -> Self {
        Self {
            key,
            link: Link::new(config, seed),
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

    /// What became of it.
    pub(super) fn end(self, slept: bool) -> Driven {
        let Self { link, meters, fault, devices, .. } = self;
        Driven { link, meters, fault, devices, slept }
    }

    /// Takes a packet that host `end` sent.
    pub(super) fn take_in(&mut self, end: usize, packet: Packet, now: u64) {
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
        let from = if end == 0 { End::A } else { End::B };
        let now = Nanos(now);
        match &self.taps[end] {
            None => self.link.enqueue_each(from, packet, now, &mut |_| {}),
            Some(tap) => {
                // As the host sent it: the link may rewrite what it takes.
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
        self.next = self.link.next_event().map(Nanos::as_ns);
    }

    /// The next packet that is due at `now`. A link without rate and delay is due at once.
    pub(super) fn leave(&mut self, now: u64) -> Option<Leaving> {
        while self.next.is_some_and(|next| next <= now) {
            let departure = self.link.pop(Nanos(now));
            self.next = self.link.next_event().map(Nanos::as_ns);
            let Some(Departure { to, due, packet, segments, ip_bytes }) = departure else { continue };
            let (direction, device) = match to {
                End::B => (0, 1),
                End::A => (1, 0),
            };
            let meter = &mut self.meters[direction];
            meter.note_release(due.as_ns(), now, segments, ip_bytes);
            if let Some(probe) = Probe::of_packet(&packet.data) {
                meter.crossings.release(probe, due.as_ns(), now);
            }
            return Some(Leaving { device, packet, due, segments });
        }
        None
    }

    /// A packet was handed over at `now`; whether its device took it.
    pub(super) fn handed_over(&mut self, leaving: &Leaving, now: u64, taken: bool) {
        let meter = &mut self.meters[1 - leaving.device];
        if taken {
            meter.delivered += 1;
        } else {
            meter.device_refused += u64::from(leaving.segments);
        }
        if let Some(tap) = &self.taps[leaving.device] {
            let late = Nanos(now).saturating_sub(leaving.due);
            for kept in offload::wire_segments(&leaving.packet).filter_map(|segment| tap.keep(&segment)) {
                let event = if taken { Event::Delivered { late } } else { Event::Refused };
                tap.note(now, kept, event);
            }
        }
    }
}
