//! The catalogue of TCP and network queue settings: what each does, its scope, the kernels that read it, and its default.

mod catalogue;
mod default;
mod entry;
mod harm;
mod relation;
mod release;

pub use catalogue::{Setting, all, find};
pub use default::{Basis, DefaultValue};
pub use entry::{Bounds, EndOfLife, Kind, Row, Unit};
pub use relation::{Relation, numbers};
pub use release::Release;

#[cfg(test)]
mod tests;
