//! Windows and buffers.

use bdp_model::finding::fact::{OfFlightRate, OfWindowRate};
use bdp_model::finding::limit::Windows;
use bdp_model::finding::{Cause, Evidence, Fact, Finding};
use bdp_model::units::asked_size;

use super::super::evidence::{in_flight, of_each, reached};
use super::super::quantity::{percent, rate, size, time};
use super::words::{Words, name};

pub fn words(limit: Windows, finding: &Finding) -> Words {
    let name = name(finding);
    match limit {
        Windows::ReceiveWindow => receive_window(finding, name).because(
            "{to} accepts too little data at a time for a path this long",
            "A larger receive window on {to} makes it faster.",
        ),
        Windows::SendBuffer => {
            let buffer = finding.observed(Fact::BufferBelowNeed);
            let buffer = buffer.map_or_else(String::new, |buffer| format!(", {}", size(buffer.value)));
            let claim = format!("limited by the send buffer of {name}{buffer}");
            Words::new(format!("send buffer of {name}"), claim).figures(flight).because(
                "{from} sends too little data at a time for a path this long",
                "A larger send buffer on {from} makes it faster.",
            )
        }
    }
}

fn receive_window(finding: &Finding, name: &str) -> Words {
    if finding.cause == Some(Cause::ScalingHalfStripped) {
        let (does, does_not) = (scaling(finding, 1.0), scaling(finding, 0.0));
        let claim = format!("limited by a receive window that {does} scales and {does_not} does not");
        return Words::new("window scaling on the path", claim).figures(|_| {
            Some("a middlebox removed the window scale option from one segment of the handshake".to_owned())
        });
    }
    let asked = finding.observed(Fact::WindowAsked).map_or_else(String::new, |asked| {
        let setting = asked.name.as_deref().unwrap_or("the request");
        format!(", which {setting} {} asks for", asked_size(asked.value as u64))
    });
    let claim = format!("limited by the receive window of {name}{asked}");
    Words::new(format!("receive window of {name}"), claim).figures(window)
}

/// Returns the end that uses window scaling, or the one that does not.
fn scaling(finding: &Finding, uses: f64) -> &str {
    let used = |e: &&Evidence| e.fact == Fact::ScalingUsed && e.value == uses;
    finding.evidence.iter().find(used).and_then(|e| e.host.as_deref()).unwrap_or("one end")
}

fn window(finding: &Finding) -> Option<String> {
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

fn flight(finding: &Finding) -> Option<String> {
    let Some(seen) = finding.observed(Fact::OfFlightRate) else {
        let starved = percent(finding.observed(Fact::Starved)?.value);
        return Some(format!("it runs dry between writes in {starved} of the samples"));
    };
    let of: OfFlightRate = seen.figures()?;
    let carries = in_flight(of.streams, of.in_flight, of.round_trip, of.carries, " RTT");
    Some(format!("{carries} ({})", reached(seen.value, "")))
}
