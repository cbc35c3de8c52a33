//! Sweeps: their parameters, the order of their points, and curves over them.

pub mod curve;
pub mod measured_curves;
pub mod order;
pub mod parameter;
pub mod points;
pub mod record_curves;
pub mod repeated;
pub mod run_comparison;
