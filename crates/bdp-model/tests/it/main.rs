//! The model from the outside: scenario files, path models, statistics, expectations.

mod arrivals;
mod comparison;
mod curve;
mod expectation;
mod loss_models;
mod mtu_search;
mod rate_search;
mod scenario;
mod settings_page;
