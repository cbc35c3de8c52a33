//! Segments of a TCP flow: how many were sent, retransmitted and lost.

use crate::measurement::DirectionResult;
use crate::record::{FlowRecord, Record, SenderSample};

/// Segment counts of a flow by the sender's kernel: all its streams, omit included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    /// Segments sent, retransmissions included: those delivered and those lost.
    pub sent: u64,
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Segments retransmitted, less those that the receiver already had (DSACK, RFC 2883); `None` if the kernel does not report these.
    pub lost: Option<u64>,
}

impl Segments {
    /// Returns the counts of a measurement's direction; `None` for UDP, and if the sender's kernel reports no retransmissions.
    pub fn of_direction(d: &DirectionResult) -> Option<Self> {
        if d.udp.is_some() {
            return None;
        }
        Self::of(d.retransmits, d.needless_retransmits, &d.sent, d.bytes, d.mss_bytes)
    }

    /// Returns the counts of a lab flow; `None` for UDP, and if the sender's kernel reports no retransmissions.
    pub fn of_flow(flow: &FlowRecord) -> Option<Self> {
        if flow.udp.is_some() {
            return None;
        }
        Self::of(flow.retransmits, flow.needless_retransmits, &flow.sent, flow.received_bytes, flow.mss_bytes)
    }

    /// If the kernel does not count delivered segments, they are computed from the bytes.
    fn of(
        retransmits: Option<u64>,
        needless: Option<u64>,
        samples: &[SenderSample],
        bytes: u64,
        mss: Option<u64>,
    ) -> Option<Self> {
        let retransmitted = retransmits?;
        let counted = samples.iter().rev().find_map(|sample| sample.delivered).filter(|&n| n > 0);
        let delivered = match counted {
            Some(delivered) => delivered,
            None => bytes.div_ceil(mss.filter(|&mss| mss > 0)?),
        };
        let lost = needless.map(|needless| retransmitted.saturating_sub(needless));
        let sent = (delivered + lost.unwrap_or(retransmitted)).max(retransmitted);
        (sent > 0).then_some(Self { sent, retransmitted, lost })
    }

    /// Returns segments retransmitted / sent.
    pub fn retransmit_ratio(self) -> f64 {
        self.retransmitted as f64 / self.sent as f64
    }

    /// Returns segments lost / sent.
    pub fn loss_ratio(self) -> Option<f64> {
        self.lost.map(|lost| lost as f64 / self.sent as f64)
    }

    /// Returns the sum over several flows; `None` if one of them is unknown.
    pub fn together(all: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let add = |sum: Option<Self>, one: Self| match sum {
            None => Some(one),
            Some(sum) => Some(Self {
                sent: sum.sent + one.sent,
                retransmitted: sum.retransmitted + one.retransmitted,
                lost: sum.lost.zip(one.lost).map(|(a, b)| a + b),
            }),
        };
        all.into_iter().collect::<Option<Vec<_>>>()?.into_iter().fold(None, add)
    }
}

impl DirectionResult {
    /// Returns datagrams or segments lost / sent; `None` if unknown, or if nothing was sent.
    pub fn loss_ratio(&self) -> Option<f64> {
        match &self.udp {
            Some(udp) => (udp.sent > 0).then_some(udp.loss_ratio),
            None => Segments::of_direction(self)?.loss_ratio(),
        }
    }
}

impl Record {
    /// Returns datagrams or segments lost / sent, all flows together; `None` if unknown for a flow, or if TCP and UDP flows are mixed.
    pub fn loss_ratio(&self) -> Option<f64> {
        let (udp, tcp): (Vec<_>, Vec<_>) = self.flows.iter().partition(|flow| flow.udp.is_some());
        match (udp.is_empty(), tcp.is_empty()) {
            (true, false) => Segments::together(tcp.into_iter().map(Segments::of_flow))?.loss_ratio(),
            (false, true) => {
                let all = || udp.iter().filter_map(|flow| flow.udp.as_ref());
                let sent: u64 = all().map(|udp| udp.sent).sum();
                (sent > 0).then(|| all().map(|udp| udp.lost).sum::<u64>() as f64 / sent as f64)
            }
            _ => None,
        }
    }
}

impl FlowRecord {
    /// Returns datagrams or segments lost / sent; `None` if unknown, or if nothing was sent.
    pub fn loss_ratio(&self) -> Option<f64> {
        match &self.udp {
            Some(udp) => (udp.sent > 0).then_some(udp.loss_ratio),
            None => Segments::of_flow(self)?.loss_ratio(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(retransmits: Option<u64>, needless: Option<u64>, delivered: Option<u64>) -> FlowRecord {
        FlowRecord {
            retransmits,
            needless_retransmits: needless,
            received_bytes: 1_448_000,
            mss_bytes: Some(1448),
            sent: vec![SenderSample { delivered, ..SenderSample::default() }],
            ..FlowRecord::default()
        }
    }

    #[test]
    fn what_was_retransmitted_in_vain_is_no_loss() {
        let segments = Segments::of_flow(&flow(Some(30), Some(10), Some(980))).unwrap();
        assert_eq!(segments, Segments { sent: 1000, retransmitted: 30, lost: Some(20) });
        assert_eq!((segments.retransmit_ratio(), segments.loss_ratio()), (0.03, Some(0.02)));
    }

    #[test]
    fn a_kernel_that_counts_less_leaves_the_ratio_and_no_loss() {
        let segments = Segments::of_flow(&flow(Some(250), None, None)).unwrap();
        assert_eq!(segments, Segments { sent: 1250, retransmitted: 250, lost: None });
        assert_eq!((segments.retransmit_ratio(), segments.loss_ratio()), (0.2, None));
        assert_eq!(Segments::of_flow(&flow(None, None, Some(980))), None);
        let unknown = FlowRecord { mss_bytes: None, ..flow(Some(1), None, None) };
        assert_eq!(Segments::of_flow(&unknown), None);
    }

    #[test]
    fn several_flows_are_known_together_or_not_at_all() {
        let one = Segments::of_flow(&flow(Some(30), Some(10), Some(980)));
        let both = Segments::together([one, one]).unwrap();
        assert_eq!((both.sent, both.lost), (2000, Some(40)));
        assert_eq!(Segments::together([one, None]), None);
        assert_eq!(Segments::together([]), None);
    }
}
