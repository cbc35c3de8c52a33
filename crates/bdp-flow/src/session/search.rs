//! Searches the highest rate without loss: trials at the rates that [`RateSearcher`] chooses, then the resulting rate
//! for the whole duration.

use bdp_model::flow::method::EndReason;
use bdp_model::flow::udp::{RateSearch, SearchEnd, Trial};
use bdp_model::measurement::rate_search::{RateSearcher, Step};
use bdp_model::measurement::{Direction, DirectionResult, MeasureRequest};
use bdp_model::units::Nanos;

use super::datagrams;
use super::error::{Result, SessionError};
use super::peer::Outcome;
use super::progress::Stage;
use super::round::Rounds;
use crate::error::FlowError;

/// A trial, and the outcome of its flow.
struct Tried {
    trial: Trial,
    asked: MeasureRequest,
    outcome: Outcome,
}

/// Searches one direction; its result is that of the final rate, with every trial.
pub(super) fn search(
    rounds: &mut Rounds<'_, '_>,
    request: &MeasureRequest,
    search: &RateSearch,
    way: Direction,
) -> Result<Vec<DirectionResult>> {
    let streams = f64::from(request.spec.streams);
    let granted = request.spec.udp.as_ref().and_then(|udp| udp.rate_bps).map(|each| each as f64 * streams);
    let mut searcher = RateSearcher::new(search, granted);
    let mut trials = Vec::new();
    let mut held = Vec::new();
    let mut best: Option<Tried> = None;
    loop {
        let done = match searcher.next() {
            Step::End(end) => return Ok(with_trials(held, &trials, end)),
            _ if rounds.context.reporter.concludes => {
                let results = match best {
                    _ if !held.is_empty() => held,
                    Some(best) => rounds.put_together(&best.asked, vec![best.outcome], true)?,
                    None => return Err(SessionError::Cancelled),
                };
                return Ok(with_trials(results, &trials, SearchEnd::CutShort));
            }
            Step::Try(rate) => try_rate(rounds, request, search, way, rate).map(|tried| {
                let trial = tried.trial;
                if best.as_ref().is_none_or(|best| tried.is_better(best)) {
                    best = Some(tried);
                }
                trial
            }),
            Step::Hold(rate) => rounds.run(&at_rate(request, Some(rate)), &[way]).and_then(|results| {
                held = results;
                let is_whole = |result: &&DirectionResult| result.ended != EndReason::Stopped;
                let result = held.first().filter(is_whole).ok_or(SessionError::Cancelled)?;
                let received_bps = rate_bps(result.bytes, result.duration_ns);
                let udp = result.udp.as_ref().ok_or_else(no_datagrams)?;
                Ok(Trial::of(search, udp, received_bps, true))
            }),
        };
        match done {
            Ok(trial) => {
                searcher.note(&trial);
                trials.push(trial);
            }
            // Earlier trials remain valid.
            Err(SessionError::Cancelled) => rounds.context.reporter.concludes = true,
            Err(error) => return Err(error),
        }
    }
}

/// One trial; one that is cut short is none.
fn try_rate(
    rounds: &mut Rounds<'_, '_>,
    request: &MeasureRequest,
    search: &RateSearch,
    way: Direction,
    rate: Option<f64>,
) -> Result<Tried> {
    let duration = search.trial.min(request.spec.duration);
    let mut asked = at_rate(request, rate);
    (asked.spec.duration, asked.spec.omit) = (duration, Nanos::ZERO);
    let outcomes = rounds.carry_out(&asked, &[way], Stage::Trial(way))?;
    if rounds.context.reporter.concludes {
        return Err(SessionError::Cancelled);
    }
    let outcome = outcomes.into_iter().next().ok_or_else(no_datagrams)?;
    let trial = tried(&asked, search, &outcome).ok_or_else(no_datagrams)?;
    Ok(Tried { trial, asked, outcome })
}

/// Returns the error for a peer that was asked for datagrams and reports none.
fn no_datagrams() -> SessionError {
    SessionError::Near(FlowError::OutOfTurn("a flow without datagrams".to_owned()))
}

impl Tried {
    /// Whether it says more than one before it: the highest rate that passed, or else the last that was tried.
    fn is_better(&self, before: &Self) -> bool {
        !before.trial.passed || self.trial.passed && self.trial.sent_bps > before.trial.sent_bps
    }
}

/// The request for one rate of all streams; nothing is as fast as it goes.
fn at_rate(request: &MeasureRequest, rate: Option<f64>) -> MeasureRequest {
    let each = |rate: f64| ((rate / f64::from(request.spec.streams)).round() as u64).max(1);
    let mut request = request.clone();
    if let Some(udp) = &mut request.spec.udp {
        udp.rate_bps = rate.map(each);
    }
    request
}

fn tried(asked: &MeasureRequest, search: &RateSearch, outcome: &Outcome) -> Option<Trial> {
    let clocks = outcome.clocks.map(|clocks| (clocks, outcome.carried()));
    let udp = datagrams::report(asked, outcome.way, &outcome.received, &outcome.sent, clocks)?;
    let received_bps = rate_bps(outcome.received.bytes, outcome.received.duration_ns);
    Some(Trial::of(search, &udp, received_bps.min(udp.sent_bps), false))
}

fn rate_bps(bytes: u64, duration_ns: u64) -> f64 {
    bytes as f64 * 8e9 / duration_ns.max(1) as f64
}

fn with_trials(mut held: Vec<DirectionResult>, trials: &[Trial], end: SearchEnd) -> Vec<DirectionResult> {
    for udp in held.iter_mut().filter_map(|result| result.udp.as_mut()) {
        (udp.trials, udp.search) = (trials.to_vec(), Some(end));
    }
    held
}
