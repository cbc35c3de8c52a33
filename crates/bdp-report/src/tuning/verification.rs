//! `bdp verify`: results of a change in words.

use bdp_model::tuning::{Outcome, Verdict, Verification, Verified};
use bdp_model::units::Nanos;

use crate::finding::{rate, time};
use crate::grid::{tame, wrap};
use crate::measurement::arrow;
use crate::number::percent;
use crate::style::{Style, Tint};

/// Returns each direction before, predicted and now, with a verdict and its current limit.
pub fn verification(of: &Verification, style: &Style) -> String {
    let run =
        of.run.as_deref().map_or_else(|| "the run before".to_owned(), |run| format!("run {}", tame(run)));
    let again = of.again.as_deref().map_or_else(|| "now".to_owned(), |run| format!("run {}", tame(run)));
    let by = of.predicted.as_deref().map_or_else(
        || "; nothing was predicted, as it was not rehearsed".to_owned(),
        |name| format!("; predicted for '{}'", tame(name)),
    );
    let mut text = wrap("verify      ", Tint::Faint, &format!("{again} beside {run}{by}"), style);
    for direction in &of.directions {
        text.push_str(&lines(direction, style));
    }
    text
}

fn lines(of: &Verified, style: &Style) -> String {
    let way = arrow(of.direction, style);
    let mut text = line(&of.goodput_bps, way, "", &rate, style);
    if let Some(delay) = &of.loaded_p50_ns {
        text.push_str(&line(
            delay,
            way,
            "round trip under load ",
            &|ns| time(Nanos(ns.max(0.0) as u64)),
            style,
        ));
    }
    let limit = match (of.limit_before, of.limit_now) {
        (Some(before), Some(now)) if before == now && is_better(&of.goodput_bps) => {
            format!("{way} {} binds still, at the rate that was planned", now.noun())
        }
        (Some(before), Some(now)) if before == now => format!("{way} still limited by {}", now.noun()),
        (Some(before), Some(now)) => format!("{way} limited by {}, before by {}", now.noun(), before.noun()),
        (_, Some(now)) => format!("{way} limited by {}", now.noun()),
        _ => return text,
    };
    text.push_str(&wrap("why         ", Tint::Faint, &limit, style));
    text
}

/// Whether the predicted gain was reached.
fn is_better(of: &Outcome) -> bool {
    matches!(of.verdict, Verdict::Held | Verdict::Exceeded) && of.now > of.before
}

fn line(of: &Outcome, way: &str, what: &str, print: &dyn Fn(f64) -> String, style: &Style) -> String {
    let (label, tint) = match of.verdict {
        Verdict::Held => ("HELD        ", Tint::Good),
        Verdict::Exceeded => ("EXCEEDED    ", Tint::Good),
        Verdict::Missed => ("MISSED      ", Tint::Bad),
        Verdict::NotPredicted => ("measured    ", Tint::None),
    };
    let predicted = of.predicted.zip(of.range).map_or_else(String::new, |(predicted, [low, high])| {
        let off = if predicted > 0.0 { of.now / predicted - 1.0 } else { 0.0 };
        let sign = if off < 0.0 { "-" } else { "+" };
        format!(
            ", predicted {} ({} to {}): {sign}{}",
            print(predicted),
            print(low),
            print(high),
            percent(off.abs())
        )
    });
    wrap(label, tint, &format!("{way} {what}{} -> {}{predicted}", print(of.before), print(of.now)), style)
}
