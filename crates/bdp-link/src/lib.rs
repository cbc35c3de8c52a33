//! The link emulator of bdp, without I/O, in integer nanoseconds.
