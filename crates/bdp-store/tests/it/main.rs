//! The store as its users meet it: one suite for every kind of store, and what is special to a file.

mod conformance;
mod damage;
mod durability;
mod members;
mod older;
mod refusals;
mod samples;
