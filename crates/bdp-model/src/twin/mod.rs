//! The emulated twin of a measured path: what was learned, how, and the scenario that repeats it.
//!
//! `bdp-explain` derives a [`Twin`] from a measurement, `bdp-run` runs it, and `bdp-report` prints both.

mod comparison;
mod path;
mod scenario;
mod variant;
mod way;

pub use comparison::{Adjusted, Compared, DirectionFigures, Fidelity, Figure, TWIN_SCHEMA, TwinReport};
pub use path::{Learned, Parameter, Source, Twin, TwinFlow, TwinHost, Unseen};
pub use variant::{Competitor, TwinVariant};
pub use way::{Bottleneck, Discipline, TwinJitter, TwinLoss, TwinOutage, TwinPolicer, TwinReorder, TwinWay};
