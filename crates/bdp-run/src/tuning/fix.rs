//! The whole loop to one host: measure, plan, rehearse, apply, verify, keep or revert. [`FixSteps`] supplies each
//! step, question and message; the decisions are made here. `steps` has those of this machine.

mod steps;

use std::borrow::Cow;

use bdp_model::finding::limit::Consequence;
use bdp_model::measurement::ends::{Direction, End};
use bdp_model::measurement::{HostFacts, MeasureRequest, Measurement};
use bdp_model::tuning::setting::Setting;
use bdp_model::tuning::{Change, Plan, Rehearsal, Verification};
use bdp_model::units::Nanos;

use crate::measure::OneMeasured;
use crate::{Event, Journals, Question, Stage};
pub use steps::FixPlan;

/// Numbers of streams that show a path's capacity if a limit of one stream hides it: more if so many still carry what
/// each does alone.
const STREAMS: [u32; 2] = [8, 32];
/// Goodput / what as many streams would carry alone, from which on they are limited as one is.
const LIMITED_ALIKE: f64 = 0.85;
/// Duration of that measurement.
const STREAMS_FOR: Nanos = Nanos::secs(5);
/// Congestion control that random loss does not keep from the path's rate.
const BY_RATE: &str = "bbr";

/// Options of the loop.
#[derive(Debug, Clone)]
pub struct FixOptions {
    /// The request of the first measurement.
    pub request: MeasureRequest,
    /// Whether the path's rate is known, so that no measurement with more streams is needed.
    pub is_rate_known: bool,
    /// Whether to ask nothing: the rehearsal's choice is applied, and kept if it performs as predicted.
    pub asks_nothing: bool,
}

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixed {
    /// All predictions came true, or there was nothing to change.
    Done,
    /// No change is an improvement, or a prediction was missed.
    Missed,
}

/// The steps of the loop, the questions to the user, and the messages.
pub trait FixSteps {
    /// Why a step could not be taken.
    type Error: std::fmt::Display;

    /// Refuses to go on once the loop was cancelled.
    fn go_on(&self) -> Result<(), Self::Error>;

    /// Begins a stage, unless the loop was cancelled.
    fn begin(&mut self, stage: Stage, streams: Option<u32>) -> Result<(), Self::Error>;

    /// Reports an event.
    fn tell(&mut self, event: Event<'_>);

    /// Measures the path, keeps the run, and shows it.
    fn measure(&mut self, request: &MeasureRequest) -> Result<OneMeasured, Self::Error>;

    /// Measures the path's capacity, and stores the run.
    fn measure_capacity(&mut self, request: &MeasureRequest) -> Result<OneMeasured, Self::Error>;

    /// Returns the smallest change of settings for the measurement; `capacity` showed the path's capacity.
    fn plan(&mut self, measured: OneMeasured, capacity: Option<OneMeasured>) -> Result<Plan, Self::Error>;

    /// Why this machine cannot rehearse, if so.
    fn obstacle(&mut self) -> Option<String>;

    /// Rehearses the plan on the path's twin.
    fn rehearse(&mut self, plan: &Plan) -> Result<Rehearsal, Self::Error>;

    /// Whether the remote end's owner allows this end to change its settings.
    fn may_change_far(&self) -> bool;

    /// Asks the user.
    fn ask(&mut self, question: Question<'_>) -> bool;

    /// Applies changes of one end, all or none. Returns the journal, if anything was set.
    fn apply(&mut self, end: End, changes: Vec<Change>) -> Result<Option<u32>, Self::Error>;

    /// Measures again, judges and shows.
    fn verify(&mut self, rehearsal: Option<&Rehearsal>) -> Result<Verification, Self::Error>;

    /// Has a journal's changes stay.
    fn keep(&mut self, end: End, journal: u32) -> Result<(), Self::Error>;

    /// Reverts the changes of a journal; returns how many settings are as before.
    fn put_back(&mut self, end: End, journal: u32) -> Result<usize, Self::Error>;
}

/// Runs the loop once.
pub fn fix<S: FixSteps>(options: &FixOptions, steps: &mut S) -> Result<Fixed, S::Error> {
    steps.begin(Stage::Measure, None)?;
    let measured = steps.measure(&options.request)?;
    let capacity = match options.is_rate_known {
        true => None,
        false => show_capacity(&options.request, &measured.measurement, steps)?,
    };
    steps.begin(Stage::Plan, None)?;
    let plan = steps.plan(measured, capacity)?;
    steps.tell(Event::Plan { plan: Cow::Borrowed(&plan) });
    if plan.changes.is_empty() {
        return Ok(Fixed::Done);
    }
    let (changes, rehearsal) = match steps.obstacle() {
        Some(why) => {
            steps.tell(Event::NotRehearsed { why: why.into() });
            (plan.changes.clone(), None)
        }
        None => {
            steps.begin(Stage::Rehearse, None)?;
            let rehearsal = steps.rehearse(&plan)?;
            steps.tell(Event::Rehearsed { rehearsal: Cow::Borrowed(&rehearsal) });
            steps.go_on()?;
            let Some(chosen) = rehearsal.chosen() else { return Ok(Fixed::Missed) };
            (chosen.changes.clone(), Some(rehearsal))
        }
    };
    let changes = if steps.may_change_far() { changes } else { near_changes(changes, steps) };
    let is_wanted = |change: &Change| {
        options.asks_nothing || steps.ask(Question::Apply { change: Cow::Borrowed(change) })
    };
    let chosen: Vec<Change> = changes.into_iter().filter(is_wanted).collect();
    steps.go_on()?;
    if chosen.is_empty() {
        steps.tell(Event::NothingApplied);
        return Ok(Fixed::Done);
    }
    steps.begin(Stage::Apply, None)?;
    let journals = apply(chosen, steps)?;
    steps.tell(Event::Applied { journals });
    // If it is unknown what the changes do, they do not stay.
    let verification = verify(rehearsal.as_ref(), steps).map_err(|error| back_out(journals, error, steps))?;
    let missed = verification.missed();
    let is_kept = match (journals.is_empty(), options.asks_nothing) {
        (true, _) => return Ok(ended(missed)),
        (false, true) => !missed,
        (false, false) => steps.ask(Question::Keep),
    };
    if !is_kept {
        put_back(journals, steps)?;
        return Ok(ended(missed));
    }
    // The far end first: this end's changes can still be put back if that fails.
    for (end, journal) in [(End::Far, journals.far), (End::Near, journals.near)] {
        if let Some(journal) = journal {
            steps.keep(end, journal).map_err(|error| back_out(journals, error, steps))?;
        }
    }
    steps.tell(Event::Kept);
    Ok(ended(missed))
}

/// Measures again and judges.
fn verify<S: FixSteps>(rehearsal: Option<&Rehearsal>, steps: &mut S) -> Result<Verification, S::Error> {
    steps.begin(Stage::Verify, None)?;
    let verification = steps.verify(rehearsal)?;
    steps.tell(Event::Verified { verification: Cow::Borrowed(&verification) });
    steps.go_on()?;
    Ok(verification)
}

const fn ended(missed: bool) -> Fixed {
    if missed { Fixed::Missed } else { Fixed::Done }
}

/// Measures with more streams, if the limit of one hides the path's capacity; returns that measurement.
fn show_capacity<S: FixSteps>(
    request: &MeasureRequest,
    measured: &Measurement,
    steps: &mut S,
) -> Result<Option<OneMeasured>, S::Error> {
    let limits = measured
        .directions
        .iter()
        .filter_map(|direction| Some((direction, direction.findings.first()?.limit)));
    let directions: Vec<Direction> =
        limits.filter(|(_, limit)| limit.has(Consequence::HidesCapacity)).map(|(d, _)| d.direction).collect();
    if directions.is_empty() {
        return Ok(None);
    }
    let mut request = MeasureRequest { directions, ..request.clone() };
    request.spec.duration = STREAMS_FOR;
    let has = |host: &HostFacts| {
        let all = host.sysctls.get(Setting::TcpAvailableCongestionControl.name);
        all.is_some_and(|all| all.split_whitespace().any(|name| name == BY_RATE))
    };
    if has(&measured.near) && has(&measured.far) {
        request.spec.congestion = Some(BY_RATE.to_owned());
    }
    let alone = |direction: Direction| {
        let one = measured.directions.iter().find(|one| one.direction == direction);
        one.map_or(0.0, |one| one.goodput_bps)
    };
    let mut shown_by = None;
    for streams in STREAMS {
        steps.begin(Stage::Capacity, Some(streams))?;
        request.spec.streams = streams;
        let shown = steps.measure_capacity(&request)?;
        let limited_alike = shown.measurement.directions.iter().any(|direction| {
            direction.goodput_bps > LIMITED_ALIKE * f64::from(streams) * alone(direction.direction)
        });
        shown_by = Some(shown);
        if !limited_alike {
            break;
        }
    }
    Ok(shown_by)
}

/// Returns the changes of this end; those of the remote end must be made by its owner.
fn near_changes<S: FixSteps>(changes: Vec<Change>, steps: &mut S) -> Vec<Change> {
    let (near, far) = by_end(changes);
    if !far.is_empty() {
        steps.tell(Event::LeftToOwner { changes: far.len() });
    }
    near
}

fn by_end(changes: Vec<Change>) -> (Vec<Change>, Vec<Change>) {
    changes.into_iter().partition(|change| change.end == End::Near)
}

/// Applies changes at both ends, or at none.
fn apply<S: FixSteps>(changes: Vec<Change>, steps: &mut S) -> Result<Journals, S::Error> {
    let (near, far) = by_end(changes);
    let mut journals = Journals::default();
    if !near.is_empty() {
        journals.near = steps.apply(End::Near, near)?;
    }
    if !far.is_empty() {
        match steps.apply(End::Far, far) {
            Ok(journal) => journals.far = journal,
            Err(error) => return Err(back_out(journals, error, steps)),
        }
    }
    Ok(journals)
}

/// Puts everything back after an error, which stays the loop's error.
fn back_out<S: FixSteps>(journals: Journals, error: S::Error, steps: &mut S) -> S::Error {
    if let Err(failed) = put_back(journals, steps) {
        steps.tell(Event::NotPutBack { why: failed.to_string().into() });
    }
    error
}

/// Puts everything back that was set, at each end whatever happens at the other.
fn put_back<S: FixSteps>(journals: Journals, steps: &mut S) -> Result<(), S::Error> {
    let (mut settings, mut failed) = (0, None);
    for (end, journal) in journals.each() {
        match steps.put_back(end, journal) {
            Ok(count) => settings += count,
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if settings > 0 || (failed.is_none() && !journals.is_empty()) {
        steps.tell(Event::PutBack { settings });
    }
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use bdp_model::finding::{Confidence, Finding, Limit, Place};
    use bdp_model::measurement::DirectionResult;
    use bdp_model::tuning::{
        Outcome, PLAN, PlanHost, PlanPath, Reason, Rehearsed, Target, Verdict, Verified,
    };

    use super::*;

    /// Steps that record the requests, and answer as scripted.
    struct Script {
        limit: Limit,
        /// Goodput of a measurement with this many streams.
        goodput_bps: fn(u32) -> f64,
        changes: Vec<Change>,
        can_rehearse: bool,
        is_better: bool,
        may_change_far: bool,
        wanted: Vec<End>,
        /// An end that refuses its changes.
        refuses: Option<End>,
        /// Whether the changes were already set.
        is_set: bool,
        misses: bool,
        keeps: bool,
        /// The stage at whose beginning the user cancels.
        cancelled_at: Option<Stage>,
        /// The end that cannot be put back.
        is_stuck: Option<End>,
        done: Vec<String>,
    }

    fn change(end: End) -> Change {
        Change {
            end,
            target: Target::sysctl("net.ipv4.tcp_rmem"),
            from: None,
            to: "4096 131072 33554432".to_owned(),
            reason: Reason::Off,
            gain: None,
        }
    }

    /// A receive window that 8 streams lift, and changes of both ends that help.
    fn script() -> Script {
        Script {
            limit: Limit::ReceiveWindow,
            goodput_bps: |streams| 1e6 * f64::from(streams.min(4)),
            changes: vec![change(End::Near), change(End::Far)],
            can_rehearse: true,
            is_better: true,
            may_change_far: true,
            wanted: vec![End::Near, End::Far],
            refuses: None,
            is_set: false,
            misses: false,
            keeps: true,
            cancelled_at: None,
            is_stuck: None,
            done: Vec::new(),
        }
    }

    fn stored_direction() -> DirectionResult {
        let stored = include_str!("../../../bdp-store/tests/it/measurement.json");
        let stored: Measurement = serde_json::from_str(stored).expect("a stored measurement");
        stored.directions[0].clone()
    }

    fn plan_of(changes: &[Change]) -> Plan {
        Plan {
            schema: String::new(),
            run: None,
            path: PlanPath::default(),
            near: PlanHost::default(),
            far: None,
            changes: changes.to_vec(),
            alternatives: Vec::new(),
            programs: Vec::new(),
            refused: Vec::new(),
        }
    }

    impl Script {
        fn note(&mut self, what: impl Into<String>) {
            self.done.push(what.into());
        }

        fn measured(&self, run: &str, request: &MeasureRequest) -> OneMeasured {
            let directions = request.directions.iter().map(|&direction| {
                let mut result = DirectionResult { direction, ..stored_direction() };
                result.goodput_bps = (self.goodput_bps)(request.spec.streams);
                result.findings = vec![Finding::new(self.limit, Place::path(), Confidence::High)];
                result
            });
            let measurement = Measurement { directions: directions.collect(), ..Measurement::of(request) };
            OneMeasured { run: Some(run.to_owned()), measurement }
        }

        /// Returns the log of a loop that succeeded.
        fn ended(mut self, asks_nothing: bool) -> (Fixed, String) {
            let request = MeasureRequest { directions: vec![Direction::To], ..MeasureRequest::to("ams1") };
            let options = FixOptions { request, is_rate_known: false, asks_nothing };
            let ended = fix(&options, &mut self).expect("no step fails");
            (ended, self.done.join(", "))
        }
    }

    impl FixSteps for Script {
        type Error = &'static str;

        fn go_on(&self) -> Result<(), &'static str> {
            Ok(())
        }

        fn begin(&mut self, stage: Stage, streams: Option<u32>) -> Result<(), &'static str> {
            if let Some(streams) = streams {
                self.note(format!("{streams} streams"));
            }
            if self.cancelled_at == Some(stage) { Err("cancelled") } else { Ok(()) }
        }

        fn tell(&mut self, event: Event<'_>) {
            let what = match event {
                Event::Plan { .. } | Event::Rehearsed { .. } | Event::Verified { .. } => return,
                Event::NotRehearsed { .. } => "plan alone".to_owned(),
                Event::LeftToOwner { changes } => format!("{changes} left to the owner"),
                Event::NothingApplied => "nothing applied".to_owned(),
                Event::Applied { journals } => format!("journals {:?} {:?}", journals.near, journals.far),
                Event::Kept => "kept".to_owned(),
                Event::PutBack { settings } => format!("{settings} as before"),
                Event::NotPutBack { why } => format!("not put back: {why}"),
                other => panic!("{other:?}"),
            };
            self.note(what);
        }

        fn measure(&mut self, request: &MeasureRequest) -> Result<OneMeasured, &'static str> {
            Ok(self.measured("first", request))
        }

        fn measure_capacity(&mut self, request: &MeasureRequest) -> Result<OneMeasured, &'static str> {
            Ok(self.measured(&format!("with {}", request.spec.streams), request))
        }

        fn plan(
            &mut self,
            measured: OneMeasured,
            capacity: Option<OneMeasured>,
        ) -> Result<Plan, &'static str> {
            assert_eq!(measured.run.as_deref(), Some("first"));
            self.note(format!("plan by {:?}", capacity.and_then(|shown| shown.run)));
            Ok(plan_of(&self.changes))
        }

        fn obstacle(&mut self) -> Option<String> {
            (!self.can_rehearse).then(|| "no guest boots".to_owned())
        }

        fn rehearse(&mut self, plan: &Plan) -> Result<Rehearsal, &'static str> {
            let variant = Rehearsed {
                name: PLAN.to_owned(),
                changes: plan.changes.clone(),
                not_shown: Vec::new(),
                directions: Vec::new(),
            };
            Ok(Rehearsal {
                schema: String::new(),
                bdp: String::new(),
                run: None,
                kernel: None,
                runs: 1,
                seed: 1,
                alone: false,
                repeats: Vec::new(),
                plan: plan.clone(),
                variants: vec![variant],
                choice: self.is_better.then(|| PLAN.to_owned()),
            })
        }

        fn may_change_far(&self) -> bool {
            self.may_change_far
        }

        fn ask(&mut self, question: Question<'_>) -> bool {
            match question {
                Question::Apply { change } => {
                    self.note(format!("asked about {}", change.end.name()));
                    self.wanted.contains(&change.end)
                }
                Question::Keep => {
                    self.note("asked to keep");
                    self.keeps
                }
            }
        }

        fn apply(&mut self, end: End, changes: Vec<Change>) -> Result<Option<u32>, &'static str> {
            assert!(changes.iter().all(|change| change.end == end));
            self.note(format!("apply {}", end.name()));
            match self.refuses == Some(end) {
                true => Err("refused"),
                false => Ok((!self.is_set).then_some(if end == End::Near { 7 } else { 9 })),
            }
        }

        fn verify(&mut self, rehearsal: Option<&Rehearsal>) -> Result<Verification, &'static str> {
            self.note(if rehearsal.is_some() { "verify the prediction" } else { "verify" });
            let verdict = if self.misses { Verdict::Missed } else { Verdict::Held };
            let goodput_bps = Outcome { before: 1.0, predicted: None, range: None, now: 1.0, verdict };
            let verified = Verified {
                direction: Direction::To,
                goodput_bps,
                loaded_p50_ns: None,
                limit_before: None,
                limit_now: None,
            };
            let nothing = Measurement::of(&MeasureRequest::to("ams1"));
            Ok(Verification { directions: vec![verified], ..Verification::of(&nothing, &nothing, None) })
        }

        fn keep(&mut self, end: End, journal: u32) -> Result<(), &'static str> {
            self.note(format!("keep {journal} of {}", end.name()));
            Ok(())
        }

        fn put_back(&mut self, end: End, journal: u32) -> Result<usize, &'static str> {
            self.note(format!("put back {journal} of {}", end.name()));
            if self.is_stuck == Some(end) { Err("unreachable") } else { Ok(2) }
        }
    }

    const APPLIED: &str = "apply near, apply far, journals Some(7) Some(9), verify the prediction";

    #[test]
    fn both_ends_are_changed_verified_and_kept() {
        let (ended, done) = script().ended(true);
        assert_eq!(ended, Fixed::Done);
        let begin = r#"8 streams, plan by Some("with 8")"#;
        assert_eq!(done, format!("{begin}, {APPLIED}, keep 9 of far, keep 7 of near, kept"));
        let (_, asked) = script().ended(false);
        let questions = "asked about near, asked about far";
        let keep = "asked to keep, keep 9 of far, keep 7 of near, kept";
        assert_eq!(asked, format!("{begin}, {questions}, {APPLIED}, {keep}"));
    }

    #[test]
    fn missed_prediction_is_put_back_unless_the_user_keeps_it() {
        let (ended, done) = Script { misses: true, ..script() }.ended(true);
        assert_eq!(ended, Fixed::Missed);
        assert!(
            done.ends_with(&format!("{APPLIED}, put back 7 of near, put back 9 of far, 4 as before")),
            "{done}"
        );
        let (ended, done) = Script { misses: true, ..script() }.ended(false);
        assert!(ended == Fixed::Missed && done.ends_with("kept"), "{done}");
        let (ended, done) = Script { keeps: false, ..script() }.ended(false);
        assert!(ended == Fixed::Done && done.ends_with("4 as before"), "{done}");
    }

    #[test]
    fn refusal_of_the_far_end_puts_this_host_back() {
        let mut steps = Script { refuses: Some(End::Far), ..script() };
        let options =
            FixOptions { request: MeasureRequest::to("ams1"), is_rate_known: true, asks_nothing: true };
        assert_eq!(fix(&options, &mut steps), Err("refused"));
        assert_eq!(
            steps.done.join(", "),
            "plan by None, apply near, apply far, put back 7 of near, 2 as before"
        );
    }

    #[test]
    fn changes_whose_effect_was_not_measured_are_put_back() {
        let mut steps = Script { cancelled_at: Some(Stage::Verify), ..script() };
        let options =
            FixOptions { request: MeasureRequest::to("ams1"), is_rate_known: true, asks_nothing: true };
        assert_eq!(fix(&options, &mut steps), Err("cancelled"));
        let done = steps.done.join(", ");
        assert!(done.ends_with("put back 7 of near, put back 9 of far, 4 as before"), "{done}");
        // What fails at one end does not keep the other as it is, nor hide why the loop ended.
        let mut steps = Script { cancelled_at: Some(Stage::Verify), is_stuck: Some(End::Near), ..script() };
        assert_eq!(fix(&options, &mut steps), Err("cancelled"));
        let done = steps.done.join(", ");
        let both = "put back 7 of near, put back 9 of far, 2 as before";
        assert!(done.ends_with(&format!("{both}, not put back: unreachable")), "{done}");
        let (_, done) = Script { keeps: false, ..script() }.ended(false);
        assert!(done.ends_with("4 as before"), "{done}");
        let mut steps = Script { keeps: false, is_stuck: Some(End::Far), ..script() };
        assert_eq!(fix(&FixOptions { asks_nothing: false, ..options }, &mut steps), Err("unreachable"));
    }

    #[test]
    fn only_wanted_and_allowed_changes_are_applied() {
        let (ended, done) = Script { wanted: Vec::new(), ..script() }.ended(false);
        assert!(ended == Fixed::Done && done.ends_with("asked about far, nothing applied"), "{done}");
        let (_, done) = Script { wanted: vec![End::Far], ..script() }.ended(false);
        assert!(done.contains("apply far, journals None Some(9)") && !done.contains("apply near"), "{done}");
        let (_, done) = Script { may_change_far: false, ..script() }.ended(true);
        assert!(done.contains("1 left to the owner, apply near, journals Some(7) None"), "{done}");
        let far = vec![change(End::Far)];
        let (_, done) = Script { may_change_far: false, changes: far, ..script() }.ended(true);
        assert!(done.ends_with("1 left to the owner, nothing applied"), "{done}");
        // All was set already: there is nothing to keep.
        let (ended, done) = Script { is_set: true, ..script() }.ended(false);
        assert!(
            ended == Fixed::Done && done.ends_with("journals None None, verify the prediction"),
            "{done}"
        );
    }

    #[test]
    fn plan_without_changes_or_gain_ends_the_loop() {
        let (ended, done) = Script { changes: Vec::new(), ..script() }.ended(true);
        assert!(ended == Fixed::Done && done.ends_with("plan by Some(\"with 8\")"), "{done}");
        let (ended, done) = Script { is_better: false, ..script() }.ended(true);
        assert!(ended == Fixed::Missed && !done.contains("apply"), "{done}");
        let (_, done) = Script { can_rehearse: false, ..script() }.ended(true);
        assert!(done.contains("plan alone, apply near") && done.contains("verify, keep"), "{done}");
    }

    #[test]
    fn more_streams_are_tried_only_if_a_limit_hides_the_path() {
        let each_alone = Script { goodput_bps: |streams| 1e6 * f64::from(streams), ..script() };
        let (_, done) = each_alone.ended(true);
        assert!(done.starts_with(r#"8 streams, 32 streams, plan by Some("with 32")"#), "{done}");
        let (_, done) = Script { limit: Limit::PathRate, ..script() }.ended(true);
        assert!(done.starts_with("plan by None"), "{done}");
    }
}
