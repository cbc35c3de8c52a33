//! Super-packets: decided segment by segment, carried in runs.
//!
//! A run is the longest row of neighbouring segments that all depart, all marked or all not, within [`LONGEST_RUN`]. It
//! departs when its last segment is due. Where packets overtake each other, and on a half-duplex medium, where their
//! departure is not known on arrival, segments go one by one.

use std::ops::Range;

use bdp_model::units::Nanos;

use crate::direction::Direction;
use crate::packet::Packet;
use crate::propagation::Copy;
use crate::segments::Segments;
use crate::verdict::{DropCause, Fate, Verdict};
use crate::{End, Link, Medium, ecn};

/// From the first departure of a run to its last: by so much a segment may come late.
const LONGEST_RUN: Nanos = Nanos::micros(50);

/// Neighbouring segments that depart together.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    segments: Range<u32>,
    first_due: Nanos,
    last_due: Nanos,
    marked: bool,
}

impl Link {
    /// Takes a packet of several segments.
    pub(crate) fn enqueue_super(
        &mut self,
        from: End,
        mut packet: Packet,
        segments: &Segments,
        now: Nanos,
        tell: &mut dyn FnMut(Verdict),
    ) {
        let each = 0..segments.count();
        let own_wire = matches!(self.medium, Medium::FullDuplex { .. });
        if !own_wire || !self.direction(from).propagation.keeps_order() {
            each.for_each(|i| tell(self.enqueue_segment(from, segments.cut(&packet, i..i + 1), now)));
            return;
        }
        self.direction(from).rewrite(&mut packet);
        let capable = ecn::is_capable(&packet);
        for i in each {
            let ip_bytes = segments.len_bytes(i);
            let verdict = match self.direction_mut(from).decide(ip_bytes) {
                Err(cause) => self.dropped(from, cause),
                Ok(passage) if passage.is_plain() => match self.board(from, passage.index, ip_bytes, now) {
                    Err(cause) => self.dropped(from, cause),
                    Ok((due, congested)) => self.join_run(from, i, due, congested && capable),
                },
                // Its bytes differ from its neighbours', or a copy comes between it and the next.
                Ok(passage) => {
                    self.launch_runs(from, segments, &packet);
                    let single = segments.cut(&packet, i..i + 1);
                    let entered = self.direction_mut(from).apply(single, passage);
                    self.enqueue_entered(from, entered, now)
                }
            };
            tell(verdict);
        }
        self.launch_last_runs(from, segments, packet);
    }

    /// Brings a segment past policer and queue; when it is due, and whether it met congestion.
    fn board(
        &mut self,
        from: End,
        index: u64,
        ip_bytes: u64,
        now: Nanos,
    ) -> Result<(Nanos, bool), DropCause> {
        let Medium::FullDuplex { forward, reverse } = &mut self.medium else { return Err(DropCause::Queue) };
        let (direction, wire) = match from {
            End::A => (&mut self.forward, forward),
            End::B => (&mut self.reverse, reverse),
        };
        if !direction.passes_policer(ip_bytes, now) {
            return Err(DropCause::Policer);
        }
        let admission = wire.admit(direction.wire_bits(ip_bytes), now).ok_or(DropCause::Queue)?;
        let course = direction.propagation.draw(index, Copy::Original);
        Ok((direction.due(course, now, admission.finish), admission.congested))
    }

    /// Puts a segment into the run before it, or into a new one.
    fn join_run(&mut self, from: End, index: u32, due: Nanos, marked: bool) -> Verdict {
        match self.runs.last_mut() {
            Some(run)
                if run.segments.end == index
                    && run.marked == marked
                    && due.saturating_sub(run.first_due) <= LONGEST_RUN =>
            {
                run.segments.end += 1;
                run.last_due = due;
            }
            _ => self.runs.push(Run { segments: index..index + 1, first_due: due, last_due: due, marked }),
        }
        let fate = Fate::Queued { marked, held_back: false };
        self.direction_mut(from).counters.note(fate);
        Verdict { fate, ..Verdict::QUEUED }
    }

    fn dropped(&mut self, from: End, cause: DropCause) -> Verdict {
        self.direction_mut(from).counters.note(Fate::Dropped(cause));
        Verdict::dropped(cause)
    }

    /// Sends the runs so far on their way, cut out of the packet.
    fn launch_runs(&mut self, from: End, segments: &Segments, packet: &Packet) {
        let mut runs = std::mem::take(&mut self.runs);
        for run in runs.drain(..) {
            run.launch(self.direction_mut(from), segments.cut(packet, run.segments.clone()));
        }
        self.runs = runs;
    }

    /// The same at the packet's end: the first run keeps its buffer, so that a packet that stays whole is only moved.
    fn launch_last_runs(&mut self, from: End, segments: &Segments, packet: Packet) {
        let mut runs = std::mem::take(&mut self.runs);
        let mut later = std::mem::take(&mut self.cut);
        later.extend(runs.iter().skip(1).map(|run| segments.cut(&packet, run.segments.clone())));
        if let Some(run) = runs.first() {
            let first = match run.segments.start {
                0 => segments.keep_front(packet, run.segments.end),
                _ => segments.cut(&packet, run.segments.clone()),
            };
            run.launch(self.direction_mut(from), first);
        }
        for (run, packet) in runs.drain(..).skip(1).zip(later.drain(..)) {
            run.launch(self.direction_mut(from), packet);
        }
        (self.runs, self.cut) = (runs, later);
    }
}

impl Run {
    fn launch(&self, direction: &mut Direction, mut packet: Packet) {
        if self.marked {
            ecn::mark(&mut packet);
        }
        direction.propagation.launch(self.last_due, self.segments.len() as u32, packet);
    }
}
