//! Small writes that wait: Nagle's algorithm holds the second of two back until the first is acknowledged (RFC 896), and the receiver delays
//! the acknowledgement of a single one (RFC 9293, section 3.8.6.3).

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bytes};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};

/// Share of the samples in which data waits in the send buffer though both windows have room for it.
const HELD: f64 = 0.2;

/// Claims the limit if less than a segment of data is held back though both windows have room for it.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let mss = facts.mss_bytes.filter(|&mss| mss > 0)?;
    if facts.paced_bps.is_some() || facts.asked.nodelay {
        return None;
    }
    let mut held = 0;
    let mut of = 0;
    let mut waiting = Vec::new();
    for sample in facts.sent_after_omit() {
        let Some(is_held) = sample.holds_small_write(mss) else { continue };
        of += 1;
        if is_held {
            held += 1;
            waiting.extend(sample.not_sent_bytes.map(|bytes| bytes as f64));
        }
    }
    let share = held as f64 / f64::from(of.max(1));
    if of < bdp_model::finding::threshold::SAMPLES_MIN as u32 || share < HELD {
        return None;
    }
    let name = &facts.sender.name;
    let waiting = bdp_model::statistics::median(&mut waiting)?;
    let finding = Finding::new(Limit::Nagle, Place::sender(name), Confidence::High)
        .evidence([Evidence::share(
            fact::SmallWriteHeld { held: Bytes(waiting), segment: Bytes(mss as f64) },
            share,
        )
        .at_least(HELD)
        .samples(held, u64::from(of))
        .on(name)])
        .remedy(Remedy::new(Action::DisableNagle).host(name));
    Some(finding)
}
