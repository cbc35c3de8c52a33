//! Tables, charts and JSON from records.
