//! The place of a flow: as few packets, or followed.

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
    /// Which flow it is.
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

    /// Whether there are packets of it that were counted alone.
    pub const fn is_cut(&self) -> bool {
        match self {
            Self::Brief(brief) => brief.is_cut,
            Self::Followed(flow) => flow.is_counted_alone,
        }
    }

    /// What became of a flow that never came to anything; `None` of others.
    pub fn outcome(&self) -> Option<AttemptOutcome> {
        match self {
            Self::Brief(brief) => brief.outcome(),
            Self::Followed(flow) => flow.is_one_way().then_some(AttemptOutcome::Unanswered),
        }
    }

    /// Packets, bytes, and when it began and ended.
    pub fn counts(&self) -> Counts {
        match self {
            Self::Brief(brief) => brief.counts(),
            Self::Followed(flow) => flow.counts(),
        }
    }

    /// What all of it comes to; `room` is for how many segments logs have room, where there are logs.
    pub fn finish(self, room: &mut Option<u64>) -> Found {
        match self {
            Self::Brief(brief) => brief.followed(room.is_some(), room).finish(),
            Self::Followed(flow) => flow.finish(),
        }
    }
}
