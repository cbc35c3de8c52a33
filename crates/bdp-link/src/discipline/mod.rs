//! Queue disciplines: who may wait for the wire, and who is next.
//!
//! A discipline is asked at arrival whether a packet finds room, and whenever the wire is free for the next one. It holds
//! the packets themselves; how much work they are is known to the transmitter.
//!
//! Drop-tail decides on arrival alone. Those that manage themselves ([`Discipline::is_managed`]) are offered segments one
//! by one, may drop and mark what waits, and may serve flows out of their order.

mod cake;
mod cobalt;
mod codel;
mod drop_tail;
mod dual_pi2;
mod fifo;
mod flow_hash;
mod fq_codel;
mod managed;
mod pie;
mod red;
mod waiting;

use bdp_model::link::{DirectionConfig, QueueLimit};
use bdp_model::queue::Queue;
use bdp_model::units::Nanos;

use self::cake::Cake;
use self::codel::Codel;
use self::drop_tail::DropTail;
use self::dual_pi2::DualPi2;
use self::flow_hash::FlowHash;
use self::fq_codel::FqCodel;
use self::managed::Rolls;
pub(crate) use self::managed::{Effects, OnWire, Removed};
use self::pie::Pie;
use self::red::Red;
pub(crate) use self::waiting::{Backlog, Ticket, Waiting};
use crate::end::End;
use crate::random;
use crate::verdict::DropCause;

/// The discipline of one direction.
#[derive(Debug, Clone)]
pub(crate) enum Discipline {
    DropTail(DropTail),
    Codel(Box<Codel>),
    FqCodel(Box<FqCodel>),
    Pie(Box<Pie>),
    Red(Box<Red>),
    Cake(Box<Cake>),
    DualPi2(Box<DualPi2>),
}

impl Discipline {
    pub(crate) fn new(config: &DirectionConfig, seed: u64, from: End) -> Self {
        let Some(queue) = config.queue else {
            return Self::drop_tail(config);
        };
        let (limit, limit_bytes) = match config.limit {
            QueueLimit::Packets(packets) => (packets, u64::MAX),
            QueueLimit::Bytes(bytes) => (u64::MAX, bytes.as_bytes()),
            QueueLimit::Unlimited => (u64::MAX, u64::MAX),
        };
        let limits = (limit, limit_bytes);
        let rolls = || Rolls::new(seed, from);
        let hash = || FlowHash::new(random::key(seed, from, b"flow"));
        match queue {
            Queue::Codel(codel) => Self::Codel(Box::new(Codel::new(codel, limit))),
            Queue::FqCodel(fq) => Self::FqCodel(Box::new(FqCodel::new(fq, limit, hash()))),
            Queue::Pie(pie) => Self::Pie(Box::new(Pie::new(pie, limit, rolls()))),
            Queue::Red(red) => Self::Red(Box::new(Red::new(red, limits, config.rate, rolls()))),
            Queue::Cake(cake) => Self::Cake(Box::new(Cake::new(cake, limits, config.rate, hash(), rolls()))),
            Queue::DualPi2(dual) => Self::DualPi2(Box::new(DualPi2::new(dual, limit, rolls()))),
        }
    }

    /// Drop-tail, whatever else is configured.
    pub(crate) fn drop_tail(config: &DirectionConfig) -> Self {
        Self::DropTail(DropTail::new(config.limit, config.ecn_threshold))
    }

    /// Whether it decides when a packet's turn comes, too.
    pub(crate) fn is_managed(&self) -> bool {
        !matches!(self, Self::DropTail(_))
    }

    /// Offers a segment to a discipline that manages itself: whether it was marked, or why it was dropped.
    pub(crate) fn offer(
        &mut self,
        waiting: Waiting,
        on_wire: OnWire,
        effects: &mut Effects,
    ) -> Result<bool, DropCause> {
        match self {
            Self::DropTail(queue) => queue.push(waiting),
            Self::Codel(queue) => return queue.offer(waiting, on_wire),
            Self::FqCodel(queue) => queue.offer(waiting, on_wire, effects),
            Self::Pie(queue) => return queue.offer(waiting, on_wire),
            Self::Red(queue) => return queue.offer(waiting, on_wire),
            Self::Cake(queue) => queue.offer(waiting, on_wire, effects),
            Self::DualPi2(queue) => return queue.offer(waiting, on_wire),
        }
        Ok(false)
    }

    /// The next to be served at `now`, after what is dropped before it.
    pub(crate) fn take(&mut self, now: Nanos, effects: &mut Effects) -> Option<Waiting> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::Codel(queue) => queue.take(now, effects),
            Self::FqCodel(queue) => queue.take(now, effects),
            Self::Pie(queue) => queue.take(now),
            Self::Red(queue) => queue.take(),
            Self::Cake(queue) => queue.take(now, effects),
            Self::DualPi2(queue) => queue.take(now, effects),
        }
    }

    /// The wire was free from then on, and nothing waited.
    pub(crate) fn went_idle(&mut self, at: Nanos) {
        match self {
            Self::DropTail(_) | Self::FqCodel(_) | Self::Cake(_) => {}
            Self::Codel(queue) => queue.went_idle(),
            Self::Pie(queue) => queue.went_idle(at),
            Self::Red(queue) => queue.went_idle(at),
            Self::DualPi2(queue) => queue.went_idle(at),
        }
    }

    /// Whether a segment of so much work finds room behind the backlog, and if so whether an ECN-capable one is marked. A
    /// discipline that manages itself decides when it is offered one.
    pub(crate) fn admits(&self, backlog: &Backlog, work: u128) -> Option<bool> {
        match self {
            Self::DropTail(queue) => queue.admits(backlog, work),
            _ => Some(false),
        }
    }

    /// Takes a packet all of whose segments were admitted.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        if let Self::DropTail(queue) = self {
            queue.push(waiting);
        }
    }

    /// The next to be served, where it is known.
    pub(crate) fn head(&self) -> Option<&Waiting> {
        match self {
            Self::DropTail(queue) => queue.head(),
            _ => None,
        }
    }

    /// All that wait, in the order in which they are served, where it is known.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        let known = match self {
            Self::DropTail(queue) => Some(queue.iter()),
            _ => None,
        };
        known.into_iter().flatten()
    }
}
