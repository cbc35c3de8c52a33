//! The transfer: what was requested, and where programs held it back.

use bdp_model::facts::Facts;
use bdp_model::finding::Limit;
use bdp_model::flow::payload::Zerocopy;
use bdp_model::tuning::setting::Setting;
use bdp_model::twin::TwinFlow;

use crate::setting::value_of;

/// The transfer of these facts.
pub fn of(facts: &Facts) -> TwinFlow {
    let asked = &facts.asked;
    let limit = crate::explain(facts).first().map(|finding| finding.limit);
    let streams = facts.streams();
    let each = (facts.goodput_bps / f64::from(streams)).round() as u64;
    let held = facts.paced_bps.or_else(|| facts.held_bps().map(|bps| (bps / f64::from(streams)) as u64));
    let windowed = asked.window.is_some() || asked.socket_buffer.is_some();
    TwinFlow {
        congestion: match facts.congestion_control.as_str() {
            "" => "cubic".to_owned(),
            known => known.to_owned(),
        },
        streams,
        window_bytes: windowed
            .then(|| facts.window.on_the_wire_max_bytes.or(facts.window.on_the_wire_bytes))
            .flatten(),
        mss: asked.mss,
        nodelay: asked.nodelay,
        zerocopy: match facts.sender.method.as_str() {
            "splice" => Zerocopy::Splice,
            "sendfile" => Zerocopy::Sendfile,
            "MSG_ZEROCOPY" => Zerocopy::Msg,
            _ => Zerocopy::Off,
        },
        duration_ns: asked.duration.as_ns(),
        omit_ns: asked.omit.as_ns(),
        bytes: asked.bytes.map(|bytes| bytes.as_bytes()),
        writer_bps: held.or((limit == Some(Limit::SlowWriter)).then_some(each)),
        reader_bps: (limit == Some(Limit::SlowReader)).then_some(each),
    }
}

/// Whether something on the path removed window scaling from the handshake: both kernels use it, but the connection does not.
pub fn is_scaling_stripped(facts: &Facts) -> bool {
    let setting = Setting::TcpWindowScaling;
    let on = |end: &bdp_model::facts::End| value_of(end, setting).is_some_and(|value| value != "0");
    let used = facts.sender.window_scaling.or(facts.receiver.window_scaling);
    on(&facts.sender) && on(&facts.receiver) && used == Some(false)
}
