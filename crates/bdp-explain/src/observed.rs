//! Evidence shared by several rules.

use bdp_model::facts::{Facts, LossPicture, Queue, Source, TimeState};
use bdp_model::finding::fact::{self, Bps, Share};
use bdp_model::finding::threshold::{
    ABOVE_CEILING, AT_CEILING, BUSY_THREAD, NOTICEABLE_DELAY, QUEUE_NOISE, WINDOW_FREE, WORTH_A_WORD,
};
use bdp_model::finding::{Evidence, Lack, Missing, Quantity, Unit};
use bdp_model::measurement::ends::Task;

/// Round trip added by load, 95th percentile; nothing if it is negligible.
pub fn load_adds(facts: &Facts) -> Option<Evidence> {
    let added = facts.rtt_added_p95().filter(|&added| added > NOTICEABLE_DELAY)?;
    Some(Evidence::time(fact::LoadAdds, added).at_least(NOTICEABLE_DELAY.0 as f64))
}

/// Goodput compared with the ceiling.
pub fn of_ceiling(facts: &Facts) -> Option<Evidence> {
    let (share, ceiling) = (facts.of_ceiling()?, facts.ceiling.as_ref()?);
    let (goodput, most) = (Bps(facts.goodput_bps), Bps(ceiling.goodput_bps));
    let evidence = match facts.udp {
        Some(_) => Evidence::share(fact::OfCeilingInDatagrams { goodput, ceiling: most }, share),
        None => Evidence::share(fact::OfCeiling { goodput, ceiling: most }, share),
    };
    let evidence = evidence.named(&ceiling.by);
    Some(if share >= AT_CEILING { evidence.at_least(AT_CEILING) } else { evidence })
}

/// Goodput above the ceiling.
pub fn above_ceiling(facts: &Facts) -> Option<Evidence> {
    let share = facts.of_ceiling().filter(|&share| share > ABOVE_CEILING)?;
    Some(Evidence::share(fact::AboveCeiling, share).at_least(ABOVE_CEILING))
}

/// Goodput compared with the requested rate, with the setting that requests it.
pub fn of_asked_rate(facts: &Facts, asked_bps: f64, setting: &str) -> Evidence {
    Evidence::share(
        fact::OfAskedRate { goodput: Bps(facts.goodput_bps), asked: Bps(asked_bps) },
        facts.goodput_bps / asked_bps,
    )
    .named(setting)
}

/// Adds the bounds of a range, if the value is within it.
pub fn within(evidence: Evidence, range: std::ops::RangeInclusive<f64>) -> Evidence {
    match range.contains(&evidence.value) {
        true => evidence.at_least(*range.start()).at_most(*range.end()),
        false => evidence,
    }
}

/// The number of streams that share a window's evidence, if several.
pub fn several_streams(facts: &Facts) -> Option<u64> {
    Some(u64::from(facts.streams())).filter(|&streams| streams > 1)
}

/// A queue that adds at least this share of the idle round trip.
pub fn queue(facts: &Facts, queue: Queue, share: f64) -> Evidence {
    let idle = facts.rtt_idle().unwrap_or_default();
    let least = (share * idle.0 as f64).max(QUEUE_NOISE.0 as f64);
    let evidence = match queue.own_way {
        true => Evidence::time(fact::QueueOneWay { idle: Some(idle) }, queue.added),
        false => Evidence::time(fact::QueueRoundTrip { idle }, queue.added),
    };
    evidence.at_least(least)
}

/// Retransmitted segments, and the segments that carried the received data.
pub fn retransmitted(facts: &Facts) -> Option<Evidence> {
    let (again, share) = facts.retransmitted().filter(|&(again, _)| again > 0)?;
    let total = facts.mss_bytes.filter(|&mss| mss > 0).map_or(0, |mss| facts.bytes.div_ceil(mss));
    Some(Evidence::count(fact::Retransmitted { segments: total, share: Share(share) }, again))
}

/// A thread that uses all of its processor.
pub fn busy_thread((task, cpu): (Task, f64)) -> Evidence {
    let evidence = match task {
        Task::Sending => Evidence::share(fact::SendingThread, cpu),
        Task::Receiving => Evidence::share(fact::ReceivingThread, cpu),
    };
    evidence.at_least(BUSY_THREAD)
}

/// Time limited by the receive window as counted by the kernel, if significant.
pub fn kernel_counts_window(facts: &Facts) -> Option<Evidence> {
    // In a capture no kernel counts it: the inferred value is reported already.
    let share =
        facts.rwnd_limited().filter(|&share| share >= WORTH_A_WORD && facts.source != Source::Captured)?;
    Some(Evidence::share(fact::KernelCountsWindow, share).at_least(WORTH_A_WORD))
}

/// Goodput of the first stream / its highest delivery rate.
pub fn beside_peak(facts: &Facts) -> Option<Evidence> {
    let (reached, peak) = facts.of_peak().zip(facts.delivery_peak_bps())?;
    Some(Evidence::share(fact::OfPeakRate { goodput: Bps(facts.stream_bps()), peak: Bps(peak) }, reached))
}

/// Goodput of the first stream / its highest delivery rate, if it is at least this share.
pub fn of_peak(facts: &Facts, least: f64) -> Option<Evidence> {
    beside_peak(facts).filter(|evidence| evidence.value >= least).map(|evidence| evidence.at_least(least))
}

/// The NIC speed, which might be the path's rate, if a measurement does not have it.
pub fn nic_speed(facts: &Facts) -> Option<Missing> {
    (facts.ceiling.is_none() && facts.source == Source::Measured).then(|| Missing::new(Lack::NicSpeed))
}

/// Whether programs, or windows other than the congestion window, held the sender back for a good part of the time.
pub fn held_back(facts: &Facts) -> bool {
    facts.time_counted().is_some_and(|spent| {
        spent.share_of(|state| {
            matches!(
                state,
                TimeState::SenderApplication
                    | TimeState::ReceiverApplication
                    | TimeState::SendBuffer
                    | TimeState::ReceiveWindow
            )
        }) >= WINDOW_FREE
    })
}

/// Segments lost per loss event.
pub fn lost_each(picture: &LossPicture) -> Option<Evidence> {
    let each = Quantity { value: picture.lost_each, unit: Unit::Count };
    (picture.settled > 0).then(|| Evidence::new(fact::LostEach { losses: picture.settled as u64 }, each))
}
