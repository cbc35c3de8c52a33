//! The model from the outside: path models, statistics, expectations.

mod arrivals;
mod comparison;
mod curve;
mod expectation;
mod loss_models;
mod mtu_search;
mod queues_page;
mod rate_search;
mod settings_page;
