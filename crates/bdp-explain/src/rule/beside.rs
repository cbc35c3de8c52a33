//! What a rule is, and those that see what is true of the connection or the path whatever else binds: marks, counters, options.

use bdp_model::facts::Facts;
use bdp_model::finding::Finding;

use crate::rule::{ecn_marks, host_drops, path_step, reverse_path, sack_missing, timestamps_missing};

/// A rule: it claims the limit, or does not.
pub type Rule = fn(&Facts) -> Option<Finding>;

/// Those whose findings stand beside the limit.
pub const BESIDE: [Rule; 6] = [
    path_step::judge,
    ecn_marks::judge,
    host_drops::judge,
    sack_missing::judge,
    timestamps_missing::judge,
    reverse_path::is_full_too,
];
