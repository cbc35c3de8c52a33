//! Storage of a flow: as a few packets, or followed in full.

use bdp_model::capture::AttemptOutcome;

use crate::brief::Brief;
use crate::decode::Segment;
use crate::flow::{Counts, End, Flow, Found, Identity};

/// A flow.
#[derive(Debug)]
pub(crate) enum Slot {
    Brief(Brief),
    Followed(Box<Flow>),
}

impl Slot {
    /// Returns the identity of the flow.
    pub const fn identity(&self) -> &Identity {
        match self {
            Self::Brief(brief) => &brief.identity,
            Self::Followed(flow) => &flow.identity,
        }
    }

    /// Whether this SYN begins another connection between the same ports.
    pub fn is_another(&self, from: End, segment: &Segment) -> bool {
        match self {
            Self::Brief(brief) => brief.is_another(from, segment),
            Self::Followed(flow) => flow.is_another(from, segment),
        }
    }

    /// Whether some packets of the flow were only counted.
    pub const fn is_cut(&self) -> bool {
        match self {
            Self::Brief(brief) => brief.is_cut,
            Self::Followed(flow) => flow.is_counted_alone,
        }
    }

    /// Returns the outcome of a flow that is a mere attempt; `None` for others.
    pub fn outcome(&self) -> Option<AttemptOutcome> {
        match self {
            Self::Brief(brief) => brief.outcome(),
            Self::Followed(flow) => flow.is_one_way().then_some(AttemptOutcome::Unanswered),
        }
    }

    /// Returns packets, bytes, start and end.
    pub fn counts(&self) -> Counts {
        match self {
            Self::Brief(brief) => brief.counts(),
            Self::Followed(flow) => flow.counts(),
        }
    }

    /// Finishes the flow and returns its report; `room` is the number of segments that logs may still keep, if there are logs.
    pub fn finish(self, room: &mut Option<u64>) -> Found {
        match self {
            Self::Brief(brief) => brief.followed(room.is_some(), room).finish(),
            Self::Followed(flow) => flow.finish(),
        }
    }
}
