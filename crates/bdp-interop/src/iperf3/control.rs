//! An iperf3 control connection: states as bytes, JSON as frames, each wait with a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use bdp_sys::{poll, tcp_info};
use bdp_wire::frame::{self, FrameError};
use bdp_wire::iperf3::exchange::is_goodbye;
use bdp_wire::iperf3::{Failure, State};
use serde_json::Value;

use bdp_flow::error::FlowError;
use bdp_flow::session::deadline::{self, Until};

/// The connection.
#[derive(Debug)]
pub(crate) struct Control(TcpStream);

impl Control {
    /// Creates it over a fresh connection.
    pub(crate) fn over(stream: TcpStream) -> Result<Self, FlowError> {
        deadline::bound(&stream, "open the control connection")?;
        Ok(Self(stream))
    }

    /// Sends bytes.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        (&mut &self.0).write_all(bytes)
    }

    /// Sends a state.
    pub(crate) fn say(&self, state: State) -> io::Result<()> {
        self.send(&[state.byte()])
    }

    /// Sends why a test is refused, and closes this end's half gracefully, so that it arrives.
    pub(crate) fn refuse(&self, failure: Failure) {
        // Whether or not that arrives, the test is over.
        let _ = self.send(&refusal(failure));
        let _ = self.0.shutdown(Shutdown::Write);
    }

    /// Receives the other end's next byte; `None` if none arrived in time.
    pub(crate) fn hear(&self, patience: Duration) -> Result<Option<u8>, FrameError> {
        let mut byte = [0];
        match Until::new(&self.0, patience).read(&mut byte) {
            Ok(0) => Err(FrameError::Closed),
            Ok(_) => Ok(Some(byte[0])),
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(None),
            Err(e) => match FrameError::from(e) {
                FrameError::Silent => Ok(None),
                other => Err(other),
            },
        }
    }

    /// Whether the other end has gone or said goodbye; never blocks, and leaves other messages unread.
    pub(crate) fn has_left(&self) -> bool {
        let mut byte = [0];
        match poll::wait_readable(self.0.as_fd(), 0) {
            Ok(false) => false,
            Ok(true) if !self.0.peek(&mut byte).is_ok_and(|heard| heard > 0) => true,
            Ok(true) => {
                // Read, so that closing does not reset the connection.
                is_goodbye(byte[0]) && (&self.0).read(&mut byte).is_ok()
            }
            Err(_) => true,
        }
    }

    /// Returns the smoothed round trip, if the kernel has one.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        tcp_info::read(&self.0).ok().and_then(|info| info.rtt_ns).map(Duration::from_nanos)
    }

    /// Reads this many bytes.
    pub(crate) fn read<const N: usize>(&self, patience: Duration) -> Result<[u8; N], FrameError> {
        let mut bytes = [0; N];
        Until::new(&self.0, patience).read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a JSON body of at most `longest` bytes.
    pub(crate) fn read_json(&self, longest: usize, patience: Duration) -> Result<Value, FrameError> {
        frame::read_bounded(&mut Until::new(&self.0, patience), longest)
    }

    /// Sends a JSON body.
    pub(crate) fn send_json(&self, body: &Value) -> Result<(), FrameError> {
        frame::write(&mut &self.0, body)
    }
}

/// Returns the message for a client that is refused.
pub(crate) fn refusal(failure: Failure) -> Vec<u8> {
    let mut bytes = vec![State::ServerError.byte()];
    bytes.extend(failure.encode());
    bytes
}
