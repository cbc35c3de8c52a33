//! What tcptrace prints of each TCP connection of a capture: its long output, with the figures of round trips and of outstanding data
//! (`tcptrace -lrW`). docs/tcptrace.md has what each field means, and where its figures are others than tcptrace's.

mod connection;
mod direction;
mod fields;
mod outstanding;
mod sequence;
#[cfg(test)]
mod tests;
mod text;
mod times;
mod trace;

pub use connection::Connection;
pub use fields::Field;
pub use trace::TcpTrace;
