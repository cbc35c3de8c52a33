//! Checks the emulator from outside, in guests: against independent arithmetic ([`exact()`]), and against the
//! kernel's netem (`beside` frame by frame, `exported` by the commands printed for links, `flows` by TCP over both);
//! and by this machine's clock, with frames as fast as it can carry them ([`carry_undisturbed()`]).

mod beside;
mod carried;
mod check;
pub mod conformance;
mod exact;
mod exported;
mod flows;
mod frames;
mod oracle;
mod queues;
mod statistics;
mod trains;

pub use beside::beside_netem;
pub use carried::carry_undisturbed;
pub use check::Check;
pub use exact::exact;
pub use exported::exported_beside_netem;
pub use flows::{Cell, Side, flows_beside_netem};
pub use queues::{QueueRow, beside_kernel_queues};
