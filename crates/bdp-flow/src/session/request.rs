//! What no server can do, refused before any is asked.

use bdp_model::measurement::{MeasureRequest, PeerProtocol};
use bdp_model::units::Nanos;
use bdp_wire::session::MOST_SAMPLES;

use super::error::{Result, SessionError};

/// Shortest trial: a shorter one is mostly its beginning and its end.
const SHORTEST_TRIAL: Nanos = Nanos::millis(50);

/// Refuses what no server can do.
pub fn check(request: &MeasureRequest) -> Result<()> {
    let spec = &request.spec;
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    if request.directions.is_empty() {
        return wrong("no direction was asked for");
    }
    if spec.streams == 0 {
        return wrong("at least one stream is needed");
    }
    if spec.duration <= spec.omit && spec.bytes.is_none() {
        return wrong("the omit is as long as the whole duration, and nothing is left to count");
    }
    if spec.length.as_bytes() == 0 || spec.length.as_bytes() > 64 << 20 {
        return wrong("the length of a write is 1 byte to 64 MiB");
    }
    if spec.interval < Nanos::millis(1) {
        return wrong("the interval is 1 ms at least");
    }
    if spec.duration.as_ns() / spec.interval.as_ns() > MOST_SAMPLES {
        return Err(SessionError::Request(format!(
            "one sample each {} for {} are more than the {MOST_SAMPLES} that are kept; set a longer interval",
            spec.interval, spec.duration
        )));
    }
    if spec.udp.as_ref().is_some_and(|udp| udp.search.is_some()) {
        check_search(request)?;
    }
    if request.responsiveness {
        check_responsiveness(request)?;
    }
    if request.server_output && request.peer != Some(PeerProtocol::Iperf3) {
        return wrong("what the server prints is asked of servers of iperf3 alone");
    }
    if spec.dscp.is_some_and(|dscp| dscp > 63) {
        return wrong("a differentiated services code point is 0 to 63");
    }
    Ok(())
}

/// Refuses what has no working conditions.
fn check_responsiveness(request: &MeasureRequest) -> Result<()> {
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    if request.spec.udp.is_some() {
        return wrong("responsiveness is measured beside TCP connections; leave out -u");
    }
    if request.spec.bytes.is_some() {
        return wrong("responsiveness takes until it is steady; give -t as the longest time instead of -n");
    }
    if request.bidirectional {
        return wrong("responsiveness is measured in one direction after the other; leave out --bidir");
    }
    if request.peer.is_some() || request.url.is_some() {
        return wrong("responsiveness needs bdp at the other end; run 'bdp serve' there");
    }
    if request.spec.omit > Nanos::ZERO {
        return wrong("responsiveness counts the last seconds of the load; leave out -O");
    }
    Ok(())
}

/// Refuses what can't be searched.
fn check_search(request: &MeasureRequest) -> Result<()> {
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    let Some(search) = request.spec.udp.as_ref().and_then(|udp| udp.search) else { return Ok(()) };
    if request.bidirectional {
        return wrong("-b auto searches one direction after the other; leave out --bidir");
    }
    if request.spec.bytes.is_some() {
        return wrong("-b auto holds the rate that it finds for a time; give -t instead of -n");
    }
    if request.peer.is_some() {
        return wrong("-b auto needs bdp at the other end; give a rate, or run 'bdp serve' there");
    }
    if !(0.0..1.0).contains(&search.loss_ratio) {
        return wrong("a loss ratio is 0 or more and below 1, as 0.001");
    }
    if search.trial < SHORTEST_TRIAL {
        return Err(SessionError::Request(format!("a trial takes {SHORTEST_TRIAL} at least")));
    }
    Ok(())
}
