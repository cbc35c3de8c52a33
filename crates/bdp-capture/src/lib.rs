//! Analyses the connections in a packet capture from the trace alone, without knowing which stack sent the packets.
//!
//! [`decode`] finds the IP packet in a frame, [`Analysis`] assigns it to its flow, and each flow keeps what its report needs, in bounded
//! memory. A sender's behaviour becomes facts, as in a measurement, so that the same rules explain both.
#![forbid(unsafe_code)]

mod attempts;
pub mod between;
mod brief;
mod datagrams;
pub mod decode;
mod filter;
mod flow;
mod flows;
mod notes;
mod rtt;
mod slot;
mod tcp;
pub mod tcptrace;
pub mod tshark;

pub use filter::{Filter, FilterError};
pub use flows::{Analysis, Found, Frame, Part, together};
pub use notes::Notes;
