//! What the programs at the ends of a bulk transfer do, where they do not write and read as fast as they can.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Streams of a flow whose programs hold back, at most: each has a thread of its own at the receiver.
pub const MOST_STREAMS: u32 = 64;

/// The two programs of a transfer. Nothing set: both go as fast as they can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Application {
    /// How the receiving program reads each stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<IoPattern>,
    /// How the sending program writes each stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<IoPattern>,
    /// Messages, each of which waits for the answer to the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Messages>,
}

/// When a program reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum IoPattern {
    /// No faster than this, a few milliseconds' worth at a time.
    Rate {
        /// bit/s of payload.
        rate_bps: u64,
    },
    /// Not at all in the last part of each period.
    Pauses {
        /// How long it stops.
        #[serde(rename = "pause_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        pause: Nanos,
        /// The period, longer than the pause.
        #[serde(rename = "every_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        every: Nanos,
    },
}

/// Messages of the sending program, each answered with one byte by the receiving program when all of it has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Messages {
    /// Bytes of each.
    pub size_bytes: u64,
    /// In how many writes: all but the last are of [`Messages::HEADER_BYTES`].
    pub writes: u32,
}

impl Application {
    /// Whether both programs go as fast as they can.
    pub fn is_greedy(&self) -> bool {
        *self == Self::default()
    }

    /// What they let through of one stream at the most, bit/s; `None` where no rate is known of them.
    pub fn rate_bps(&self) -> Option<u64> {
        let rate = |pattern: Option<IoPattern>| match pattern? {
            IoPattern::Rate { rate_bps } => Some(rate_bps),
            IoPattern::Pauses { .. } => None,
        };
        rate(self.reader).into_iter().chain(rate(self.writer)).min()
    }

    /// Whether a model of a sender that always has data and a receiver that always reads, at some rate, says what comes of them.
    pub fn is_modelled(&self) -> bool {
        let steady = |pattern: Option<IoPattern>| !matches!(pattern, Some(IoPattern::Pauses { .. }));
        self.messages.is_none() && steady(self.reader) && steady(self.writer)
    }
}

impl Messages {
    /// Bytes of each write of a message but its last.
    pub const HEADER_BYTES: u64 = 100;

    /// Bytes of the write that begins so many bytes into a message.
    pub fn write_bytes(&self, at: u64) -> u64 {
        let headers = u64::from(self.writes.saturating_sub(1)) * Self::HEADER_BYTES;
        let left = self.size_bytes.saturating_sub(at);
        match at < headers {
            true => left.min(Self::HEADER_BYTES - at % Self::HEADER_BYTES),
            false => left,
        }
    }
}

impl IoPattern {
    /// How long a program that began so long ago still pauses; zero where it is at work.
    pub fn pauses_for(&self, since_start_ns: u64) -> u64 {
        match *self {
            Self::Rate { .. } => 0,
            Self::Pauses { pause, every } => {
                let every = every.as_ns().max(1);
                let at = since_start_ns % every;
                if at >= every.saturating_sub(pause.as_ns()) { every - at } else { 0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_the_last_part_of_each_period() {
        let pattern = IoPattern::Pauses { pause: Nanos::millis(300), every: Nanos::secs(1) };
        let ms = |at: u64| pattern.pauses_for(at * 1_000_000) / 1_000_000;
        assert_eq!([0, 699, 700, 850, 999, 1000, 1700].map(ms), [0, 0, 300, 150, 1, 0, 300]);
        assert_eq!(IoPattern::Rate { rate_bps: 1 }.pauses_for(7), 0);
        // What nobody can ask for in a scenario must not panic.
        assert_eq!(IoPattern::Pauses { pause: Nanos::secs(1), every: Nanos::ZERO }.pauses_for(5), 1);
    }

    #[test]
    fn a_message_is_written_as_headers_and_a_body() {
        let writes = |size_bytes, writes| {
            let messages = Messages { size_bytes, writes };
            let (mut at, mut all) = (0, Vec::new());
            while at < size_bytes {
                all.push(messages.write_bytes(at));
                at += messages.write_bytes(at);
            }
            all
        };
        assert_eq!(writes(3000, 1), [3000]);
        assert_eq!(writes(3000, 2), [100, 2900]);
        assert_eq!(writes(3000, 3), [100, 100, 2800]);
        assert_eq!(writes(50, 3), [50]);
        // What the kernel did not take of a header goes on.
        assert_eq!(Messages { size_bytes: 3000, writes: 2 }.write_bytes(40), 60);
    }

    #[test]
    fn the_slower_of_the_two_programs_rules() {
        let rate = |rate_bps| Some(IoPattern::Rate { rate_bps });
        let both = Application { reader: rate(10), writer: rate(7), messages: None };
        assert_eq!((both.rate_bps(), both.is_modelled(), both.is_greedy()), (Some(7), true, false));
        let pauses = Some(IoPattern::Pauses { pause: Nanos(1), every: Nanos(2) });
        let pausing = Application { reader: pauses, ..Default::default() };
        assert_eq!((pausing.rate_bps(), pausing.is_modelled()), (None, false));
        assert!(Application::default().is_greedy() && Application::default().is_modelled());
    }
}
