//! Keys that identify cases and plans.

use bdp_model::case::CaseSpec;

/// Returns a key that identifies a case among all scenarios of a run. It does not mention the real clock, as before
/// there was another.
pub fn key(case: &CaseSpec) -> String {
    let key = format!("{} {}", case.scenario, case.key());
    match case.clock.is_real() || case.params.contains_key("clock") {
        true => key,
        false => format!("{key} by the {} clock", case.clock),
    }
}

/// Returns the digest of a plan: FNV-1a, 64 bits, over the cases as JSON, in natural order.
pub fn digest(cases: &[CaseSpec]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for case in cases {
        // A case is plain data, which JSON can always hold.
        for byte in serde_json::to_vec(case).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use bdp_scenario::{PlanOptions, Scenario};

    use super::*;

    fn keys(clock: &str, sweep: &str) -> Vec<String> {
        let link = "[[link]]\nbetween = [\"near\", \"far\"]\n[[flow]]\n";
        let text = format!("title = \"t\"\n{clock}\n{link}{sweep}");
        let cases = Scenario::parse("s", &text).unwrap().plan(&PlanOptions::default()).unwrap();
        cases.iter().map(key).collect()
    }

    #[test]
    fn the_virtual_clock_alone_is_in_the_key() {
        assert_eq!(keys("", ""), ["s #1"]);
        assert_eq!(keys("clock = \"real\"", ""), ["s #1"]);
        assert_eq!(keys("clock = \"virtual\"", ""), ["s #1 by the virtual clock"]);
        let swept = keys("", "[sweep]\nclock = [\"real\", \"virtual\"]\n");
        assert_eq!(swept, ["s clock=real #1", "s clock=virtual #1"]);
    }

    #[test]
    fn plans_of_the_real_clock_keep_their_digests() {
        let text = "title = \"t\"\n[[link]]\nbetween = [\"near\", \"far\"]\n[[flow]]\n";
        let plan = |options: &PlanOptions| Scenario::parse("s", text).unwrap().plan(options).unwrap();
        let real = digest(&plan(&PlanOptions::default()));
        assert_eq!(real, "60b21f1a5415d335");
        let by_virtual =
            PlanOptions { overrides: vec![("clock".into(), "virtual".into())], ..PlanOptions::default() };
        assert_ne!(digest(&plan(&by_virtual)), real);
    }
}
