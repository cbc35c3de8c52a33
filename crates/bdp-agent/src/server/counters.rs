//! Counters of a server's activity, for its operators.

use bdp_model::names;
use std::sync::atomic::{AtomicU64, Ordering};

use bdp_wire::session::Refusal;
use bdp_wire::stranger::Stranger;

use super::access::Denied;
use super::event::Event;

/// Reasons for refusing a client, in countable kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The token was missing or wrong.
    Token,
    /// The iperf3 login was missing or rejected.
    Login,
    /// Different version of the protocol.
    Version,
    /// All places are taken.
    Busy,
    /// The server is shutting down.
    Ending,
    /// The first bytes match no protocol served here.
    Protocol,
    /// A stream or a probe that belongs to no session.
    Key,
    /// The address is not allowed.
    Address,
    /// Another reason, given in the log.
    Other,
}

names!(
    Reason: Token = "token", Login = "login", Version = "version", Busy = "busy", Ending = "ending",
        Protocol = "protocol", Key = "key", Address = "address", Other = "other"
);

impl Reason {
    /// All reasons.
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

    /// Returns the reason of a denial.
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

    /// Returns the reason of a refusal.
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

/// Counts since the server started.
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
    /// Connections whose protocol is still unknown.
    pub waiting: u64,
    /// Log lines dropped because the queue was full.
    pub lines_dropped: u64,
    /// Refused clients, in the order of [`Reason::ALL`].
    pub turned_away: [u64; Reason::ALL.len()],
    /// Connections that matched no protocol of their port, in the order of [`Stranger::ALL`].
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
    /// Refusals with a known reason, in the order of [`Reason::ALL`].
    reasons: [AtomicU64; Reason::ALL.len()],
    /// In the order of [`Stranger::ALL`].
    strangers: [AtomicU64; Stranger::ALL.len()],
}

impl Counters {
    /// Counts an event.
    pub fn note(&self, event: &Event) {
        match event {
            Event::Began { .. } => add(&self.sessions_begun, 1),
            Event::Ended { flows, .. } => {
                add(&self.sessions_ended, 1);
                add(&self.flows, u64::from(*flows));
            }
            Event::TurnedAway { .. } => add(&self.turned_away, 1),
            // Each was counted as it came.
            Event::Tuned { .. } | Event::TurnedAwayMore { .. } | Event::BeganMore { .. } => {}
            Event::LinesDropped { .. } | Event::Ending { .. } => {}
        }
    }

    /// Counts the reason of a refusal, which is also an event of its own.
    pub fn give_reason(&self, reason: Reason) {
        if let Some(at) = Reason::ALL.iter().position(|&r| r == reason) {
            add(&self.reasons[at], 1);
        }
    }

    /// Counts a client that matched no protocol of the port.
    pub fn note_stranger(&self, stranger: Stranger) {
        if let Some(at) = Stranger::ALL.iter().position(|&s| s == stranger) {
            add(&self.strangers[at], 1);
        }
    }

    /// Counts a log line that was dropped.
    pub fn note_line_dropped(&self) {
        add(&self.lines_dropped, 1);
    }

    /// Counts received payload.
    pub fn add_received(&self, bytes: u64) {
        add(&self.received_bytes, bytes);
    }

    /// Counts payload given to the kernel.
    pub fn add_sent(&self, bytes: u64) {
        add(&self.sent_bytes, bytes);
    }

    /// Sets the number of connections whose purpose is unknown.
    pub fn set_waiting(&self, connections: usize) {
        self.waiting.store(connections as u64, Ordering::Relaxed);
    }

    /// Returns the current counts.
    pub fn counted(&self) -> Counted {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut turned_away = self.reasons.each_ref().map(read);
        // Refusals without one of the reasons.
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
