//! Result of a search for the highest rate without loss, in words.

use bdp_model::flow::udp::{SearchEnd, Trial, UdpReport};
use bdp_model::measurement::Measurement;
use bdp_model::units::Nanos;

use crate::number::{loss, rate};

/// Share of the losses that counts as all of them, because a few fall between two readings.
const NEARLY_ALL: f64 = 0.9;

/// Returns the rate found and what happens above it; `None` without a search.
pub(crate) fn conclusion(m: &Measurement, udp: &UdpReport) -> Option<String> {
    let last = udp.trials.last()?;
    let held_for = Nanos(m.request.spec.duration.0.saturating_sub(m.request.spec.omit.0));
    let allowed =
        m.request.spec.udp.as_ref().and_then(|udp| udp.search).map_or(0.0, |search| search.loss_ratio);
    let measure = match allowed {
        0.0 => "without loss".to_owned(),
        allowed => format!("with {} lost at most", loss(allowed)),
    };
    let here = rate(asked(last));
    Some(match udp.search? {
        SearchEnd::Held => {
            format!("highest rate {measure}: {here}, held for {held_for}; {}", above(&udp.trials, last))
        }
        SearchEnd::NotHeld => format!(
            "no rate {measure} was held for {held_for}: {here} lost {}{}; a longer --trial-time finds what lasts",
            loss(last.loss_ratio),
            whereabouts(last)
        ),
        SearchEnd::LossAtAnyRate => {
            let highest = udp.trials.iter().max_by(|a, b| asked(a).total_cmp(&asked(b))).unwrap_or(last);
            format!(
                "loss does not depend on the rate: {} at {}, {} at {here}{}; --loss-ratio {} finds the highest rate with that \
                 little loss",
                loss(highest.loss_ratio),
                rate(asked(highest)),
                loss(last.loss_ratio),
                whereabouts(last),
                generous(last.loss_ratio),
            )
        }
        SearchEnd::CutShort => {
            match udp.trials.iter().filter(|t| t.passed).max_by(|a, b| asked(a).total_cmp(&asked(b))) {
                Some(best) => format!(
                    "the search was cut short: {} is the highest rate that had passed a trial {measure}; none was held for {held_for}",
                    rate(asked(best))
                ),
                None => format!("the search was cut short, and no rate had passed {measure}"),
            }
        }
    })
}

/// Returns every trial in order; `None` if there was none.
pub(crate) fn trials(udp: &UdpReport) -> Option<String> {
    let trials = udp.trials.iter().map(|trial| {
        let at = match trial.rate_bps {
            Some(asked) => rate(asked),
            None => format!("as fast as possible, {},", rate(trial.sent_bps)),
        };
        let held = if trial.held { " held" } else { "" };
        let verdict = match trial {
            _ if trial.passed => "passed".to_owned(),
            _ if trial.fell_short() && trial.lost == 0 => {
                format!("sent only {}", rate(trial.sent_bps))
            }
            _ => format!("lost {}", loss(trial.loss_ratio)),
        };
        format!("{at}{held} {verdict}")
    });
    let trials: Vec<String> = trials.collect();
    (!trials.is_empty()).then(|| format!("trials: {}", trials.join("; ")))
}

/// Returns the result of the next higher rate.
fn above(trials: &[Trial], found: &Trial) -> String {
    let higher = trials.iter().filter(|t| asked(t) > asked(found));
    let lossy =
        higher.clone().filter(|t| !t.passed && t.lost > 0).min_by(|a, b| asked(a).total_cmp(&asked(b)));
    match lossy {
        Some(next) => format!("{} lost {}{}", rate(asked(next)), loss(next.loss_ratio), whereabouts(next)),
        None => "no higher rate was sent: the sender or the server allows none".to_owned(),
    }
}

/// Returns where a trial's datagrams were lost, as far as known.
fn whereabouts(trial: &Trial) -> String {
    match trial.dropped_by_receiver {
        None => String::new(),
        Some(0) => ", on the path".to_owned(),
        Some(dropped) if dropped as f64 >= NEARLY_ALL * trial.lost as f64 => {
            " in the receiving host, whose socket was full: the path may carry more".to_owned()
        }
        Some(dropped) => {
            format!(", {dropped} of {} in the receiving host, whose socket was full", trial.lost)
        }
    }
}

/// Returns the requested rate of a trial, or the rate sent if it was unlimited.
fn asked(trial: &Trial) -> f64 {
    trial.rate_bps.unwrap_or(trial.sent_bps)
}

/// Returns twice a share, rounded to one digit.
fn generous(share: f64) -> String {
    let exponent = (2.0 * share.clamp(1e-9, 0.4)).log10().floor();
    let digit = 10f64.powf(exponent);
    format!("{:.*}", -exponent as usize, (2.0 * share / digit).ceil() * digit)
}
