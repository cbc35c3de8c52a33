//! A control connection of iperf3: states by the byte, JSON by the frame, each wait with its deadline.

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
    /// Over a fresh connection.
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

    /// Says why a test does not go on, and closes this end's half in order, so that it arrives.
    pub(crate) fn refuse(&self, failure: Failure) {
        // Whether or not that arrives, the test is over.
        let _ = self.send(&refusal(failure));
        let _ = self.0.shutdown(Shutdown::Write);
    }

    /// The other end's next byte; `None` where none came in time.
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

    /// Whether the other end is gone or says goodbye; never waits, and leaves whatever else was said to be heard.
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

    /// The smoothed round trip, where the kernel has one.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        tcp_info::read(&self.0).ok().and_then(|info| info.rtt_ns).map(Duration::from_nanos)
    }

    /// So many bytes.
    pub(crate) fn read<const N: usize>(&self, patience: Duration) -> Result<[u8; N], FrameError> {
        let mut bytes = [0; N];
        Until::new(&self.0, patience).read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// A JSON body of at most `longest` bytes.
    pub(crate) fn read_json(&self, longest: usize, patience: Duration) -> Result<Value, FrameError> {
        frame::read_bounded(&mut Until::new(&self.0, patience), longest)
    }

    /// Sends a JSON body.
    pub(crate) fn send_json(&self, body: &Value) -> Result<(), FrameError> {
        frame::write(&mut &self.0, body)
    }
}

/// What a client that is not served is sent.
pub(crate) fn refusal(failure: Failure) -> Vec<u8> {
    let mut bytes = vec![State::ServerError.byte()];
    bytes.extend(failure.encode());
    bytes
}
