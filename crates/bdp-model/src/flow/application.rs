//! Behaviour of the programs at the ends of a bulk transfer, if they do not write and read as fast as they can.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Most streams of a flow with slow programs: each has its own thread at the receiver.
pub const MOST_STREAMS: u32 = 64;

/// The two programs of a transfer. By default both run as fast as they can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Application {
    /// How the receiving program reads each stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<IoPattern>,
    /// How the sending program writes each stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<IoPattern>,
    /// Messages, each sent after the answer to the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Messages>,
}

/// Timing of a program's reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum IoPattern {
    /// At most this rate, in portions of a few milliseconds.
    Rate {
        /// Payload rate, bit/s.
        rate_bps: u64,
    },
    /// Pauses at the end of each period.
    Pauses {
        /// Length of the pause.
        #[serde(rename = "pause_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        pause: Nanos,
        /// Length of the period, longer than the pause.
        #[serde(rename = "every_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        every: Nanos,
    },
}

/// Messages of the sending program; the receiving program answers each with one byte after reading all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Messages {
    /// Bytes of each message.
    pub size_bytes: u64,
    /// Writes per message: all but the last are short, like headers.
    pub writes: u32,
}

impl Application {
    /// Whether both programs run as fast as they can.
    pub fn is_greedy(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the highest rate of one stream that they allow, bit/s; `None` if they set no rate.
    pub fn rate_bps(&self) -> Option<u64> {
        let rate = |pattern: Option<IoPattern>| match pattern? {
            IoPattern::Rate { rate_bps } => Some(rate_bps),
            IoPattern::Pauses { .. } => None,
        };
        rate(self.reader).into_iter().chain(rate(self.writer)).min()
    }

    /// Whether they fit the models, which assume a sender that always has data and a receiver that always reads, at some rate.
    pub fn is_modelled(&self) -> bool {
        let steady = |pattern: Option<IoPattern>| !matches!(pattern, Some(IoPattern::Pauses { .. }));
        self.messages.is_none() && steady(self.reader) && steady(self.writer)
    }
}

impl Messages {
    /// Bytes of each write of a message except the last.
    pub const HEADER_BYTES: u64 = 100;

    /// Returns the bytes of the write that begins at this offset of a message.
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
    /// Returns how much longer a program that started this long ago pauses; zero if it is active.
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
        // A value that no scenario can have must not panic.
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
        // The rest of a header that the kernel did not accept is written next.
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
