//! Refuses requests that no server can carry out, before any is asked.

use bdp_model::measurement::{MeasureRequest, PeerProtocol};
use bdp_model::units::Nanos;
use bdp_wire::session::MOST_SAMPLES;

use super::error::{Result, SessionError};

/// Shortest trial: a shorter one is mostly start and end effects.
const SHORTEST_TRIAL: Nanos = Nanos::millis(50);

/// Refuses requests that no server can carry out.
pub fn check(request: &MeasureRequest) -> Result<()> {
    let spec = &request.spec;
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    if request.directions.is_empty() {
        return wrong("no direction was requested");
    }
    if spec.streams == 0 {
        return wrong("at least one stream is needed");
    }
    if spec.duration <= spec.omit && spec.bytes.is_none() {
        return wrong("the omit (-O) is not shorter than the duration, so nothing would be measured");
    }
    if spec.length.as_bytes() == 0 || spec.length.as_bytes() > 64 << 20 {
        return wrong("the length of a write (-l) must be 1 byte to 64 MiB");
    }
    if spec.interval < Nanos::millis(1) {
        return wrong("the interval must be at least 1 ms");
    }
    if spec.duration.as_ns() / spec.interval.as_ns() > MOST_SAMPLES {
        return Err(SessionError::Request(format!(
            "one sample per {} for {} exceeds the maximum of {MOST_SAMPLES} samples; set a longer interval",
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
        return wrong("--get-server-output is available only with iperf3 servers");
    }
    if spec.dscp.is_some_and(|dscp| dscp > 63) {
        return wrong("DSCP must be 0 to 63");
    }
    Ok(())
}

/// Refuses requests without working conditions.
fn check_responsiveness(request: &MeasureRequest) -> Result<()> {
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    if request.spec.udp.is_some() {
        return wrong("responsiveness is measured under TCP load; omit -u");
    }
    if request.spec.bytes.is_some() {
        return wrong(
            "responsiveness runs until the result is stable; give the maximum duration with -t instead of -n",
        );
    }
    if request.bidirectional {
        return wrong("responsiveness is measured one direction at a time; omit --bidir");
    }
    if request.peer.is_some() || request.url.is_some() {
        return wrong("responsiveness needs bdp at the other end; start 'bdp serve' there");
    }
    if request.spec.omit > Nanos::ZERO {
        return wrong("responsiveness uses the last seconds of the load; omit -O");
    }
    Ok(())
}

/// Refuses requests that cannot be searched.
fn check_search(request: &MeasureRequest) -> Result<()> {
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    let Some(search) = request.spec.udp.as_ref().and_then(|udp| udp.search) else { return Ok(()) };
    if request.bidirectional {
        return wrong("-b auto searches one direction at a time; omit --bidir");
    }
    if request.spec.bytes.is_some() {
        return wrong("-b auto needs a duration, not a number of bytes; give -t instead of -n");
    }
    if request.peer.is_some() {
        return wrong("-b auto needs bdp at the other end; give a rate, or start 'bdp serve' there");
    }
    if !(0.0..1.0).contains(&search.loss_ratio) {
        return wrong("the loss ratio must be at least 0 and below 1, for example 0.001");
    }
    if search.trial < SHORTEST_TRIAL {
        return Err(SessionError::Request(format!("a trial must take at least {SHORTEST_TRIAL}")));
    }
    Ok(())
}
