//! Charts below the sequence numbers on the same time axis: bytes in flight with the windows, round trips, and goodput.

use bdp_model::capture::CapturedData;
use bdp_model::record::SenderSample;

use crate::chart::{Chart, Fit, Marks, Series, Unit, room_for};
use crate::finding::size;
use crate::html::flight::full_words;
use crate::html::timeline::MOST;
use crate::html::transfer::Transfer;
use crate::number::{RateUnit, rate as rate_words, three_digits};

type Points = Vec<(f64, Option<f64>)>;

fn readings(transfer: &Transfer<'_>, value: impl Fn(&SenderSample) -> Option<f64>) -> Points {
    transfer.sent.iter().map(|sample| (sample.at_ns as f64 / 1e9, value(sample))).collect()
}

fn most(points: &Points) -> f64 {
    points.iter().filter_map(|point| point.1).fold(0.0, f64::max)
}

/// Returns a curve; `label` is shown at the pointer.
pub(super) fn curve(class: &'static str, label: &str, meaning: impl Into<String>, points: Points) -> Series {
    Series::new(class, meaning, Marks::Steps(points)).labelled(label)
}

/// Returns bytes in flight, the receive window, and the smallest congestion window that explains them.
pub(super) fn windows(
    data: Option<&CapturedData>,
    transfer: &Transfer<'_>,
    seconds: f64,
    name: &str,
) -> Option<Chart> {
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
    let top = room_for(own, largest[1]);
    let meaning = format!("receive window, up to {}", size(largest[1]));
    let series = vec![
        curve(
            "third",
            "congestion window",
            "congestion window: the least that explains what was in flight",
            congestion,
        ),
        Series { is_cut: true, ..curve("model", "receive window", meaning, receive) },
        curve("here", "in flight", "in flight", in_flight),
    ];
    let description = format!(
        "Largest in flight {}, largest receive window {}, largest congestion window {} at the least.",
        size(largest[0]),
        size(largest[1]),
        size(largest[2])
    );
    let above = (largest[1] > top)
        .then(|| "Where no line of the receive window is seen, it is above what is drawn.".to_owned());
    let title = format!("{name}: bytes in flight and windows over time");
    let words = ["In flight, and what allows it".to_owned(), title, description];
    let chart = Chart::zooming(words, (seconds, top, Unit::Bytes), Fit::FromZero, series);
    Some(chart.noted([above, full_words(transfer)].into_iter().flatten()))
}

/// Returns the smoothed round trip, and the smallest so far.
pub(super) fn round_trips(transfer: &Transfer<'_>, seconds: f64, name: &str) -> Option<Chart> {
    let ms = |ns: Option<u64>| ns.filter(|&ns| ns > 0).map(|ns| ns as f64 / 1e6);
    let smoothed = readings(transfer, |sample| ms(sample.srtt_ns));
    let least = readings(transfer, |sample| ms(sample.min_rtt_ns));
    let largest = most(&smoothed).max(most(&least));
    if largest <= 0.0 {
        return None;
    }
    let lowest = least.iter().filter_map(|point| point.1).fold(largest, f64::min);
    let description = format!(
        "Smoothed round trips up to {} ms; the least is {} ms.",
        three_digits(most(&smoothed)),
        three_digits(lowest)
    );
    let series = vec![
        curve("model", "least", "least so far", least),
        curve("third", "smoothed", "smoothed (RFC 6298)", smoothed),
    ];
    let words = ["Round trip".to_owned(), format!("{name}: round trip over time"), description];
    Some(Chart::zooming(words, (seconds, largest, Unit::MILLISECONDS), Fit::FromZero, series))
}

/// Returns the goodput of each interval, by acknowledged bytes.
pub(super) fn rate(transfer: &Transfer<'_>, seconds: f64, name: &str) -> Option<Chart> {
    let (intervals, stride) = transfer.intervals(MOST);
    let largest = intervals.iter().map(|interval| interval[2]).fold(0.0, f64::max);
    let last = intervals.last().copied().filter(|_| largest > 0.0)?;
    let unit = RateUnit::fitting([largest]);
    let omitted = three_digits(transfer.omit_ns as f64 / 1e9);
    let omitted = format!("first {omitted} s, slow start: not in the findings' figures");
    let steps = intervals.iter().map(|&[from, _, bps]| (from, Some(bps / unit.bps)));
    let steps = steps.chain([(last[1], Some(last[2] / unit.bps))]).collect();
    let goodput = curve("here", "goodput", "goodput, by what was acknowledged", steps);
    let series = transfer.omitted(&omitted).into_iter().chain([goodput]).collect();
    let apart = (last[1] - intervals[0][0]) / intervals.len() as f64;
    let note = (stride > 1).then(|| {
        format!("Each step is the mean over about {} ms, {stride} readings.", three_digits(apart * 1e3))
    });
    let description = format!(
        "Goodput in {} intervals over {} seconds, {} in all, {} at most.",
        intervals.len(),
        three_digits(last[1]),
        rate_words(transfer.goodput_bps),
        rate_words(largest)
    );
    let words = ["Rate".to_owned(), format!("{name}: goodput over time"), description];
    let y = (seconds, largest / unit.bps, Unit::Named(unit.name, 1.0));
    Some(Chart::zooming(words, y, Fit::FromZero, series).noted(note))
}
