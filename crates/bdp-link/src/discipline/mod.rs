//! Queue disciplines: which packets may wait for the wire, and which is next.
//!
//! A discipline is asked on arrival whether a packet finds room, and for the next packet whenever the wire is
//! free. It holds the packets themselves; the transmitter knows their work.
//!
//! Drop-tail decides on arrival alone. Actively managed ones ([`Discipline::is_managed`]) are offered segments
//! one by one, may drop and mark waiting packets, and may serve flows out of order.

mod cake;
mod cobalt;
mod codel;
mod drop_tail;
mod dual_pi2;
mod fair;
mod fifo;
mod flow_hash;
mod fq_codel;
mod fq_pie;
mod managed;
mod pie;
mod red;
mod waiting;

use bdp_model::link::queue::Queue;
use bdp_model::link::{DirectionConfig, QueueLimit};
use bdp_model::units::Nanos;

use self::cake::Cake;
use self::codel::Codel;
use self::drop_tail::DropTail;
use self::dual_pi2::DualPi2;
use self::flow_hash::FlowHash;
use self::fq_codel::FqCodel;
use self::fq_pie::FqPie;
use self::managed::Rolls;
pub(crate) use self::managed::{Effects, Managed, OnWire, Removed};
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
    Managed(Box<dyn Managed>),
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
        Self::Managed(match queue {
            Queue::Codel(codel) => Box::new(Codel::new(codel, limit)),
            Queue::FqCodel(fq) => Box::new(FqCodel::new(fq, limit, hash())),
            Queue::Pie(pie) => Box::new(Pie::new(pie, limit, rolls())),
            Queue::FqPie(fq) => Box::new(FqPie::new(fq, limit, hash(), rolls())),
            Queue::Red(red) => Box::new(Red::new(red, limits, config.rate, rolls())),
            Queue::Cake(cake) => Box::new(Cake::new(cake, limits, config.rate, hash(), rolls())),
            Queue::DualPi2(dual) => Box::new(DualPi2::new(dual, limit, rolls())),
        })
    }

    /// Returns drop-tail, whatever else is configured.
    pub(crate) fn drop_tail(config: &DirectionConfig) -> Self {
        Self::DropTail(DropTail::new(config.limit, config.ecn_threshold))
    }

    /// Whether it also decides when a packet's turn comes.
    pub(crate) fn is_managed(&self) -> bool {
        matches!(self, Self::Managed(_))
    }

    /// Offers a segment to a managed discipline; returns whether it was marked, or why it was dropped.
    pub(crate) fn offer(
        &mut self,
        waiting: Waiting,
        on_wire: OnWire,
        effects: &mut Effects,
    ) -> Result<bool, DropCause> {
        match self {
            Self::DropTail(queue) => {
                queue.push(waiting);
                Ok(false)
            }
            Self::Managed(queue) => queue.offer(waiting, on_wire, effects),
        }
    }

    /// Takes the next segment to be served at `now`, after dropping those before it.
    pub(crate) fn take(&mut self, now: Nanos, effects: &mut Effects) -> Option<Waiting> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::Managed(queue) => queue.take(now, effects),
        }
    }

    /// Notes that the wire was free from then on, and nothing waited.
    pub(crate) fn went_idle(&mut self, at: Nanos) {
        if let Self::Managed(queue) = self {
            queue.went_idle(at);
        }
    }

    /// Whether a segment of this work fits behind the backlog, and if so whether an ECN-capable one is marked. A
    /// managed discipline decides when it is offered one.
    pub(crate) fn admits(&self, backlog: &Backlog, work: u128) -> Option<bool> {
        match self {
            Self::DropTail(queue) => queue.admits(backlog, work),
            Self::Managed(_) => Some(false),
        }
    }

    /// Queues a packet all of whose segments were admitted.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        if let Self::DropTail(queue) = self {
            queue.push(waiting);
        }
    }

    /// The next to be served, if known.
    pub(crate) fn head(&self) -> Option<&Waiting> {
        match self {
            Self::DropTail(queue) => queue.head(),
            Self::Managed(_) => None,
        }
    }

    /// All waiting packets in order of service, if that is known.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        let known = match self {
            Self::DropTail(queue) => Some(queue.iter()),
            Self::Managed(_) => None,
        };
        known.into_iter().flatten()
    }
}
