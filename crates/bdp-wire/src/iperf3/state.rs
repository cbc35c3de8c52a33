//! The single bytes by which a test goes on, and what a server says where it does not.

use std::fmt;

/// What comes next, one signed byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum State {
    /// Streams are there; a sender may begin.
    TestStart = 1,
    /// It runs.
    TestRunning = 2,
    /// The client's word that the test is over.
    TestEnd = 4,
    /// The client is to send its parameters.
    ParamExchange = 9,
    /// The client is to open its streams.
    CreateStreams = 10,
    /// The server was ended.
    ServerTerminate = 11,
    /// The client was ended.
    ClientTerminate = 12,
    /// Both are to tell their results, the client first.
    ExchangeResults = 13,
    /// Results are there.
    DisplayResults = 14,
    /// The client's farewell.
    IperfDone = 16,
    /// The server is busy, or does not serve this client.
    AccessDenied = -1,
    /// The server failed; a [`Failure`] follows.
    ServerError = -2,
}

impl State {
    /// As it is sent.
    pub const fn byte(self) -> u8 {
        self as i8 as u8
    }

    /// The state of a byte; `None` where there is none.
    pub const fn of(byte: u8) -> Option<Self> {
        Some(match byte as i8 {
            1 => Self::TestStart,
            2 => Self::TestRunning,
            4 => Self::TestEnd,
            9 => Self::ParamExchange,
            10 => Self::CreateStreams,
            11 => Self::ServerTerminate,
            12 => Self::ClientTerminate,
            13 => Self::ExchangeResults,
            14 => Self::DisplayResults,
            16 => Self::IperfDone,
            -1 => Self::AccessDenied,
            -2 => Self::ServerError,
            _ => return None,
        })
    }
}

/// What follows [`State::ServerError`]: iperf3's own number of the error, and the system's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// iperf3's number.
    pub code: i32,
    /// `errno`, 0 where there is none.
    pub errno: i32,
}

impl Failure {
    /// Bytes on the wire.
    pub const BYTES: usize = 8;
    /// The test is longer than allowed.
    pub const DURATION: Self = Self::numbered(5);
    /// More streams than allowed.
    pub const STREAMS: Self = Self::numbered(6);
    /// The length of a write is out of range.
    pub const BLOCK_SIZE: Self = Self::numbered(7);
    /// The socket buffer is out of range.
    pub const BUFFER_SIZE: Self = Self::numbered(8);
    /// The segment size is out of range.
    pub const MSS: Self = Self::numbered(10);
    /// The omit is out of range.
    pub const OMIT: Self = Self::numbered(12);
    /// There is no SCTP.
    pub const SCTP: Self = Self::numbered(18);
    /// The type of service is out of range.
    pub const TOS: Self = Self::numbered(21);
    /// The rate is above what the server grants.
    pub const RATE: Self = Self::numbered(27);
    /// Streams did not come.
    pub const ACCEPT: Self = Self::numbered(104);
    /// A control message that does not belong there.
    pub const MESSAGE: Self = Self::numbered(110);
    /// Parameters that can't be taken.
    pub const PARAMETERS: Self = Self::numbered(114);
    /// Results that can't be taken.
    pub const RESULTS: Self = Self::numbered(117);
    /// The congestion control is not there.
    pub const CONGESTION: Self = Self::numbered(134);
    /// Nothing moved any more.
    pub const SILENCE: Self = Self::numbered(144);
    /// The client is not allowed.
    pub const AUTHORISATION: Self = Self::numbered(142);

    const fn numbered(code: i32) -> Self {
        Self { code, errno: 0 }
    }

    /// As it is sent, without the state before it.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.code.to_be_bytes());
        bytes[4..].copy_from_slice(&self.errno.to_be_bytes());
        bytes
    }

    /// What [`Failure::encode`] made.
    pub fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self { code: i32::from_be_bytes([a, b, c, d]), errno: i32::from_be_bytes([e, f, g, h]) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.code {
            5 => "the test is longer than it allows",
            6 => "more streams than it allows",
            7 => "it does not take a write of that length",
            8 => "it does not take a socket buffer of that size",
            10 => "it does not take that segment size",
            12 => "it does not take that omit",
            18 => "it has no SCTP",
            21 => "it does not take that type of service",
            27 => "the rate is above what it allows",
            104 => "the streams did not come to it",
            110 => "it received a control message that it does not know",
            114 => "it can't read the parameters",
            117 => "it can't read the results",
            134 => "it does not have that congestion control",
            142 => "it let nobody in by that login",
            144 => "nothing came to it for too long",
            _ => return write!(f, "error {} of iperf3 (errno {})", self.code, self.errno),
        };
        f.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_state_that_comes_back_or_none() {
        let known = (0..=255).filter_map(State::of).inspect(|s| assert_eq!(State::of(s.byte()), Some(*s)));
        assert_eq!(known.count(), 12);
        assert_eq!(State::of(0xfe), Some(State::ServerError));
    }

    #[test]
    fn a_failure_comes_back() {
        let failure = Failure { code: 142, errno: -1 };
        assert_eq!(failure.encode(), [0, 0, 0, 142, 255, 255, 255, 255]);
        assert_eq!(Failure::decode(failure.encode()), failure);
    }
}
