//! The end that asks: greets a server, and is its peer in a measurement.

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

/// What a server did that was greeted.
pub enum Greeted {
    /// It admitted the session.
    Admitted(Box<Session>),
    /// It waits for more, as iperf3's does for the rest of its cookie, which no bdp would.
    Silent {
        /// What that is of a bdp.
        error: SessionError,
        /// The connection, and what was sent on it.
        opened: Option<Opened>,
    },
}

/// A connection on which a server waits for more than bdp's greeting.
pub struct Opened {
    /// The connection.
    pub stream: TcpStream,
    /// Where it leads.
    pub address: SocketAddr,
    /// What was sent on it.
    pub sent: Vec<u8>,
}

/// A bdp answers its greeting at once. One that has said nothing for so long, or four round trips, may be a server of iperf3, which waits
/// for the rest of its cookie.
const SOON: Duration = Duration::from_millis(600);

/// Finds the server and greets it, with the patience that a busy server may need.
pub fn greet(
    request: &MeasureRequest,
    token: Option<&str>,
    cancel: &AtomicBool,
) -> Result<Greeted, SessionError> {
    greet_for(request, token, cancel, |_| control::GREETING_DEADLINE)
}

/// The same, but what says nothing soon counts as silent: it may speak another protocol.
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
