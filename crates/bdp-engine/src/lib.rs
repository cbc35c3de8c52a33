//! Workloads, probes and samples between two ends.
