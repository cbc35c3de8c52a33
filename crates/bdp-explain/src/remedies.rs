//! Remedies beside the facts: nothing is advised that is so already.

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Finding};

/// What chooses a host's congestion control.
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// Names the sender's congestion control as what helps besides, unless it is one that goes by a model already.
pub fn check(facts: &Facts, mut finding: Finding) -> Finding {
    let by_model = facts.congestion_control.starts_with("bbr");
    if let Some(remedy) = &mut finding.remedy
        && matches!(remedy.action, Action::FindErrors | Action::DeepenQueue | Action::AddCapacity)
        && remedy.setting.is_none()
        && !by_model
    {
        remedy.setting = Some(CONGESTION_CONTROL.to_owned());
    }
    finding
}
