//! What a driver is asked, and what it gives back.

use std::sync::mpsc::Sender;

use bdp_link::Link;
use bdp_model::link::LinkConfig;
use bdp_sys::tun::Tun;

use crate::capture::Tap;
use crate::meter::Meter;

use super::router::{Port, Router};

/// Token of the waker; links take even and odd numbers below it.
pub(super) const WAKE: u64 = u64::MAX;

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

/// A step of its work.
pub(super) enum Order {
    Add {
        config: Box<LinkConfig>,
        seed: u64,
        devices: [Tun; 2],
        taps: [Option<Tap>; 2],
        key: u64,
    },
    /// To pass on what a router would, where the clock is virtual or it is a switch.
    Route(Router),
    /// That two hosts send to each other along this path, which enters links at these ports, and no packet takes another path than one
    /// of which this was said.
    Path(Vec<Port>),
    /// When time zero is of a link that changes in time.
    StartClock {
        key: u64,
        at_ns: u64,
    },
    Remove {
        key: u64,
        /// When, by the clock of the driver: what was due later stays inside.
        at_ns: u64,
        outcome: Sender<Driven>,
    },
    End,
}

/// What became of a link: the emulator itself and the meters of its two directions, forward first.
pub(crate) struct Driven<D = Tun> {
    pub(crate) link: Link,
    pub(crate) meters: [Meter; 2],
    /// Why the driver gave it up early, where it did.
    pub(crate) fault: Option<String>,
    /// Its devices, which live until this is dropped.
    pub(crate) devices: [D; 2],
    /// Whether a driver that was not to sleep did, because others wanted its processor.
    pub(crate) slept: bool,
}
