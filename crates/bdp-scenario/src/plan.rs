//! Plans the cases of a scenario: sweep, overrides, seeds, filter, order.

use std::sync::Arc;

use crate::decode::{Traces, decode};
use crate::error::{Problem, Result, ScenarioError};
use crate::file::{Scenario, repetitions, seed};
use crate::path::{get, set};
use crate::range::CASES_MAX;
use crate::rule::Rule;
use crate::sweep::Sweep;
use crate::tree::{Node, Origin, Table, parse_override};
use bdp_model::case::filter::{matches, normalise};
use bdp_model::case::{CaseSpec, Expect};
use bdp_model::statistics::random::SplitMix64;
use bdp_model::sweep::order::shuffle_in_blocks;
use bdp_model::units::Nanos;

/// Options for planning the cases of a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanOptions {
    /// Seed that replaces the file's.
    pub seed: Option<u64>,
    /// Selects the matching cases, as `--filter` does.
    pub filter: Option<String>,
    /// Overrides: dotted path and value as text. A swept parameter is fixed at that value.
    pub overrides: Vec<(String, String)>,
    /// Number of repetitions that replaces the file's.
    pub repetitions: Option<u32>,
    /// Parameters to sweep: dotted path and values as text. They replace the scenario's sweep of the same parameter,
    /// or add to it. Such a plan has no expectations, as those apply to the scenario's own points.
    pub vary: Vec<(String, Vec<String>)>,
    /// Whether a scenario without flows is accepted: hosts and links for the user's own programs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub links_alone: bool,
}

/// Overrides that leave the experiment unchanged; with any other the published figure is not shown.
const SAME_EXPERIMENT: [&str; 5] = ["duration", "omit", "bytes", "idle", "clock"];

/// Maximum hosts, links and flows of all cases together, as the whole plan is held in memory.
const PARTS_MAX: u64 = 1_000_000;

impl Scenario {
    /// Parses a scenario. Every case is checked, so that a plan with default options
    /// can't fail afterwards. `name` is used in records and, with `.toml`, in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        Self::parse_with(name, text, Traces::new(), &PlanOptions::default())
    }

    /// Like [`Scenario::parse`], for a scenario with traces, which [`traces_named`](crate::traces_named) finds. With the corresponding option it need not
    /// have flows.
    pub fn parse_with(name: &str, text: &str, traces: Traces, options: &PlanOptions) -> Result<Self> {
        let scenario = Self { traces, ..Self::read(name, text).map_err(|e| e.in_file(name))? };
        // The file's own stacks may need the clock given as an override.
        let clock = options.overrides.iter().filter(|(path, _)| path == "clock").cloned().collect();
        scenario.plan(&PlanOptions {
            links_alone: options.links_alone,
            overrides: clock,
            ..PlanOptions::default()
        })?;
        scenario.check_rules_apply().map_err(|e| e.in_file(name))?;
        Ok(scenario)
    }

    /// Returns the cases in natural order: points, the grid with its last parameter fastest, repetitions of each. Empty if
    /// the filter matches none. Errors name the override or the line at fault.
    pub fn plan(&self, options: &PlanOptions) -> Result<Vec<CaseSpec>> {
        self.cases(options).map_err(|e| e.in_file(&self.name))
    }

    fn cases(&self, options: &PlanOptions) -> Result<Vec<CaseSpec>> {
        let Overridden { root, sweep, seed, repetitions, as_published } = self.overridden(options)?;
        let (points, reps) = (sweep.len(), u64::from(repetitions));
        let total = points.saturating_mul(reps);
        if total > CASES_MAX {
            let line = self.root.get("sweep").or_else(|| self.root.get("point")).and_then(|n| n.origin.line);
            let problem = Problem::TooManyCases { cases: total, points, repetitions, most: CASES_MAX };
            return Err(Origin { line, by: None }.error(problem));
        }
        let mut cases = Vec::new();
        for index in 0..points {
            let (settings, published) = sweep.combination(index);
            let tree = with_settings(&root, &settings)?;
            let decoded = decode(&tree, &self.traces, !options.links_alone)
                .map_err(|e| in_case(e, &root, &settings, &self.traces))?;
            let parts = (decoded.hosts.len() + decoded.links.len() + decoded.flows.len()) as u64;
            if total.saturating_mul(parts) > PARTS_MAX {
                return Err(Origin::default().error(Problem::TooLong {
                    what: "the plan".into(),
                    found: format!("{total} cases of {parts} hosts, links and flows"),
                    most: format!("{PARTS_MAX} in all"),
                }));
            }
            let lookup = |path: &str| lookup(&settings, &tree, path);
            let expect = match options.vary.is_empty() {
                true => first(&self.rules.expect, lookup).copied().unwrap_or_default(),
                false => Expect::default(),
            };
            let listed = first(&self.rules.published, lookup).filter(|_| as_published);
            let mut case = CaseSpec {
                scenario: self.name.clone(),
                title: self.title.clone(),
                params: settings.iter().map(|(p, n)| ((*p).to_owned(), n.json())).collect(),
                set: options.overrides.iter().filter_map(changed).collect(),
                repetition: 0,
                seed: 0,
                clock: decoded.clock,
                family: decoded.family,
                hosts: decoded.hosts,
                links: decoded.links,
                flows: decoded.flows,
                traffic: decoded.traffic,
                idle: decoded.idle,
                probe: decoded.probe,
                expect,
                published_bps: published
                    .filter(|_| as_published)
                    .or_else(|| listed.and_then(|listed| listed.goodput)),
                published_rows: listed.map_or_else(Vec::new, |listed| listed.rows.clone()),
            };
            for repetition in 1..=repetitions {
                case.repetition = repetition;
                let key = case.key();
                if options.filter.as_deref().is_none_or(|f| matches(&case.params, &key, f)) {
                    case.seed = case_seed(seed, &key);
                    let mut drawn = case.clone();
                    draw_starts(&mut drawn);
                    cases.push(drawn);
                }
            }
        }
        Ok(cases)
    }

    fn overridden(&self, options: &PlanOptions) -> Result<Overridden> {
        let mut out = Overridden {
            root: self.root.clone(),
            sweep: self.sweep.clone(),
            seed: self.seed,
            repetitions: self.repetitions,
            as_published: true,
        };
        for (path, value) in &options.overrides {
            let path = normalise(path);
            // It also has a flag of its own.
            let by: Arc<str> = match path.as_str() {
                "clock" => format!("--clock {value}").into(),
                _ => format!("--set {path}={value}").into(),
            };
            let node = parse_override(value, &by);
            match path.as_str() {
                "seed" => out.seed = seed(&node)?,
                "repetitions" => out.repetitions = repetitions(&node)?,
                _ => {
                    // A swept parameter fixed at one of its values leaves that case as published.
                    let swept = self.sweep.axes.iter().find(|a| a.path == path);
                    let one_of_it = swept.is_some_and(|a| a.values.iter().any(|v| v.plain() == node.plain()));
                    out.as_published &=
                        one_of_it || path.rsplit('.').next().is_some_and(|k| SAME_EXPERIMENT.contains(&k));
                    if !out.sweep.pin(&path, &node)? {
                        set(&mut out.root, &path, node)?;
                    }
                }
            }
        }
        for (path, values) in &options.vary {
            let by: Arc<str> = format!("sweep of {path}").into();
            let path = normalise(path);
            out.as_published &= self.sweep.axes.iter().any(|a| a.path == path);
            let values = values.iter().map(|value| parse_override(value, &by)).collect();
            out.sweep.vary(path, values)?;
        }
        if let Some(given) = options.repetitions {
            let by: Arc<str> = format!("{given} repetitions requested").into();
            out.repetitions = repetitions(&parse_override(&given.to_string(), &by))?;
        }
        out.seed = options.seed.unwrap_or(out.seed);
        Ok(out)
    }

    /// Checks that each rule applies to a case: otherwise its `when` is wrong, and its expectation cannot fail.
    fn check_rules_apply(&self) -> Result<()> {
        let mut unmet_expect: Vec<&Rule<Expect>> = self.rules.expect.iter().collect();
        let mut unmet_published: Vec<_> = self.rules.published.iter().collect();
        for index in 0..self.sweep.len() {
            if unmet_expect.is_empty() && unmet_published.is_empty() {
                break;
            }
            let (settings, _) = self.sweep.combination(index);
            let tree = with_settings(&self.root, &settings)?;
            let lookup = |path: &str| lookup(&settings, &tree, path);
            unmet_expect.retain(|r| !r.applies(lookup));
            unmet_published.retain(|r| !r.applies(lookup));
        }
        match (unmet_expect.first(), unmet_published.first()) {
            (Some(rule), _) => Err(rule.never_applies()),
            (None, Some(rule)) => Err(rule.never_applies()),
            (None, None) => Ok(()),
        }
    }
}

/// Returns an override with its whole path if it changes the parameters of a case.
fn changed((path, value): &(String, String)) -> Option<(String, String)> {
    let path = normalise(path);
    let kept = !["clock", "seed", "repetitions"].contains(&path.as_str());
    kept.then(|| (path, value.clone()))
}

/// A scenario with its overrides applied.
struct Overridden {
    root: Table,
    sweep: Sweep,
    seed: u64,
    repetitions: u32,
    as_published: bool,
}

fn with_settings(root: &Table, settings: &[(&str, &Node)]) -> Result<Table> {
    let mut tree = root.clone();
    for (path, node) in settings {
        set(&mut tree, path, (*node).clone())?;
    }
    Ok(tree)
}

/// Adds the case to an error if one of the file's own values is wrong only together with a swept one.
fn in_case(
    mut error: ScenarioError,
    root: &Table,
    settings: &[(&str, &Node)],
    traces: &Traces,
) -> ScenarioError {
    if error.by.is_none() && decode(root, traces, true).is_ok() {
        let all: Vec<String> = settings.iter().map(|(path, n)| format!("{path}={}", n.plain())).collect();
        error.by = Some(format!("in the case {}", all.join(" ")).into());
    }
    error
}

/// Looks up the case's own value first: a `when` may spell a path as the sweep does.
fn lookup<'a>(settings: &[(&'a str, &'a Node)], tree: &'a Table, path: &str) -> Option<&'a Node> {
    settings.iter().find(|(p, _)| *p == path).map(|&(_, n)| n).or_else(|| get(tree, path))
}

fn first<'r, 'a, T>(rules: &'r [Rule<T>], lookup: impl Fn(&str) -> Option<&'a Node> + Copy) -> Option<&'r T> {
    rules.iter().find(|r| r.applies(lookup)).map(|r| &r.value)
}

/// Delays each flow by a random time drawn from the case's seed and the flow's index.
fn draw_starts(case: &mut CaseSpec) {
    for (place, flow) in (1u64..).zip(&mut case.flows) {
        let mut random = SplitMix64(case.seed ^ place.rotate_right(16));
        flow.start += Nanos(random.below(flow.start_spread.as_ns() as usize) as u64);
    }
}

/// Returns a case's seed: SplitMix64's output function over the scenario's seed XOR FNV-1a (64 bit) of the case's key. It
/// depends on nothing else, so a filter, an order or a further axis value does not change the seeds of other cases.
fn case_seed(seed: u64, key: &str) -> u64 {
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    SplitMix64(seed ^ hash).next()
}

/// Shuffles the cases by the seed, within a block for each repetition.
pub fn shuffle(cases: &mut [CaseSpec], seed: u64) {
    shuffle_in_blocks(cases, |case| case.repetition, seed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_the_case_s_own_and_stay() {
        assert_eq!(case_seed(1, "flow.window=64K #1"), case_seed(1, "flow.window=64K #1"));
        assert_ne!(case_seed(1, "flow.window=64K #1"), case_seed(1, "flow.window=64K #2"));
        assert_ne!(case_seed(1, "#1"), case_seed(2, "#1"));
    }

    #[test]
    fn a_start_is_drawn_for_each_repetition() {
        let text = "title = 't'\nrepetitions = 200\n[[link]]\nbetween = ['a', 'b']\n\
                    [[flow]]\nfrom = 'a'\nto = 'b'\n\
                    [[flow]]\nfrom = 'b'\nto = 'a'\nstart = '2s'\nstart_spread = '1s'";
        let starts = || -> Vec<Nanos> {
            let scenario = Scenario::parse("t.toml", text).unwrap();
            let cases = scenario.plan(&PlanOptions::default()).unwrap();
            assert!(cases.iter().all(|case| case.flows[0].start == Nanos::ZERO));
            cases.iter().map(|case| case.flows[1].start).collect()
        };
        let drawn = starts();
        assert_eq!(drawn, starts());
        assert!(drawn.iter().all(|at| (Nanos::secs(2)..Nanos::secs(3)).contains(at)));
        // 200 uniform draws: their mean is within 4 of its standard deviations.
        let mean = drawn.iter().map(|at| at.as_secs_f64()).sum::<f64>() / 200.0;
        assert!((mean - 2.5).abs() < 4.0 / (12.0f64 * 200.0).sqrt(), "{mean}");
    }
}
