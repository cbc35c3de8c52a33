//! The type of a rule, and the rules for what is true in addition to the limit: marks, counters, options.

use bdp_model::facts::Facts;
use bdp_model::finding::Finding;

use crate::rule::{ecn_marks, host_drops, path_step, reverse_path, sack_missing, timestamps_missing};

/// A rule: claims the limit, or returns `None`.
pub type Rule = fn(&Facts) -> Option<Finding>;

/// The rules whose findings are reported in addition to the limit.
pub const BESIDE: [Rule; 6] = [
    path_step::judge,
    ecn_marks::judge,
    host_drops::judge,
    sack_missing::judge,
    timestamps_missing::judge,
    reverse_path::is_full_too,
];
