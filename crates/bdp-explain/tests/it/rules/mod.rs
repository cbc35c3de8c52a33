//! The rules on hand-made measurements: each shape of samples, and what must be said of it. A rule's first case claims, the ones beside it are near misses.

mod beside;
mod changes;
mod experiments;
mod losses;
mod meeting;
mod order;
mod path;
mod plans;
mod programs;
mod remedies;
pub mod shape;
mod unknown;
mod windows;
