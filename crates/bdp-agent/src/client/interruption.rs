//! Flows that are ended before their time, as if that were over.

use std::time::{Duration, Instant};

use bdp_flow::session::error::{Result, SessionError};
use bdp_model::measurement::Direction;
use bdp_wire::control::Request;

use super::control::Control;
use super::flow::Flow;

/// How long one end may take, in addition to some round trips, to learn from the other that the flow is over; then
/// each ends by itself.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long the conclusion may take then.
const CONCLUSION: Duration = Duration::from_secs(5);

/// How far that is.
#[derive(Debug, Default, Clone, Copy)]
pub(super) enum Interruption {
    /// Not requested.
    #[default]
    None,
    /// It was asked for.
    Asked,
    /// When one end was asked to stop.
    OneEnd(Instant),
    /// Both were, after that.
    BothEnds(Instant),
}

impl Interruption {
    /// Requests the interruption.
    pub(super) fn begin(&mut self) {
        *self = Self::Asked;
    }

    /// Interrupts the ends of flows when requested; must be called as long as they run.
    pub(super) fn poll(
        &mut self,
        control: &mut Control,
        flows: &[Flow],
        datagrams: bool,
        round_trip: Duration,
    ) -> Result<()> {
        let farewell = FAREWELL.max(3 * round_trip);
        match *self {
            Self::Asked => {
                *self = Self::OneEnd(Instant::now());
                end(control, flows, datagrams, false)
            }
            Self::OneEnd(since) if since.elapsed() > farewell => {
                *self = Self::BothEnds(since);
                end(control, flows, datagrams, true)
            }
            Self::BothEnds(since) if since.elapsed() > farewell + CONCLUSION => Err(SessionError::Cancelled),
            _ => Ok(()),
        }
    }
}

/// Ends flows at the end where no data in flight is miscounted: connections at the receiver, as always, and datagrams
/// at the sender, so that later ones are not counted as lost.
fn end(control: &mut Control, flows: &[Flow], datagrams: bool, both_ends: bool) -> Result<()> {
    for flow in flows {
        let from_here = (flow.way == Direction::To) == datagrams;
        if from_here || both_ends {
            flow.work.stop();
        }
        if !from_here || both_ends {
            // Its answer is nothing to wait for: the flow's outcome is.
            let _ = control.ask(Request::Stop { flow: flow.number })?;
        }
    }
    Ok(())
}
