//! One measurement by whatever protocol the other end speaks.

use std::fmt;
use std::sync::atomic::AtomicBool;

use bdp_agent::client::{self, Greeted, Opened};
use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::{Progress, Stage};
use bdp_flow::session::reporter::{Goodput, Reporter};
use bdp_flow::session::request;
use bdp_flow::session::timing::Started;
use bdp_interop::iperf3::login::ClientLogin;
use bdp_interop::{download, iperf2, iperf3};
use bdp_model::measurement::{MeasureRequest, Measurement, PeerProtocol};
use bdp_model::units::Nanos;

/// What a server may want to know before it serves.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The token that the server printed; it is never sent, only proven.
    pub token: Option<String>,
    /// Who this is to a server of iperf3's protocol that serves users alone.
    pub login: Option<ClientLogin>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("token", &self.token.as_ref().map(|_| "..."))
            .field("login", &self.login)
            .finish()
    }
}

/// Measures as requested. Fills everything but `findings`, `ceiling` and `label`, and says 1 for `repetition`.
///
/// Blocks until the end; `progress` is called from this thread. `cancel` ends it within a second.
pub fn measure(
    request: &MeasureRequest,
    credentials: &Credentials,
    progress: &mut dyn FnMut(&Progress),
    cancel: &AtomicBool,
) -> Result<Measurement, SessionError> {
    if request.url.is_some() {
        return download::measure(request, progress, cancel);
    }
    request::check(request)?;
    let started = Started::now();
    let mut reporter = Reporter::new(request, progress, cancel);
    reporter.tell(Stage::Connecting, started.at, Nanos::ZERO, Goodput::default(), None)?;
    let login = credentials.login.as_ref();
    let measurement = match request.peer {
        Some(PeerProtocol::Iperf3) => iperf3::client::Driver::new(request, login, reporter)?.measure()?,
        Some(PeerProtocol::Iperf2) => iperf2::client::measure(request, reporter)?,
        None => match client::greet(request, credentials.token.as_deref(), cancel)? {
            Greeted::Admitted(admitted) => client::measure(request, admitted, reporter)?,
            Greeted::Silent { error, .. } if request.ssh.is_some() => return Err(error),
            Greeted::Silent { error, opened } => recognise(request, login, reporter, error, opened)?,
        },
    };
    Ok(started.note(measurement))
}

/// Sees whether a server that says nothing is one of iperf3, and measures then.
fn recognise(
    request: &MeasureRequest,
    login: Option<&ClientLogin>,
    reporter: Reporter<'_>,
    silent: SessionError,
    opened: Option<Opened>,
) -> Result<Measurement, SessionError> {
    let request = MeasureRequest { peer: Some(PeerProtocol::Iperf3), ..request.clone() };
    let driver = iperf3::client::Driver::new(&request, login, reporter);
    let measured = driver.and_then(|driver| driver.go_on(opened).measure());
    match measured {
        Ok(mut measurement) => {
            measurement.caveats.insert(0, bdp_model::caveat::Caveat::RecognisedIperf3);
            Ok(measurement)
        }
        Err(
            error @ (SessionError::Cancelled
            | SessionError::Denied { .. }
            | SessionError::Login { .. }
            | SessionError::Far { .. }),
        ) => Err(error),
        // It has no word for iperf3's client either.
        Err(_) => Err(silent),
    }
}
