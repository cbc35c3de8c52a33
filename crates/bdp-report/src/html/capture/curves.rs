//! Charts below the sequence numbers on the same time axis: bytes in flight with the windows, round trips, and goodput.

use bdp_model::capture::CapturedData;
use bdp_model::record::SenderSample;

use super::plot::{Fit, Place, Plot, Unit, room_for};
use crate::finding::size;
use crate::html::page::Figure;
use crate::html::timeline::MOST;
use crate::html::transfer::Transfer;
use crate::number::{RateUnit, percent, rate as rate_words, three_digits};

type Points = Vec<(f64, Option<f64>)>;

fn readings(transfer: &Transfer<'_>, value: impl Fn(&SenderSample) -> Option<f64>) -> Points {
    transfer.sent.iter().map(|sample| (sample.at_ns as f64 / 1e9, value(sample))).collect()
}

fn most(points: &Points) -> f64 {
    points.iter().filter_map(|point| point.1).fold(0.0, f64::max)
}

/// Returns bytes in flight, the receive window, and the smallest congestion window that explains them.
pub(super) fn windows(
    data: Option<&CapturedData>,
    transfer: &Transfer<'_>,
    seconds: f64,
    name: &str,
) -> Option<Figure<'static>> {
    let mss = transfer.mss_bytes.filter(|&mss| mss > 0)? as f64;
    let in_flight: Points = match data.map(|data| data.trace.as_slice()) {
        Some(trace @ [_, ..]) => {
            trace.iter().map(|point| (point.at_ns as f64 / 1e9, Some(point.in_flight_bytes as f64))).collect()
        }
        _ => readings(transfer, |sample| Some(f64::from(sample.unacked?) * mss)),
    };
    let receive = readings(transfer, |sample| Some(sample.snd_wnd_bytes? as f64));
    let congestion = readings(transfer, |sample| Some(f64::from(sample.cwnd?) * mss));
    let largest = [most(&in_flight), most(&receive), most(&congestion)];
    let own = largest[0].max(largest[2]);
    if own <= 0.0 {
        return None;
    }
    let mut plot = Plot::new(seconds, room_for(own, largest[1]), Unit::Bytes, Fit::FromZero);
    plot.curve(
        congestion,
        "third",
        "congestion window",
        "congestion window: the least that explains what was in flight",
        Place::Within,
    );
    let meaning = format!("receive window, up to {}", size(largest[1]));
    plot.curve(receive, "model", "receive window", &meaning, Place::AsFarAsThereIsRoom);
    plot.curve(in_flight, "here", "in flight", "in flight", Place::Within);
    let description = format!(
        "Largest in flight {}, largest receive window {}, largest congestion window {} at the least.",
        size(largest[0]),
        size(largest[1]),
        size(largest[2])
    );
    let full = transfer.window_full.map(|share| {
        format!(
            "The receive window was full, with no room for another segment, {} of the time.",
            percent(share)
        )
    });
    let above = (largest[1] > room_for(own, largest[1]))
        .then(|| "Where no line of the receive window is seen, it is above what is drawn.".to_owned());
    let notes = [above, full].into_iter().flatten().collect();
    let title = format!("{name}: bytes in flight and windows over time");
    Some(plot.finish("In flight, and what allows it", &title, &description, notes))
}

/// Returns the smoothed round trip, and the smallest so far.
pub(super) fn round_trips(transfer: &Transfer<'_>, seconds: f64, name: &str) -> Option<Figure<'static>> {
    let ms = |ns: Option<u64>| ns.filter(|&ns| ns > 0).map(|ns| ns as f64 / 1e6);
    let smoothed = readings(transfer, |sample| ms(sample.srtt_ns));
    let least = readings(transfer, |sample| ms(sample.min_rtt_ns));
    let largest = most(&smoothed).max(most(&least));
    if largest <= 0.0 {
        return None;
    }
    let mut plot = Plot::new(seconds, largest, Unit::Named("ms"), Fit::FromZero);
    let lowest = least.iter().filter_map(|point| point.1).fold(largest, f64::min);
    let description = format!(
        "Smoothed round trips up to {} ms; the least is {} ms.",
        three_digits(most(&smoothed)),
        three_digits(lowest)
    );
    plot.curve(least, "model", "least", "least so far", Place::Within);
    plot.curve(smoothed, "third", "smoothed", "smoothed (RFC 6298)", Place::Within);
    Some(plot.finish("Round trip", &format!("{name}: round trip over time"), &description, Vec::new()))
}

/// Returns the goodput of each interval, by acknowledged bytes.
pub(super) fn rate(transfer: &Transfer<'_>, seconds: f64, name: &str) -> Option<Figure<'static>> {
    let (intervals, stride) = transfer.intervals(MOST);
    let largest = intervals.iter().map(|interval| interval[2]).fold(0.0, f64::max);
    let last = intervals.last().copied().filter(|_| largest > 0.0)?;
    let unit = RateUnit::fitting([largest]);
    let mut plot = Plot::new(seconds, largest / unit.bps, Unit::Named(unit.name), Fit::FromZero);
    let omitted = transfer.omit_ns as f64 / 1e9;
    let meaning = format!("first {} s, slow start: not in the findings' figures", three_digits(omitted));
    plot.shade([0.0, omitted], &meaning);
    let steps = intervals.iter().map(|&[from, _, bps]| (from, Some(bps / unit.bps)));
    plot.curve(
        steps.chain([(last[1], Some(last[2] / unit.bps))]),
        "here",
        "goodput",
        "goodput, by what was acknowledged",
        Place::Within,
    );
    let apart = (last[1] - intervals[0][0]) / intervals.len() as f64;
    let mut notes = Vec::new();
    if stride > 1 {
        notes.push(format!(
            "Each step is the mean over about {} ms, {stride} readings.",
            three_digits(apart * 1e3)
        ));
    }
    let description = format!(
        "Goodput in {} intervals over {} seconds, {} in all, {} at most.",
        intervals.len(),
        three_digits(last[1]),
        rate_words(transfer.goodput_bps),
        rate_words(largest)
    );
    Some(plot.finish("Rate", &format!("{name}: goodput over time"), &description, notes))
}
