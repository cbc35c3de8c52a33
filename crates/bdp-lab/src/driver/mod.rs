//! The driver: moves packets between TUN devices as [`bdp_link::Link`] says, on a thread of its own; by the machine's clock
//! (`real_time`), or by a guest's, which stands still while anything runs (`virtual_time`).
//!
//! Departures follow from the moment a packet was read and from the link's arithmetic alone, so a late wake-up delays
//! one packet and never adds up. Every release is compared with when it was due.

pub(crate) mod moving;
mod order;
mod real_time;
mod router;
mod virtual_time;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use bdp_model::link::LinkConfig;
use bdp_sys::clock;
use bdp_sys::poll::Waker;
use bdp_sys::process;
use bdp_sys::tun::Tun;

pub(crate) use order::Driven;
use order::Order;
pub use order::Pace;
use real_time::RealTime;
pub(crate) use router::{Port, Router};
use virtual_time::VirtualTime;

use crate::capture::Tap;
use crate::{LabError, Result};

/// A driver thread.
#[derive(Debug)]
pub struct Driver {
    orders: Sender<Order>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    host_cpus: Option<Vec<usize>>,
}

/// By which a driver gets to know what routers do.
#[derive(Debug, Clone)]
pub(crate) struct Forwarding {
    orders: Sender<Order>,
    waker: Arc<Waker>,
}

/// A link that a driver moves packets for.
#[derive(Debug)]
pub(crate) struct DrivenLink {
    key: u64,
    orders: Sender<Order>,
    waker: Arc<Waker>,
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
            .map_err(|_| LabError::Driver("it accepts no more links".to_owned()))?;
        self.waker.wake();
        Ok(DrivenLink { key, orders: self.orders.clone(), waker: Arc::clone(&self.waker) })
    }

    /// By which it gets to know what routers do.
    pub(crate) fn forwarding(&self) -> Forwarding {
        Forwarding { orders: self.orders.clone(), waker: Arc::clone(&self.waker) }
    }
}

impl Forwarding {
    /// Says what a host forwards from now on, whose links have been added. By the virtual clock its kernel is not asked where the driver
    /// knows what it would do; that of a switch by neither.
    pub(crate) fn route(&self, router: Router) -> Result<()> {
        self.orders
            .send(Order::Route(router))
            .map_err(|_| LabError::Driver("it accepts no more routes".to_owned()))?;
        self.waker.wake();
        Ok(())
    }
}

impl DrivenLink {
    /// The end of it at which a packet enters.
    pub(crate) fn port(&self, end: usize) -> Port {
        Port { link: self.key, end }
    }

    /// Says when time zero is of what changes in time; before, the values of time zero hold.
    pub(crate) fn start_clock(&self, at_ns: u64) -> Result<()> {
        self.orders
            .send(Order::StartClock { key: self.key, at_ns })
            .map_err(|_| LabError::Driver("it ended before the flows started".to_owned()))?;
        self.waker.wake();
        Ok(())
    }

    /// Says by which links the packets of a host come to another one. By the virtual clock it makes less work where all is said before it
    /// is sent.
    pub(crate) fn note_way(&self, way: Vec<Port>) -> Result<()> {
        self.orders
            .send(Order::Path(way))
            .map_err(|_| LabError::Driver("it accepts no more paths".to_owned()))?;
        self.waker.wake();
        Ok(())
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
    /// Takes the link out as of now; what is inside it stays there and counts as queued.
    pub(crate) fn finish(self) -> Result<Driven> {
        self.finish_at(clock::monotonic_ns())
    }

    /// Takes the link out as of a moment of the monotonic clock.
    pub(crate) fn finish_at(self, at_ns: u64) -> Result<Driven> {
        let (outcome, result) = channel();
        let lost = || LabError::Driver("it ended before the case did".to_owned());
        self.orders.send(Order::Remove { key: self.key, at_ns, outcome }).map_err(|_| lost())?;
        self.waker.wake();
        result.recv().map_err(|_| lost())
    }
}
