//! The real-time driver: moves packets between TUN devices as [`bdp_link::Link`] says, on a thread of its own.
//!
//! Departures follow from the moment a packet was read and from the link's arithmetic alone, so a late wake-up delays
//! one packet and never adds up. Every release is compared with when it was due.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use bdp_link::{Departure, End, Link, Packet};
use bdp_model::link::LinkConfig;
use bdp_model::units::Nanos;
use bdp_sys::poll::{Interest, Poll, Waker};
use bdp_sys::schedule::OwnWait;
use bdp_sys::tun::Tun;
use bdp_sys::{clock, process};
use bdp_wire::probe::Probe;

use crate::agent::is_unicast;
use crate::buffer_pool::BufferPool;
use crate::capture::{Event, Tap};
use crate::meter::Meter;
use crate::offload;
use crate::{LabError, Result};

/// Packets read from one device before the others have their turn.
const TURN: usize = 8;
/// How long before a departure a sharing driver stops sleeping and spins.
const SPIN_NS: u64 = 60_000;
/// From one look for other programs to the next.
const RIVALS_EVERY_NS: u64 = 100_000_000;
/// Of that time, what a driver may have waited for its processor without there being any: one turn of another thread.
const RIVALS_SHARE: f64 = 0.04;
/// Token of the waker; links take even and odd numbers below it.
const WAKE: u64 = u64::MAX;

/// How a driver waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It never sleeps while it has a link: one processor for one case.
    Spin,
    /// It sleeps until shortly before the next departure: one thread for many cases.
    Share,
    /// It sleeps until the next departure, to the nanosecond: for a clock that stands still while anything runs.
    Virtual,
}

/// A driver thread.
#[derive(Debug)]
pub struct Driver {
    orders: Sender<Order>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    host_cpus: Option<Vec<usize>>,
}

enum Order {
    Add { config: Box<LinkConfig>, seed: u64, devices: [Tun; 2], taps: [Option<Tap>; 2], key: u64 },
    Remove { key: u64, outcome: Sender<Driven> },
    End,
}

/// A link that a driver moves packets for.
#[derive(Debug)]
pub(crate) struct DrivenLink {
    key: u64,
    orders: Sender<Order>,
    waker: Arc<Waker>,
}

/// What became of a link: the emulator itself and the meters of its two directions, forward first.
pub(crate) struct Driven {
    pub(crate) link: Link,
    pub(crate) meters: [Meter; 2],
    /// Why the driver gave it up early, where it did.
    pub(crate) fault: Option<String>,
    /// Its devices, which live until this is dropped.
    pub(crate) devices: [Tun; 2],
    /// Whether a driver that was not to sleep did, because others wanted its processor.
    pub(crate) slept: bool,
}

impl Driver {
    /// Starts one.
    pub fn start(pace: Pace) -> Result<Self> {
        let (orders, inbox) = channel();
        let waker = Arc::new(Waker::new()?);
        let poll = Poll::new()?;
        poll.add(&*waker, WAKE, Interest::Read)?;
        let mut cpus = process::allowed_cpus();
        let own_cpu = if cpus.len() > 1 { cpus.pop() } else { None };
        // On a single processor a thread that spins would keep the hosts from sending.
        let pace = if own_cpu.is_some() || pace == Pace::Virtual { pace } else { Pace::Share };
        let mut motion = DriverLoop {
            pace,
            own_cpu,
            poll,
            waker: Arc::clone(&waker),
            inbox,
            links: Vec::new(),
            rooms: BufferPool::new(),
            rivals: Rivals::none(),
        };
        let thread = std::thread::Builder::new()
            .name("bdp-link".to_owned())
            .spawn(move || motion.run())
            .map_err(|e| LabError::Driver(e.to_string()))?;
        Ok(Self { orders, waker, thread: Some(thread), host_cpus: own_cpu.map(|_| cpus) })
    }

    /// The processors that hosts shall keep to, where the driver has one for itself.
    pub fn host_cpus(&self) -> Option<&[usize]> {
        self.host_cpus.as_deref()
    }

    /// Puts a link between two devices from now on.
    pub(crate) fn add(
        &self,
        key: u64,
        config: &LinkConfig,
        seed: u64,
        devices: [Tun; 2],
        taps: [Option<Tap>; 2],
    ) -> Result<DrivenLink> {
        self.orders
            .send(Order::Add { config: Box::new(config.clone()), seed, devices, taps, key })
            .map_err(|_| LabError::Driver("it takes no more links".to_owned()))?;
        self.waker.wake();
        Ok(DrivenLink { key, orders: self.orders.clone(), waker: Arc::clone(&self.waker) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::End);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl DrivenLink {
    /// Takes the link out; what is inside it stays there and counts as queued.
    pub(crate) fn finish(self) -> Result<Driven> {
        let (outcome, result) = channel();
        let lost = || LabError::Driver("it ended before the case did".to_owned());
        self.orders.send(Order::Remove { key: self.key, outcome }).map_err(|_| lost())?;
        self.waker.wake();
        result.recv().map_err(|_| lost())
    }
}

/// Other programs that want the processor of a driver that spins. The scheduler shares it out among sessions, whatever the priority
/// within them, and a driver that waits its turn of 3 ms is no emulator. Where there are some it sleeps between departures instead, as a
/// sharing driver does, and so may have real-time priority. A processor that is never idle wakes it at once.
struct Rivals {
    wait: OwnWait,
    /// When it was looked at last, and what this thread had waited then.
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

    /// Looks every 100 ms; they stay until forgotten.
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

/// The thread's state.
struct DriverLoop {
    pace: Pace,
    own_cpu: Option<usize>,
    poll: Poll,
    waker: Arc<Waker>,
    inbox: Receiver<Order>,
    links: Vec<Active>,
    rooms: BufferPool,
    rivals: Rivals,
}

struct Active {
    key: u64,
    link: Link,
    devices: [Tun; 2],
    taps: [Option<Tap>; 2],
    meters: [Meter; 2],
    next: Option<u64>,
    fault: Option<String>,
}

impl DriverLoop {
    fn run(&mut self) {
        process::sharpen_timers();
        // These help where they are allowed, and the fidelity of each case shows how far it went without.
        match self.pace {
            Pace::Spin => drop(process::raise_priority()),
            Pace::Share => drop(process::prefer(0)),
            Pace::Virtual => {}
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
                // Orders are looked for now and then only: a look costs as much as a packet.
                for _ in 0..256 {
                    for i in 0..self.links.len() {
                        self.read(i, 0, 1);
                        self.read(i, 1, 1);
                        self.links[i].release(&mut self.rooms);
                    }
                }
                continue;
            }
            self.release_due();
            let timeout = self.links.iter().filter_map(|l| l.next).min().map(|next| {
                let now = clock::monotonic_ns();
                next.saturating_sub(now).saturating_sub(if self.pace == Pace::Virtual { 0 } else { SPIN_NS })
            });
            if self.poll.wait(&mut ready, timeout).is_err() {
                return;
            }
            // Something came, and this thread was ready to run from then on: what others had of its processor since is how
            // long it may have waited.
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

    /// Carries out what was ordered; `false` when the thread shall end.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Order::Add { config, seed, devices, taps, key }) => {
                    self.add(&config, seed, devices, taps, key);
                }
                Ok(Order::Remove { key, outcome }) => {
                    if let Some(i) = self.links.iter().position(|l| l.key == key) {
                        let active = self.links.swap_remove(i);
                        for device in &active.devices {
                            // It may be gone from the poll already, after a fault.
                            let _ = self.poll.remove(device);
                        }
                        let Active { link, meters, fault, devices, .. } = active;
                        let slept = self.rivals.present;
                        let driven = Driven { link, meters, fault, devices, slept };
                        let _ = outcome.send(driven);
                    }
                }
                Ok(Order::End) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn add(&mut self, config: &LinkConfig, seed: u64, devices: [Tun; 2], taps: [Option<Tap>; 2], key: u64) {
        let mut fault = None;
        for (end, device) in devices.iter().enumerate() {
            if let Err(e) = self.poll.add(device, key << 1 | end as u64, Interest::Read) {
                fault = Some(e.to_string());
            }
        }
        let now = clock::monotonic_ns();
        self.links.push(Active {
            key,
            link: Link::new(config, seed),
            devices,
            taps,
            meters: [
                Meter::new(&config.forward, &config.reverse, now),
                Meter::new(&config.reverse, &config.forward, now),
            ],
            next: None,
            fault,
        });
    }

    fn release_due(&mut self) {
        for active in &mut self.links {
            active.release(&mut self.rooms);
        }
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
                    active.take_in(end, Packet { data, offload: offload::decode(header) });
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

impl Active {
    fn take_in(&mut self, end: usize, packet: Packet) {
        let now = clock::monotonic_ns();
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

    /// Hands over what is due. A link without rate and delay is due at once.
    fn release(&mut self, rooms: &mut BufferPool) {
        while let Some(next) = self.next {
            let now = clock::monotonic_ns();
            if now < next {
                return;
            }
            if let Some(Departure { to, due, packet, segments, ip_bytes }) = self.link.pop(Nanos(now)) {
                let (direction, device) = match to {
                    End::B => (0, 1),
                    End::A => (1, 0),
                };
                let meter = &mut self.meters[direction];
                meter.note_release(due.as_ns(), now, segments, ip_bytes);
                if let Some(probe) = Probe::of_packet(&packet.data) {
                    meter.crossings.release(probe, due.as_ns(), now);
                }
                let taken = match self.devices[device].send(&packet.data, offload::encode(&packet)) {
                    Ok(taken) => taken,
                    Err(e) => {
                        self.fault = Some(format!("write to a TUN device: {e}"));
                        false
                    }
                };
                if taken {
                    meter.delivered += 1;
                } else {
                    meter.device_refused += u64::from(segments);
                }
                if let Some(tap) = &self.taps[device] {
                    let late = Nanos(now).saturating_sub(due);
                    for kept in offload::wire_segments(&packet).filter_map(|segment| tap.keep(&segment)) {
                        let event = if taken { Event::Delivered { late } } else { Event::Refused };
                        tap.note(now, kept, event);
                    }
                }
                rooms.give_back(packet.data);
            }
            self.next = self.link.next_event().map(Nanos::as_ns);
        }
    }
}
