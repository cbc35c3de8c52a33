//! Round trips to an address, and the hops on the way to it.

pub mod path;
pub mod ping;
