//! Records at rest.
