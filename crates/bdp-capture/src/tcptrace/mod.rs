//! Output of tcptrace for each TCP connection of a capture: its long output, with round trips and outstanding data
//! (`tcptrace -lrW`). docs/tcptrace.md explains each field and the differences from tcptrace.

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
