//! What a server has done so far, counted for those who operate it.

use std::sync::atomic::{AtomicU64, Ordering};

use bdp_wire::session::Refusal;
use bdp_wire::stranger::Stranger;

use super::access::Denied;
use super::event::Event;

/// Why somebody was turned away, in kinds that can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No token, or a wrong one.
    Token,
    /// No login of iperf3's, or one that is not taken.
    Login,
    /// Another version of the protocol.
    Version,
    /// As many are served as may be.
    Busy,
    /// The server is about to end.
    Ending,
    /// What it began with is no protocol that is spoken here.
    Protocol,
    /// A stream or a probe of no session.
    Key,
    /// Its address may not come in.
    Address,
    /// Something else, which the log says in words.
    Other,
}

impl Reason {
    /// Each of them.
    pub const ALL: [Self; 9] = [
        Self::Token,
        Self::Login,
        Self::Version,
        Self::Busy,
        Self::Ending,
        Self::Protocol,
        Self::Key,
        Self::Address,
        Self::Other,
    ];

    /// `token`, `version`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Login => "login",
            Self::Version => "version",
            Self::Busy => "busy",
            Self::Ending => "ending",
            Self::Protocol => "protocol",
            Self::Key => "key",
            Self::Address => "address",
            Self::Other => "other",
        }
    }

    /// That of a denial.
    pub const fn of_denied(denied: &Denied) -> Self {
        match denied {
            Denied::Listed { .. } | Denied::Unlisted { .. } | Denied::Unproven { .. } => Self::Address,
            Denied::Full { .. }
            | Denied::AddressFull { .. }
            | Denied::Streams { .. }
            | Denied::Memory { .. }
            | Denied::TestStreams { .. } => Self::Busy,
            Denied::Rate { .. } => Self::Other,
        }
    }

    /// That of a refusal.
    pub const fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Version { .. } => Self::Version,
            Refusal::TokenNeeded | Refusal::TokenWrong | Refusal::TuneTokenWrong => Self::Token,
            Refusal::Busy { .. } => Self::Busy,
            Refusal::Ending => Self::Ending,
            Refusal::Other { .. } => Self::Other,
        }
    }
}

/// Counts since the server began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Sessions started.
    pub sessions_begun: u64,
    /// Sessions that ended.
    pub sessions_ended: u64,
    /// Flows of sessions that ended.
    pub flows: u64,
    /// Payload bytes received, of ended flows.
    pub received_bytes: u64,
    /// Payload bytes sent to the kernel, of ended flows.
    pub sent_bytes: u64,
    /// Connections whose protocol is not yet known.
    pub waiting: u64,
    /// Lines of the log that found no room.
    pub lines_dropped: u64,
    /// Who was turned away, in the order of [`Reason::ALL`].
    pub turned_away: [u64; Reason::ALL.len()],
    /// Connections that began with no protocol of their port, in the order of [`Stranger::ALL`].
    pub strangers: [u64; Stranger::ALL.len()],
}

/// The counters of a running server.
#[derive(Debug, Default)]
pub struct Counters {
    sessions_begun: AtomicU64,
    sessions_ended: AtomicU64,
    flows: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    waiting: AtomicU64,
    lines_dropped: AtomicU64,
    turned_away: AtomicU64,
    /// Of those whose reason is known, in the order of [`Reason::ALL`].
    reasons: [AtomicU64; Reason::ALL.len()],
    /// In the order of [`Stranger::ALL`].
    strangers: [AtomicU64; Stranger::ALL.len()],
}

impl Counters {
    /// Counts what has happened.
    pub fn note(&self, event: &Event) {
        match event {
            Event::Began { .. } => add(&self.sessions_begun, 1),
            Event::Ended { flows, .. } => {
                add(&self.sessions_ended, 1);
                add(&self.flows, u64::from(*flows));
            }
            Event::TurnedAway { .. } => add(&self.turned_away, 1),
            // Each was noted as it came.
            Event::Tuned { .. } | Event::TurnedAwayMore { .. } | Event::BeganMore { .. } => {}
            Event::LinesDropped { .. } | Event::Ending { .. } => {}
        }
    }

    /// Counts why somebody is turned away, which is an event besides.
    pub fn give_reason(&self, reason: Reason) {
        if let Some(at) = Reason::ALL.iter().position(|&r| r == reason) {
            add(&self.reasons[at], 1);
        }
    }

    /// Counts somebody who began with no protocol of the port.
    pub fn note_stranger(&self, stranger: Stranger) {
        if let Some(at) = Stranger::ALL.iter().position(|&s| s == stranger) {
            add(&self.strangers[at], 1);
        }
    }

    /// Counts a line of the log that found no room.
    pub fn note_line_dropped(&self) {
        add(&self.lines_dropped, 1);
    }

    /// Counts payload that was read.
    pub fn add_received(&self, bytes: u64) {
        add(&self.received_bytes, bytes);
    }

    /// Counts payload that was given to the kernel.
    pub fn add_sent(&self, bytes: u64) {
        add(&self.sent_bytes, bytes);
    }

    /// Notes how many connections have yet to say what they are for.
    pub fn set_waiting(&self, connections: usize) {
        self.waiting.store(connections as u64, Ordering::Relaxed);
    }

    /// As they are now.
    pub fn counted(&self) -> Counted {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut turned_away = self.reasons.each_ref().map(read);
        // Those that were turned away without one of the reasons.
        let given: u64 = turned_away.iter().sum();
        if let Some(other) = turned_away.last_mut() {
            *other += read(&self.turned_away).saturating_sub(given);
        }
        Counted {
            sessions_begun: read(&self.sessions_begun),
            sessions_ended: read(&self.sessions_ended),
            flows: read(&self.flows),
            received_bytes: read(&self.received_bytes),
            sent_bytes: read(&self.sent_bytes),
            waiting: read(&self.waiting),
            lines_dropped: read(&self.lines_dropped),
            turned_away,
            strangers: self.strangers.each_ref().map(read),
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_without_a_reason_counts_as_other() {
        let counters = Counters::default();
        let away = Event::TurnedAway { peer: "127.0.0.1:1".parse().unwrap(), why: "x".to_owned() };
        for _ in 0..3 {
            counters.note(&away);
        }
        counters.give_reason(Reason::of(&Refusal::TokenWrong));
        let counted = counters.counted();
        assert_eq!(counted.turned_away, [1, 0, 0, 0, 0, 0, 0, 0, 2]);
    }
}
