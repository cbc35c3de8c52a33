//! Settings of hosts in words.

pub mod applied;
