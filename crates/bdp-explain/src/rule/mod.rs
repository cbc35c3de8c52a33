//! The rules, one a file.

pub mod asked_rate;
pub mod at_ceiling;
pub mod datagrams;
pub mod path_rate;
pub mod receive_window;
pub mod send_buffer;
pub mod slow_reader;
pub mod unknown;
