//! Why a test ends early, and how its client is notified.

use std::time::{Duration, Instant};

use bdp_wire::frame::FrameError;
use bdp_wire::iperf3::{Failure, State};

use crate::iperf3::control::Control;

/// How long a client may take for each step except the test itself.
pub(super) const STEP: Duration = Duration::from_secs(10);
/// Why a test failed: the message for the client and that for the log.
pub(super) struct Ending {
    failure: Option<Failure>,
    pub(super) why: String,
}

/// How long the streams of a test that the server ends go on, so that its client reads the reason before they close.
const LEAVE: Duration = Duration::from_millis(500);

/// The log message for a client that fails before its streams are open: it says goodbye, or just closes.
pub(super) const GAVE_UP: &str = "the client disconnected during stream setup";

/// Tells a client that there is no free place.
pub(super) fn busy(control: &Control, why: String) -> Ending {
    // Whether or not it hears it, there is none.
    let _ = control.say(State::AccessDenied);
    Ending::silent(why)
}

/// Tells a client whose test runs that it was evicted, and leaves it a moment to read that before its streams close.
pub(super) fn busy_while_running(control: &Control, why: String) -> Ending {
    let ending = busy(control, why);
    std::thread::sleep(LEAVE);
    ending
}

impl Ending {
    pub(super) fn refused(failure: Failure, why: impl Into<String>) -> Self {
        Self { failure: Some(failure), why: why.into() }
    }

    /// Returns an ending that sends no message, for a client that is gone.
    pub(super) fn silent(why: impl Into<String>) -> Self {
        Self { failure: None, why: why.into() }
    }

    /// Sends the reason to the client, once.
    pub(super) fn send(mut self, control: &Control, client_version: Option<&str>) -> Self {
        if let Some(failure) = self.failure.take() {
            control.refuse(failure.known_to(client_version));
        }
        self
    }

    /// Sends the reason while the streams still run, and waits a moment for the client to leave: a client whose
    /// stream closes first reports a broken pipe instead.
    pub(super) fn announce(self, control: &Control, client_version: Option<&str>) -> Self {
        if self.failure.is_none() {
            return self;
        }
        let sent = self.send(control, client_version);
        let until = Instant::now() + LEAVE;
        while let Some(left) = until.checked_duration_since(Instant::now())
            && matches!(control.hear(left), Ok(Some(_)))
        {}
        sent
    }

    pub(super) fn of(error: &FrameError, doing: &str) -> Self {
        Self::silent(match error {
            FrameError::Closed => format!("the client disconnected during {doing}"),
            FrameError::Silent => format!("the client was silent during {doing}"),
            other => format!("during {doing}: {other}"),
        })
    }
}
