//! Facts about sockets watched from one end, and experiments after a test.

use bdp_model::finding::fact::{Experiments, Sockets};

use super::super::quantity::{percent, rate, size, time};
use super::seen::Seen;
use crate::number::three_digits;

pub fn of_socket(seen: &Seen<'_>, fact: Sockets) -> String {
    let (host, share) = (seen.host(), seen.share());
    match fact {
        Sockets::UnreadData(waits) => {
            format!("{} wait unread in the socket of {host}, {share} of what it holds", size(waits.unread.0))
        }
        Sockets::ReaderKeepsUp(waits) => {
            format!("the program on {host} reads what comes: {} wait unread", size(waits.unread.0))
        }
        Sockets::RoundTripAboveLeast(above) => format!(
            "the round trip is {}, and {} at least: {} are queues, of this connection or of others",
            time(above.round_trip),
            time(above.least),
            seen.time()
        ),
        Sockets::WindowHasRoom(room) => format!(
            "the receive window of {host} has room: {} / {} = {}, {share} of it used",
            size(room.window.0),
            time(room.round_trip),
            rate(room.carries.0)
        ),
        Sockets::CameOutOfOrder(_) => {
            format!("{:.0} segments came out of order: lost or overtaken on the way", seen.value)
        }
    }
}

pub fn of_experiment(seen: &Seen<'_>, fact: Experiments) -> String {
    match fact {
        Experiments::LossesWhilePaced(paced) => format!(
            "experiment: held to {}, below the goodput, it lost segments {:.0} times; the losses of the test lead to expect {}",
            rate(paced.rate.0),
            seen.value,
            three_digits(paced.expected.0)
        ),
        Experiments::MoreStreams(more) => {
            let queue = more
                .queue
                .map_or_else(String::new, |added| format!(", and their queue adds {}", time(added)));
            format!(
                "experiment: {} connections reach {}, {} times the goodput of the test{queue}",
                more.streams,
                rate(more.goodput.0),
                three_digits(seen.value)
            )
        }
        Experiments::BurstDelay(burst) => format!(
            "experiment: a burst of {} datagrams lost {}, arrived at {}, and its queue delayed by {} ({} of the round trip)",
            burst.sent,
            burst.lost,
            rate(burst.arrived.0),
            seen.time(),
            percent(seen.value / (burst.round_trip.0 as f64).max(1.0))
        ),
    }
}
