//! Acknowledgements of one direction's data, as they pass.

use super::half::{Ack, HalfConnection};
use crate::decode::Segment;
use crate::notes::Notes;

/// Most ranges kept of bytes acknowledged before they were captured.
const UNSEEN: usize = 16;
/// Most acknowledgements on their way to the sender.
const PENDING: usize = 1 << 14;

impl HalfConnection {
    /// Adds an acknowledgement of the other end. `shift` is its window scale, unknown without both SYNs.
    /// `has_news` says whether it carries data that had not passed before.
    pub fn on_ack(&mut self, now: u64, segment: &Segment, shift: Option<u8>, has_news: bool) -> Notes {
        let mut notes = Notes::default();
        if !segment.flags.ack() || segment.flags.rst() {
            return notes;
        }
        let ack = self.absolute(segment.ack);
        self.begin(ack);
        (self.written, self.heard_at) = (u64::from(segment.window), now);
        let window = self.note_window(now, segment, shift, &mut notes);
        // A FIN takes a sequence number but no byte.
        let ack = self.fin.map_or(ack, |fin| ack.min(fin));
        self.note_unseen(now, ack, &mut notes);
        let blocks = segment.options.sack.as_slice();
        let mut known = [(0, 0); 4];
        for (place, &(from, to)) in known.iter_mut().zip(blocks) {
            let from = self.absolute(from);
            *place = (from, from + u64::from(to.wrapping_sub(from as u32)));
        }
        let ack = Ack {
            due: now + self.own_delay(),
            at: now,
            ack,
            // A window of 0 is 0 by any scale.
            edge: window.map(|window| ack + window).or((segment.window == 0).then_some(ack)),
            blocks: known,
            count: blocks.len() as u8,
            is_pure: segment.payload == 0 && !segment.flags.syn() && !segment.flags.fin(),
            has_news,
            carries_to: segment.seq.wrapping_add(segment.payload),
            stamp: segment.options.timestamps.map(|(own, _)| own),
        };
        self.note_kind(&ack, &mut notes);
        // The ACK of the handshake has another window than the SYN, but is not a window update.
        self.is_acked |= !segment.flags.syn();
        if ack.ack > self.acked_here {
            (self.acked_here, self.last_ack_at) = (ack.ack, now);
        }
        if segment.flags.ece() && !segment.flags.syn() {
            self.echoes += 1;
        }
        if self.pending.is_empty() && ack.due <= now {
            // At the sender it arrives at once.
            self.count(now);
            self.apply(ack);
        } else {
            self.pending_news += usize::from(ack.has_news);
            self.pending.push_back(ack);
        }
        if self.pending.len() > PENDING {
            // No path holds that many: the times of the capture have stopped.
            self.deliver_first();
        }
        self.advance(now);
        notes
    }

    /// Records the window if its scale is known: whether it is closed, and the largest and smallest so far.
    fn note_window(
        &mut self,
        now: u64,
        segment: &Segment,
        shift: Option<u8>,
        notes: &mut Notes,
    ) -> Option<u64> {
        let written = u64::from(segment.window);
        if segment.flags.syn() {
            self.opened(now);
            return Some(written);
        }
        if written == 0 {
            notes.add(Notes::ZERO_WINDOW);
            self.zero_windows += 1;
            self.zero_since.get_or_insert(now);
        } else {
            self.opened(now);
        }
        let window = written << shift?;
        self.window_most = Some(self.window_most.map_or(window, |most| most.max(window)));
        self.window_least = Some(self.window_least.map_or(window, |least| least.min(window)));
        Some(window)
    }

    /// Records bytes that it acknowledges but that were not captured.
    fn note_unseen(&mut self, now: u64, ack: u64, notes: &mut Notes) {
        if ack > self.next && self.probe_byte == Some(self.next) && ack == self.next + 1 {
            // The probe's byte was accepted.
            self.payload += 1;
            self.next = ack;
        }
        if ack > self.next {
            notes.add(Notes::ACKED_UNSEEN);
            self.missing += ack - self.next;
            if self.unseen.len() >= UNSEEN {
                self.unseen.pop_front();
            }
            self.unseen.push_back((self.next, ack, now));
            self.next = ack;
        }
    }

    /// Notes whether it is a duplicate or only updates the window.
    fn note_kind(&mut self, ack: &Ack, notes: &mut Notes) {
        let is_repeat = ack.is_pure && ack.ack == self.acked_here && self.next > ack.ack;
        let is_same_window = self.pending.back().map_or(self.edge, |last| last.edge) == ack.edge;
        if is_repeat && is_same_window {
            notes.add(Notes::DUPLICATE_ACK);
            self.duplicate_acks += 1;
        } else if ack.is_pure
            && self.is_acked
            && ack.ack == self.acked_here
            && !is_same_window
            && ack.count == 0
        {
            notes.add(Notes::WINDOW_UPDATE);
        }
    }
}
