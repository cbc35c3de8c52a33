//! Why a test ends early, and how its client learns of it.

use std::time::{Duration, Instant};

use bdp_wire::frame::FrameError;
use bdp_wire::iperf3::{Failure, State};

use crate::iperf3::control::Control;

/// How long a client may take over each step but the test itself.
pub(super) const STEP: Duration = Duration::from_secs(10);
/// Why a test failed: what the client hears, and what the log says.
pub(super) struct Ending {
    failure: Option<Failure>,
    pub(super) why: String,
}

/// How long the streams of a test that the server ends go on, so that its client reads the reason before they close.
const LEAVE: Duration = Duration::from_millis(500);

/// What the log says of a client that fails before its streams are there: it says goodbye, or just closes.
pub(super) const GAVE_UP: &str = "the client disconnected during stream setup";

/// Tells a client that there is no place for it now.
pub(super) fn busy(control: &Control, why: String) -> Ending {
    // Whether or not it hears it, there is none.
    let _ = control.say(State::AccessDenied);
    Ending::silent(why)
}

/// Tells a client whose test runs that its place is another's, and leaves it a moment to read that before its streams close.
pub(super) fn busy_while_running(control: &Control, why: String) -> Ending {
    let ending = busy(control, why);
    std::thread::sleep(LEAVE);
    ending
}

impl Ending {
    pub(super) fn refused(failure: Failure, why: impl Into<String>) -> Self {
        Self { failure: Some(failure), why: why.into() }
    }

    /// There is nobody to hear it.
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

    /// Sends the reason while the streams still run, and waits a moment for the client to leave: a client whose stream closes
    /// first reports a broken pipe in its place.
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
