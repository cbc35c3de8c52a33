//! The whole loop to one host: measure, plan, rehearse, apply, verify, keep or revert. [`FixSteps`] supplies each
//! step, question and message; the decisions are made here.

use bdp_model::ends::{Direction, End};
use bdp_model::finding::Limit;
use bdp_model::measurement::{HostFacts, MeasureRequest, Measurement};
use bdp_model::tuning::{Change, Plan, Rehearsal, Verification};
use bdp_model::units::Nanos;

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

/// A stage of the loop that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixStage {
    /// The first measurement.
    Measure,
    /// A measurement with this many streams, to find the path's capacity.
    Capacity(u32),
    /// The plan.
    Plan,
    /// Its rehearsal.
    Rehearse,
    /// Applying the changes.
    Apply,
    /// The measurement after the changes.
    Verify,
}

/// The result of a stage.
#[derive(Debug)]
pub enum FixNews<'a> {
    /// A measurement with more streams.
    Capacity(&'a Measured),
    /// A plan that changes nothing, or that cannot be rehearsed here.
    Plan(&'a Plan),
    /// Predicted results of the changes.
    Rehearsed(&'a Rehearsal),
    /// This many changes of the remote end must be made by its owner.
    LeftToOwner(&'a Plan, usize),
    /// The user declined all changes.
    NothingApplied,
    /// What was set; empty if everything was already as planned.
    Applied(Journals),
    /// The changes were kept.
    Kept,
    /// This many settings were reverted.
    PutBack(usize),
}

/// A measurement, with its run if it was stored.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The run's id.
    pub run: Option<String>,
    /// The measurement.
    pub measurement: Measurement,
}

/// The journals of applied changes; none if everything was already set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Journals {
    /// The journal of this host.
    pub near: Option<u32>,
    /// The journal of the remote end.
    pub far: Option<u32>,
}

impl Journals {
    /// Whether nothing was set.
    pub const fn is_empty(self) -> bool {
        self.near.is_none() && self.far.is_none()
    }

    fn each(self) -> impl Iterator<Item = (End, u32)> {
        let (near, far) = (self.near.map(|id| (End::Near, id)), self.far.map(|id| (End::Far, id)));
        near.into_iter().chain(far)
    }
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
    type Error;

    /// Says which part begins.
    fn begin(&mut self, stage: FixStage);

    /// Reports the result of a stage.
    fn tell(&mut self, news: FixNews<'_>) -> Result<(), Self::Error>;

    /// Measures the path, keeps the run, and shows it.
    fn measure(&mut self, request: &MeasureRequest) -> Result<Measured, Self::Error>;

    /// Measures the path's capacity, and stores the run.
    fn measure_capacity(&mut self, request: &MeasureRequest) -> Result<Measured, Self::Error>;

    /// Returns the smallest change of settings for the measurement; `capacity` is the run that showed the path's
    /// capacity.
    fn plan(&mut self, capacity: Option<&str>) -> Result<Plan, Self::Error>;

    /// Whether this machine can rehearse; reports why if not.
    fn can_rehearse(&mut self) -> bool;

    /// Rehearses the plan on the path's twin.
    fn rehearse(&mut self, plan: &Plan) -> Result<Rehearsal, Self::Error>;

    /// Whether the remote end's owner allows this end to change its settings.
    fn may_change_far(&mut self) -> Result<bool, Self::Error>;

    /// Whether a change is wanted.
    fn wants(&mut self, plan: &Plan, change: &Change) -> bool;

    /// Gets ready to change this host.
    fn prepare(&mut self) -> Result<(), Self::Error>;

    /// Applies changes of one end, all or none. Returns the journal, if anything was set.
    fn apply(&mut self, end: End, changes: Vec<Change>) -> Result<Option<u32>, Self::Error>;

    /// Measures again, judges and shows.
    fn verify(&mut self, rehearsal: Option<&Rehearsal>) -> Result<Verification, Self::Error>;

    /// Whether to keep the applied changes.
    fn wants_to_keep(&mut self) -> bool;

    /// Has a journal's changes stay.
    fn keep(&mut self, end: End, journal: u32) -> Result<(), Self::Error>;

    /// Reverts the changes of a journal; returns how many settings are as before.
    fn put_back(&mut self, end: End, journal: u32) -> Result<usize, Self::Error>;
}

/// Runs the loop once.
pub fn fix<S: FixSteps>(options: &FixOptions, steps: &mut S) -> Result<Fixed, S::Error> {
    steps.begin(FixStage::Measure);
    let measured = steps.measure(&options.request)?;
    let capacity = match options.is_rate_known {
        true => None,
        false => show_capacity(&options.request, &measured.measurement, steps)?,
    };
    steps.begin(FixStage::Plan);
    let plan = steps.plan(capacity.as_deref())?;
    if plan.changes.is_empty() {
        steps.tell(FixNews::Plan(&plan))?;
        return Ok(Fixed::Done);
    }
    let mut rehearsal = None;
    let changes = if steps.can_rehearse() {
        steps.begin(FixStage::Rehearse);
        let rehearsed = steps.rehearse(&plan)?;
        steps.tell(FixNews::Rehearsed(&rehearsed))?;
        if rehearsed.choice.is_none() {
            return Ok(Fixed::Missed);
        }
        let changes = rehearsed.chosen().map(|chosen| chosen.changes.clone()).unwrap_or_default();
        rehearsal = Some(rehearsed);
        changes
    } else {
        steps.tell(FixNews::Plan(&plan))?;
        plan.changes.clone()
    };
    let changes = match steps.may_change_far()? {
        true => changes,
        false => near_changes(&plan, changes, steps)?,
    };
    let chosen: Vec<Change> = match options.asks_nothing {
        true => changes,
        false => changes.into_iter().filter(|change| steps.wants(&plan, change)).collect(),
    };
    if chosen.is_empty() {
        steps.tell(FixNews::NothingApplied)?;
        return Ok(Fixed::Done);
    }
    steps.prepare()?;
    steps.begin(FixStage::Apply);
    let journals = apply(chosen, steps)?;
    steps.tell(FixNews::Applied(journals))?;
    steps.begin(FixStage::Verify);
    let missed = steps.verify(rehearsal.as_ref())?.missed();
    let is_kept = match (journals.is_empty(), options.asks_nothing) {
        (true, _) => return Ok(ended(missed)),
        (false, true) => !missed,
        (false, false) => steps.wants_to_keep(),
    };
    if is_kept {
        for (end, journal) in journals.each() {
            steps.keep(end, journal)?;
        }
        steps.tell(FixNews::Kept)?;
    } else {
        let count = put_back(journals, steps)?;
        steps.tell(FixNews::PutBack(count))?;
    }
    Ok(ended(missed))
}

const fn ended(missed: bool) -> Fixed {
    if missed { Fixed::Missed } else { Fixed::Done }
}

/// Measures with more streams, if the limit of one hides the path's capacity; returns that run.
fn show_capacity<S: FixSteps>(
    request: &MeasureRequest,
    measured: &Measurement,
    steps: &mut S,
) -> Result<Option<String>, S::Error> {
    let hidden = |limit: Limit| {
        matches!(
            limit,
            Limit::ReceiveWindow
                | Limit::SendBuffer
                | Limit::RandomLoss
                | Limit::CongestionLoss
                | Limit::Reordering
        )
    };
    let limits = measured
        .directions
        .iter()
        .filter_map(|direction| Some((direction, direction.findings.first()?.limit)));
    let directions: Vec<Direction> =
        limits.filter(|(_, limit)| hidden(*limit)).map(|(d, _)| d.direction).collect();
    if directions.is_empty() {
        return Ok(None);
    }
    let mut request = MeasureRequest { directions, ..request.clone() };
    request.spec.duration = STREAMS_FOR;
    let has = |host: &HostFacts| {
        let all = host.sysctls.get("net.ipv4.tcp_available_congestion_control");
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
        steps.begin(FixStage::Capacity(streams));
        request.spec.streams = streams;
        let shown = steps.measure_capacity(&request)?;
        steps.tell(FixNews::Capacity(&shown))?;
        let limited_alike = shown.measurement.directions.iter().any(|direction| {
            direction.goodput_bps > LIMITED_ALIKE * f64::from(streams) * alone(direction.direction)
        });
        shown_by = shown.run;
        if !limited_alike {
            break;
        }
    }
    Ok(shown_by)
}

/// Returns the changes of this end; those of the remote end must be made by its owner.
fn near_changes<S: FixSteps>(
    plan: &Plan,
    changes: Vec<Change>,
    steps: &mut S,
) -> Result<Vec<Change>, S::Error> {
    let (near, far) = by_end(changes);
    if !far.is_empty() {
        steps.tell(FixNews::LeftToOwner(plan, far.len()))?;
    }
    Ok(near)
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
            Err(error) => {
                put_back(journals, steps)?;
                return Err(error);
            }
        }
    }
    Ok(journals)
}

/// How many settings are as before.
fn put_back<S: FixSteps>(journals: Journals, steps: &mut S) -> Result<usize, S::Error> {
    let mut count = 0;
    for (end, journal) in journals.each() {
        count += steps.put_back(end, journal)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use bdp_model::finding::{Confidence, Finding, Place};
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
            done: Vec::new(),
        }
    }

    fn stored_direction() -> DirectionResult {
        let stored = include_str!("../../bdp-store/tests/it/measurement.json");
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

        fn measured(&self, run: &str, request: &MeasureRequest) -> Measured {
            let directions = request.directions.iter().map(|&direction| {
                let mut result = DirectionResult { direction, ..stored_direction() };
                result.goodput_bps = (self.goodput_bps)(request.spec.streams);
                result.findings = vec![Finding::new(self.limit, Place::path(), Confidence::High)];
                result
            });
            let measurement = Measurement { directions: directions.collect(), ..Measurement::of(request) };
            Measured { run: Some(run.to_owned()), measurement }
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

        fn begin(&mut self, stage: FixStage) {
            if let FixStage::Capacity(streams) = stage {
                self.note(format!("{streams} streams"));
            }
        }

        fn tell(&mut self, news: FixNews<'_>) -> Result<(), &'static str> {
            let what = match news {
                FixNews::Capacity(_) | FixNews::Rehearsed(_) => return Ok(()),
                FixNews::Plan(_) => "plan alone".to_owned(),
                FixNews::LeftToOwner(_, count) => format!("{count} left to the owner"),
                FixNews::NothingApplied => "nothing applied".to_owned(),
                FixNews::Applied(journals) => format!("journals {:?} {:?}", journals.near, journals.far),
                FixNews::Kept => "kept".to_owned(),
                FixNews::PutBack(count) => format!("{count} as before"),
            };
            self.note(what);
            Ok(())
        }

        fn measure(&mut self, request: &MeasureRequest) -> Result<Measured, &'static str> {
            Ok(self.measured("first", request))
        }

        fn measure_capacity(&mut self, request: &MeasureRequest) -> Result<Measured, &'static str> {
            Ok(self.measured(&format!("with {}", request.spec.streams), request))
        }

        fn plan(&mut self, capacity: Option<&str>) -> Result<Plan, &'static str> {
            self.note(format!("plan by {capacity:?}"));
            Ok(plan_of(&self.changes))
        }

        fn can_rehearse(&mut self) -> bool {
            self.can_rehearse
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

        fn may_change_far(&mut self) -> Result<bool, &'static str> {
            Ok(self.may_change_far)
        }

        fn wants(&mut self, _: &Plan, change: &Change) -> bool {
            self.note(format!("asked about {}", change.end.name()));
            self.wanted.contains(&change.end)
        }

        fn prepare(&mut self) -> Result<(), &'static str> {
            Ok(())
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

        fn wants_to_keep(&mut self) -> bool {
            self.note("asked to keep");
            self.keeps
        }

        fn keep(&mut self, end: End, journal: u32) -> Result<(), &'static str> {
            self.note(format!("keep {journal} of {}", end.name()));
            Ok(())
        }

        fn put_back(&mut self, end: End, journal: u32) -> Result<usize, &'static str> {
            self.note(format!("put back {journal} of {}", end.name()));
            Ok(2)
        }
    }

    const APPLIED: &str = "apply near, apply far, journals Some(7) Some(9), verify the prediction";

    #[test]
    fn both_ends_are_changed_verified_and_kept() {
        let (ended, done) = script().ended(true);
        assert_eq!(ended, Fixed::Done);
        let begin = r#"8 streams, plan by Some("with 8")"#;
        assert_eq!(done, format!("{begin}, {APPLIED}, keep 7 of near, keep 9 of far, kept"));
        let (_, asked) = script().ended(false);
        let questions = "asked about near, asked about far";
        let keep = "asked to keep, keep 7 of near, keep 9 of far, kept";
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
        assert_eq!(steps.done.join(", "), "plan by None, apply near, apply far, put back 7 of near");
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
        assert!(ended == Fixed::Done && done.ends_with("plan alone"), "{done}");
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
