//! The conversation of one test over its control connection.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::session::reporter::{Reporter, SHORTEST_TICK};
use bdp_wire::frame::FrameError;
use bdp_wire::iperf3::auth::SKEW_SECONDS;
use bdp_wire::iperf3::exchange::{ClientExchange, Step};
use bdp_wire::iperf3::{Cookie, Failure, LONGEST_RESULTS, Results, State};

use crate::iperf3::control::Control;
use crate::iperf3::login::Padding;

/// How long the server may take for each of its steps.
pub(super) const STEP: Duration = Duration::from_secs(15);
/// How often a running test is checked.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// The stage at which a server that does not speak iperf3 stays silent.
pub(super) const GREETING: &str = "session setup";
/// The stage at which a server that refuses the request closes the connection without a message.
pub(super) const SET_UP: &str = "test setup";

/// A test in progress.
pub(super) struct Test {
    pub(super) control: Control,
    pub(super) address: SocketAddr,
    pub(super) cookie: Cookie,
    pub(super) exchange: ClientExchange,
    /// Bytes per write, or of a datagram's payload.
    pub(super) length_bytes: u64,
    /// The padding of the login, if there is one.
    pub(super) login: Option<Padding>,
}

impl Test {
    /// Waits for the server's next state.
    pub(super) fn step(
        &mut self,
        reporter: &Reporter<'_>,
        patience: Duration,
        doing: &'static str,
    ) -> Result<Step> {
        let since = Instant::now();
        while since.elapsed() < patience {
            let heard = self.control.hear(SHORTEST_TICK).map_err(|e| self.lost(&e, doing))?;
            match heard {
                Some(byte) => return self.follow(byte),
                None => reporter.check_cancel()?,
            }
        }
        Err(SessionError::Silent { address: self.address, doing })
    }

    pub(super) fn expect(&mut self, due: Step, reporter: &Reporter<'_>, doing: &'static str) -> Result<()> {
        let step = self.step(reporter, STEP, doing)?;
        if step == due { Ok(()) } else { Err(self.nonsense("it sent an unexpected message")) }
    }

    pub(super) fn take(&mut self, byte: u8, due: Step) -> Result<()> {
        let step = self.follow(byte)?;
        if step == due { Ok(()) } else { Err(self.nonsense("it sent an unexpected message")) }
    }

    fn follow(&mut self, byte: u8) -> Result<Step> {
        match self.exchange.take(byte) {
            Ok(Step::Denied) => Err(SessionError::Denied {
                address: self.address,
                refusal: bdp_wire::session::Refusal::Other {
                    text: "the iperf3 server is busy with another test; try again later".to_owned(),
                },
            }),
            Ok(Step::ReadFailure) => Err(self.failure()),
            Ok(Step::Ended) => Err(SessionError::Lost { address: self.address, doing: "the test" }),
            Ok(step) => Ok(step),
            Err(error) => Err(self.nonsense(&error.to_string())),
        }
    }

    /// The server's reason.
    fn failure(&self) -> SessionError {
        let code = match self.control.read::<4>(STEP) {
            Ok(bytes) => i32::from_be_bytes(bytes),
            Err(error) => return self.lost(&error, "the error report"),
        };
        // For a rejected login iperf3 sends no more than that.
        if code == Failure::AUTHORISATION.code {
            return SessionError::Login { address: self.address, way_out: way_in(self.login) };
        }
        match self.control.read::<4>(STEP).map(i32::from_be_bytes) {
            Ok(errno) => {
                let failure = Failure { code, errno };
                SessionError::Far { address: self.address, error: failure.to_string() }
            }
            Err(error) => self.lost(&error, "the error report"),
        }
    }

    /// Returns the error for a state received while a test runs.
    pub(super) fn unexpected(&self, byte: u8) -> SessionError {
        match State::of(byte) {
            Some(State::ServerError) => self.failure(),
            Some(State::ServerTerminate) => {
                SessionError::Lost { address: self.address, doing: "the measurement" }
            }
            _ => self.nonsense("it sent an unexpected message"),
        }
    }

    /// Sends the results, receives the server's, and says goodbye.
    pub(super) fn exchange(mut self, results: &Results, streams: usize) -> Result<Results> {
        let doing = "the exchange of results";
        self.control.send_json(&results.to_json()).map_err(|e| self.lost(&e, doing))?;
        let body = self.control.read_json(LONGEST_RESULTS, STEP).map_err(|e| self.lost(&e, doing))?;
        let far = Results::parse(&body, streams).map_err(|e| self.nonsense(&e.to_string()))?;
        let since = Instant::now();
        while since.elapsed() < STEP {
            if let Some(byte) = self.control.hear(LOOK).map_err(|e| self.lost(&e, doing))? {
                self.take(byte, Step::Leave)?;
                break;
            }
        }
        // Results are here; a server that does not hear the farewell notices by itself.
        let _ = self.control.say(State::IperfDone);
        Ok(far)
    }

    pub(super) fn lost(&self, error: &FrameError, doing: &'static str) -> SessionError {
        let address = self.address;
        match error {
            // Releases since 3.21 send nothing to a client whose login they reject, and print "no error" at both
            // ends.
            FrameError::Closed if doing == SET_UP => SessionError::Login {
                address,
                way_out: format!(
                    "it closed the connection after the request without a reason, as iperf3 3.22 does to refuse a login: {}",
                    way_in(self.login)
                ),
            },
            FrameError::Closed | FrameError::Io(_) => SessionError::Lost { address, doing },
            FrameError::Silent => SessionError::Silent { address, doing },
            other => self.nonsense(&other.to_string()),
        }
    }

    fn nonsense(&self, what: &str) -> SessionError {
        SessionError::NotBdp { address: self.address, what: format!("as an iperf3 server, {what}") }
    }
}

/// Returns advice for a rejected client; the server does not say what was wrong.
fn way_in(login: Option<Padding>) -> String {
    let padding = match login {
        None => {
            return "it requires a login: give --user NAME and its public key, --iperf3-public-key FILE; \
                    if it is 'bdp serve', --allow for this address also works"
                .to_owned();
        }
        Some(Padding::Oaep) => "iperf3 before 3.17 there needs --iperf3-pkcs1",
        Some(Padding::Pkcs1) => "iperf3 3.17 or later there needs it without --iperf3-pkcs1",
    };
    format!(
        "the answer is the same for a wrong name, password or public key, and for clocks more than \
         {SKEW_SECONDS} s apart; {padding}"
    )
}
