//! The driver: moves packets between TUN devices by [`bdp_link::Link`], on its own thread; by the machine's clock
//! (`real_time`), or by a guest's, which stands still while anything runs (`virtual_time`).
//!
//! Departures follow from the moment a packet was read and from the link's arithmetic alone, so a late wake-up
//! delays one packet and never adds up. Every release is compared with its due time.

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

/// Handle that informs a driver of the routers.
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
            // On a single processor a spinning thread would keep the hosts from sending.
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

    /// Processors that hosts must keep to, if the driver has one for itself.
    pub fn host_cpus(&self) -> Option<&[usize]> {
        self.host_cpus.as_deref()
    }

    /// Adds a link between two devices.
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

    /// Handle that informs the driver of the routers.
    pub(crate) fn forwarding(&self) -> Forwarding {
        Forwarding { orders: self.orders.clone(), waker: Arc::clone(&self.waker) }
    }
}

impl Forwarding {
    /// Tells the driver what a host, whose links have been added, forwards from now on. By the virtual clock the
    /// driver forwards without its kernel if it knows what the kernel would do; for a switch by either clock.
    pub(crate) fn route(&self, router: Router) -> Result<()> {
        self.orders
            .send(Order::Route(router))
            .map_err(|_| LabError::Driver("it accepts no more routes".to_owned()))?;
        self.waker.wake();
        Ok(())
    }
}

impl DrivenLink {
    /// The port of this end.
    pub(crate) fn port(&self, end: usize) -> Port {
        Port { link: self.key, end }
    }

    /// Sets time zero of everything that changes over time; before, the values of time zero apply.
    pub(crate) fn start_clock(&self, at_ns: u64) -> Result<()> {
        self.orders
            .send(Order::StartClock { key: self.key, at_ns })
            .map_err(|_| LabError::Driver("it ended before the flows started".to_owned()))?;
        self.waker.wake();
        Ok(())
    }

    /// Tells the driver the links that the packets of one host cross to another. By the virtual clock it is cheaper
    /// to tell all paths before anything is sent.
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
    /// Removes the link now; packets inside stay there and count as queued.
    pub(crate) fn finish(self) -> Result<Driven> {
        self.finish_at(clock::monotonic_ns())
    }

    /// Removes the link at a moment of the monotonic clock.
    pub(crate) fn finish_at(self, at_ns: u64) -> Result<Driven> {
        let (outcome, result) = channel();
        let lost = || LabError::Driver("it ended before the case did".to_owned());
        self.orders.send(Order::Remove { key: self.key, at_ns, outcome }).map_err(|_| lost())?;
        self.waker.wake();
        result.recv().map_err(|_| lost())
    }
}
