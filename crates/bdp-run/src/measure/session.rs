//! One measurement, by whatever protocol the other end speaks.

use std::fmt;
use std::sync::atomic::AtomicBool;

use bdp_agent::client::{self, Greeted};
use bdp_explain::experiment;
use bdp_flow::session::driver;
use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::session::progress::{Progress, Stage};
use bdp_flow::session::reporter::{Goodput, Reporter};
use bdp_flow::session::request;
use bdp_flow::session::timing::Started;
use bdp_interop::download::Download;
use bdp_interop::iperf2::client::Iperf2Peer;
use bdp_interop::iperf3::client::Iperf3Peer;
use bdp_interop::iperf3::login::ClientLogin;
use bdp_model::measurement::{MeasureRequest, Measurement, PeerProtocol};
use bdp_model::units::Nanos;

/// Credentials that a server may require.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The token that the server printed; it is never sent, only proven.
    pub token: Option<String>,
    /// The login for an iperf3 server that requires one.
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

/// Measures as requested. Fills everything but `findings`, `ceiling` and `label`, and sets `repetition` to 1.
///
/// Blocks until the end; `progress` is called from this thread. `cancel` ends it within a second.
pub fn measure(
    request: &MeasureRequest,
    credentials: &Credentials,
    progress: &mut dyn FnMut(&Progress),
    cancel: &AtomicBool,
) -> Result<Measurement> {
    request::check(request)?;
    let started = Started::now();
    let mut reporter = Reporter::new(request, progress, cancel);
    reporter.report(Stage::Connecting, started.at, Nanos::ZERO, Goodput::default(), None)?;
    let choose = &experiment::next;
    let login = credentials.login.as_ref();
    let token = credentials.token.as_deref();
    let measurement = match request.peer {
        _ if request.url.is_some() => {
            driver::measure(request, &mut Download::new(request)?, reporter, choose)
        }
        Some(PeerProtocol::Iperf3) => driver::measure(request, &mut Iperf3Peer::new(login), reporter, choose),
        Some(PeerProtocol::Iperf2) => driver::measure(request, &mut Iperf2Peer::default(), reporter, choose),
        None => match first_greeting(request, token, cancel)? {
            Greeted::Admitted(mut session) => driver::measure(request, session.as_mut(), reporter, choose),
            Greeted::Silent { error, .. } if request.ssh.is_some() => Err(error),
            // A server of iperf3 proves nothing: with a token it is refused.
            Greeted::Silent { error: SessionError::Silent { address, .. }, .. }
                if credentials.token.is_some() =>
            {
                let what = "it is silent, as an iperf3 server is, and does not prove the token; to measure with an iperf3 server, omit --token and BDP_TOKEN";
                Err(SessionError::NotBdp { address, what: what.to_owned() })
            }
            Greeted::Silent { error, opened } => {
                match recognise(request, Iperf3Peer::going_on(login, opened), reporter) {
                    Ok(measured) => measured,
                    Err(other) => {
                        let reporter = Reporter::new(request, progress, cancel);
                        // An option that iperf3's protocol cannot express is a better explanation than silence.
                        let silent = if other.is_request() { other } else { error };
                        greet_again(request, token, reporter, cancel, silent)
                    }
                }
            }
        },
    };
    match measurement {
        Ok(measurement) => Ok(started.note(measurement)),
        Err(error) => Err(error.with_measurement(|measurement| started.note(measurement))),
    }
}

/// The server started by ssh is a bdp, and is given time; any other silent server may be an iperf3 server.
fn first_greeting(request: &MeasureRequest, token: Option<&str>, cancel: &AtomicBool) -> Result<Greeted> {
    match request.ssh {
        Some(_) => client::greet(request, token, cancel),
        None => client::greet_soon(request, token, cancel),
    }
}

/// Checks whether a silent server speaks iperf3, and measures if so; returns the error of iperf3's client if it
/// cannot express the request.
fn recognise(
    request: &MeasureRequest,
    mut peer: Iperf3Peer<'_>,
    reporter: Reporter<'_>,
) -> std::result::Result<Result<Measurement>, SessionError> {
    let request = MeasureRequest { peer: Some(PeerProtocol::Iperf3), ..request.clone() };
    match driver::measure(&request, &mut peer, reporter, &experiment::next) {
        Ok(mut measurement) => {
            measurement.caveats.insert(0, bdp_model::finding::caveat::Caveat::RecognisedIperf3);
            Ok(Ok(measurement))
        }
        Err(
            error @ (SessionError::Cancelled
            | SessionError::Denied { .. }
            | SessionError::Login { .. }
            | SessionError::Broken { .. }
            | SessionError::Far { .. }),
        ) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// Greets a bdp again that was too busy to answer soon, on a new connection that nobody took for an iperf3 client.
fn greet_again(
    request: &MeasureRequest,
    token: Option<&str>,
    reporter: Reporter<'_>,
    cancel: &AtomicBool,
    silent: SessionError,
) -> Result<Measurement> {
    let choose = &experiment::next;
    match client::greet(request, token, cancel) {
        Ok(Greeted::Admitted(mut session)) => driver::measure(request, session.as_mut(), reporter, choose),
        Err(error @ (SessionError::Cancelled | SessionError::Denied { .. })) => Err(error),
        Ok(Greeted::Silent { .. }) | Err(_) => Err(silent),
    }
}
