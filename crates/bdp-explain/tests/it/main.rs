//! What is said of facts: by hand-made measurements, hosts, datagrams, the lab and watched sockets.

mod datagrams;
mod hosts;
mod lab;
mod rules;
mod watched;
mod weighed;
