//! Colours and patterns of the sender's time states: a colour for each kind of state, and a pattern for each state.

use bdp_model::facts::TimeState;
use maud::{Markup, html};

use crate::chart::number;

/// Shape drawn on a tile in the paper's colour.
enum Upon {
    Lines(&'static str),
    /// Wider lines.
    Bars(&'static str),
    Dot,
}

/// Returns the style class of a state: its kind's colour with its own pattern.
pub(crate) const fn class(state: TimeState) -> &'static str {
    match state {
        TimeState::Unanswered => "state-unanswered",
        TimeState::Handshake => "state-handshake",
        TimeState::TlsSetup => "state-tls-setup",
        TimeState::NotAsked => "state-not-asked",
        TimeState::Answering => "state-answering",
        TimeState::RoundTrips => "state-round-trips",
        TimeState::OtherWay => "state-other-way",
        TimeState::ProgramWindow => "state-program-window",
        TimeState::Nagle => "state-nagle",
        TimeState::Finished => "state-finished",
        TimeState::FullPath => "state-full-path",
        TimeState::SlowStart => "state-slow-start",
        TimeState::CongestionAvoidance => "state-congestion-avoidance",
        TimeState::Probing => "state-probing",
        TimeState::EcnReduction => "state-ecn-reduction",
        TimeState::Recovery => "state-recovery",
        TimeState::Timeout => "state-timeout",
        TimeState::ReceiveWindow => "state-receive-window",
        TimeState::SendBuffer => "state-send-buffer",
        TimeState::Pacing => "state-pacing",
        TimeState::SenderApplication => "state-sender-application",
        TimeState::ReceiverApplication => "state-receiver-application",
        TimeState::SenderProcessor => "state-sender-processor",
        TimeState::ReceiverProcessor => "state-receiver-processor",
        TimeState::NotCaptured => "state-not-captured",
        TimeState::Unknown => "state-unknown",
    }
}

/// Patterns by state with class name, tile size, rotation and shape; states not listed have a plain
/// colour.
const PATTERNS: [(TimeState, &str, f64, &str, Upon); 22] = [
    (TimeState::SlowStart, "fill-third", 6.0, "rotate(45)", Upon::Lines("M0 3H6")),
    (TimeState::CongestionAvoidance, "fill-third", 5.0, "", Upon::Dot),
    (TimeState::Probing, "fill-third", 5.0, "", Upon::Lines("M0 2.5H5")),
    (TimeState::EcnReduction, "fill-bad", 6.0, "rotate(-45)", Upon::Lines("M0 3H6")),
    (TimeState::Recovery, "fill-bad", 5.0, "", Upon::Lines("M2.5 0V5")),
    (TimeState::Timeout, "fill-bad", 7.0, "rotate(45)", Upon::Lines("M0 3.5H7M3.5 0V7")),
    (TimeState::ReceiveWindow, "fill-model", 13.0, "rotate(-45)", Upon::Bars("M0 6.5H13")),
    (TimeState::SendBuffer, "fill-model", 7.0, "", Upon::Lines("M0 3.5H7M3.5 0V7")),
    (TimeState::Pacing, "fill-model", 13.0, "", Upon::Bars("M0 6.5H13")),
    (TimeState::SenderApplication, "fill-fourth", 13.0, "rotate(45)", Upon::Bars("M0 6.5H13")),
    (TimeState::ReceiverApplication, "fill-fourth", 9.0, "", Upon::Dot),
    (TimeState::SenderProcessor, "fill-soft", 13.0, "", Upon::Bars("M6.5 0V13")),
    (TimeState::ReceiverProcessor, "fill-soft", 8.0, "", Upon::Bars("M0 2H4M4 6H8")),
    (TimeState::Unanswered, "fill-bad", 9.0, "", Upon::Dot),
    (TimeState::Handshake, "fill-rest", 6.0, "rotate(45)", Upon::Lines("M0 3H6")),
    (TimeState::TlsSetup, "fill-rest", 6.0, "", Upon::Lines("M0 3H6")),
    (TimeState::NotAsked, "fill-fourth", 5.0, "", Upon::Lines("M0 2.5H5")),
    (TimeState::Answering, "fill-fourth", 7.0, "rotate(45)", Upon::Lines("M0 3.5H7M3.5 0V7")),
    (TimeState::RoundTrips, "fill-third", 13.0, "rotate(-45)", Upon::Bars("M0 6.5H13")),
    (TimeState::OtherWay, "fill-rest", 9.0, "", Upon::Dot),
    (TimeState::ProgramWindow, "fill-model", 9.0, "", Upon::Dot),
    (TimeState::Nagle, "fill-model", 6.0, "rotate(45)", Upon::Lines("M0 3H6")),
];

/// Returns the patterns if a page needs any, once for all charts.
pub(crate) fn used(page: &str) -> Markup {
    if !PATTERNS.iter().any(|pattern| page.contains(class(pattern.0))) {
        return Markup::default();
    }
    html! {
        svg viewBox="0 0 16 16" width="0" height="0" class="patterns" aria-hidden="true" {
            @for (state, colour, side, turned, upon) in &PATTERNS {
                @let (turned, middle) = ((!turned.is_empty()).then_some(turned), number(side / 2.0));
                pattern id=(class(*state)) width=(number(*side)) height=(number(*side)) patternUnits="userSpaceOnUse"
                    patternTransform=[turned] {
                    rect class=(colour) width=(number(*side)) height=(number(*side)) {}
                    @match upon {
                        Upon::Lines(d) => { path class="upon" d=(d) {} }
                        Upon::Bars(d) => { path class="upon bars" d=(d) {} }
                        Upon::Dot => { circle class="dot" cx=(middle) cy=(middle) r=(number(side / 4.0)) {} }
                    }
                }
            }
        }
        "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_fill_of_its_own() {
        let sheet = include_str!("style.css");
        for &state in TimeState::ALL {
            assert!(sheet.contains(&format!(".{}{{fill:", class(state))), "{state}");
            let pattern = PATTERNS.iter().filter(|pattern| pattern.0 == state).count();
            let named = sheet.contains(&format!("fill:url(#{})", class(state)));
            assert_eq!((pattern, named), (usize::from(named), pattern == 1), "{state}");
        }
    }
}
