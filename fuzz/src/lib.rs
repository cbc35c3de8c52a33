//! Everything of bdp that reads what others wrote, each as a function of bytes that must not panic, and must hold the law that is
//! written beside it.
//!
//! `cargo test` tries every input that is kept and some thousand that a seeded mutator makes of them, under any compiler.
//! `bdp-fuzz run TARGET` goes on for longer, and libFuzzer (`fuzz_targets/any.rs`) sees which inputs lead to new code.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod mutator;
mod parser;
mod target;

pub use parser::Target;

/// All of them.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    [target::WIRE, target::MODEL, target::CAPTURE, target::IPERF, target::IPERF3, target::SOCKETS]
        .into_iter()
        .flatten()
}

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    targets().find(|target| target.name == name)
}
