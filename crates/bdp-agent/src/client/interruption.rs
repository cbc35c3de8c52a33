//! A measurement that is interrupted while a flow runs: the flow ends as if its time were over, and what was measured until then
//! is the result.

use std::time::{Duration, Instant};

use bdp_model::measurement::Way;
use bdp_wire::control::Request;

use super::Session;
use super::flow::Flow;
use bdp_flow::session::error::SessionError;

/// How long one end has to hear from the other that the flow is over, besides some round trips; then each ends by itself.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long the conclusion may take then.
const CONCLUSION: Duration = Duration::from_secs(5);

/// How a flow is ended before its time.
#[derive(Default)]
pub(super) struct Interruption {
    since: Option<Instant>,
    both_ends: bool,
}

impl Interruption {
    /// Looks whether the flows are to end, and has them end; to be called as long as they run.
    pub(super) fn attend(
        &mut self,
        session: &mut Session<'_, '_>,
        flows: &[Flow],
    ) -> Result<(), SessionError> {
        let any = flows.iter().any(|flow| flow.work.bytes() > 0);
        if session.reporter.begins_to_conclude(any)? {
            self.since = Some(Instant::now());
            return end(session, flows, false);
        }
        let Some(since) = self.since else { return Ok(()) };
        let farewell = FAREWELL.max(3 * session.round_trip);
        if since.elapsed() > farewell && !self.both_ends {
            self.both_ends = true;
            return end(session, flows, true);
        }
        if since.elapsed() > farewell + CONCLUSION { Err(SessionError::Cancelled) } else { Ok(()) }
    }
}

/// Ends flows from the end from which nothing that is under way is told wrong: connections from the receiver, as always, and
/// datagrams from the sender, so that those after it are not counted as lost.
fn end(session: &mut Session<'_, '_>, flows: &[Flow], both_ends: bool) -> Result<(), SessionError> {
    let datagrams = session.request.udp.is_some();
    for flow in flows {
        let from_here = (flow.way == Way::To) == datagrams;
        if from_here || both_ends {
            flow.work.stop();
        }
        if !from_here || both_ends {
            // Its answer is nothing to wait for: the flow's outcome is.
            let _ = session.control.ask(Request::Stop { flow: flow.number })?;
        }
    }
    Ok(())
}
