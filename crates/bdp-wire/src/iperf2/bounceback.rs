//! `--bounceback`: a client sends a message, waits for its return with the server's timestamps, and sends the next one.

use bdp_model::units::Nanos;

use super::{halves, put, word};

/// Length of the part of a message that every release fills in, bytes; padding or the reply length follows.
pub const BOUNCEBACK_BYTES: usize = 12 * 4;
/// Longest message and reply supported, bytes.
pub const LONGEST_BOUNCEBACK: usize = 128 << 10;
/// Value of the first word.
pub(super) const BOUNCEBACK: u32 = 0x0080_0000;
/// Flags in the upper half of the fourth word.
const TYPE_OF_SERVICE: u32 = 0x2000_0000;
const STOP: u32 = 0x1000_0000;
const REPLY_BYTES: u32 = 0x0800_0000;
/// Position of the reply length, in words.
const REPLY_WORD: usize = 15;
/// Longest pause between a message and its reply; longer ones are rejected.
const LONGEST_HOLD: Nanos = Nanos::secs(5);

/// A client's bounceback request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounceback {
    /// Length of each message, bytes.
    pub bytes: usize,
    /// Length of each reply, bytes.
    pub reply_bytes: usize,
    /// Pause between a message and its reply.
    pub hold: Nanos,
    /// Type of service of the replies, if given.
    pub type_of_service: Option<u8>,
    /// Whether this is the client's last message.
    pub is_last: bool,
}

impl Bounceback {
    /// Bytes that [`Bounceback::decode`] needs.
    pub const WANTED_BYTES: usize = BOUNCEBACK_BYTES;

    /// Whether the bytes start a bounceback message.
    pub fn begins(arrived: &[u8]) -> bool {
        word(arrived, 0) == Some(BOUNCEBACK)
    }

    /// Decodes the start of a message, [`Bounceback::WANTED_BYTES`] at least; the error names the field out of range.
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

    /// Decodes a whole message, including the reply length, which lies after the bytes needed by [`Bounceback::decode`].
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

    /// Turns a message into its reply, with the times of receipt and reply, microseconds since 1970.
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

    /// Message of iperf 2.1.8 with `--bounceback -S 0x20 --trip-times`, up to the padding.
    const OF_218: &str =
        "008000000000006400000001e0000020000000006b030f2c000e8743ffffffffffffffffffffffffffffffff00000000";
    /// Message of iperf 2.2.1 with `--bounceback --bounceback-reply 80 --bounceback-hold 20`.
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
        // Reply of the 2.1.8 server to that message.
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
