//! The driver: moves packets between TUN devices as [`bdp_link::Link`] says, on a thread of its own; by the machine's clock
//! ([`real_time`]), or by a guest's, which stands still while anything runs ([`virtual_time`]).
//!
//! Departures follow from the moment a packet was read and from the link's arithmetic alone, so a late wake-up delays
//! one packet and never adds up. Every release is compared with when it was due.

mod moving;
mod real_time;
mod virtual_time;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use bdp_link::Link;
use bdp_model::link::LinkConfig;
use bdp_sys::poll::Waker;
use bdp_sys::process;
use bdp_sys::tun::Tun;

use real_time::RealTime;
use virtual_time::VirtualTime;

use crate::capture::Tap;
use crate::meter::Meter;
use crate::{LabError, Result};

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
        let mut cpus = process::allowed_cpus();
        let own_cpu = if cpus.len() > 1 && pace != Pace::Virtual { cpus.pop() } else { None };
        let run: Box<dyn FnOnce() + Send> = if pace == Pace::Virtual {
            let mut motion = VirtualTime::new(&waker, inbox)?;
            Box::new(move || motion.run())
        } else {
            // On a single processor a thread that spins would keep the hosts from sending.
            let pace = if own_cpu.is_some() { pace } else { Pace::Share };
            let mut motion = RealTime::new(pace, own_cpu, Arc::clone(&waker), inbox)?;
            Box::new(move || motion.run())
        };
        let thread = std::thread::Builder::new()
            .name("bdp-link".to_owned())
            .spawn(run)
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
