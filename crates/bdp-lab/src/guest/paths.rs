//! Where things are in a guest, as seen from inside.

/// The order's file.
pub const ORDER: &str = "/order";
/// The answer's file.
pub const ANSWER: &str = "/answer";
/// A file that the guest touches as it goes.
pub const ALIVE: &str = "/alive";
/// A file that the guest makes when it is ready for work.
pub const READY: &str = "/ready";
/// Where a program's standard output goes.
pub const OUTPUT: &str = "/output";
/// And its standard error.
pub const ERRORS: &str = "/errors";
/// The program.
pub(super) const PROGRAM: &str = "/bdp";
