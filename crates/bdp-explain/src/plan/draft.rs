//! A plan under construction.

use bdp_model::measurement::ends::End;
use bdp_model::tuning::setting::Release;
use bdp_model::tuning::{
    Advice, Alternative, Change, PLAN_SCHEMA, Plan, PlanHost, PlanPath, Refused, Target, Why,
};

/// A plan under construction.
#[derive(Debug, Default)]
pub(super) struct Draft {
    changes: Vec<Change>,
    alternatives: Vec<Alternative>,
    programs: Vec<Advice>,
    refused: Vec<Refused>,
}

impl Draft {
    /// Adds a change; of two for the same setting, the larger one is kept.
    pub(super) fn change(&mut self, change: Change) {
        let same = |other: &&mut Change| other.end == change.end && other.target == change.target;
        match self.changes.iter_mut().find(same) {
            Some(there) => {
                if largest(&change.to) > largest(&there.to) {
                    *there = change;
                }
            }
            None => self.changes.push(change),
        }
    }

    /// Adds alternative changes.
    pub(super) fn alternative(&mut self, name: &str, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        match self.alternatives.iter_mut().find(|there| there.name == name) {
            Some(there) => {
                let new = changes.into_iter().filter(|change| !there.changes.contains(change));
                let new: Vec<Change> = new.collect();
                there.changes.extend(new);
            }
            None => self.alternatives.push(Alternative { name: name.to_owned(), changes }),
        }
    }

    /// Adds a call that a program can make itself.
    pub(super) fn program(&mut self, end: End, call: impl Into<String>, instead_of: Target) {
        let advice = Advice { end, call: call.into(), instead_of };
        if !self.programs.contains(&advice) {
            self.programs.push(advice);
        }
    }

    /// Adds a setting that is left alone.
    pub(super) fn refuse(
        &mut self,
        end: impl Into<Option<End>>,
        target: impl Into<Option<Target>>,
        why: Why,
    ) {
        let refused = Refused { end: end.into(), target: target.into(), why };
        if !self.refused.contains(&refused) {
            self.refused.push(refused);
        }
    }

    /// The plan.
    pub(super) fn into_plan(
        mut self,
        run: Option<&str>,
        path: PlanPath,
        near: PlanHost,
        far: Option<PlanHost>,
    ) -> Plan {
        let kernel = |end| match end {
            End::Near => Some(near.kernel.as_str()),
            End::Far => far.as_ref().map(|far| far.kernel.as_str()),
        };
        for changes in std::iter::once(&mut self.changes)
            .chain(self.alternatives.iter_mut().map(|other| &mut other.changes))
        {
            for unread in changes.extract_if(.., |change| !is_read(&change.target, kernel(change.end))) {
                self.refused.push(Refused {
                    end: Some(unread.end),
                    target: Some(unread.target),
                    why: Why::NotRead,
                });
            }
        }
        self.alternatives.retain(|other| !other.changes.is_empty());
        // A setting that is changed after all is not left alone.
        let changes = &self.changes;
        self.refused.retain(|refused| {
            !changes.iter().any(|c| Some(c.end) == refused.end && Some(&c.target) == refused.target.as_ref())
        });
        Plan {
            schema: PLAN_SCHEMA.to_owned(),
            run: run.map(str::to_owned),
            path,
            near,
            far,
            changes: self.changes,
            alternatives: self.alternatives,
            programs: self.programs,
            refused: self.refused,
        }
    }
}

/// Whether the kernel uses a setting; assumed if unknown, or not a sysctl.
fn is_read(target: &Target, kernel: Option<&str>) -> bool {
    let release = kernel.and_then(|kernel| kernel.parse::<Release>().ok());
    target.setting().zip(release).is_none_or(|(setting, release)| setting.is_read_by(release))
}

/// The largest number in a value.
fn largest(value: &str) -> u64 {
    value.split_whitespace().filter_map(|word| word.parse().ok()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bdp_model::tuning::Reason;
    use bdp_model::tuning::setting::Setting;

    #[test]
    fn what_the_kernel_does_not_read_is_not_set() {
        let planned = |kernel: &str| {
            let mut draft = Draft::default();
            // Linux 4.12 removed it.
            let target = Target::sysctl(Setting::TcpTwRecycle);
            let (from, to) = (Some("0".to_owned()), "1".to_owned());
            draft.change(Change { end: End::Near, target, from, to, reason: Reason::Off, gain: None });
            let near = PlanHost { kernel: kernel.to_owned(), ..PlanHost::default() };
            draft.into_plan(None, PlanPath::default(), near, None)
        };
        let (older, newer) = (planned("4.9.0"), planned("6.1.0"));
        assert_eq!((older.changes.len(), older.refused.len()), (1, 0));
        assert!(newer.changes.is_empty() && newer.refused[0].why == Why::NotRead, "{newer:?}");
    }
}
