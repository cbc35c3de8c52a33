//! Goodput compared with what is possible, and delay added by load.

use bdp_model::finding::fact::{Queues, Rates};
use bdp_model::units::{Nanos, format_bps};

use super::super::quantity::{part, rate, time};
use super::seen::Seen;

pub fn of_rate(seen: &Seen<'_>, fact: Rates) -> String {
    let (evidence, name, share, part) = (seen.evidence, seen.name(), seen.share(), part(seen.value));
    match fact {
        Rates::OfCeiling(of) => {
            format!(
                "{} is {part} of {}, what {name} leaves to TCP",
                rate(of.goodput.0),
                format_bps(of.ceiling.0)
            )
        }
        Rates::OfCeilingInDatagrams(of) => format!(
            "{} is {part} of the {} that {name} carries in datagrams of this size",
            rate(of.goodput.0),
            rate(of.ceiling.0)
        ),
        Rates::AboveCeiling(_) => {
            "that is more than the device can carry: its driver reports a wrong speed".to_owned()
        }
        Rates::OfAskedRate(of) => {
            format!("{} is {part} of the {} that {name} asks for", rate(of.goodput.0), rate(of.asked.0))
        }
        Rates::Steady(_) if evidence.at_most.is_some() => {
            format!("goodput changes: its lower quartile is {share} of the upper one")
        }
        Rates::Steady(_) if evidence.at_least.is_none() => {
            format!("the lower quartile of goodput is {share} of the upper one")
        }
        Rates::Steady(_) => format!("goodput is steady: its lower quartile is {share} of the upper one"),
    }
}

pub fn of_queue(seen: &Seen<'_>, fact: Queues) -> String {
    let added = seen.time();
    let beside = |there: Option<Nanos>| {
        there.map_or_else(String::new, |there| format!(", {} to the way there", time(there)))
    };
    match fact {
        Queues::LoadAdds(_) => format!("load adds {added} to the round trip at p95"),
        Queues::NoQueue(_) if seen.value > 0.0 => {
            format!("load adds {added} to the round trip at p95: no queue was full")
        }
        Queues::NoQueue(_) => "load adds no delay: no queue was full".to_owned(),
        Queues::QueueOneWay(_) => {
            format!("load adds {added} to the median one-way delay towards the receiver: a standing queue")
        }
        Queues::QueueRoundTrip(_) => {
            format!("load adds {added} to the median round trip: a standing queue")
        }
        Queues::QueueWayBack(queue) => {
            format!("load adds {added} to the median delay of the way back{}", beside(queue.there))
        }
        Queues::QueueWayBackP95(queue) => {
            format!(
                "load adds {added} to the 95th percentile of the delay of the way back{}",
                beside(queue.there)
            )
        }
    }
}
