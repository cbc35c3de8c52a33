//! The loop of a driver by the machine's clock: it sleeps late and wakes late, and neither adds up. Packets
//! through switches go from link to link ([`super::router`]); routers have their kernels for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use bdp_link::Packet;
use bdp_sys::poll::{Interest, Poll, Waker};
use bdp_sys::schedule::OwnWait;
use bdp_sys::{clock, process};

use super::moving::{Leaving, MovingLink};
use super::order::{Order, Pace, WAKE};
use super::router::{self, Port, Router};
use crate::buffer_pool::BufferPool;
use crate::{Result, offload};

/// Packets read from one device before the others have their turn.
const TURN: usize = 8;
/// How long before a departure a sharing driver stops sleeping and spins.
const SPIN_NS: u64 = 60_000;
/// Interval of checks for other programs.
const RIVALS_EVERY_NS: u64 = 100_000_000;
/// Share of that time that a driver may have waited for its processor without rivals: one turn of another thread.
const RIVALS_SHARE: f64 = 0.04;

/// Other programs that want the processor of a spinning driver. The scheduler divides it among sessions, whatever
/// the priority within them, and a driver that waits its turn of 3 ms is no emulator. If there are some it sleeps
/// between departures instead, as a sharing driver does, and so may have real-time priority. A processor that is
/// never idle wakes it at once.
struct Rivals {
    wait: OwnWait,
    /// Time of the last check, and this thread's waiting time then.
    looked_ns: u64,
    waited_ns: u64,
    present: bool,
}

impl Rivals {
    fn none() -> Self {
        let wait = OwnWait::of_this_thread();
        let waited_ns = wait.waiting_ns().unwrap_or(0);
        Self { wait, looked_ns: clock::monotonic_ns(), waited_ns, present: false }
    }

    /// Checks every 100 ms; rivals stay known until forgotten.
    fn present(&mut self) -> bool {
        let now = clock::monotonic_ns();
        let passed = now.saturating_sub(self.looked_ns);
        if self.present || passed < RIVALS_EVERY_NS {
            return self.present;
        }
        let waited = self.wait.waiting_ns().unwrap_or(0);
        let share = waited.saturating_sub(self.waited_ns) as f64 / passed as f64;
        (self.looked_ns, self.waited_ns) = (now, waited);
        // Without real-time priority sleeping would make it worse.
        self.present = share > RIVALS_SHARE && process::prefer(0);
        self.present
    }

    fn forget(&mut self) {
        if std::mem::take(&mut self.present) {
            process::raise_priority();
        }
        self.looked_ns = clock::monotonic_ns();
        self.waited_ns = self.wait.waiting_ns().unwrap_or(0);
    }
}

/// State of the thread.
pub(super) struct RealTime {
    pace: Pace,
    own_cpu: Option<usize>,
    poll: Poll,
    waker: Arc<Waker>,
    inbox: Receiver<Order>,
    links: Vec<MovingLink>,
    switches: Vec<Router>,
    rooms: BufferPool,
    rivals: Rivals,
}

impl RealTime {
    pub(super) fn new(
        pace: Pace,
        own_cpu: Option<usize>,
        waker: Arc<Waker>,
        inbox: Receiver<Order>,
    ) -> Result<Self> {
        let poll = Poll::new()?;
        poll.add(&*waker, WAKE, Interest::Read)?;
        let (links, rooms) = (Vec::new(), BufferPool::new());
        let switches = Vec::new();
        Ok(Self { pace, own_cpu, poll, waker, inbox, links, switches, rooms, rivals: Rivals::none() })
    }

    pub(super) fn run(&mut self) {
        process::sharpen_timers();
        // These help if they are allowed, and the fidelity of each case shows the result without.
        match self.pace {
            Pace::Spin => drop(process::raise_priority()),
            Pace::Share | Pace::Virtual => drop(process::prefer(0)),
        }
        if let Some(cpu) = self.own_cpu {
            let _ = process::pin(0, &[cpu]);
        }
        let mut ready = Vec::new();
        self.rivals = Rivals::none();
        let wait = OwnWait::of_this_thread();
        let mut waited_ns = wait.waiting_ns().unwrap_or(0);
        loop {
            if !self.take_orders() {
                return;
            }
            if self.pace == Pace::Spin && self.links.is_empty() {
                self.rivals.forget();
            }
            if self.pace == Pace::Spin && !self.links.is_empty() && !self.rivals.present() {
                // Orders are checked only now and then: a check costs as much as a packet.
                for _ in 0..256 {
                    for i in 0..self.links.len() {
                        self.read(i, 0, 1);
                        self.read(i, 1, 1);
                        self.release(i);
                    }
                }
                continue;
            }
            self.release_due();
            let timeout = self.links.iter().filter_map(|l| l.next).min().map(|next| {
                let now = clock::monotonic_ns();
                next.saturating_sub(now).saturating_sub(SPIN_NS)
            });
            if self.poll.wait(&mut ready, timeout).is_err() {
                return;
            }
            // A packet arrived, and this thread was ready to run from then on: the time that others had its processor since
            // is the longest it may have waited.
            let waiting_ns = wait.waiting_ns().unwrap_or(0);
            let ready_ns = clock::monotonic_ns().saturating_sub(waiting_ns.saturating_sub(waited_ns));
            waited_ns = waiting_ns;
            for active in &mut self.links {
                active.meters.iter_mut().for_each(|meter| meter.slept_until(ready_ns));
            }
            for &token in &ready {
                if token == WAKE {
                    self.waker.clear();
                    continue;
                }
                if let Some(i) = self.links.iter().position(|l| l.key == token >> 1) {
                    self.read(i, (token & 1) as usize, TURN);
                    self.release_due();
                }
            }
        }
    }

    /// Carries out orders; `false` when the thread must end.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Order::Add { config, seed, devices, taps, key }) => {
                    let mut link = MovingLink::new(&config, seed, devices, taps, key, clock::monotonic_ns());
                    for (end, device) in link.devices.iter().enumerate() {
                        if let Err(e) = self.poll.add(device, key << 1 | end as u64, Interest::Read) {
                            link.fault = Some(e.to_string());
                        }
                    }
                    self.links.push(link);
                }
                Ok(Order::StartClock { key, at_ns }) => {
                    if let Some(link) = self.links.iter_mut().find(|link| link.key == key) {
                        link.start_clock(at_ns);
                    }
                }
                Ok(Order::Remove { key, outcome, .. }) => {
                    if let Some(i) = self.links.iter().position(|l| l.key == key) {
                        let link = self.links.swap_remove(i);
                        for device in &link.devices {
                            // It may be gone from the poll already, after a fault.
                            let _ = self.poll.remove(device);
                        }
                        let _ = outcome.send(link.end(self.rivals.present));
                        let links = &self.links;
                        let is_driven = |port: &Port| links.iter().any(|link| link.key == port.link);
                        self.switches.retain(|switch| switch.ports.iter().any(is_driven));
                    }
                }
                Ok(Order::Route(router)) if router.switch => {
                    self.switches.retain(|known| known.ports != router.ports);
                    self.switches.push(router);
                }
                Ok(Order::Route(_) | Order::Path(_)) => {}
                Ok(Order::End) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn release_due(&mut self) {
        for i in 0..self.links.len() {
            self.release(i);
        }
    }

    /// Delivers everything due at a link.
    fn release(&mut self, index: usize) {
        while self.links[index].next.is_some() {
            let now = clock::monotonic_ns();
            let Some(leaving) = self.links[index].leave(now) else { return };
            let switch = self.switch_at(index, &leaving);
            if let Some((next, end)) = switch.and_then(|switch| self.onward(index, &leaving, switch)) {
                self.links[index].passed_on(&leaving, now);
                let next = &mut self.links[next];
                next.meters[end].passed_through();
                next.take_in(end, leaving.packet, now);
                continue;
            }
            let lifted = switch.and_then(|switch| switch.for_kernel(&leaving.packet.data));
            let link = &mut self.links[index];
            let data = lifted.as_deref().unwrap_or(&leaving.packet.data);
            let taken = match link.devices[leaving.device].send(data, offload::encode(&leaving.packet)) {
                Ok(taken) => taken,
                Err(e) => {
                    link.fault = Some(format!("write to a TUN device: {e}"));
                    false
                }
            };
            link.handed_over(&leaving, now, taken);
            self.rooms.give_back(leaving.packet.data);
        }
    }

    /// The switch at which a packet leaves a link.
    fn switch_at(&self, index: usize, leaving: &Leaving) -> Option<&Router> {
        let port = Port { link: self.links[index].key, end: leaving.device };
        self.switches.iter().find(|switch| switch.ports.contains(&port))
    }

    /// The link that a packet enters next at a switch, and by which device; `None` if it is left to the switch's kernel.
    fn onward(&self, index: usize, leaving: &Leaving, switch: &Router) -> Option<(usize, usize)> {
        let came_by = Port { link: self.links[index].key, end: leaving.device };
        let way = switch.way(&leaving.packet, came_by, 0)?;
        let next = self.links.iter().position(|link| link.key == way.link)?;
        let to = &self.links[next];
        router::fits(&leaving.packet, to.mtu, to.devices[way.end].framing()).then_some((next, way.end))
    }

    /// Reads up to `most` packets that host `end` of a link sent.
    fn read(&mut self, index: usize, end: usize, most: usize) {
        let active = &mut self.links[index];
        for _ in 0..most {
            let now = clock::monotonic_ns();
            match active.devices[end].receive(self.rooms.room()) {
                Ok(Some((length, header))) => {
                    active.meters[end].found_packet(now);
                    let data = self.rooms.take(length);
                    let packet = Packet { data, offload: offload::decode(header) };
                    active.take_in(end, packet, clock::monotonic_ns());
                }
                Ok(None) => {
                    active.meters[end].found_nothing(now);
                    return;
                }
                Err(e) => {
                    let _ = self.poll.remove(&active.devices[end]);
                    active.fault = Some(format!("read from a TUN device: {e}"));
                    return;
                }
            }
        }
    }
}
