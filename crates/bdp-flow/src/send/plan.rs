//! What a sender is to do.

use bdp_model::application::Application;
use bdp_model::flow::FlowSpec;
use bdp_model::payload::Zerocopy;
use bdp_model::units::Nanos;

use crate::crew::Crew;

/// What a sender does with its streams.
#[derive(Debug, Clone, PartialEq)]
pub struct SendPlan {
    /// Bytes of one write.
    pub length_bytes: u64,
    /// Ends, at the latest, after this time since the start; the receiver ends a flow earlier.
    pub longest: Nanos,
    /// Ends after so many bytes in total, and closes.
    pub bytes: Option<u64>,
    /// Rate that each stream is held to, bit/s of payload: by the kernel, and a low one by when bytes are given to it, too.
    pub rate_bps: Option<u64>,
    /// Whether a low rate is kept by whole writes, for a receiver that counts by them; the lowest by these alone, since the kernel
    /// would spread each over all the time until the next.
    pub whole_writes: bool,
    /// From one sample to the next.
    pub interval: Nanos,
    /// How bytes are given to the kernel.
    pub zerocopy: Zerocopy,
    /// Whether they are those that a receiver can check, [`bdp_wire::pattern`]; such bytes are always copied.
    pub patterned: bool,
    /// What the program does, where it does not write as fast as it can.
    pub application: Application,
    /// Who sends.
    pub crew: Crew,
}

impl SendPlan {
    /// Of a flow that its receiver may end so long after its duration.
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
