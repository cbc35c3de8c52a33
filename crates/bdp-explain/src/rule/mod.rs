//! The rules, one a file.

pub mod asked_rate;
pub mod at_ceiling;
pub mod black_hole;
pub mod datagrams;
pub mod outage;
pub mod path_rate;
pub mod policer;
pub mod random_loss;
pub mod receive_window;
pub mod reordering;
pub mod reverse_path;
pub mod send_buffer;
pub mod slow_reader;
pub mod slow_start;
pub mod unknown;
