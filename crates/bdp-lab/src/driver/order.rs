//! Orders to a driver, and its results.

use std::sync::mpsc::Sender;

use bdp_link::Link;
use bdp_model::link::LinkConfig;
use bdp_sys::tun::Tun;

use crate::capture::Tap;
use crate::meter::Meter;

use super::router::{Port, Router};

/// Token of the waker; links use even and odd numbers below it.
pub(super) const WAKE: u64 = u64::MAX;

/// How a driver waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Never sleeps while it has a link: one processor for one case.
    Spin,
    /// Sleeps until shortly before the next departure: one thread for many cases.
    Share,
    /// Sleeps until the next departure, to the nanosecond: for a clock that stands still while anything runs.
    Virtual,
}

/// An order to the driver.
pub(super) enum Order {
    Add {
        config: Box<LinkConfig>,
        seed: u64,
        devices: [Tun; 2],
        taps: [Option<Tap>; 2],
        key: u64,
    },
    /// Forward as this router would, if the clock is virtual or it is a switch.
    Route(Router),
    /// Two hosts send to each other along this path, which enters links at these ports; no packet takes a path that was not ordered.
    Path(Vec<Port>),
    /// Set time zero of a link that changes over time.
    StartClock {
        key: u64,
        at_ns: u64,
    },
    Remove {
        key: u64,
        /// Moment by the driver's clock: what is due later stays inside.
        at_ns: u64,
        outcome: Sender<Driven>,
    },
    End,
}

/// Result of a link: the emulator itself and the meters of its two directions, forward first.
pub(crate) struct Driven<D = Tun> {
    pub(crate) link: Link,
    pub(crate) meters: [Meter; 2],
    /// Why the driver gave it up early, if it did.
    pub(crate) fault: Option<String>,
    /// Its devices, which exist until this is dropped.
    pub(crate) devices: [D; 2],
    /// Whether a driver that must not sleep slept, because others wanted its processor.
    pub(crate) slept: bool,
}
