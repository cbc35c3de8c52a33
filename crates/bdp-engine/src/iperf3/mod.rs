//! What both ends of a test by iperf3's protocol do: talk over its control connection, and move its data.

pub(crate) mod control;
pub(crate) mod flow;
pub(crate) mod tcp;
pub(crate) mod udp;
