//! Reports as HTML pages that are whole in themselves: style and drawings inside, nothing fetched, no script.

mod conditions;
mod curve;
mod distribution;
mod flight;
mod lab;
mod overview;
mod page;
mod repetitions;
mod series;
mod time_share;
mod timeline;
mod transfer;
mod verdict;

pub use lab::html;
pub use page::About;
