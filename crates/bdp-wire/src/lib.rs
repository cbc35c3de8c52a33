//! bdp's protocols as bytes, messages and state machines, without I/O.
