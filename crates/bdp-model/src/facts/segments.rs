//! Segments of a TCP flow: how many were sent, retransmitted and lost.

use crate::record::{Record, Transfer};

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
    /// Returns the counts of a transfer of so many bytes, from which delivered segments are computed if the kernel does not
    /// count them; `None` for UDP, and if the sender's kernel reports no retransmissions.
    pub fn of(transfer: &Transfer, bytes: u64) -> Option<Self> {
        let retransmitted = transfer.retransmits.filter(|_| transfer.udp.is_none())?;
        let counted = transfer.sent.iter().rev().find_map(|sample| sample.delivered).filter(|&n| n > 0);
        let delivered = match counted {
            Some(delivered) => delivered,
            None => bytes.div_ceil(transfer.mss_bytes.filter(|&mss| mss > 0)?),
        };
        let lost = transfer.needless_retransmits.map(|needless| retransmitted.saturating_sub(needless));
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

impl Transfer {
    /// Returns datagrams or segments lost / sent, given the bytes read; `None` if unknown, or if nothing was sent.
    pub fn loss_ratio(&self, bytes: u64) -> Option<f64> {
        match &self.udp {
            Some(udp) => (udp.sent > 0).then_some(udp.loss_ratio),
            None => Segments::of(self, bytes)?.loss_ratio(),
        }
    }
}

impl Record {
    /// Returns datagrams or segments lost / sent, all flows together; `None` if unknown for a flow, or if TCP and UDP flows are mixed.
    pub fn loss_ratio(&self) -> Option<f64> {
        let (udp, tcp): (Vec<_>, Vec<_>) = self.flows.iter().partition(|flow| flow.udp.is_some());
        match (udp.is_empty(), tcp.is_empty()) {
            (true, false) => {
                let each = tcp.into_iter().map(|flow| Segments::of(flow, flow.received_bytes));
                Segments::together(each)?.loss_ratio()
            }
            (false, true) => {
                let all = || udp.iter().filter_map(|flow| flow.udp.as_ref());
                let sent: u64 = all().map(|udp| udp.sent).sum();
                (sent > 0).then(|| all().map(|udp| udp.lost).sum::<u64>() as f64 / sent as f64)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SenderSample;

    const BYTES: u64 = 1_448_000;

    fn flow(retransmits: Option<u64>, needless: Option<u64>, delivered: Option<u64>) -> Transfer {
        Transfer {
            retransmits,
            needless_retransmits: needless,
            mss_bytes: Some(1448),
            sent: vec![SenderSample { delivered, ..SenderSample::default() }],
            ..Transfer::default()
        }
    }

    #[test]
    fn what_was_retransmitted_in_vain_is_no_loss() {
        let segments = Segments::of(&flow(Some(30), Some(10), Some(980)), BYTES).unwrap();
        assert_eq!(segments, Segments { sent: 1000, retransmitted: 30, lost: Some(20) });
        assert_eq!((segments.retransmit_ratio(), segments.loss_ratio()), (0.03, Some(0.02)));
    }

    #[test]
    fn a_kernel_that_counts_less_leaves_the_ratio_and_no_loss() {
        let segments = Segments::of(&flow(Some(250), None, None), BYTES).unwrap();
        assert_eq!(segments, Segments { sent: 1250, retransmitted: 250, lost: None });
        assert_eq!((segments.retransmit_ratio(), segments.loss_ratio()), (0.2, None));
        assert_eq!(Segments::of(&flow(None, None, Some(980)), BYTES), None);
        let unknown = Transfer { mss_bytes: None, ..flow(Some(1), None, None) };
        assert_eq!(Segments::of(&unknown, BYTES), None);
    }

    #[test]
    fn several_flows_are_known_together_or_not_at_all() {
        let one = Segments::of(&flow(Some(30), Some(10), Some(980)), BYTES);
        let both = Segments::together([one, one]).unwrap();
        assert_eq!((both.sent, both.lost), (2000, Some(40)));
        assert_eq!(Segments::together([one, None]), None);
        assert_eq!(Segments::together([]), None);
    }
}
