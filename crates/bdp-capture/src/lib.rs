//! What the packets of a capture say of the connections that they belong to, from the trace alone: nothing here knows which stack sent them.
//!
//! [`decode`] finds the IP packet in a frame, [`Analysis`] gives it to its flow, and each flow keeps what its report needs, in memory that does
//! not grow with it. What the sender of a connection did becomes facts, as a measurement has them, so that the same rules explain both.
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
