//! Selects the link ends of a case to capture, and names the files.

use std::path::PathBuf;

use bdp_lab::{CaptureFiles, CapturePace, Captures, LabError};
use bdp_model::case::{CaseSpec, LinkSpec};
use serde::{Deserialize, Serialize};

use crate::case::key::{digest, key};

/// What to capture, and where to write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureOrder {
    /// The folder for the files.
    pub folder: PathBuf,
    /// Whether to capture both ends of every link in cases whose scenario asks for no capture.
    pub everywhere: bool,
}

impl CaptureOrder {
    /// Marks the ends to capture and opens their files; `None` if there is nothing to capture.
    pub(crate) fn open(
        &self,
        case: &CaseSpec,
        attempt: u32,
        links: &mut [LinkSpec],
        pace: CapturePace<'_>,
    ) -> Result<Option<Captures>, LabError> {
        mark(links, self.everywhere);
        if links.iter().all(|link| link.capture == [false; 2]) {
            return Ok(None);
        }
        let comment = format!("{}, attempt {attempt}, seed {}", key(case), case.seed);
        let files = CaptureFiles { folder: &self.folder, stem: &file_stem(case, attempt), comment: &comment };
        Captures::open(&files, links, pace).map(Some)
    }
}

/// Whether a scenario's cases ask for captures.
pub fn asks_for_captures(case: &CaseSpec) -> bool {
    case.links.iter().any(|link| link.capture != [false; 2])
}

fn mark(links: &mut [LinkSpec], everywhere: bool) {
    if everywhere && links.iter().all(|link| link.capture == [false; 2]) {
        links.iter_mut().for_each(|link| link.capture = [true; 2]);
    }
}

/// `s3-30k-0123abcd-1`: scenario, digest that tells the case from others of the plan, attempt. For a scenario given
/// by its path, the last part of the path.
fn file_stem(case: &CaseSpec, attempt: u32) -> String {
    let scenario = case.scenario.rsplit('/').next().unwrap_or_default();
    let scenario = scenario.strip_suffix(".toml").unwrap_or(scenario);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let scenario: String = scenario.chars().map(plain).take(100).collect();
    let digest = digest(std::slice::from_ref(case));
    format!("{scenario}-{}-{attempt}", &digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(text: &str) -> Vec<CaseSpec> {
        let scenario = bdp_scenario::Scenario::parse("dir/My scenario.toml", text).unwrap();
        scenario.plan(&Default::default()).unwrap()
    }

    const TWO_LINKS: &str = "title = 't'\nrepetitions = 2\n[[link]]\nbetween = ['a', 'b']\n\
        [[link]]\nbetween = ['b', 'c']\nCAPTURE\n[[flow]]\nfrom = 'a'\nto = 'b'\n";

    #[test]
    fn a_scenario_that_says_nothing_is_captured_everywhere_if_that_is_asked_for() {
        let ends = |capture: &str, everywhere| {
            let mut case = cases(&TWO_LINKS.replace("CAPTURE", capture)).remove(0);
            mark(&mut case.links, everywhere);
            case.links.iter().map(|l| l.capture).collect::<Vec<_>>()
        };
        assert_eq!(ends("", true), [[true, true], [true, true]]);
        assert_eq!(ends("", false), [[false, false], [false, false]]);
        assert_eq!(ends("capture = 'far'", true), [[false, false], [false, true]]);
        assert_eq!(ends("capture = 'far'", false), [[false, false], [false, true]]);
    }

    #[test]
    fn files_of_different_cases_and_attempts_have_different_names() {
        let cases = cases(&TWO_LINKS.replace("CAPTURE", ""));
        let names = [file_stem(&cases[0], 1), file_stem(&cases[0], 2), file_stem(&cases[1], 1)];
        assert!(names.iter().all(|n| n.starts_with("My-scenario-")), "{names:?}");
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2], "{names:?}");
        // A case has the same name whenever it runs.
        assert_eq!(names[0], file_stem(&cases[0].clone(), 1));
    }
}
