//! Short transfers of a case as flows, and their totals.

use crate::case::traffic::{Pattern, Traffic, TrafficRecord, Transfer};
use crate::case::{CaseFlow, CaseSpec};
use crate::record::FlowRecord;
use crate::statistics::nearest_rank;
use crate::units::{ByteCount, Nanos};

/// Transfers need no samples. Under the virtual clock, a flow checks whether to stop as often as it samples.
const SELDOM: Nanos = Nanos::secs(1);

/// Longest time to prepare hundreds of flows before the first of them starts.
const MAKING_READY: Nanos = Nanos::secs(1);

impl CaseSpec {
    /// Returns how long after the request flows start: at once, or with transfers when all are ready.
    pub fn ready_after(&self) -> Nanos {
        let any = self.flows.iter().any(|flow| flow.transfer.is_some());
        if any { MAKING_READY } else { Nanos::ZERO }
    }

    /// Returns the case with every transfer of its traffic added as a flow.
    pub fn with_transfers(&self) -> Self {
        let mut case = self.clone();
        for (traffic, place) in self.traffic.iter().zip(0..) {
            let transfers = traffic.transfers(self.seed, place);
            case.flows.extend(transfers.into_iter().map(|transfer| flow_of(traffic, place, transfer)));
        }
        case
    }
}

/// Returns a transfer as a flow.
fn flow_of(traffic: &Traffic, place: u32, transfer: Transfer) -> CaseFlow {
    let congestion = traffic.congestion.as_deref().unwrap_or("cubic");
    let mut flow = CaseFlow::between(&traffic.from, &traffic.to, congestion);
    flow.background = true;
    flow.transfer = Some(place);
    flow.start = transfer.start;
    flow.spec.omit = Nanos::ZERO;
    flow.spec.interval = SELDOM;
    flow.spec.duration = transfer.end - transfer.start;
    flow.spec.bytes = transfer.bytes.map(ByteCount::bytes);
    flow
}

impl TrafficRecord {
    /// Summarises requests and responses.
    pub fn of_exchanges(
        traffic: &Traffic,
        mut took_ns: Vec<u64>,
        unfinished: u64,
        received_bytes: u64,
    ) -> Self {
        let mut sum = Self {
            name: traffic.name.clone(),
            transfers: took_ns.len() as u64 + unfinished,
            unfinished,
            received_bytes,
            ..Self::default()
        };
        sum.complete(&mut took_ns);
        sum
    }

    /// Adds the completion times of the transfers that completed.
    fn complete(&mut self, times: &mut [u64]) {
        times.sort_unstable();
        let rank = |p: u32| times[(nearest_rank(times.len() as u64, f64::from(p)).max(1) - 1) as usize];
        if !times.is_empty() {
            self.completion_ns = (0..=100).map(rank).collect();
            let all: u128 = times.iter().map(|&t| u128::from(t)).sum();
            self.completion_mean_ns = Some((all / times.len() as u128) as u64);
        }
    }

    /// Summarises the transfers of one entry from their results.
    pub fn of<'a>(
        traffic: &Traffic,
        transfers: impl IntoIterator<Item = (&'a CaseFlow, &'a FlowRecord)>,
    ) -> Self {
        let mut sum = Self { name: traffic.name.clone(), retransmits: Some(0), ..Self::default() };
        let mut times = Vec::new();
        for (asked, came) in transfers {
            sum.transfers += 1;
            sum.received_bytes += came.received_bytes;
            sum.retransmits = sum.retransmits.zip(came.retransmits).map(|(a, b)| a + b);
            let Some(bytes) = asked.spec.bytes else { continue };
            if came.received_bytes < bytes.as_bytes() {
                sum.unfinished += 1;
            } else {
                times.push((came.start_ns + came.duration_ns).saturating_sub(asked.start.as_ns()));
            }
        }
        sum.complete(&mut times);
        if let Pattern::Periodic { gap } = traffic.pattern {
            sum.late = Some(times.iter().filter(|&&t| t > gap.as_ns()).count() as u64 + sum.unfinished);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::traffic::Size;

    #[test]
    fn completion_is_from_the_asked_start_to_the_last_byte() {
        let gap = Nanos::millis(10);
        let traffic = Traffic {
            name: "t".to_owned(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            congestion: None,
            start: Nanos::secs(1),
            duration: Nanos::millis(30),
            pattern: Pattern::Periodic { gap },
            size: Size::Fixed { bytes: 100 },
        };
        let transfers = traffic.transfers(1, 0);
        let flows: Vec<CaseFlow> = transfers.into_iter().map(|one| flow_of(&traffic, 0, one)).collect();
        let came = |after: u64, bytes| FlowRecord {
            start_ns: 1_000_000_000 + after,
            received_bytes: bytes,
            transfer: crate::record::Transfer {
                duration_ns: 5_000_000,
                retransmits: Some(1),
                ..Default::default()
            },
            ..FlowRecord::default()
        };
        let records = [came(1_000_000, 100), came(20_000_000, 100), came(30_000_000, 99)];
        let sum = TrafficRecord::of(&traffic, flows.iter().zip(&records));
        assert_eq!((sum.transfers, sum.unfinished, sum.received_bytes), (3, 1, 299));
        assert_eq!(sum.retransmits, Some(3));
        assert_eq!([sum.completion_ns[0], sum.completion_ns[100]], [6_000_000, 15_000_000]);
        assert_eq!(sum.completion_mean_ns, Some(10_500_000));
        assert_eq!(sum.late, Some(2));
    }
}
