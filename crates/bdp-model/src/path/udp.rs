//! The arrival of datagrams sent at a fixed rate, hop by hop in the order of the link: loss takes its
//! share before the queue; corrupted datagrams occupy the wire and are dropped by the receiver; copies occupy it too; a
//! policer and a wire pass what they have capacity for.
//!
//! No source gives this: a sender without congestion control (RFC 8085, section 3.1) does not slow down, and a full queue
//! drops what exceeds the rate at which it drains. A test of `bdp-link` compares it with the link.

/// The effect of one direction of a link on datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Hop {
    /// Share lost before the queue.
    pub loss: f64,
    /// Share corrupted, which still reaches the receiver.
    pub corrupt: f64,
    /// Share duplicated.
    pub duplicate: f64,
    /// Policer rate, datagrams per second.
    pub policer_pps: Option<f64>,
    /// Wire rate, datagrams per second.
    pub wire_pps: Option<f64>,
}

/// The bound on the arrival rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The offered rate.
    Offered,
    /// The policer of the hop with this index.
    Policer(usize),
    /// The wire of the hop with this index.
    Wire(usize),
}

/// Intact datagrams that arrive per second, without copies, and the last bound that applied. `None` if that is unknown: if
/// copies meet a bound, the state of the queue decides whether an original or its copy gets through.
pub fn arriving_pps(offered_pps: f64, hops: &[Hop]) -> Option<(f64, Bound)> {
    // All datagrams on the wire, and the intact ones without copies.
    let (mut all, mut whole) = (offered_pps, offered_pps);
    let mut bound = Bound::Offered;
    for (index, hop) in hops.iter().enumerate() {
        all *= (1.0 - hop.loss) * (1.0 + hop.duplicate);
        whole *= (1.0 - hop.loss) * (1.0 - hop.corrupt);
        let copies = hops[..=index].iter().any(|hop| hop.duplicate > 0.0);
        for (room, by) in [(hop.policer_pps, Bound::Policer(index)), (hop.wire_pps, Bound::Wire(index))] {
            let Some(room) = room.filter(|&room| room < all) else { continue };
            if copies {
                return None;
            }
            (whole, all, bound) = (whole * room / all, room, by);
        }
        // A lost original still arrives if its copy is not lost.
        if copies && hops[index + 1..].iter().any(|hop| hop.loss > 0.0 || hop.corrupt > 0.0) {
            return None;
        }
    }
    Some((whole, bound))
}

/// Intact datagrams per second that each hop alone would let arrive; infinite for hops that set no bound.
pub fn rooms_pps(hops: &[Hop]) -> impl Iterator<Item = f64> + '_ {
    hops.iter().enumerate().map(|(index, hop)| {
        let room = [hop.policer_pps, hop.wire_pps].into_iter().flatten().fold(f64::INFINITY, f64::min);
        let on_wire: f64 = hops[..=index].iter().map(|hop| 1.0 + hop.duplicate).product();
        let intact: f64 = hops.iter().map(|hop| 1.0 - hop.corrupt).product();
        let behind: f64 = hops[index + 1..].iter().map(|hop| 1.0 - hop.loss).product();
        room / on_wire * intact * behind
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(pps: f64) -> Hop {
        Hop { wire_pps: Some(pps), ..Hop::default() }
    }

    #[track_caller]
    fn arrives(offered: f64, hops: &[Hop], pps: f64, by: Bound) {
        let (got, bound) = arriving_pps(offered, hops).unwrap();
        assert!((got - pps).abs() < 1e-9 && bound == by, "{got} by {bound:?} for {pps} by {by:?}");
    }

    #[test]
    fn what_is_offered_arrives_up_to_the_room() {
        arrives(10.0, &[wire(98.0)], 10.0, Bound::Offered);
        arrives(110.0, &[wire(200.0), wire(98.0)], 98.0, Bound::Wire(1));
        arrives(1.0, &[Hop { loss: 1.0, ..Hop::default() }], 0.0, Bound::Offered);
        let policed = Hop { policer_pps: Some(50.0), ..wire(98.0) };
        arrives(110.0, &[policed], 50.0, Bound::Policer(0));
    }

    /// Before the bottleneck, loss makes room; behind it, it takes from what got through.
    #[test]
    fn it_matters_where_datagrams_are_lost() {
        let lossy = Hop { loss: 0.1, ..Hop::default() };
        arrives(200.0, &[lossy, wire(100.0)], 100.0, Bound::Wire(1));
        arrives(200.0, &[wire(100.0), lossy], 90.0, Bound::Wire(0));
        arrives(200.0, &[Hop { loss: 0.1, ..wire(100.0) }], 100.0, Bound::Wire(0));
        arrives(105.0, &[Hop { loss: 0.1, ..wire(100.0) }], 94.5, Bound::Offered);
        assert_eq!(
            rooms_pps(&[lossy, wire(100.0), lossy]).collect::<Vec<_>>(),
            [f64::INFINITY, 90.0, f64::INFINITY]
        );
    }

    #[test]
    fn the_corrupted_take_room_and_are_not_received() {
        let corrupting = Hop { corrupt: 0.1, ..wire(100.0) };
        arrives(200.0, &[corrupting], 90.0, Bound::Wire(0));
        arrives(50.0, &[corrupting], 45.0, Bound::Offered);
        arrives(200.0, &[Hop { corrupt: 0.1, ..Hop::default() }, wire(100.0)], 90.0, Bound::Wire(1));
    }

    #[test]
    fn copies_take_room_and_where_that_is_short_nothing_is_known() {
        let copying = Hop { duplicate: 0.5, ..wire(90.0) };
        arrives(60.0, &[copying], 60.0, Bound::Offered);
        assert_eq!(arriving_pps(61.0, &[copying]), None);
        assert_eq!(arriving_pps(10.0, &[copying, Hop { loss: 0.1, ..Hop::default() }]), None);
        assert_eq!(rooms_pps(&[copying]).collect::<Vec<_>>(), [60.0]);
    }
}
