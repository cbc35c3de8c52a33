//! When a slow application reads or writes next, and how much: for one of its streams.

use bdp_model::flow::application::{Application, IoPattern, Messages};

use crate::pace::Pace;

/// What lets a stream's next bytes through.
#[derive(Debug, Clone, Copy)]
pub enum Gate {
    /// A rate.
    Rate(Pace),
    /// Pauses, counted from a moment of the monotonic clock.
    Pauses {
        /// The pattern of pauses.
        pattern: IoPattern,
        /// Start of the pattern.
        began_ns: u64,
    },
    /// Messages, each of which waits for the answer to the previous one.
    Messages {
        /// The messages.
        messages: Messages,
        /// Bytes of the current message that the kernel has accepted.
        written: u64,
    },
}

impl Gate {
    /// Returns the gate of a reading application from now on; `None` if it reads as fast as it can.
    pub fn reader(application: &Application, now_ns: u64, length: usize) -> Option<Self> {
        Self::of(application.reader?, now_ns, length)
    }

    /// Returns the gate of a writing application from now on; `None` if it writes as fast as it can.
    pub fn writer(application: &Application, now_ns: u64, length: usize) -> Option<Self> {
        match (application.messages, application.writer) {
            (Some(messages), _) => Some(Self::Messages { messages, written: 0 }),
            (None, pattern) => Self::of(pattern?, now_ns, length),
        }
    }

    fn of(pattern: IoPattern, now_ns: u64, length: usize) -> Option<Self> {
        match pattern {
            IoPattern::Rate { rate_bps } => Pace::of(rate_bps, now_ns, length, false).map(Self::Rate),
            IoPattern::Pauses { .. } => Some(Self::Pauses { pattern, began_ns: now_ns }),
        }
    }

    /// Returns when more may pass, as far as time decides.
    pub fn due_ns(&self, now_ns: u64) -> u64 {
        match self {
            Self::Rate(pace) => pace.due_ns(),
            Self::Pauses { pattern, began_ns } => {
                now_ns.saturating_add(pattern.pauses_for(now_ns.saturating_sub(*began_ns)))
            }
            Self::Messages { .. } => now_ns,
        }
    }

    /// Returns how many bytes may pass now.
    pub fn allowed(&mut self, now_ns: u64) -> usize {
        match self {
            Self::Rate(pace) => pace.allowed(now_ns),
            Self::Pauses { .. } => {
                if self.due_ns(now_ns) > now_ns {
                    0
                } else {
                    usize::MAX
                }
            }
            Self::Messages { messages, written } => {
                usize::try_from(messages.write_bytes(*written)).unwrap_or(usize::MAX)
            }
        }
    }

    /// Notes the bytes that passed to or from the kernel.
    pub fn give(&mut self, bytes: usize) {
        match self {
            Self::Rate(pace) => pace.give(bytes),
            Self::Pauses { .. } => {}
            Self::Messages { written, .. } => *written += bytes as u64,
        }
    }

    /// Whether a message is complete and its answer is outstanding.
    pub fn awaits_answer(&self) -> bool {
        matches!(self, Self::Messages { messages, written } if *written >= messages.size_bytes)
    }

    /// Notes that the answer has arrived.
    pub fn answered(&mut self) {
        if let Self::Messages { written, .. } = self {
            *written = 0;
        }
    }
}

/// The answers of a receiving application: a byte for each message that it has read completely.
#[derive(Debug, Clone, Copy)]
pub struct Answering {
    size_bytes: u64,
    read: u64,
}

impl Answering {
    /// Creates the answers to these messages.
    pub fn of(messages: &Messages) -> Self {
        Self { size_bytes: messages.size_bytes.max(1), read: 0 }
    }

    /// Notes bytes read; returns how many messages they complete.
    pub fn complete(&mut self, bytes: usize) -> u64 {
        self.read += bytes as u64;
        let messages = self.read / self.size_bytes;
        self.read %= self.size_bytes;
        messages
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::units::Nanos;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_pausing_program_takes_nothing_in_its_pause_and_all_outside() {
        let pattern = IoPattern::Pauses { pause: Nanos::millis(300), every: Nanos::secs(1) };
        let reader = Application { reader: Some(pattern), ..Default::default() };
        let mut gate = Gate::reader(&reader, 5 * MS, 1000).unwrap();
        assert_eq!((gate.due_ns(6 * MS), gate.allowed(6 * MS)), (6 * MS, usize::MAX));
        assert_eq!((gate.due_ns(805 * MS), gate.allowed(805 * MS)), (1005 * MS, 0));
        assert!(Gate::writer(&reader, 0, 1000).is_none());
    }

    #[test]
    fn a_message_waits_for_the_answer_to_the_one_before() {
        let messages = Messages { size_bytes: 3000, writes: 2 };
        let application = Application { messages: Some(messages), ..Default::default() };
        let mut gate = Gate::writer(&application, 0, 1000).unwrap();
        for bytes in [100, 2900] {
            assert!(!gate.awaits_answer());
            assert_eq!(gate.allowed(0), bytes);
            gate.give(bytes);
        }
        assert!(gate.awaits_answer());
        gate.answered();
        assert_eq!((gate.awaits_answer(), gate.allowed(0)), (false, 100));

        let mut answering = Answering::of(&messages);
        assert_eq!([100, 2900, 2999, 1, 6001].map(|bytes| answering.complete(bytes)), [0, 1, 0, 1, 2]);
    }
}
