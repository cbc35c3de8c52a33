//! Windows and buffers.

use bdp_model::finding::fact::{OfFlightRate, OfWindowRate};
use bdp_model::finding::limit::Windows;
use bdp_model::finding::{Cause, Evidence, Fact, Finding};
use bdp_model::units::asked_size;

use super::super::evidence::{in_flight, of_each, reached};
use super::super::quantity::{percent, rate, size, time};
use super::words::{Words, name};

pub const fn words(limit: Windows) -> &'static Words {
    match limit {
        Windows::ReceiveWindow => &RECEIVE_WINDOW,
        Windows::SendBuffer => &SEND_BUFFER,
    }
}

const RECEIVE_WINDOW: Words = Words {
    subject: |finding| match finding.cause {
        Some(Cause::ScalingHalfStripped) => "window scaling on the path".to_owned(),
        _ => format!("receive window of {}", name(finding)),
    },
    claim: |finding| match finding.cause {
        Some(Cause::ScalingHalfStripped) => {
            let (does, does_not) = (scaling(finding, 1.0), scaling(finding, 0.0));
            format!("limited by a receive window that {does} scales and {does_not} does not")
        }
        _ => {
            let asked = finding.observed(Fact::WindowAsked).map_or_else(String::new, |asked| {
                let setting = asked.name.as_deref().unwrap_or("the request");
                format!(", which {setting} {} asks for", asked_size(asked.value as u64))
            });
            format!("limited by the receive window of {}{asked}", name(finding))
        }
    },
    figures: |finding| match finding.cause {
        Some(Cause::ScalingHalfStripped) => {
            Some("a middlebox removed the window scale option from one segment of the handshake".to_owned())
        }
        _ => {
            let seen = finding.observed(Fact::OfWindowRate)?;
            let of: OfWindowRate = seen.figures()?;
            Some(format!(
                "{} / {} RTT = {} ({})",
                of_each(of.streams, of.window),
                time(of.round_trip),
                rate(of.carries.0),
                reached(seen.value, "")
            ))
        }
    },
    reason: |_, _, to| {
        Some((
            format!("{to} accepts too little data at a time for a path this long"),
            format!("A larger receive window on {to} makes it faster."),
        ))
    },
};

/// Returns the end that uses window scaling, or the one that does not.
fn scaling(finding: &Finding, uses: f64) -> &str {
    let used = |e: &&Evidence| e.fact == Fact::ScalingUsed && e.value == uses;
    finding.evidence.iter().find(used).and_then(|e| e.host.as_deref()).unwrap_or("one end")
}

const SEND_BUFFER: Words = Words {
    subject: |finding| format!("send buffer of {}", name(finding)),
    claim: |finding| match finding.observed(Fact::BufferBelowNeed) {
        Some(buffer) => format!("limited by the send buffer of {}, {}", name(finding), size(buffer.value)),
        None => format!("limited by the send buffer of {}", name(finding)),
    },
    figures: |finding| match finding.observed(Fact::OfFlightRate) {
        Some(seen) => {
            let of: OfFlightRate = seen.figures()?;
            let carries = in_flight(of.streams, of.in_flight, of.round_trip, of.carries, " RTT");
            Some(format!("{carries} ({})", reached(seen.value, "")))
        }
        None => {
            let starved = finding.observed(Fact::Starved)?;
            Some(format!("it runs dry between writes in {} of the samples", percent(starved.value)))
        }
    },
    reason: |_, from, _| {
        Some((
            format!("{from} sends too little data at a time for a path this long"),
            format!("A larger send buffer on {from} makes it faster."),
        ))
    },
};
