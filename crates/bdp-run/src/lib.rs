//! Cases in order or side by side: calibration, repetition, resume.
