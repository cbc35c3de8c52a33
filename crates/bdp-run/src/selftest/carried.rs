//! Carries frames by this machine's clock, again if the machine disturbed them.

use bdp_lab::synthetic::{self, Carried, Offered};
use bdp_model::link::LinkConfig;
use bdp_model::record::Fidelity;

use crate::Result;

/// As many as a case gets.
const ATTEMPTS: u64 = 4;

/// Carries frames over a link until an attempt is undisturbed, up to a few times; returns the last one. `watch` gets
/// the number of each attempt that is repeated, and what disturbed it.
pub fn carry_undisturbed(
    link: &LinkConfig,
    offered: Offered,
    watch: &mut dyn FnMut(u64, &Fidelity),
) -> Result<Carried> {
    until_undisturbed(
        |attempt| Ok(synthetic::carry(link, offered, attempt)?),
        |carried| &carried.fidelity,
        watch,
    )
}

fn until_undisturbed<T>(
    mut carry: impl FnMut(u64) -> Result<T>,
    fidelity: impl Fn(&T) -> &Fidelity,
    watch: &mut dyn FnMut(u64, &Fidelity),
) -> Result<T> {
    let mut attempt = 1;
    loop {
        let carried = carry(attempt)?;
        let fidelity = fidelity(&carried);
        if fidelity.broken.is_empty() || attempt == ATTEMPTS {
            return Ok(carried);
        }
        watch(attempt, fidelity);
        attempt += 1;
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::record::breach::Breach;

    use super::*;

    /// Counts attempts if this many are disturbed: how many were made, and which were reported.
    fn attempts(disturbed: u64) -> (u64, Vec<u64>) {
        let carry = |attempt| {
            let broken = match attempt <= disturbed {
                true => vec![Breach::NoAnswer { between: None }],
                false => Vec::new(),
            };
            Ok((attempt, Fidelity { broken, ..Fidelity::default() }))
        };
        let mut told = Vec::new();
        let carried = until_undisturbed(carry, |(_, fidelity)| fidelity, &mut |attempt, fidelity| {
            assert_eq!(fidelity.broken.len(), 1);
            told.push(attempt);
        });
        (carried.expect("nothing fails").0, told)
    }

    #[test]
    fn disturbed_frames_are_carried_again_and_the_last_attempt_counts() {
        assert_eq!(attempts(0), (1, vec![]));
        assert_eq!(attempts(2), (3, vec![1, 2]));
        assert_eq!(attempts(9), (ATTEMPTS, vec![1, 2, 3]));
    }

    #[test]
    fn failure_ends_the_attempts() {
        let mut tried = 0;
        let fails = |_| {
            tried += 1;
            Err::<Fidelity, _>(crate::RunError::Request("no".to_owned()))
        };
        assert!(until_undisturbed(fails, |fidelity| fidelity, &mut |_, _| {}).is_err());
        assert_eq!(tried, 1);
    }
}
