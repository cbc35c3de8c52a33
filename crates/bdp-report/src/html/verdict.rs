//! The result in a sentence, and a bar: reached, window
//! RTT, ceiling.

use bdp_model::finding::Finding;
use bdp_model::finding::threshold::{AT_CEILING, EXCEEDED, REACHED};
use bdp_model::measurement::Ceiling;
use bdp_model::units::format_bps;
use maud::{Markup, html};

use super::page::note;
use super::sentence::{sentence, stop};
use super::transfer::Transfer;
use crate::chart::{Anchor, Axis, Drawing, MARGIN, Unit, WIDTH};
use crate::finding::{self, rate, size, time};
use crate::number::percent;

/// Text in the mark of a window's bound.
const WINDOW_MARK: &str = "window / RTT";
/// Height of a name in the largest font size.
const ROW: f64 = 22.0;

/// A verdict: headline and reason.
#[derive(Debug, PartialEq)]
pub(crate) struct Verdict {
    /// In large type.
    pub headline: String,
    /// Text below the headline, with the numbers.
    pub why: String,
}

impl Verdict {
    /// Returns a headline without a reason.
    pub fn of(headline: impl Into<String>) -> Self {
        Self { headline: headline.into(), why: String::new() }
    }

    /// Returns the verdict in large type.
    pub fn markup(&self) -> Markup {
        html! {
            p.verdict { b { (self.headline) } } "\n"
            @if !self.why.is_empty() { p.why { (self.why) } "\n" }
        }
    }

    /// Returns the verdict as a paragraph.
    pub fn paragraph(&self) -> Markup {
        html! { p { (self.headline) " " (self.why) } "\n" }
    }
}

/// Returns the verdict from a finding, after `here`.
pub(crate) fn of_finding(here: &str, finding: &Finding) -> Verdict {
    let claim = finding::claim(finding);
    let lines = finding::lines(finding);
    let unsaid = lines.iter().filter(|line| !claim.contains(line.as_str()));
    let mut why = unsaid.map(|line| sentence(line)).collect::<Vec<_>>().join(" ");
    if !why.is_empty() {
        why.push(' ');
    }
    why.push_str(&format!("Confidence: {}.", finding::confidence(finding.confidence)));
    Verdict { headline: format!("{here}: {}.", claim.trim_end_matches('.')), why }
}

/// Returns the remedy and missing facts of the binding finding, then those of the others.
pub(crate) fn further(findings: &[Finding]) -> Markup {
    html! {
        @for (i, finding) in findings.iter().enumerate() {
            @if i > 0 {
                @let summary = finding::summary(finding);
                p { "Also: " (summary) (stop(&summary)) } "\n"
            }
            @if let Some(remedy) = finding::remedy(finding) { p { "To change it: " (remedy) (stop(&remedy)) } "\n" }
            @if !finding.missing.is_empty() { (note(format!("Missing: {}.", finding::missing(finding).join("; ")))) }
        }
    }
}

/// Returns the verdict on a transfer without a finding, from the known bounds and the model's goodput with its terms.
pub(crate) fn of_transfer(transfer: &Transfer<'_>, model: Option<(f64, &str)>) -> Verdict {
    let reached = transfer.goodput_bps;
    let here = format_bps(reached);
    let ceiling = transfer.ceiling.as_ref().map(|c| c.goodput_bps);
    let window = transfer.window_bound.map(|bound| bound.bps);
    let is_full = |c: &&Ceiling| (AT_CEILING..=EXCEEDED).contains(&(reached / c.goodput_bps));
    if let Some(Ceiling { goodput_bps, by }) = transfer.ceiling.as_ref().filter(is_full) {
        return Verdict {
            headline: format!("{here}: the path's bottleneck is full."),
            why: format!(
                "{} of the {} that the path can carry ({by}). No setting of TCP can add to it.",
                percent(reached / goodput_bps),
                rate(*goodput_bps)
            ),
        };
    }
    let binds = transfer.window_bound.filter(|bound| {
        (REACHED..=EXCEEDED).contains(&(reached / bound.bps)) && ceiling.is_none_or(|c| bound.bps < c)
    });
    if let Some(bound) = binds {
        let each = if transfer.streams > 1 { ", each stream" } else { "" };
        let mut why = format!(
            "{} / {} = {}, {} of it reached{each}.",
            size(bound.bytes),
            time(bound.rtt),
            rate(bound.stream_bps),
            percent(reached / bound.bps)
        );
        if let (Some(ceiling), Some(needed)) = (ceiling, transfer.needed_bytes) {
            why.push_str(&format!(" {} needs {} on the wire.", rate(ceiling), size(needed)));
        }
        return Verdict { headline: format!("{here}: limited by the receive window."), why };
    }
    if let Some((model, by)) = model.filter(|(bps, _)| (REACHED..=EXCEEDED).contains(&(reached / bps))) {
        return Verdict {
            headline: format!("{here}: what the model gives for this path."),
            why: format!("{} of {}, by {by}.", percent(reached / model), format_bps(model)),
        };
    }
    let bounds = [window, ceiling, model.map(|(bps, _)| bps)].into_iter().flatten();
    let exceeded = bounds.filter(|&bps| bps > 0.0).any(|bps| reached > EXCEEDED * bps);
    let mut known = Vec::new();
    if let Some(window) = window {
        known.push(format!("the window allows {}", rate(window)));
    }
    if let Some(ceiling) = ceiling {
        known.push(format!("the path could carry {}", rate(ceiling)));
    }
    if let Some((model, by)) = model {
        known.push(format!("the model gives {} ({by})", format_bps(model)));
    }
    let why = if known.is_empty() {
        "Neither the window on the wire nor the rate of the path is known.".to_owned()
    } else {
        sentence(&known.join("; "))
    };
    let headline = if exceeded {
        format!("{here}: more than what is known of the path allows.")
    } else {
        format!("{here}; the limit is unknown.")
    };
    Verdict { headline, why }
}

/// Draws the bar: goodput reached as an area, bounds as vertical marks with names.
pub(crate) fn bar(transfer: &Transfer<'_>, model: Option<f64>) -> Markup {
    bars(&[transfer], model).pop().unwrap_or_default()
}

/// Draws a bar for each of several transfers, on a common scale.
pub(crate) fn bars(transfers: &[&Transfer<'_>], model: Option<f64>) -> Vec<Markup> {
    let all: Vec<_> = transfers.iter().map(|transfer| (*transfer, marks(transfer, model))).collect();
    let top = all.iter().map(|(transfer, marks)| top(transfer.goodput_bps, marks)).fold(0.0, f64::max);
    let draw_one = |(transfer, marks): (&Transfer<'_>, Vec<(f64, String)>)| {
        // A bar without anything to compare with is not drawn.
        match marks.is_empty() && transfers.len() == 1 {
            true => Markup::default(),
            false => draw(transfer.goodput_bps, &transfer.name(), marks, top),
        }
    };
    all.into_iter().map(draw_one).collect()
}

/// Returns the bounds of a transfer, smallest first.
fn marks(transfer: &Transfer<'_>, model: Option<f64>) -> Vec<(f64, String)> {
    let mut marks: Vec<(f64, String)> = Vec::new();
    if let Some(bps) = transfer.window_bound.map(|bound| bound.bps) {
        let streams = if transfer.streams > 1 { format!("{} × ", transfer.streams) } else { String::new() };
        marks.push((bps, format!("{streams}{WINDOW_MARK} {}", rate(bps))));
    }
    if let Some(bps) = transfer.ceiling.as_ref().map(|c| c.goodput_bps) {
        marks.push((bps, format!("ceiling {}", rate(bps))));
    }
    if marks.is_empty() {
        marks.extend(model.map(|bps| (bps, format!("model {}", format_bps(bps)))));
    }
    marks.extend(transfer.ordered_bps.map(|bps| (bps, format!("ordered {}", format_bps(bps)))));
    marks.retain(|m| m.0.is_finite() && m.0 > 0.0);
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    marks
}

/// Returns the end of the scale needed by a bar.
fn top(reached_bps: f64, marks: &[(f64, String)]) -> f64 {
    // A window far above the path's capacity is no bound and would compress everything else.
    let least = marks.first().map_or(reached_bps, |m| m.0.max(reached_bps));
    let far = |mark: &(f64, String)| {
        let beyond = mark.0 > 4.0 * reached_bps;
        beyond && (mark.0 > 4.0 * least || mark.1.contains(WINDOW_MARK))
    };
    let is_bound = |m: &&(f64, String)| m.1.starts_with("ceiling") || m.1.starts_with("ordered");
    let near = marks.iter().filter(|&mark| !far(mark)).map(|m| m.0).fold(reached_bps, f64::max);
    marks.iter().filter(is_bound).map(|m| m.0).fold(near, f64::max)
}

/// Draws a bar of the goodput next to marks for the bounds, on a linear scale from zero to `top`.
fn draw(reached_bps: f64, name: &str, marks: Vec<(f64, String)>, top: f64) -> Markup {
    let axis = Axis::linear([0.0, top.max(1.0) * 1.02], Unit::BitsPerSecond, 2);
    let [start, end] = [MARGIN, WIDTH - MARGIN];
    let x = |bps: f64| start + (end - start) * axis.share(bps);
    let mut drawing = Drawing::default();
    // Each name has its own row above the bar: side by side they would collide in the larger type of a narrow page.
    let mut named: Vec<&(f64, String)> = marks.iter().filter(|mark| mark.0 <= axis.high).collect();
    let is_left = |mark: &(f64, String)| x(mark.0) <= WIDTH / 2.0;
    // Names extend away from the nearer end, so that no mark crosses the name below its own.
    if !named.iter().all(|mark| is_left(mark)) {
        named.reverse();
    }
    let (bar_top, bar_height) = (6.0 + ROW * named.len().max(1) as f64, 20.0);
    let middle = bar_top + bar_height / 2.0;
    drawing.line([start, middle], [end, middle], "grid");
    drawing.rect([x(0.0), bar_top], [x(reached_bps) - x(0.0), bar_height], "fill-here");
    drawing.line([x(0.0), bar_top - 6.0], [x(0.0), bar_top + bar_height + 6.0], "axis");
    for (row, mark) in named.iter().enumerate() {
        let (at, baseline) = (x(mark.0), ROW * (row + 1) as f64 - 5.0);
        drawing.line([at, baseline + 4.0], [at, bar_top + bar_height + 6.0], "hollow-line");
        let anchor = if is_left(mark) { Anchor::Start } else { Anchor::End };
        drawing.text([at, baseline], anchor, "name", &mark.1);
    }
    let outside: Vec<&str> = marks.iter().filter(|m| m.0 > axis.high).map(|m| m.1.as_str()).collect();
    let names = marks.iter().map(|mark| mark.1.clone());
    let description: Vec<String> =
        [format!("reached {}", format_bps(reached_bps))].into_iter().chain(names).collect();
    if !outside.is_empty() {
        drawing.text(
            [end, bar_top + bar_height + 20.0],
            Anchor::End,
            "tick",
            format!("{} →", outside.join(", ")),
        );
    }
    let baseline = bar_top + bar_height + 20.0;
    drawing.text([start, baseline], Anchor::Start, "name", format!("reached {}", format_bps(reached_bps)));
    let title = format!("{name}: reached beside what is possible");
    let chart = drawing.svg(bar_top + bar_height + 28.0, &title, &description.join("; "));
    html! { div.bar { (chart) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bdp_model::Nanos;
    use bdp_model::facts::WindowBound;

    fn judge(
        goodput_bps: f64,
        window: Option<u64>,
        ceiling: Option<f64>,
        model: Option<(f64, &str)>,
    ) -> String {
        let bound = |bytes: u64| {
            let (bytes, bps) = (bytes as f64, bytes as f64 * 80.0);
            WindowBound { bytes, rtt: Nanos(100_000_000), stream_bps: bps, bps, stream_least_bps: bps }
        };
        let transfer = Transfer {
            from: "a",
            to: "b",
            goodput_bps,
            omit_ns: 0,
            streams: 1,
            mss_bytes: Some(1448),
            retransmits: None,
            is_udp: false,
            received: &[],
            sent: &[],
            probes: None,
            rtt_min_ns: Some(100_000_000),
            window_bound: window.map(bound),
            window_full: None,
            ceiling: ceiling.map(|c| Ceiling { goodput_bps: c, by: "100 Mbit/s less headers".to_owned() }),
            ordered_bps: None,
            needed_bytes: ceiling.map(|c| c / 80.0),
            carried_bytes: None,
            time_spent: None,
        };
        let verdict = of_transfer(&transfer, model);
        format!("{} {}", verdict.headline, verdict.why)
    }

    #[test]
    fn the_bound_that_was_reached_is_named() {
        // 10 segments of 1448 bytes per 100 ms: 1.158 Mbit/s.
        let text = judge(1.15e6, Some(14_480), Some(94e6), None);
        assert!(text.starts_with("1.15 Mbit/s: limited by the receive window."), "{text}");
        assert!(text.contains("14.1 KiB / 100 ms = 1.16 Mbit/s, 99 % of it reached."), "{text}");
        assert!(text.contains("94 Mbit/s needs 1.12 MiB on the wire."), "{text}");
        let text = judge(93e6, Some(6 << 20), Some(94e6), None);
        assert!(text.contains("the path's bottleneck is full. 99 % of the 94 Mbit/s"), "{text}");
        let text = judge(0.5e6, Some(6 << 20), Some(94e6), Some((0.51e6, "loss: 5 %")));
        assert!(
            text.contains("what the model gives for this path. 98 % of 510 kbit/s, by loss: 5 %"),
            "{text}"
        );
    }

    #[test]
    fn bound_that_was_exceeded_is_not_what_holds() {
        // 338 % of the rate from a loss model.
        let text = judge(14.3e6, Some(6 << 20), None, Some((4.23e6, "loss: CUBIC, RFC 9438")));
        assert!(text.starts_with("14.3 Mbit/s: more than what is known of the path allows. "), "{text}");
        assert!(!text.contains("338 %") && text.contains("the model gives 4.23 Mbit/s"), "{text}");
        let text = judge(3e6, Some(14_480), None, None);
        assert!(text.contains("more than what is known") && !text.contains("limited by"), "{text}");
        let text = judge(150e6, None, Some(94e6), None);
        assert!(text.contains("more than what is known") && !text.contains("is full"), "{text}");
    }

    #[test]
    fn ceiling_has_one_threshold() {
        assert!(judge(94.5e6, None, Some(100e6), None).contains("the path's bottleneck is full"));
        assert!(!judge(93.9e6, None, Some(100e6), None).contains("the path's bottleneck is full"));
    }

    /// Width of the goodput's area, as a share of the bar.
    fn filled(reached_bps: f64, marks: &[(f64, &str)]) -> f64 {
        let marks: Vec<_> = marks.iter().map(|&(bps, name)| (bps, name.to_owned())).collect();
        let top = top(reached_bps, &marks);
        field_of(draw(reached_bps, "here", marks, top))
    }

    fn field_of(drawn: Markup) -> f64 {
        let drawn = drawn.into_string();
        let field = drawn.split("<rect").find(|part| part.contains("fill-here")).unwrap();
        let width = field.split(" width=\"").nth(1).unwrap().split('"').next().unwrap();
        width.parse::<f64>().unwrap() / (WIDTH - 2.0 * MARGIN)
    }

    #[test]
    fn full_path_is_not_drawn_as_a_stub_beside_a_window_that_allows_more() {
        assert!(filled(92e6, &[(1.4e9, "window / RTT 1.4 Gbit/s")]) > 0.9);
        assert!(filled(92e6, &[(94e6, "ceiling 94 Mbit/s"), (1.4e9, "window / RTT 1.4 Gbit/s")]) > 0.9);
        // A ceiling far above shows the possible gain.
        let share = filled(92e6, &[(941e6, "ceiling 941 Mbit/s"), (1.4e9, "window / RTT 1.4 Gbit/s")]);
        assert!((0.05..0.2).contains(&share), "{share}");
        let share = filled(92e6, &[(120e6, "window / RTT 120 Mbit/s")]);
        assert!((0.7..0.8).contains(&share), "{share}");
    }

    #[test]
    fn bars_of_both_directions_have_one_scale() {
        let carried = |goodput_bps| Transfer { goodput_bps, ..Transfer::default() };
        let (slow, quick) = (carried(25.9e6), carried(205e6));
        let shares: Vec<f64> = bars(&[&slow, &quick], None).into_iter().map(field_of).collect();
        assert!((shares[0] / shares[1] - 25.9 / 205.0).abs() < 0.01, "{shares:?}");
        assert!(shares[1] > 0.9, "{shares:?}");
        assert!(!bar(&slow, None).into_string().contains("<rect"), "alone there is nothing to compare with");
    }

    #[test]
    fn what_was_ordered_is_a_mark_and_the_end_of_the_scale() {
        let transfer = Transfer { goodput_bps: 50e6, ordered_bps: Some(500e6), ..Transfer::default() };
        let text = bar(&transfer, None).into_string();
        assert!(text.contains("ordered 500 Mbit/s"), "{text}");
        let share = field_of(bar(&transfer, None));
        assert!((0.09..0.11).contains(&share), "{share}");
    }

    #[test]
    fn where_no_bound_was_reached_nothing_is_made_up() {
        let text = judge(10e6, Some(6 << 20), Some(94e6), None);
        assert!(text.contains("the limit is unknown. The window allows"), "{text}");
        let text = judge(10e6, None, None, None);
        assert!(
            text.ends_with("Neither the window on the wire nor the rate of the path is known."),
            "{text}"
        );
    }
}
