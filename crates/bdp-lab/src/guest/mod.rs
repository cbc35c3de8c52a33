//! Guests: a Linux kernel as a program of this machine (user-mode Linux, built with time travel), with this very program as
//! its first process. Its clock stands still while anything runs and moves on to the next timer when everything sleeps, so what
//! happens in it takes no time but that of its links, and happens the same way each time.
//!
//! A guest is given a [`Root`], a private folder that holds the program and an order; it leaves an answer there and switches itself off.

mod elf;
mod keep;
mod process;
mod root;

pub use keep::keep;
pub use process::{Ended, Guest, GuestSpec};
pub use root::{Root, RootMaker};

/// The order's file, from inside.
pub const ORDER: &str = "/order";
/// The answer's file, from inside.
pub const ANSWER: &str = "/answer";
/// A file that the guest touches as it goes.
pub const ALIVE: &str = "/alive";
/// The program, from inside.
const PROGRAM: &str = "/bdp";
