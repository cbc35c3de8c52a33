//! Whether a connection is a subflow of multipath TCP (RFC 8684).

use bdp_model::capture::MultipathSubflow;

use crate::decode::{Multipath, Segment};

/// What the option was seen to say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Subflow {
    /// Of each end's SYN.
    syns: [Option<Multipath>; 2],
    /// Of what followed: an end that was refused sends the option no more.
    later: Option<Multipath>,
}

impl Subflow {
    /// A segment from this side.
    pub fn segment(&mut self, side: usize, segment: &Segment) {
        let Some(said) = segment.options.multipath else { return };
        if segment.flags.syn() {
            self.syns[side] = Some(said);
        } else if !matches!(self.later, Some(Multipath::Capable | Multipath::Join)) {
            self.later = Some(said);
        }
    }

    /// `None` where either end did not agree.
    pub fn report(&self) -> Option<MultipathSubflow> {
        let [a, b] = self.syns;
        let is_agreed = a.is_some() && b.is_some() || self.later.is_some();
        let is = |what: Multipath| [a, b, self.later].contains(&Some(what));
        is_agreed.then_some(match () {
            () if is(Multipath::Join) => MultipathSubflow::Additional,
            () if is(Multipath::Capable) => MultipathSubflow::Initial,
            () => MultipathSubflow::Unknown,
        })
    }
}
