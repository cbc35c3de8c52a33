//! A connection with an account of what it waited for: what took most of its time is the limit. The rules of that part alone
//! give the finding and its cause.

use bdp_model::facts::{Conversation, Facts, Refusal, Role, TimeState, Waits};
use bdp_model::finding::fact::{self, Bytes};
use bdp_model::finding::threshold::CAPTURE_LACKS;
use bdp_model::finding::{Action, Cause, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::units::Nanos;

use crate::rule::part::{self, sure};
use crate::rule::{self, black_hole, captured, unknown};

/// If the other end has its turn for this share of the time, its own direction explains the connection.
const OTHERS_TURN: f64 = 0.5;
/// Share of the time from which a further part is reported in addition to the largest.
const FURTHER: f64 = 0.2;
/// Idle share of the time from which the connection counts as left open.
const LEFT_OPEN: f64 = 0.8;
/// A program's wait of this many round trips is not the network's.
const NO_WAY: f64 = 2.0;
/// Fewest stops of the sender with the same amount in flight, and that amount in segments.
const STOPS: (u64, u64) = (5, 4);
/// Fewest retransmissions without acknowledgement that show that the peer is gone.
const IN_VAIN: u64 = 2;

/// The limit first, then further findings; none if the other direction explains the connection.
pub fn explain(facts: &Facts, conversation: &Conversation) -> Vec<Finding> {
    let spent = &conversation.spent;
    if let Some(refusal) = conversation.refused {
        return vec![not_made(facts, conversation, refusal)];
    }
    if conversation.sent_in_vain >= IN_VAIN && spent.share(TimeState::Timeout) >= OTHERS_TURN {
        let swallowed = swallowed(facts).or_else(|| oversized(facts, conversation));
        return vec![swallowed.unwrap_or_else(|| peer_gone(facts, conversation))];
    }
    if conversation.is_minor {
        return Vec::new();
    }
    if conversation.broken_off_ns > 0
        && conversation.broken_off_ns as f64 >= OTHERS_TURN * spent.total_ns() as f64
    {
        return vec![broken_off(facts, conversation)];
    }
    // As a share of the time in which anything was going on.
    let active = (1.0 - spent.share(TimeState::Finished)).max(f64::EPSILON);
    if spent.share(TimeState::OtherWay) >= OTHERS_TURN * active {
        return Vec::new();
    }
    let mut parts = spent.parts();
    parts.retain(|part| !matches!(part.0, Waits::OtherWay | Waits::Nothing));
    let mut left_open = None;
    if 1.0 - active >= LEFT_OPEN {
        let (name, place) = client(facts, conversation);
        let open = Nanos(((1.0 - active) * spent.total_ns() as f64) as u64);
        let evidence =
            Evidence::share(fact::LeftOpen { time: open }, 1.0 - active).at_least(LEFT_OPEN).on(name);
        left_open = Some(Finding::new(Limit::ClientIdle, place, sure(1.0 - active)).evidence([evidence]));
    }
    let Some((waits, share)) = spent.waited_for() else { return Vec::new() };
    if conversation.missing >= CAPTURE_LACKS {
        return vec![of_pauses(facts, conversation, waits, share / active)];
    }
    let binding = of(facts, conversation, waits, share / active);
    let is_of_a_program = matches!(
        waits,
        Waits::Client
            | Waits::Server
            | Waits::Writer
            | Waits::RoundTrips
            | Waits::Reader
            | Waits::Nagle
            | Waits::ProgramWindow
    );
    let limit = binding.limit;
    let mut binding = binding;
    // A request without a response: what its connection waits for is not in the capture.
    if waits == Waits::RoundTrips
        && conversation.sender == Role::Client
        && conversation.turns == 0
        && spent.share(TimeState::Finished) <= 0.0
    {
        binding.confidence = Confidence::Low;
    }
    let binding = if is_of_a_program { binding } else { captured::temper(facts, binding) };
    // Other parts that took a good part of the time.
    let further = parts
        .iter()
        .filter(|part| part.0 != waits && part.1 / active >= FURTHER && is_of_an_end(part.0))
        .map(|part| of(facts, conversation, part.0, part.1 / active));
    let further: Vec<Finding> = further.filter(|finding| finding.limit != limit).collect();
    let beside = rule::BESIDE.iter().filter(|_| waits == Waits::Path).filter_map(|rule| rule(facts));
    left_open
        .into_iter()
        .chain([binding])
        .chain(beside.filter(|finding| finding.limit != limit))
        .chain(further)
        .collect()
}

/// With much missing from the capture only pauses are known, none of them for certain.
fn of_pauses(facts: &Facts, conversation: &Conversation, waits: Waits, share: f64) -> Finding {
    let missing = Evidence::share(fact::CaptureLacks, conversation.missing).at_least(CAPTURE_LACKS);
    let is_known = matches!(waits, Waits::Client | Waits::Server | Waits::Writer | Waits::RoundTrips);
    let mut finding = match is_known && share >= part::MOST {
        true => of(facts, conversation, waits, share),
        false => Finding::new(Limit::Unknown, Place::path(), Confidence::Low),
    };
    finding.confidence = Confidence::Low;
    finding.evidence([missing])
}

/// Whether one of the ends is waited for: a separate part of the time, whatever the path does in the rest.
const fn is_of_an_end(waits: Waits) -> bool {
    matches!(
        waits,
        Waits::Client | Waits::Server | Waits::Writer | Waits::Reader | Waits::ReceiveWindow | Waits::Nagle
    )
}

/// The finding for a part of the time, by what is waited for.
pub fn of(facts: &Facts, conversation: &Conversation, waits: Waits, share: f64) -> Finding {
    if matches!(waits, Waits::Client | Waits::Server)
        && let Some(finding) = both_pause(facts, conversation)
    {
        return finding;
    }
    let of_time =
        |state: TimeState| Evidence::share(fact::TimeShare { time: None }, share).named(state.name());
    let plain = |limit, place| Finding::new(limit, place, sure(share));
    match waits {
        Waits::Client => program(facts, conversation, Role::Client, TimeState::NotAsked, share),
        Waits::Server => {
            program(facts, conversation, Role::Server, TimeState::Answering, share).cause(Cause::ResponseTime)
        }
        Waits::Writer => {
            program(facts, conversation, conversation.sender, TimeState::SenderApplication, share)
        }
        Waits::RoundTrips => round_trips(facts, conversation, share),
        Waits::Reader => {
            let name = &facts.receiver.name;
            plain(Limit::SlowReader, Place::receiver(name))
                .evidence([waited(conversation, TimeState::ReceiverApplication, 0).on(name)])
                .remedy(Remedy::new(Action::FreeReader).host(name))
        }
        Waits::ProgramWindow => plain(Limit::ProgramWindow, giver(facts, conversation))
            .evidence([of_time(TimeState::ProgramWindow)])
            .evidence(stopped_at(facts, conversation))
            .remedy(Remedy::new(Action::LargerProgramWindow)),
        Waits::Connection => plain(Limit::RoundTrips, Place::path()).cause(Cause::Handshake).evidence([
            of_time(TimeState::Unanswered),
            Evidence::count(
                fact::SynsSent { time: Nanos(spent_on(conversation, TimeState::Unanswered)) },
                conversation.syns,
            )
            .on(server(facts, conversation)),
        ]),
        Waits::Unknown | Waits::Uncaptured => unknown::judge(facts),
        _ => rule::cause(facts, waits).unwrap_or_else(|| part::plain(facts, waits, share)),
    }
}

/// Time in a state, with the number of waits.
fn waited(conversation: &Conversation, state: TimeState, waits: u64) -> Evidence {
    let (share, total) = (conversation.spent.share(state), conversation.spent.total_ns());
    Evidence::share(fact::WaitedForProgram { time: Nanos((share * total as f64) as u64), waits }, share)
}

/// The connection waits for the program of an end.
fn program(facts: &Facts, conversation: &Conversation, whose: Role, state: TimeState, share: f64) -> Finding {
    let limit = if state == TimeState::NotAsked { Limit::ClientIdle } else { Limit::SlowWriter };
    let is_own = whose == conversation.sender;
    let end = if is_own { &facts.sender } else { &facts.receiver };
    let place = if is_own { Place::sender(&end.name) } else { Place::receiver(&end.name) };
    let waits = if is_own { conversation.own_waits } else { conversation.other_waits };
    let of_all = conversation.spent.share(state) * conversation.spent.total_ns() as f64;
    let each_ns = of_all / waits.max(1) as f64;
    let rtt = facts.rtt_least().map_or(0.0, |rtt| rtt.0 as f64);
    // A wait not much longer than a round trip may include it, and an unfinished wait may be for either end.
    let is_unproved = each_ns < NO_WAY * rtt || conversation.is_unproved();
    let confidence = match sure(share) {
        Confidence::High if is_unproved => Confidence::Medium,
        other => other,
    };
    let remedy = match (limit, state) {
        (Limit::ClientIdle, _) => None,
        (_, TimeState::Answering) => Some(Action::FreeServer),
        _ => Some(Action::FreeWriter),
    };
    Finding::new(limit, place, confidence)
        .evidence([waited(conversation, state, waits).on(&end.name)])
        .remedy(remedy.map(|action| Remedy::new(action).host(&end.name)))
}

/// Both ends make the other one wait for long, as people do: neither is slow.
fn both_pause(facts: &Facts, conversation: &Conversation) -> Option<Finding> {
    const EACH: f64 = 0.25;
    const LONG: Nanos = Nanos::millis(250);
    let total = conversation.spent.total_ns() as f64;
    let (own, other) = (conversation.sender.wait(), conversation.sender.other().wait());
    let each = [
        (&facts.sender.name, own, conversation.own_waits),
        (&facts.receiver.name, other, conversation.other_waits),
    ];
    let pause = |&(_, state, waits): &(&String, TimeState, u64)| {
        let share = conversation.spent.share(state);
        share >= EACH && share * total >= LONG.0 as f64 * waits.max(1) as f64
    };
    each.iter().all(pause).then(|| {
        let evidence = each.iter().map(|&(name, state, waits)| waited(conversation, state, waits).on(name));
        Finding::new(Limit::ClientIdle, client(facts, conversation).1, Confidence::Medium).evidence(evidence)
    })
}

/// The end whose program decides how much may be in flight.
pub fn giver(facts: &Facts, conversation: &Conversation) -> Place {
    match conversation.gives_room == conversation.sender {
        true => Place::sender(&facts.sender.name),
        false => Place::receiver(&facts.receiver.name),
    }
}

/// The requesting end.
fn client<'a>(facts: &'a Facts, conversation: &Conversation) -> (&'a str, Place) {
    match conversation.sender {
        Role::Client => (&facts.sender.name, Place::sender(&facts.sender.name)),
        Role::Server => (&facts.receiver.name, Place::receiver(&facts.receiver.name)),
    }
}

/// The responding end.
fn server<'a>(facts: &'a Facts, conversation: &Conversation) -> &'a str {
    match conversation.sender {
        Role::Client => &facts.receiver.name,
        Role::Server => &facts.sender.name,
    }
}

/// Time in a state, nanoseconds.
fn spent_on(conversation: &Conversation, state: TimeState) -> u64 {
    (conversation.spent.share(state) * conversation.spent.total_ns() as f64) as u64
}

/// Consecutive round trips: to connect, to agree on keys, to request and be answered. The longest part is the cause.
fn round_trips(facts: &Facts, conversation: &Conversation, share: f64) -> Finding {
    let setup = [(TimeState::TlsSetup, Cause::TlsSetup), (TimeState::Handshake, Cause::Handshake)];
    let of = |state: TimeState| conversation.spent.share(state);
    let took = |&(state, _): &(TimeState, Cause)| of(state) > 0.0 && of(state) >= of(TimeState::RoundTrips);
    let longest = setup.into_iter().filter(took).max_by(|a, b| of(a.0).total_cmp(&of(b.0)));
    let Some((_, cause)) = longest else { return turns(facts, conversation, share) };
    let each = [TimeState::Handshake, TimeState::TlsSetup, TimeState::RoundTrips]
        .into_iter()
        .filter(|&state| of(state) > 0.0)
        .map(|state| {
            Evidence::share(fact::TimeShare { time: Some(Nanos(spent_on(conversation, state))) }, of(state))
                .named(state.name())
        });
    Finding::new(Limit::RoundTrips, Place::path(), sure(share))
        .cause(cause)
        .evidence(each)
        .remedy(Remedy::new(Action::ReuseConnection))
}

/// The same amount was sent each time.
fn stopped_at(facts: &Facts, conversation: &Conversation) -> Option<Evidence> {
    let mss = facts.mss_bytes.unwrap_or(1);
    let stops = conversation.stops_at_amount;
    (stops >= STOPS.0 && conversation.amount_bytes >= STOPS.1 * mss).then(|| {
        Evidence::count(fact::StoppedAtAmount { amount: Bytes(conversation.amount_bytes as f64) }, stops)
    })
}

/// More than one segment was never acknowledged, and all smaller ones got through.
fn swallowed(facts: &Facts) -> Option<Finding> {
    let is_full = facts.sent.last().and_then(|last| last.unacked).is_some_and(|unacked| unacked > 1);
    black_hole::judge(facts).filter(|_| is_full)
}

/// A segment larger than all acknowledged ones was never acknowledged: a hop drops oversized packets silently.
pub fn oversized(facts: &Facts, conversation: &Conversation) -> Option<Finding> {
    let found = conversation.oversized.filter(|_| conversation.sent_in_vain >= IN_VAIN)?;
    let confidence = if found.is_heard { Confidence::High } else { Confidence::Medium };
    let finding = Finding::new(Limit::MtuBlackHole, Place::path(), confidence)
        .evidence([
            Evidence::count(
                fact::SentInVain { time: Nanos(conversation.in_vain_ns) },
                conversation.sent_in_vain,
            )
            .at_least(IN_VAIN as f64)
            .on(&facts.receiver.name),
            Evidence::bytes(
                fact::LargerThanPassed { passed: Bytes(found.passed_bytes as f64) },
                found.bytes as f64,
            ),
        ])
        .remedy(Remedy::new(Action::ProbeMtu).host(&facts.sender.name));
    Some(finding)
}

/// Consecutive requests and responses.
fn turns(facts: &Facts, conversation: &Conversation, share: f64) -> Finding {
    let took = Nanos(spent_on(conversation, TimeState::RoundTrips));
    let each = Nanos(took.0 / conversation.turns.max(1));
    let turns =
        Evidence::share(fact::TurnsTook { time: took, turns: conversation.turns, round_trip: each }, share);
    Finding::new(Limit::RoundTrips, Place::path(), sure(share))
        .evidence([turns])
        .evidence(stopped_at(facts, conversation))
        .remedy(Remedy::new(Action::AskMore))
}

/// The connection was not established.
fn not_made(facts: &Facts, conversation: &Conversation, refusal: Refusal) -> Finding {
    let name = &facts.receiver.name;
    let tried = Nanos(conversation.spent.total_ns());
    let (cause, place) = match refusal {
        Refusal::NoAnswer => (Cause::NoAnswer, Place::receiver(name)),
        Refusal::Reset => (Cause::Refused, Place::receiver(name)),
        Refusal::Unreachable => (Cause::Unreachable, Place::path()),
    };
    let syns = Evidence::count(fact::SynsSent { time: tried }, conversation.syns).on(name);
    Finding::new(Limit::NotEstablished, place, Confidence::High)
        .cause(cause)
        .evidence([syns])
        .remedy(Remedy::new(Action::OpenPort).host(name))
}

/// A transfer that stopped midway, as seen away from its sender: nothing of it gets through, or its host is gone.
fn broken_off(facts: &Facts, conversation: &Conversation) -> Finding {
    let gap = Nanos(conversation.broken_off_ns);
    let share = gap.0 as f64 / conversation.spent.total_ns().max(1) as f64;
    let round_trips = facts.rtt_least().map_or(0, |rtt| gap.0 / rtt.0.max(1));
    Finding::new(Limit::PathChanged, Place::path(), Confidence::Medium)
        .evidence([
            Evidence::time(fact::Gap { round_trips }, gap),
            Evidence::share(fact::GapShare, share).at_least(OTHERS_TURN),
        ])
        .remedy(Remedy::new(Action::FindOutage))
}

/// The peer no longer takes the data.
fn peer_gone(facts: &Facts, conversation: &Conversation) -> Finding {
    let name = &facts.receiver.name;
    Finding::new(Limit::PeerGone, Place::receiver(name), Confidence::High)
        .evidence([Evidence::count(
            fact::SentInVain { time: Nanos(conversation.in_vain_ns) },
            conversation.sent_in_vain,
        )
        .at_least(IN_VAIN as f64)
        .on(name)])
        .remedy(Remedy::new(Action::FindHost).host(name))
}
