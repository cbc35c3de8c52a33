//! Tests how connections open: options, segment size, and simultaneous SYNs.

use bdp_model::units::Nanos;

use super::bench::Bench;
use super::segment::{ACK, Options, SYN, Segment};
use super::subject::{Verdict, differs};
use crate::SocketOptions;

pub(super) fn options_asked(bench: &mut Bench<'_>) -> Verdict {
    let answer = bench.open_to_it(Options::plain())?;
    let got = &answer.options;
    if got.scale.is_some() || got.sack_permitted || got.timestamps.is_some() {
        return differs(format!("it answers a SYN that has only MSS by {}", named(got)));
    }
    if got.mss.is_none() {
        return differs("it sends no MSS");
    }
    Ok(named(got))
}

pub(super) fn options_asking(bench: &mut Bench<'_>) -> Verdict {
    let syn = bench.open_from_it(SocketOptions::default(), Options::plain())?;
    let asked = named(&syn.options);
    if syn.options.mss.is_none() {
        return differs(format!("its SYN has no MSS ({asked})"));
    }
    bench.send_data(1)?;
    let data = bench.expect("data", |s| !s.payload.is_empty())?;
    if data.options.timestamps.is_some() {
        return differs("it sends timestamps that were not negotiated");
    }
    Ok(asked)
}

pub(super) fn segment_size(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(Options { mss: Some(700), ..Options::default() })?;
    bench.send_data(3_000)?;
    let longest = |all: &[(Nanos, Segment)]| all.iter().map(|(_, s)| s.payload.len()).max().unwrap_or(0);
    let all = bench.all_within(Nanos::millis(100))?;
    let with = longest(&all);
    if with > 700 || with == 0 {
        return differs(format!("segments of {with} bytes with an MSS of 700"));
    }
    Ok(format!("{with} of 700"))
}

pub(super) fn simultaneous_open(bench: &mut Bench<'_>) -> Verdict {
    bench.connect(SocketOptions::default())?;
    let syn = bench.expect("SYN", |s| s.has(SYN))?;
    let crossing = Segment { options: Options::plain(), ..bench.segment(SYN) };
    bench.say(&crossing)?;
    let answer = bench.await_within(Nanos::secs(1), |s| s.has(SYN | ACK))?;
    let Some((_, answer)) = answer else { return differs("it answers a crossing SYN by no SYN-ACK") };
    if answer.sequence != syn.sequence || answer.acknowledgement != crossing.end() {
        return differs("its SYN-ACK has another number than its SYN");
    }
    bench.next = bench.next.wrapping_add(1);
    bench.agree(&syn, &Options::plain());
    bench.acknowledge()?;
    bench.is_open()?;
    bench.send_data(1_000)?;
    bench.take(1_000, Nanos::secs(5))?;
    Ok(String::new())
}

/// Describes the options of a SYN.
fn named(options: &Options) -> String {
    let mut names = Vec::new();
    if let Some(mss) = options.mss {
        names.push(format!("MSS {mss}"));
    }
    if let Some(scale) = options.scale {
        names.push(format!("scale {scale}"));
    }
    if options.sack_permitted {
        names.push("SACK".to_owned());
    }
    if options.timestamps.is_some() {
        names.push("timestamps".to_owned());
    }
    names.join(", ")
}
