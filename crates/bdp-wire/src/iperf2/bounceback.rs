//! `--bounceback`: a client sends a message, waits until it has come back with the server's times, and sends the next one.

use bdp_model::units::Nanos;

use super::{halves, put, word};

/// Bytes of a message that every release fills in; what follows is padding, or the length of the reply.
pub const BOUNCEBACK_BYTES: usize = 12 * 4;
/// Longest message and reply that are served.
pub const LONGEST_BOUNCEBACK: usize = 128 << 10;
/// All of the first word.
pub(super) const BOUNCEBACK: u32 = 0x0080_0000;
/// Flags in the upper half of the fourth word.
const TYPE_OF_SERVICE: u32 = 0x2000_0000;
const STOP: u32 = 0x1000_0000;
const REPLY_BYTES: u32 = 0x0800_0000;
/// Where the length of a reply stands, in words.
const REPLY_WORD: usize = 15;
/// Longest pause between a message and its reply: longer ones count as silence.
const LONGEST_HOLD: Nanos = Nanos::secs(5);

/// What a message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounceback {
    /// Bytes of each message.
    pub bytes: usize,
    /// Bytes of each reply.
    pub reply_bytes: usize,
    /// Pause between a message and its reply.
    pub hold: Nanos,
    /// Type of service of the replies, where it was said.
    pub type_of_service: Option<u8>,
    /// The client sends no more.
    pub is_last: bool,
}

impl Bounceback {
    /// Bytes that have to be there before [`Bounceback::decode`] knows.
    pub const WANTED_BYTES: usize = BOUNCEBACK_BYTES;

    /// Whether these first bytes begin such a message.
    pub fn begins(arrived: &[u8]) -> bool {
        word(arrived, 0) == Some(BOUNCEBACK)
    }

    /// From the beginning of a message, [`Bounceback::WANTED_BYTES`] at least; an error names what is out of range.
    pub fn decode(message: &[u8]) -> Result<Self, &'static str> {
        if !Self::begins(message) || message.len() < BOUNCEBACK_BYTES {
            return Err("it is not a --bounceback message");
        }
        let at = |index| word(message, index).unwrap_or(0);
        let flags = at(3);
        let bytes = at(1) as usize;
        if !(BOUNCEBACK_BYTES..=LONGEST_BOUNCEBACK).contains(&bytes) {
            return Err("its messages have less than 48 bytes or more than 128 KiB (-l)");
        }
        let hold = Nanos(u64::from(at(11)) * 1_000);
        if hold > LONGEST_HOLD {
            return Err("the requested reply delay exceeds 5 s (--bounceback-hold)");
        }
        Ok(Self {
            bytes,
            reply_bytes: bytes,
            hold,
            type_of_service: (flags & TYPE_OF_SERVICE != 0).then_some(flags as u8),
            is_last: flags & STOP != 0,
        })
    }

    /// The same with the length of the reply, which stands behind what [`Bounceback::decode`] needs; from a whole message.
    pub fn decode_whole(message: &[u8]) -> Result<Self, &'static str> {
        let decoded = Self::decode(message)?;
        let asks = word(message, 3).is_some_and(|flags| flags & REPLY_BYTES != 0);
        let reply_bytes = match (asks, word(message, REPLY_WORD)) {
            (true, Some(bytes)) => bytes as usize,
            (true, None) => return Err("it does not give the length of the requested replies"),
            (false, _) => decoded.bytes,
        };
        if !(BOUNCEBACK_BYTES..=LONGEST_BOUNCEBACK).contains(&reply_bytes) {
            return Err(
                "the requested replies have less than 48 bytes or more than 128 KiB (--bounceback-reply)",
            );
        }
        Ok(Self { reply_bytes, ..decoded })
    }

    /// Makes the reply of a message: when it was received, and when the reply is sent, microseconds since 1970.
    pub fn stamp(message: &mut [u8], received_us: u64, sent_us: u64) {
        for (index, us) in [(7, received_us), (9, sent_us)] {
            let [_, seconds] = halves(us / 1_000_000);
            put(message, index, seconds);
            put(message, index + 1, (us % 1_000_000) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    /// What iperf 2.1.8 sends with `--bounceback -S 0x20 --trip-times`, as far as it is filled in.
    const OF_218: &str =
        "008000000000006400000001e0000020000000006b030f2c000e8743ffffffffffffffffffffffffffffffff00000000";
    /// What iperf 2.2.1 sends with `--bounceback --bounceback-reply 80 --bounceback-hold 20`.
    const OF_221: &str = "00800000000000640000000188005a5a000000006b0310160002e322ffffffffffffffffffffffffffffffff00004e20\
                          5a5a5a5a5a5a5a5a5a5a5a5a00000050";

    #[test]
    fn messages_of_the_original_are_read() {
        let read = Bounceback::decode(&unhex(OF_218)).unwrap();
        let plain = Bounceback {
            bytes: 100,
            reply_bytes: 100,
            hold: Nanos::ZERO,
            type_of_service: Some(0x20),
            is_last: false,
        };
        assert_eq!(read, plain);
        assert_eq!(Bounceback::decode_whole(&unhex(OF_218)), Ok(plain));
        let held = Bounceback { type_of_service: None, hold: Nanos::millis(20), ..plain };
        assert_eq!(Bounceback::decode(&unhex(OF_221)), Ok(held));
        assert_eq!(Bounceback::decode_whole(&unhex(OF_221)), Ok(Bounceback { reply_bytes: 80, ..held }));
    }

    #[test]
    fn a_reply_has_the_servers_times_and_is_the_message_otherwise() {
        // As the server of 2.1.8 answered that message.
        let mut message = unhex(OF_218);
        Bounceback::stamp(&mut message, 1_795_362_604_000_981_u64 + 3_000, 1_795_362_605_000_001);
        assert_eq!(message[..28], unhex(OF_218)[..28]);
        assert_eq!(message[44..], unhex(OF_218)[44..]);
        assert_eq!(message[28..36], [0x6b, 0x03, 0x0f, 0x2c, 0, 0, 0x0f, 0x8d]);
        assert_eq!(message[36..44], [0x6b, 0x03, 0x0f, 0x2d, 0, 0, 0, 1]);
    }

    #[test]
    fn what_is_out_of_range_is_refused_and_nothing_panics() {
        let mut message = unhex(OF_221);
        for cut in 0..message.len() {
            let _ = Bounceback::decode_whole(&message[..cut]);
        }
        for (index, value) in [(1, 47), (1, 200 << 10), (11, 6_000_000)] {
            let mut wrong = message.clone();
            put(&mut wrong, index, value);
            assert!(Bounceback::decode(&wrong).is_err(), "{index} {value}");
        }
        for reply in [0, 47, u32::MAX] {
            put(&mut message, REPLY_WORD, reply);
            assert!(Bounceback::decode_whole(&message).is_err(), "{reply}");
        }
        assert!(!Bounceback::begins(&[0x40, 0x80, 0, 0]) && !Bounceback::begins(&[0, 0x80, 0]));
    }
}
