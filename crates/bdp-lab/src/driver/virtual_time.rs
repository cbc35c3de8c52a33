//! The loop of a driver by a clock that stands still while anything runs, as a guest's does: what is due is handed over at that very
//! moment, and one call to the system hands over, takes and waits. There is nothing to be late for, so it never spins.

use std::sync::mpsc::{Receiver, TryRecvError};

use bdp_link::Packet;
use bdp_sys::clock;
use bdp_sys::poll::Waker;
use bdp_sys::tun_ring::{RingEvent, TunRing};

use super::moving::MovingLink;
use super::order::Order;
use crate::{Result, offload};

/// The thread's state.
pub(super) struct VirtualTime {
    ring: TunRing,
    inbox: Receiver<Order>,
    links: Vec<MovingLink>,
}

impl VirtualTime {
    pub(super) fn new(waker: &Waker, inbox: Receiver<Order>) -> Result<Self> {
        Ok(Self { ring: TunRing::new(waker)?, inbox, links: Vec::new() })
    }

    pub(super) fn run(&mut self) {
        let mut events = Vec::new();
        loop {
            let until = self.links.iter().filter_map(|link| link.next).min();
            let Ok(reached) = self.ring.wait(until, &mut events) else { return };
            // What came while the clock stood at the awaited moment came at that moment.
            let now = match until {
                Some(until) if reached => until,
                _ => clock::monotonic_ns(),
            };
            let mut woken = false;
            for event in events.drain(..) {
                woken |= matches!(event, RingEvent::Woken);
                self.note(event, now);
            }
            self.release(now);
            if woken && !self.take_orders() {
                return;
            }
        }
    }

    fn note(&mut self, event: RingEvent, now: u64) {
        let (token, event) = match event {
            RingEvent::Received { token, packet, header } => (token, Came::Packet(packet, header)),
            RingEvent::Sent { taken: true, .. } | RingEvent::Woken => return,
            RingEvent::Sent { token, .. } => (token, Came::Refusal),
            RingEvent::Failed { token, error } => (token, Came::Fault(error)),
        };
        let end = (token & 1) as usize;
        let Some(link) = self.links.iter_mut().find(|link| link.key == token >> 1) else { return };
        match event {
            Came::Packet(data, header) => {
                link.meters[end].found_at_once();
                link.take_in(end, Packet { data, offload: offload::decode(header) }, now);
            }
            Came::Refusal => link.meters[1 - end].refused_after_all(),
            Came::Fault(error) => link.fault = Some(format!("read from a TUN device: {error}")),
        }
    }

    fn release(&mut self, now: u64) {
        for link in &mut self.links {
            while let Some(leaving) = link.leave(now) {
                link.handed_over(&leaving, now, true);
                let header = offload::encode(&leaving.packet);
                let token = link.key << 1 | leaving.device as u64;
                let device = &link.devices[leaving.device];
                if let Err(e) = self.ring.send(device, token, leaving.packet.data, header) {
                    link.fault = Some(format!("write to a TUN device: {e}"));
                }
            }
        }
    }

    /// Carries out what was ordered; `false` when the thread shall end.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Order::Add { config, seed, devices, taps, key }) => {
                    let mut link = MovingLink::new(&config, seed, devices, taps, key, clock::monotonic_ns());
                    let longest = usize::try_from(config.mtu).unwrap_or(usize::MAX);
                    for (end, device) in link.devices.iter().enumerate() {
                        if let Err(e) = self.ring.add(device, key << 1 | end as u64, longest) {
                            link.fault = Some(e.to_string());
                        }
                    }
                    self.links.push(link);
                }
                Ok(Order::Remove { key, outcome }) => {
                    if let Some(i) = self.links.iter().position(|l| l.key == key) {
                        let link = self.links.swap_remove(i);
                        for (end, device) in link.devices.iter().enumerate() {
                            let _ = self.ring.remove(device, key << 1 | end as u64);
                        }
                        let _ = outcome.send(link.end(false));
                    }
                }
                Ok(Order::End) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }
}

/// What came of a device.
enum Came {
    Packet(Vec<u8>, bdp_sys::tun::VirtioHeader),
    Refusal,
    Fault(std::io::Error),
}
