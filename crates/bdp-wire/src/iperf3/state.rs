//! Single-byte states that drive a test, and the errors that a server reports.

use std::fmt;

/// State of a test, one signed byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum State {
    /// All streams are connected; senders may start.
    TestStart = 1,
    /// The test is running.
    TestRunning = 2,
    /// The client ends the test.
    TestEnd = 4,
    /// The client must send its parameters.
    ParamExchange = 9,
    /// The client must open its streams.
    CreateStreams = 10,
    /// The server was terminated.
    ServerTerminate = 11,
    /// The client was terminated.
    ClientTerminate = 12,
    /// Both ends must send their results, the client first.
    ExchangeResults = 13,
    /// Both results have been exchanged.
    DisplayResults = 14,
    /// The client is done.
    IperfDone = 16,
    /// The server is busy or refuses this client.
    AccessDenied = -1,
    /// The server failed; a [`Failure`] follows.
    ServerError = -2,
}

impl State {
    /// Returns the byte as sent.
    pub const fn byte(self) -> u8 {
        self as i8 as u8
    }

    /// Returns the state for a byte; `None` if there is none.
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

/// Error that follows [`State::ServerError`]: iperf3's error number and the system's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// iperf3's error number.
    pub code: i32,
    /// `errno`, or 0 if there is none.
    pub errno: i32,
}

impl Failure {
    /// Length on the wire, bytes.
    pub const BYTES: usize = 8;
    /// The duration is out of the protocol's range.
    pub const DURATION: Self = Self::numbered(5);
    /// The number of streams is out of the protocol's range.
    pub const STREAMS: Self = Self::numbered(6);
    /// The length of a write is out of range.
    pub const BLOCK_SIZE: Self = Self::numbered(7);
    /// The socket buffer is out of range.
    pub const BUFFER_SIZE: Self = Self::numbered(8);
    /// The segment size is out of range.
    pub const MSS: Self = Self::numbered(10);
    /// The omit is out of range.
    pub const OMIT: Self = Self::numbered(12);
    /// The burst is out of range.
    pub const BURST: Self = Self::numbered(15);
    /// SCTP is not supported.
    pub const SCTP: Self = Self::numbered(18);
    /// The length of a datagram is out of range.
    pub const DATAGRAM_SIZE: Self = Self::numbered(20);
    /// The type of service is out of range.
    pub const TOS: Self = Self::numbered(21);
    /// The rate is above what the server grants.
    pub const RATE: Self = Self::numbered(27);
    /// The duration is above what the server grants.
    pub const DURATION_LIMIT: Self = Self::numbered(37);
    /// Unexpected control message.
    pub const MESSAGE: Self = Self::numbered(110);
    /// Invalid parameters.
    pub const PARAMETERS: Self = Self::numbered(114);
    /// Invalid results.
    pub const RESULTS: Self = Self::numbered(117);
    /// The server ended the test.
    pub const TERMINATED: Self = Self::numbered(120);
    /// The congestion control is not available.
    pub const CONGESTION: Self = Self::numbered(134);
    /// The client is not authorised.
    pub const AUTHORISATION: Self = Self::numbered(142);
    /// No data moved.
    pub const SILENCE: Self = Self::numbered(144);
    /// The test exceeded the time that the server grants.
    pub const EXPIRED: Self = Self::numbered(160);
    /// More streams than the server grants: iperf3 has no number for it, and prints "unable to create a new stream" with the
    /// system's text.
    pub const STREAM_LIMIT: Self = Self { code: 200, errno: OUT_OF_DOMAIN };
    /// A stream could not be set up as requested.
    pub const STREAM_SETUP: Self = Self::numbered(201);
    /// The streams did not connect in time.
    pub const ACCEPT: Self = Self { code: 204, errno: TIMED_OUT };
    /// A stream could not be written.
    pub const STREAM_WRITE: Self = Self::numbered(205);
    /// A stream could not be read.
    pub const STREAM_READ: Self = Self::numbered(206);

    /// Returns the closest error known to this client release; for an unknown number a client prints only that number.
    pub fn known_to(self, client_version: Option<&str>) -> Self {
        let minor = client_version.and_then(minor_release).unwrap_or(u32::MAX);
        match self {
            // "test initialization failed", with the system's text: the text of error 5 names a limit other than the server's.
            Self::DURATION_LIMIT if minor < 20 => Self { code: 101, errno: OUT_OF_DOMAIN },
            Self::EXPIRED if minor < 21 => Self::TERMINATED,
            other => other,
        }
    }

    const fn numbered(code: i32) -> Self {
        Self { code, errno: 0 }
    }

    /// Encodes the error, without the state before it.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.code.to_be_bytes());
        bytes[4..].copy_from_slice(&self.errno.to_be_bytes());
        bytes
    }

    /// Decodes the bytes of [`Failure::encode`].
    pub fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self { code: i32::from_be_bytes([a, b, c, d]), errno: i32::from_be_bytes([e, f, g, h]) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Numbers whose meaning differs between releases, 148 and 154 to 159, are not interpreted.
        let text = match self.code {
            5 => "the test is longer than it allows",
            6 => "it does not accept that number of streams",
            7 => "it does not accept writes of that length",
            8 => "it does not accept a socket buffer of that size",
            10 => "it does not accept that segment size",
            12 => "it does not accept that omit",
            15 => "it does not accept that burst",
            18 => "it has no SCTP",
            20 => "it does not accept datagrams of that length (-l); newer servers require at least 16 bytes",
            21 => "it does not accept that type of service",
            27 => "the total rate is above its limit",
            37 => "the test is longer than it allows, or has no duration; give a shorter -t",
            101 => "it could not initialize the test",
            104 | 204 => "the streams did not reach it",
            110 => "it received an unknown control message",
            114 => "it can't read the parameters",
            117 => "it can't read the results",
            119 => "it considers the client terminated",
            120 => "it ended the test",
            122 => "it could not set TCP_NODELAY",
            123 => "it could not set the segment size",
            124 | 130 => "it could not set the socket buffer",
            125 | 126 => "it could not set the type of service",
            134 => "that congestion control is not available there",
            140 => "it could not pace its socket",
            141 => "its kernel granted a smaller socket buffer than requested",
            142 => "it refused the login",
            144 => "it received no data for too long",
            145 => "it could not disable fragmentation",
            150 => "it could not start a thread",
            160 => "the test reached its maximum duration",
            200 => "it did not open that many streams",
            201 => "it could not set up a stream",
            205 => "it could not write to a stream",
            206 => "it could not read from a stream",
            207 => "a stream closed before its end",
            _ => return write!(f, "error {} of iperf3 (errno {})", self.code, self.errno),
        };
        f.write_str(text)?;
        // The system's number explains these errors; for others it is left over from an earlier call.
        match self.code {
            101 | 122..=126 | 130 | 140 | 145 | 150 | 200..=206 if self.errno != 0 => {
                write!(f, " (errno {})", self.errno)
            }
            _ => Ok(()),
        }
    }
}

/// `EDOM` and `ETIMEDOUT`, as numbered by Linux.
const OUT_OF_DOMAIN: i32 = 33;
const TIMED_OUT: i32 = 110;

/// Minor number of a release such as `3.22` or `3.20+`; `None` for another major version.
fn minor_release(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("3.")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
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

    #[test]
    fn limits_are_told_by_numbers_that_the_client_has_a_text_for() {
        for (version, limit, expired) in [
            (Some("3.12"), 101, 120),
            (Some("3.18"), 101, 120),
            (Some("3.1.7"), 101, 120),
            (Some("3.20"), 37, 120),
            (Some("3.21+"), 37, 160),
            (Some("3.22"), 37, 160),
            (Some("4.0"), 37, 160),
            (None, 37, 160),
        ] {
            assert_eq!(Failure::DURATION_LIMIT.known_to(version).code, limit, "{version:?}");
            assert_eq!(Failure::EXPIRED.known_to(version).code, expired, "{version:?}");
            assert_eq!(Failure::RATE.known_to(version), Failure::RATE);
        }
    }

    #[test]
    fn what_a_server_refuses_has_a_text() {
        for code in [5, 6, 15, 20, 27, 37, 110, 141, 144, 160, 200] {
            let text = Failure { code, errno: 9 }.to_string();
            assert!(!text.contains("error "), "{code}: {text}");
        }
        assert_eq!(
            Failure { code: 130, errno: 9 }.to_string(),
            "it could not set the socket buffer (errno 9)"
        );
        assert_eq!(Failure { code: 37, errno: 9 }.to_string().find("errno"), None);
        assert_eq!(Failure { code: 155, errno: 9 }.to_string(), "error 155 of iperf3 (errno 9)");
    }
}
