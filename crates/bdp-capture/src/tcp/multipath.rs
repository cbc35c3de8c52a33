//! Whether a connection is a subflow of multipath TCP (RFC 8684).

use bdp_model::capture::MultipathSubflow;

use crate::decode::{Multipath, Segment};

/// Multipath options seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Subflow {
    /// Option in each end's SYN.
    syns: [Option<Multipath>; 2],
    /// Option in later segments: an end that was refused stops sending it.
    later: Option<Multipath>,
}

impl Subflow {
    /// Adds a segment of this side.
    pub fn segment(&mut self, side: usize, segment: &Segment) {
        let Some(said) = segment.options.multipath else { return };
        if segment.flags.syn() {
            self.syns[side] = Some(said);
        } else if !matches!(self.later, Some(Multipath::Capable | Multipath::Join)) {
            self.later = Some(said);
        }
    }

    /// Returns `None` if either end did not agree.
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
