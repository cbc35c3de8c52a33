//! What tells cases and plans apart.

use bdp_model::scenario::CaseSpec;

/// Names a case among those of all scenarios of a run.
pub fn key(case: &CaseSpec) -> String {
    format!("{} {}", case.scenario, case.key())
}

/// Tells plans apart: FNV-1a, 64 bits, over the cases as JSON, in natural order.
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
