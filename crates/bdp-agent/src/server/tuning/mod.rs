//! Changes settings of the server's host for clients that know the tune token: within the bounds of [`bounds`], never
//! permanently, and with an automatic revert unless confirmed.

mod bounds;

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bdp_flow::lock::lock;
use bdp_model::tuning::Change;
use bdp_sys::netlink::Netlink;
use bdp_tune::{
    ApplyOptions, ConfirmOptions, Entry, GuardCommand, HostWorld, JournalState, Places, RevertOptions, Step,
};
use bdp_wire::proof::{Exchange, Prover};
use bdp_wire::tuning::{
    LONGEST_KEPT, RefusalCause, SHORTEST_KEPT, SealError, Sealed, TuneAnswer, TuneApplied, TuneDamaged,
    TuneFailed, TuneOrder, TuneRequest, TuneReverted, TuneState,
};

use super::failures::{Failures, MOST_FAILURES, WINDOW};

/// How long another process may hold the journals' lock before a request is refused.
const BUSY_PATIENCE: Duration = Duration::from_secs(2);
const BUSY_CHECK: Duration = Duration::from_millis(20);

/// How a server changes settings of its host.
#[derive(Debug, Clone)]
pub struct TuneOptions {
    /// Token that clients must prove to know.
    pub token: String,
    /// Where its journals are kept.
    pub places: Places,
    /// The program that reverts changes.
    pub guard: GuardCommand,
}

/// Changes the settings of a server's host, one request at a time.
pub(super) struct Tuner {
    options: TuneOptions,
    turn: Mutex<()>,
    failures: Mutex<Failures>,
}

/// A client's proven right to tune.
pub(super) struct TuneRight {
    exchange: Exchange,
    /// The number of its last request: no number may repeat.
    last: AtomicU64,
}

/// Why a client does not have the right that it claims.
pub(super) enum Unproven {
    /// Its proof is wrong.
    Wrong,
    /// Too many proofs were wrong, so it was not checked.
    TooMany,
}

impl Unproven {
    /// Returns the message for the client.
    pub(super) fn text() -> String {
        format!(
            "{MOST_FAILURES} wrong tune tokens came from this address within {} s; try again later",
            WINDOW.as_secs()
        )
    }
}

impl Tuner {
    pub(super) fn new(options: TuneOptions) -> Self {
        Self { options, turn: Mutex::default(), failures: Mutex::default() }
    }

    /// Checks that a client knows the token.
    pub(super) fn verify(
        &self,
        peer: SocketAddr,
        exchange: Exchange,
        proof: &str,
    ) -> Result<TuneRight, Unproven> {
        let now = Instant::now();
        let mut failures = lock(&self.failures);
        if failures.has_failed_often(peer.ip(), now) {
            return Err(Unproven::TooMany);
        }
        if !exchange.verify(&self.options.token, Prover::TuneClient, proof) {
            failures.note(peer.ip(), now);
            return Err(Unproven::Wrong);
        }
        Ok(TuneRight { exchange, last: AtomicU64::new(0) })
    }

    /// Returns the proof that this server knows the token.
    pub(super) fn prove(&self, right: &TuneRight) -> String {
        right.exchange.prove(&self.options.token, Prover::TuneServer)
    }

    /// Carries out a sealed request; returns the sealed answer, and what to log.
    pub(super) fn answer(
        &self,
        right: &TuneRight,
        peer: SocketAddr,
        number: u64,
        sealed: &Sealed,
    ) -> Result<(Sealed, Vec<String>), String> {
        let token = &self.options.token;
        let opened = sealed.open::<TuneRequest>(&right.exchange, token, Prover::TuneClient, number);
        let (answer, log) = match opened {
            Err(error @ SealError::Seal) => return Err(format!("tuning request: {error}")),
            _ if right.last.fetch_max(number, Ordering::Relaxed) >= number => {
                return Err(format!("tuning request: number {number} was already used"));
            }
            Err(error) => (refused(RefusalCause::Request, error.to_string()), Vec::new()),
            Ok(request) => {
                // One at a time: journals have one writer.
                let _turn = lock(&self.turn);
                self.carry_out(peer.ip().to_canonical(), request)
            }
        };
        let sealed = Sealed::close(&answer, &right.exchange, token, Prover::TuneServer, number);
        Ok((sealed.map_err(|e| e.to_string())?, log))
    }

    fn carry_out(&self, client: IpAddr, request: TuneRequest) -> (TuneAnswer, Vec<String>) {
        let done = match request {
            TuneRequest::State => self.state(client).map(|state| (TuneAnswer::State(state), Vec::new())),
            TuneRequest::Check(order) => self.check(client, &order),
            TuneRequest::Apply(order) => self.apply(client, &order),
            TuneRequest::Confirm { journal } => self.confirm(client, journal),
            TuneRequest::Revert { journal } => self.revert(journal),
        };
        done.unwrap_or_else(|refused| {
            let log = match &refused {
                TuneAnswer::Refused { text, .. } => vec![format!("was refused: {text}")],
                _ => Vec::new(),
            };
            (refused, log)
        })
    }

    fn state(&self, client: IpAddr) -> Result<TuneState, TuneAnswer> {
        let state = bdp_tune::state(&mut self.world()).map_err(|e| of_host(&e))?;
        let journals = state.journals.iter().map(JournalState::report).collect();
        let damaged = state
            .damaged
            .iter()
            .map(|of| TuneDamaged { path: of.path.display().to_string(), cause: of.cause.clone() });
        Ok(TuneState { client, journals, damaged: damaged.collect() })
    }

    fn check(&self, client: IpAddr, order: &TuneOrder) -> Result<(TuneAnswer, Vec<String>), TuneAnswer> {
        let changes = bound(client, order)?;
        let steps = bdp_tune::check(&mut self.world(), &changes, order.force).map_err(|e| of_host(&e))?;
        Ok((TuneAnswer::Checked { steps: steps.iter().map(Step::report).collect() }, Vec::new()))
    }

    fn apply(&self, client: IpAddr, order: &TuneOrder) -> Result<(TuneAnswer, Vec<String>), TuneAnswer> {
        let changes = bound(client, order)?;
        let options = ApplyOptions {
            force: order.force,
            keep_for: Some(order.keep_for.to_duration()),
            persist: false,
            client: Some(client),
            cancelled: None,
        };
        let applied = self.once_free(|world| bdp_tune::apply(world, &changes, &options))?;
        let journal = applied.journal.as_ref();
        let answer = TuneApplied {
            journal: journal.map(|journal| journal.id),
            until_unix_ms: journal.and_then(|journal| Some(journal.until?.unix_ms)),
            steps: applied.steps.iter().map(Step::report).collect(),
        };
        let line = |entry: &Entry, id: u32| {
            let before = entry.before.as_deref().unwrap_or("not set");
            format!(
                "set {}: {before} -> {} (journal {id}, for {})",
                entry.target, entry.after, order.keep_for
            )
        };
        let log = journal.into_iter().flat_map(|of| of.entries.iter().map(|entry| line(entry, of.id)));
        Ok((TuneAnswer::Applied(answer), log.collect()))
    }

    fn confirm(&self, client: IpAddr, id: u32) -> Result<(TuneAnswer, Vec<String>), TuneAnswer> {
        let by = self.of_a_client(id)?;
        // Numbers are reused once their journals are gone: nobody keeps what somebody else set.
        if by != client {
            let text = format!(
                "journal {id} was applied by {by}, and only that client may confirm it; this client is {client}"
            );
            return Err(refused(RefusalCause::Bounds, text));
        }
        let options = ConfirmOptions { persist: false, only: Some(id) };
        let confirmed = self.once_free(|world| bdp_tune::confirm(world, options))?;
        let settings = confirmed.journals.iter().map(|journal| journal.entries.len()).sum::<usize>();
        let settings = u32::try_from(settings).unwrap_or(u32::MAX);
        let log = format!("confirmed journal {id}: in force until 'bdp tune revert'");
        Ok((TuneAnswer::Confirmed { journal: id, settings }, vec![log]))
    }

    fn revert(&self, id: u32) -> Result<(TuneAnswer, Vec<String>), TuneAnswer> {
        self.of_a_client(id)?;
        // The owner of the host decides on what somebody else has changed since.
        let options = RevertOptions { force: false, only: Some(id) };
        let reverted = self.once_free(|world| bdp_tune::revert(world, options))?;
        let back = |entry: &Entry| entry.back(entry.before.clone());
        let answer = TuneReverted {
            journal: id,
            put_back: reverted.put_back.iter().map(back).collect(),
            were_back: reverted.were_back.iter().map(back).collect(),
            foreign: reverted.foreign.iter().map(|left| left.entry.back(left.now.clone())).collect(),
            failed: reverted
                .failed
                .iter()
                .cloned()
                .map(|(target, cause)| TuneFailed { target, cause })
                .collect(),
        };
        let line = |entry: &Entry| {
            let before = entry.before.as_deref().unwrap_or("not set");
            format!("reverted {}: {} -> {before} (journal {id})", entry.target, entry.after)
        };
        let mut log: Vec<String> = reverted.put_back.iter().map(line).collect();
        log.extend(
            reverted
                .foreign
                .iter()
                .map(|left| format!("left {} as it is: changed by someone else", left.entry.target)),
        );
        log.extend(answer.failed.iter().map(|of| format!("could not revert {}: {}", of.target, of.cause)));
        Ok((TuneAnswer::Reverted(answer), log))
    }

    /// Returns the client that applied this journal; journals of the host's owner belong to no client.
    fn of_a_client(&self, id: u32) -> Result<IpAddr, TuneAnswer> {
        let state = bdp_tune::state(&mut self.world()).map_err(|e| of_host(&e))?;
        match state.journals.iter().find(|of| of.journal.id == id).map(|of| of.journal.client) {
            Some(Some(client)) => Ok(client),
            Some(None) => {
                let text = format!(
                    "journal {id} was applied on the host itself; only its owner can confirm or revert it"
                );
                Err(refused(RefusalCause::Bounds, text))
            }
            None => {
                // An unreadable journal still exists.
                let file = format!("{id:04}.json");
                if let Some(damaged) = state.damaged.iter().find(|of| of.path.ends_with(&file)) {
                    return Err(of_host(&damaged.refusal()));
                }
                let text = format!("journal {id} does not exist, or its changes were already reverted");
                Err(refused(RefusalCause::Request, text))
            }
        }
    }

    fn world(&self) -> HostWorld {
        HostWorld::new(self.options.places.clone(), self.options.guard.clone())
    }

    /// Runs `work` once no other process (for example the guard) holds the journal lock.
    fn once_free<T>(
        &self,
        mut work: impl FnMut(&mut HostWorld) -> Result<T, bdp_tune::Refusal>,
    ) -> Result<T, TuneAnswer> {
        let until = Instant::now() + BUSY_PATIENCE;
        loop {
            match work(&mut self.world()) {
                Err(bdp_tune::Refusal::Busy { .. }) if Instant::now() < until => {
                    std::thread::sleep(BUSY_CHECK);
                }
                done => return done.map_err(|e| of_host(&e)),
            }
        }
    }
}

/// The changes of an order as a client may make them.
fn bound(client: IpAddr, order: &TuneOrder) -> Result<Vec<Change>, TuneAnswer> {
    if !(SHORTEST_KEPT..=LONGEST_KEPT).contains(&order.keep_for) {
        let text = format!(
            "remote changes must revert automatically after {SHORTEST_KEPT} to {LONGEST_KEPT}; {} requested",
            order.keep_for
        );
        return Err(refused(RefusalCause::Bounds, text));
    }
    let leaves_by = |device: &str| {
        Netlink::open().and_then(|mut netlink| netlink.leaves_by(client, device)).unwrap_or(false)
    };
    bounds::bound(&order.changes, client, leaves_by).map_err(|text| refused(RefusalCause::Bounds, text))
}

fn refused(cause: RefusalCause, text: String) -> TuneAnswer {
    TuneAnswer::Refused { cause, text }
}

fn of_host(refusal: &bdp_tune::Refusal) -> TuneAnswer {
    let cause = if refusal.is_of_request() { RefusalCause::Request } else { RefusalCause::Host };
    refused(cause, refusal.to_string())
}
