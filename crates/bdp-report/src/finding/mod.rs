//! Findings in words: one wording for each limit, fact, remedy and missing fact, shared by terminal, pages and JSON.

mod evidence;
mod limit;
mod lines;
mod quantity;
mod remedy;

use bdp_model::finding::{Confidence, Finding, Lack, Limit, Missing};
use bdp_model::tuning::setting::Setting;
use serde_json::{Value, json as value};

pub(crate) use limit::{claim, may_be, reason, subject, summary};
pub(crate) use lines::{lines, of_experiments};
pub(crate) use quantity::{rate, size, time};
pub(crate) use remedy::text as remedy;

/// Returns `low`, `medium` or `high`.
pub(crate) const fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

/// Returns the missing facts, a phrase each.
pub(crate) fn missing(finding: &Finding) -> Vec<String> {
    finding.missing.iter().map(|missing| missing_text(finding, missing)).collect()
}

/// Returns a finding as JSON: numbers and names, with their wording.
pub(crate) fn json(finding: &Finding) -> Value {
    let mut all = value!(finding);
    all["subject"] = subject(finding).into();
    all["summary"] = summary(finding).into();
    for (i, evidence) in finding.evidence.iter().enumerate() {
        all["evidence"][i]["text"] = evidence::text(finding, evidence).into();
    }
    if let Some(next) = &finding.next {
        all["next"]["text"] = lines::next_text(finding, next).into();
    }
    if let Some(first) = &finding.remedy {
        let (mut at, mut remedy) = (&mut all["remedy"], Some(first));
        while let Some(this) = remedy {
            at["text"] = remedy::chain(finding, this).into();
            at = &mut at["also"];
            remedy = this.also.as_deref();
        }
    }
    for (i, missing) in finding.missing.iter().enumerate() {
        all["missing"][i]["text"] = missing_text(finding, missing).into();
    }
    all
}

/// Returns all findings of a flow as JSON.
pub(crate) fn all_json(findings: &[Finding]) -> Value {
    findings.iter().map(json).collect()
}

fn missing_text(finding: &Finding, missing: &Missing) -> String {
    let host = missing.host.as_deref().unwrap_or("the sender");
    let too_few = |after: &str| {
        let n = missing.samples.unwrap_or(0);
        let (plural, are) = if n == 1 { ("", "is") } else { ("s", "are") };
        format!("a longer measurement: {n} sample{plural}{after} {are} too few")
    };
    let words = match missing.what {
        Lack::TcpInfo => "TCP_INFO of the sender",
        Lack::TcpInfoWindows => "windows and segments in flight in TCP_INFO of the sender",
        Lack::LongerMeasurement => return too_few(""),
        Lack::LongerAfterOmit => return too_few(" after what is omitted"),
        Lack::SegmentSize => return format!("the segment size of {host}"),
        Lack::IdleRoundTrip => "the idle round trip",
        Lack::LoadedRoundTrip => "the round trip under load",
        Lack::QueueDirection => "on which way a queue stands (times of the far end in probes)",
        Lack::NicSpeed if finding.limit == Limit::PathRate => {
            "the speed of the NICs, which might be that rate"
        }
        Lack::NicSpeed => "the speed of the NICs",
        Lack::WindowBound => {
            return format!(
                "what keeps the window below what {} allows: autotuning that was still growing, or a middlebox that \
                 rewrites it",
                Setting::TcpRmem.short
            );
        }
        Lack::SendBufferCount => "the kernel's count of the time limited by the send buffer (Linux 4.10)",
        Lack::SocketDrops => "what the receiving host dropped (SO_RXQ_OVFL)",
        Lack::DirectConnection => "a direct connection, without --through-ssh",
        Lack::SenderFigures => return format!("the sender's figures: 'bdp watch' on {host} shows them"),
        Lack::ProbeBeside => {
            return format!("a probe beside it, as 'bdp ping {host}' sends, which shows whose queue that is");
        }
    };
    words.to_owned()
}

#[cfg(test)]
mod tests;
