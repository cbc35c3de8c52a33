//! Paths in a guest, as seen from inside.

/// File of the order.
pub const ORDER: &str = "/order";
/// File of the answer.
pub const ANSWER: &str = "/answer";
/// File that the guest touches as a sign of life.
pub const ALIVE: &str = "/alive";
/// File that the guest creates when it is ready for work.
pub const READY: &str = "/ready";
/// File of a program's standard output.
pub const OUTPUT: &str = "/output";
/// File of a program's standard error.
pub const ERRORS: &str = "/errors";
/// The program.
pub(super) const PROGRAM: &str = "/bdp";
