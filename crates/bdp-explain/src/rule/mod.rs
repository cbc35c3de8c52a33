//! The rules, one in each file.

pub mod asked_rate;
pub mod at_ceiling;
pub mod black_hole;
pub mod cpu;
pub mod cross_traffic;
pub mod datagrams;
pub mod ecn_marks;
pub mod half_duplex;
pub mod host_drops;
pub mod nagle;
pub mod outage;
pub mod path_rate;
pub mod path_step;
pub mod plateau;
pub mod random_loss;
pub mod receive_window;
pub mod reordering;
pub mod reverse_path;
pub mod sack_missing;
pub mod send_buffer;
pub mod slow_reader;
pub mod slow_start;
pub mod slow_writer;
pub mod threshold;
pub mod unknown;
pub mod watched;
