//! The client: greets a server, and is its peer in a measurement.

pub(crate) mod control;
mod dry;
mod flow;
mod foreign;
mod interruption;
mod most;
mod path_mtu;
mod prober;
mod session;
mod tuning;

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bdp_flow::session::dial;
use bdp_flow::session::error::SessionError;
use bdp_model::measurement::MeasureRequest;
use bdp_sys::socket::TcpOptions;
use bdp_wire::session::{Kind, Preamble};

use control::Control;
pub use session::Session;
pub use tuning::{TuneClient, TuneError};

/// A server's reaction to the greeting.
pub enum Greeted {
    /// It admitted the session.
    Admitted(Box<Session>),
    /// It waits for more, as an iperf3 server does for the rest of its cookie; a bdp server would not.
    Silent {
        /// The error to report if it is a bdp.
        error: SessionError,
        /// The connection, and the bytes sent on it.
        opened: Option<Opened>,
    },
}

/// A connection on which a server waits for more than bdp's greeting.
pub struct Opened {
    /// The connection.
    pub stream: TcpStream,
    /// The server's address.
    pub address: SocketAddr,
    /// The bytes sent on it.
    pub sent: Vec<u8>,
}

/// A bdp answers its greeting at once. A server that has said nothing for this long, or four round trips, may be an
/// iperf3 server, which waits for the rest of its cookie.
const SOON: Duration = Duration::from_millis(600);

/// Finds and greets the server, with the patience that a busy server may need.
pub fn greet(
    request: &MeasureRequest,
    token: Option<&str>,
    cancel: &AtomicBool,
) -> Result<Greeted, SessionError> {
    greet_for(request, token, cancel, |_| control::GREETING_DEADLINE)
}

/// Finds and greets the server, but soon considers it silent: it may speak another protocol.
pub fn greet_soon(
    request: &MeasureRequest,
    token: Option<&str>,
    cancel: &AtomicBool,
) -> Result<Greeted, SessionError> {
    greet_for(request, token, cancel, |round_trip| SOON.max(4 * round_trip).min(control::GREETING_DEADLINE))
}

fn greet_for(
    request: &MeasureRequest,
    token: Option<&str>,
    cancel: &AtomicBool,
    patience: impl FnOnce(Duration) -> Duration,
) -> Result<Greeted, SessionError> {
    let options = TcpOptions {
        mss: Some(dial::CONTROL_MSS),
        device: request.bind_device.clone(),
        ..Default::default()
    };
    let connecting = Instant::now();
    let (stream, address) = dial::connect_any(&dial::resolve(request, cancel)?, request, &options, cancel)?;
    let round_trip = connecting.elapsed();
    let kept = stream.try_clone();
    match Control::greet(stream, address, token, patience(round_trip)) {
        Err(error @ SessionError::Silent { .. }) => {
            let sent = Preamble::new(Kind::Control).encode().to_vec();
            Ok(Greeted::Silent { error, opened: kept.ok().map(|stream| Opened { stream, address, sent }) })
        }
        greeted => Ok(Greeted::Admitted(Box::new(Session::new(greeted?, round_trip)))),
    }
}
