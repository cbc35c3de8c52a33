//! The plan of a sender.

use bdp_model::flow::FlowSpec;
use bdp_model::flow::application::Application;
use bdp_model::flow::payload::Zerocopy;
use bdp_model::units::Nanos;

use crate::crew::Crew;

/// A sender's plan for its streams.
#[derive(Debug, Clone, PartialEq)]
pub struct SendPlan {
    /// Bytes per write.
    pub length_bytes: u64,
    /// Time limit since the start; the receiver ends a flow earlier.
    pub longest: Nanos,
    /// Ends after this many bytes in total, and closes.
    pub bytes: Option<u64>,
    /// Payload rate of each stream, bit/s: limited by the kernel, and a low one also by when bytes are written.
    pub rate_bps: Option<u64>,
    /// Whether a low rate is kept by whole writes, for a receiver that counts by them; the lowest rates by these
    /// alone, since the kernel would spread each write over the time until the next.
    pub whole_writes: bool,
    /// Interval of samples.
    pub interval: Nanos,
    /// How bytes are given to the kernel.
    pub zerocopy: Zerocopy,
    /// Whether to send bytes that a receiver can check, [`bdp_wire::pattern`]; they are always copied.
    pub patterned: bool,
    /// The application's behaviour, if it does not write as fast as it can.
    pub application: Application,
    /// The threads that send.
    pub crew: Crew,
}

impl SendPlan {
    /// Returns the plan of a flow that its receiver may end this long after its duration.
    pub fn of(spec: &FlowSpec, patience: Nanos, crew: Crew) -> Self {
        Self {
            length_bytes: spec.length.as_bytes(),
            longest: spec.duration + patience,
            bytes: spec.bytes.map(|b| b.as_bytes()),
            rate_bps: spec.pacing_bps,
            whole_writes: false,
            interval: spec.interval,
            zerocopy: spec.zerocopy,
            patterned: spec.check_payload,
            application: spec.application,
            crew,
        }
    }
}
