//! A super-packet whose segments are being sent.
//!
//! Each segment is served by itself. A run departs together: the longest row of neighbours that depart within
//! [`LONGEST_RUN`], when the last of them is due.

use bdp_model::units::Nanos;

use crate::discipline::{Ticket, Waiting};
use crate::packet::Packet;
use crate::segments::Segments;

/// Longest time from a run's first departure to its last: a segment may be this late.
const LONGEST_RUN: Nanos = Nanos::micros(50);

/// The super-packet on the wire.
#[derive(Debug, Clone)]
pub(crate) struct Train {
    waiting: Waiting,
    /// The segment to be served next.
    next: u32,
    run: Option<Run>,
}

/// Segments that have been served and have not departed.
#[derive(Debug, Clone, Copy)]
struct Run {
    begin: u32,
    first_due: Nanos,
    last_due: Nanos,
}

impl Train {
    pub(crate) fn new(waiting: Waiting) -> Self {
        Self { waiting, next: 0, run: None }
    }

    /// The segment to be served next, and its wire bits.
    pub(crate) fn next(&self) -> (Ticket, u64) {
        let Waiting { ticket, segments, wire_bits, last_wire_bits, .. } = self.waiting;
        let ticket = Ticket { index: ticket.index + u64::from(self.next), ..ticket };
        (ticket, if self.next + 1 < segments { wire_bits } else { last_wire_bits })
    }

    /// Adds the next segment, due then. If it does not join the run before it, that run departs.
    pub(crate) fn join(&mut self, due: Nanos) -> Option<Departing> {
        let ended = self.run.filter(|run| due.saturating_sub(run.first_due) > LONGEST_RUN);
        let departing = ended.map(|run| Departing {
            due: run.last_due,
            segments: self.next - run.begin,
            packet: Segments::of(&self.waiting.packet).cut(&self.waiting.packet, run.begin..self.next),
        });
        match &mut self.run {
            Some(run) if departing.is_none() => run.last_due = due,
            run => *run = Some(Run { begin: self.next, first_due: due, last_due: due }),
        }
        self.next += 1;
        departing
    }

    /// Whether all segments have been served.
    pub(crate) fn is_served(&self) -> bool {
        self.next == self.waiting.segments
    }

    /// Returns the last run. A whole packet is moved.
    pub(crate) fn finish(self) -> Option<Departing> {
        let Run { begin, last_due: due, .. } = self.run?;
        let packet = self.waiting.packet;
        let packet = match begin {
            0 => packet,
            _ => Segments::of(&packet).cut(&packet, begin..self.next),
        };
        Some(Departing { due, segments: self.next - begin, packet })
    }

    /// The packet that the segments are cut from.
    pub(crate) fn packet(&self) -> &Packet {
        &self.waiting.packet
    }

    /// Lower bound of the run's departure.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.run.map(|run| run.last_due)
    }

    /// Segments that were served and have not departed.
    pub(crate) fn len(&self) -> u64 {
        self.run.map_or(0, |run| u64::from(self.next - run.begin))
    }
}

/// A run that departs.
#[derive(Debug)]
pub(crate) struct Departing {
    pub due: Nanos,
    pub segments: u32,
    pub packet: Packet,
}
