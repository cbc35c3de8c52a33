//! Applying, confirming and putting back over a scripted machine, which can be ended at each step.

mod cut_short;
mod guard;
mod loops;
mod machine;
mod refusals;
