//! Kinds of connections, each as one end's kernel has it: what limits it is who is waited for.

use bdp_model::finding::fact::{self, Bytes};
use bdp_model::finding::{Action, Cause, Confidence, Fact, Finding, Lack};

use super::*;

mod in_vain;

const MS: u64 = 1_000_000;
/// The other end's kernel acknowledges alone what its program has not answered by then.
const PATIENCE: u64 = 40 * MS;
const ENDS: [bool; 2] = [false, true];

/// Questions and answers, one after the other.
#[derive(Clone, Copy)]
struct Talk {
    rtt: u64,
    server: u64,
    think: u64,
}

impl Talk {
    /// As the client's kernel has it, or the server's.
    fn at(self, now: u64, is_server: bool) -> Script {
        const QUESTION: u64 = 120;
        const ANSWER: u64 = 900;
        let Self { rtt, server, think } = self;
        let cycle = rtt + server + think;
        // Since long ago; the server hears of it half a round trip later.
        let now = now + 1000 * cycle - if is_server { rtt / 2 } else { 0 };
        let (k, p) = (now / cycle, now % cycle);
        let (own_at, heard_at) = if is_server { (server, 0) } else { (0, rtt + server) };
        let (waits_there, waits_here) = if is_server { (think, server) } else { (server, think) };
        let is_alone = waits_there > PATIENCE;
        // What this end says is acknowledged by what the other one says next, or alone.
        let acked_at = if is_alone { own_at + rtt + PATIENCE } else { own_at + rtt + waits_there };
        let bare_at = heard_at + PATIENCE;
        let since = |at: u64| if p >= at { p - at } else { p + cycle - at };
        let done = |at: u64| k + u64::from(p >= at);
        let is_acked = p < own_at || p >= acked_at;
        let (own, other) = if is_server { (ANSWER, QUESTION) } else { (QUESTION, ANSWER) };
        let (said, heard) = (done(own_at), done(heard_at));
        let (bare_in, bare_out) = (
            if is_alone { k + u64::from(p >= acked_at) } else { 0 },
            if waits_here > PATIENCE { k + u64::from(p >= bare_at) } else { 0 },
        );
        let mut script = Script::new(7);
        script.is_server = is_server;
        let rtt_us = (rtt / 1000) as u32;
        script.word(68, rtt_us).word(148, rtt_us).word(228, 65_000).word(24, u32::from(!is_acked));
        script.info[7] = if cfg!(target_endian = "little") { 1 } else { 0x80 };
        let acknowledged = if is_alone { since(acked_at).min(since(heard_at)) } else { since(heard_at) };
        script.word(44, (since(own_at) / MS) as u32);
        script.word(52, (since(heard_at) / MS) as u32);
        script.word(56, (acknowledged / MS) as u32);
        script.word(136, (said + bare_out) as u32).word(140, (heard + bare_in) as u32);
        script.word(152, heard as u32).word(156, said as u32);
        script.long(120, (said - u64::from(!is_acked)) * own).long(128, heard * other).long(200, said * own);
        let busy = acked_at - own_at;
        let this = if p < own_at { 0 } else { (p - own_at).min(busy) };
        script.long(168, (k * busy + this) / 1000);
        script.queued = if is_acked { 0 } else { own as u32 };
        script
    }

    fn found(self, is_server: bool) -> Finding {
        last(&mut Scripted::new(move |now| Some(vec![self.at(now, is_server)])))
    }
}

/// The finding after five seconds.
fn last<F: FnMut(u64) -> Option<Vec<Script>>>(world: &mut Scripted<F>) -> Finding {
    let (intervals, _) = world.run(5);
    intervals[4].sockets[0].finding.clone().unwrap_or_else(|| panic!("{:#?}", intervals[4]))
}

fn of(script: impl Fn(u64) -> Script) -> Finding {
    last(&mut Scripted::new(move |now| Some(vec![script(now)])))
}

/// Whose it is: this end's or the other's.
fn place(finding: &Finding) -> &str {
    finding.place.name.as_deref().unwrap_or_default()
}

const HERE: &str = "this host";
const THERE: &str = "198.51.100.7";

#[test]
fn server_that_takes_60_ms_for_each_answer_is_waited_for() {
    // The last one goes round in just the time between two readings.
    for (rtt, server) in [(20_000, 60 * MS), (2 * MS, 60 * MS), (40 * MS, 67 * MS), (40 * MS, 60 * MS)] {
        for is_server in ENDS {
            let talk = Talk { rtt, server, think: 0 };
            let finding = talk.found(is_server);
            assert_eq!(
                (finding.limit, finding.cause),
                (Limit::SlowWriter, Some(Cause::ResponseTime)),
                "{finding:#?}"
            );
            assert_eq!(place(&finding), if is_server { HERE } else { THERE }, "{finding:#?}");
            assert_eq!(finding.remedy.unwrap().action, Action::FreeServer);
        }
    }
}

#[test]
fn client_that_pauses_is_waited_for() {
    for (rtt, server) in [(20_000, MS), (40 * MS, 3 * MS)] {
        for is_server in ENDS {
            let finding = Talk { rtt, server, think: 700 * MS }.found(is_server);
            assert_eq!(finding.limit, Limit::ClientIdle, "{finding:#?}");
            assert_eq!(place(&finding), if is_server { THERE } else { HERE }, "{finding:#?}");
        }
    }
}

#[test]
fn questions_that_are_answered_at_once_take_round_trips() {
    for is_server in ENDS {
        let finding = Talk { rtt: 41 * MS, server: 100_000, think: 0 }.found(is_server);
        assert_eq!(
            (finding.limit, finding.confidence),
            (Limit::RoundTrips, Confidence::High),
            "{finding:#?}"
        );
        assert_eq!(finding.remedy.unwrap().action, Action::AskMore);
    }
}

#[test]
fn quota_that_holds_a_server_back_is_what_its_client_waits_for() {
    let talk = Talk { rtt: MS, server: 150 * MS, think: 0 };
    let mut world = Scripted::new(move |now| Some(vec![talk.at(now, true)]));
    world.quota = |now| {
        let periods = now / (100 * MS);
        Some(Throttling { periods: periods * 89 / 92, of_periods: periods, time_ns: now * 8 / 10 })
    };
    let finding = last(&mut world);
    assert_eq!((finding.limit, finding.cause), (Limit::Cpu, Some(Cause::Throttled)), "{finding:#?}");
    assert_eq!(place(&finding), HERE);
    assert_eq!(finding.remedy.unwrap().action, Action::RaiseQuota);
    // One that is seldom used up is no reason.
    let mut world = Scripted::new(move |now| Some(vec![talk.at(now, true)]));
    world.quota =
        |now| Some(Throttling { periods: now / SECOND, of_periods: now / (100 * MS), time_ns: now / 50 });
    assert_eq!(last(&mut world).limit, Limit::SlowWriter);
}

#[test]
fn connection_that_is_not_answered_is_never_a_slow_writer() {
    for (state, info) in [(2, true), (3, false)] {
        let calling = move |now: u64| {
            let mut script = Script::new(7);
            (script.state, script.queued, script.tries) = (state, 1, (now / SECOND) as u8);
            script.info[0] = state;
            if !info {
                script.info.clear();
            }
            script
        };
        let mut world = Scripted::new(move |now| Some(vec![calling(now)]));
        let (intervals, _) = world.run(5);
        // The first SYN may still be answered.
        let first = &intervals[0].sockets[0];
        assert!(first.finding.as_ref().is_none_or(|f| f.confidence < Confidence::High), "{first:?}");
        let finding = intervals[4].sockets[0].finding.clone().unwrap();
        assert_eq!((finding.limit, finding.cause), (Limit::NotEstablished, Some(Cause::NoAnswer)));
        assert_eq!(
            (finding.confidence, finding.observed(Fact::SynsSent).unwrap().value),
            (Confidence::High, 6.0)
        );
    }
}

#[test]
fn connection_that_was_seen_while_it_was_made_is_explained_from_then_on() {
    let accepted = |now: u64| {
        let mut script = window_limited(now.saturating_sub(300 * MS));
        script.is_server = true;
        if now < 300 * MS {
            (script.state, script.queued) = (3, 0);
            script.info.clear();
        }
        Some(vec![script])
    };
    let (intervals, watched) = Scripted::new(accepted).run(3);
    for interval in &intervals[1..] {
        assert_eq!(finding(interval, 0), Some(Limit::ReceiveWindow), "{interval:#?}");
    }
    let total = &watched.summary.unwrap().sockets[0];
    assert_eq!((total.limits[0].limit, total.watched_ns), (Limit::ReceiveWindow, 3 * SECOND));
    assert!(total.last.limited.is_some() && total.retransmits == Some(0), "{total:#?}");
}

#[test]
fn three_round_trips_are_too_few_to_be_sure() {
    for lives in [150, 250, 350, 700] {
        let talk = Talk { rtt: 100 * MS, server: 2 * MS, think: 0 };
        let short =
            move |now: u64| Some(if now < lives * MS { vec![talk.at(now, false)] } else { Vec::new() });
        let (intervals, watched) = Scripted::new(short).run(2);
        let findings = intervals.iter().flat_map(|i| &i.sockets).filter_map(|s| s.finding.as_ref());
        let totals = watched.summary.unwrap().sockets;
        let limits: Vec<&Finding> =
            totals.iter().flat_map(|t| &t.limits).map(|l| &l.finding).chain(findings).collect();
        assert!(limits.iter().all(|f| f.confidence < Confidence::High), "{lives}: {limits:#?}");
        assert!(lives > 400 || limits.is_empty(), "{lives}: {limits:#?}");
    }
}

/// A sender of 20 segments each 40 ms, with room in both windows.
fn steady(now: u64, each: u64) -> Script {
    let mut script = Script::new(7);
    let acked = now / (40 * MS) * each;
    script.word(68, 40_000).word(148, 40_000).word(228, 3_000_000).word(80, 200).word(76, 150);
    script.word(24, (each / 1448) as u32).long(120, acked).long(200, acked + each).long(168, now / 1000);
    script.word(192, (acked / 1448) as u32).word(156, (acked / 1448) as u32);
    script.queued = each as u32;
    script
}

#[test]
fn send_buffer_that_a_program_asked_for_is_full_of_data_in_flight() {
    let full = |now: u64| {
        let mut script = steady(now, 20 * 1448);
        script.info[7] = if cfg!(target_endian = "little") { 1 } else { 0x80 };
        script.memory = Some((65_536, 52_000, 131_072));
        script
    };
    for asked in [Some((true, false)), None] {
        let mut world = Scripted::new(|now| Some(vec![full(now)]));
        world.asked = asked;
        let finding = last(&mut world);
        assert_eq!(finding.limit, Limit::SendBuffer, "{finding:#?}");
        assert_eq!(finding.cause, asked.map(|_| Cause::SocketBufferAsked));
    }
    // One that would grow is as full of a program that has no more to write.
    let mut world = Scripted::new(|now| Some(vec![full(now)]));
    world.asked = Some((false, false));
    assert_eq!(last(&mut world).limit, Limit::SlowWriter);
}

#[test]
fn receive_buffer_that_a_program_asked_for_does_not_grow() {
    let receiving = |now: u64| {
        let mut script = Script::new(7);
        script.long(128, now / 20_000_000 * 65_536).word(232, 65_536).word(92, 20_000);
        script.memory = Some((87_040, 0, 131_072));
        Some(vec![script])
    };
    let of = |asked| {
        let mut world = Scripted::new(receiving);
        world.asked = asked;
        world.host.sysctls.insert("net.ipv4.tcp_rmem".to_owned(), "4096 131072 6291456".to_owned());
        last(&mut world)
    };
    let locked = of(Some((false, true)));
    assert_eq!((locked.limit, locked.cause), (Limit::ReceiveWindow, Some(Cause::SocketBufferAsked)));
    assert!(
        locked.observed(Fact::BufferBelowMaximum).is_none()
            && locked.missing.iter().all(|m| m.what != Lack::WindowBound)
    );
    assert_eq!(locked.remedy.unwrap().setting.as_deref(), Some("SO_RCVBUF"));
    // Where nobody may ask, it is not known.
    let unknown = of(None);
    assert_eq!((unknown.cause, unknown.missing[0].what), (None, Lack::WindowBound));
    assert_eq!(of(Some((false, false))).cause, Some(Cause::BelowMaximum));
}

#[test]
fn what_a_pipeline_has_in_flight_is_its_programs_window() {
    let pipeline = |now: u64| {
        let mut script = steady(now, 180 * 1448);
        script.word(80, 600).long(128, now / (5 * MS) * 40);
        script.word(152, (now / (5 * MS)) as u32);
        script.info[7] = if cfg!(target_endian = "little") { 1 } else { 0x80 };
        script.memory = Some((525_312, 415_000, 131_072));
        script
    };
    let mut world = Scripted::new(|now| Some(vec![pipeline(now)]));
    world.asked = Some((false, false));
    world.program = "sftp";
    let finding = last(&mut world);
    assert_eq!((finding.limit, place(&finding)), (Limit::ProgramWindow, HERE), "{finding:#?}");
    assert_eq!(finding.figures(), Some(fact::StoppedAtAmount { amount: Bytes(180.0 * 1448.0) }));
    // Of a server's data the client asks for so much, or gives room for it.
    let mut world = Scripted::new(|now| {
        let mut script = pipeline(now);
        script.is_server = true;
        Some(vec![script])
    });
    world.asked = Some((false, false));
    world.program = "sftp";
    assert_eq!(place(&last(&mut world)), THERE);
    // Nor does it matter that it began later.
    let mut world = Scripted::new(|now| {
        let mut script = pipeline(now);
        if now < 2 * SECOND {
            script.word(24, 1);
            script.queued = 60;
        }
        Some(vec![script])
    });
    world.asked = Some((false, false));
    world.program = "sftp";
    assert_eq!(last(&mut world).limit, Limit::ProgramWindow);
}

#[test]
fn losses_at_the_idle_round_trip_are_the_paths() {
    let lossy = |now: u64| {
        let mut script = steady(now, 20 * 1448);
        script
            .word(80, 20)
            .word(76, 14)
            .word(68, 40_800)
            .word(144, 500_000)
            .word(100, (now / (300 * MS)) as u32);
        script.queued += 500_000;
        script
    };
    let finding = of(lossy);
    assert_eq!(finding.limit, Limit::RandomLoss, "{finding:#?}");
    assert_eq!(finding.confidence, Confidence::Medium);
}

#[test]
fn path_that_is_full_is_the_limit_though_slow_start_overflowed_it_once() {
    let full = |now: u64| {
        let mut script = steady(now, 60 * 1448);
        // A queue of 50 ms beside a round trip of 40 ms, and 300 segments lost at once.
        script
            .word(80, 60)
            .word(76, 58)
            .word(68, 90_000)
            .word(144, 800_000)
            .word(100, if now < 200 * MS { 0 } else { 300 });
        script.queued += 800_000;
        script
    };
    let finding = of(full);
    assert_eq!(finding.limit, Limit::PathRate, "{finding:#?}");
}

#[test]
fn congestion_window_that_stays_has_not_grown() {
    let small = |now: u64| {
        let mut script = steady(now, 10 * 1448);
        script.word(80, 10).word(76, 0x7fff_ffff).word(144, 100_000);
        script.queued += 100_000;
        script
    };
    let finding = of(small);
    assert!(finding.observed(Fact::WindowGrew).is_none(), "{finding:#?}");
}

#[test]
fn program_that_writes_without_being_asked_is_the_writer() {
    // Ten kilobytes each 5 ms, with a word from the other end each second.
    let stream = |now: u64| {
        let mut script = steady(now, 0);
        let sent = now / (5 * MS) * 10_000;
        script.long(200, sent + 80_000).long(120, sent).word(24, 56).word(156, (sent / 1448) as u32);
        script
            .long(128, now / SECOND * 50)
            .word(152, (now / SECOND) as u32)
            .word(44, (now % (5 * MS) / MS) as u32);
        script.word(52, (now % SECOND / MS) as u32);
        script.info[7] = if cfg!(target_endian = "little") { 1 } else { 0x80 };
        script.queued = 80_000;
        script
    };
    let finding = of(stream);
    assert_eq!(
        (finding.limit, finding.cause, place(&finding)),
        (Limit::SlowWriter, None, HERE),
        "{finding:#?}"
    );
}

/// A receiver to which so many bytes come in each of so long, with the round trip of its handshake and that of its data.
fn receiver(now: u64, every: u64, bytes: u64, least_ms: u32, rtt_ms: u32) -> Script {
    let mut script = Script::new(7);
    script.word(68, least_ms * 1000).word(148, least_ms * 1000).word(92, rtt_ms * 1000).word(232, 4_000_000);
    script.long(128, now / every * bytes).word(152, (now / every * bytes / 1448) as u32);
    script.info[5] = 1;
    script.word(52, (now % every / MS) as u32).word(140, (now / every * bytes / 1448) as u32);
    script
}

#[test]
fn receiver_sees_a_queue_by_the_round_trip_of_data_that_never_stops() {
    let full = |now: u64| receiver(now, 2 * MS, 5_000, 40, 75);
    let finding = of(full);
    assert_eq!((finding.limit, finding.confidence), (Limit::PathRate, Confidence::Medium), "{finding:#?}");
    assert_eq!(finding.missing[0].what, Lack::SenderFigures);
    assert_eq!(finding.observed(Fact::RoundTripAboveLeast).unwrap().value, 35e6);
    // Losses of slow start change nothing.
    let overflowed = |now: u64| {
        let mut script = full(now);
        script.word(224, if now < 500 * MS { 0 } else { 200 });
        script
    };
    assert_eq!(of(overflowed).limit, Limit::PathRate);
    // Nor is a round trip known without timestamps.
    let unstamped = |now: u64| {
        let mut script = full(now);
        script.info[5] = 0;
        script
    };
    assert_eq!(of(unstamped).limit, Limit::Unknown);
    // Without one, nobody knows from here.
    assert_eq!(of(|now| receiver(now, 2 * MS, 5_000, 40, 45)).limit, Limit::Unknown);
}

#[test]
fn receiver_that_waits_longer_than_the_way_takes_waits_for_the_writer() {
    // The timestamps echoed are as old as the gaps are long: no queue.
    for (every, least, rtt) in [(330 * MS, 20, 250), (128 * MS, 30, 120), (1000 * MS, 20, 40)] {
        let finding = of(move |now| receiver(now, every, 60_000, least, rtt));
        assert_eq!((finding.limit, place(&finding)), (Limit::SlowWriter, THERE), "{finding:#?}");
        assert!(finding.confidence < Confidence::High);
        assert_eq!(finding.missing[0].what, Lack::SenderFigures);
    }
    // So does one whose host stands still, though what it sends then overflows a queue.
    let stopped = |now: u64| {
        let mut script = receiver(now, SECOND, 2_000_000, 20, 38);
        script.word(224, (now / SECOND * 40) as u32);
        script
    };
    assert_eq!(of(stopped).limit, Limit::SlowWriter);
    // A window that is sent each round trip leaves gaps that the way explains.
    assert_eq!(of(|now| receiver(now, 60 * MS, 60_000, 60, 60)).limit, Limit::Unknown);
}

#[test]
fn receiver_sees_losses_by_what_comes_out_of_order_at_the_idle_round_trip() {
    let lossy = |now: u64| {
        let mut script = receiver(now, 40 * MS, 30_000, 40, 41);
        script.word(224, (now / (200 * MS)) as u32);
        script
    };
    let finding = of(lossy);
    assert_eq!((finding.limit, finding.confidence), (Limit::RandomLoss, Confidence::Low), "{finding:#?}");
    assert!(finding.observed(Fact::CameOutOfOrder).unwrap().value >= 20.0);
}

#[test]
fn question_asked_before_the_first_reading_waits_for_its_answer() {
    for is_server in ENDS {
        let waiting = move |now: u64| {
            let mut script = Script::new(7);
            script.is_server = is_server;
            let ago = (now / MS) as u32 + 60;
            let (bytes, counts) = if is_server { (128, [152, 140, 136]) } else { (120, [156, 136, 140]) };
            script.long(bytes, 91).word(228, 65_000).word(counts[0], 1).word(counts[1], 2).word(counts[2], 2);
            // The server's socket was made a round trip before, and the question acknowledged one later.
            let [sent, received, acknowledged] =
                if is_server { [ago + 20, ago, ago] } else { [ago, ago + 20, ago - 20] };
            script.word(44, sent).word(52, received).word(56, acknowledged);
            script
        };
        let (intervals, watched) = Scripted::new(move |now| Some(vec![waiting(now)])).run(3);
        let finding = intervals[2].sockets[0].finding.clone().unwrap_or_else(|| panic!("{intervals:#?}"));
        assert_eq!(
            (finding.limit, finding.cause, place(&finding)),
            (Limit::SlowWriter, Some(Cause::ResponseTime), if is_server { HERE } else { THERE }),
            "{finding:#?}"
        );
        assert_eq!(watched.summary.unwrap().sockets.len(), 1);
    }
}

#[test]
fn turn_that_takes_longer_than_from_one_reading_to_the_next_is_on_its_way() {
    for is_server in ENDS {
        let finding = Talk { rtt: 400 * MS, server: 2 * MS, think: 0 }.found(is_server);
        assert_eq!(finding.limit, Limit::RoundTrips, "{finding:#?}");
        // A program that takes longer than that is waited for none the less.
        let finding = Talk { rtt: 400 * MS, server: 1500 * MS, think: 0 }.found(is_server);
        assert_eq!(finding.limit, Limit::SlowWriter, "{finding:#?}");
    }
}

#[test]
fn client_that_sends_far_more_than_it_hears_is_a_writer() {
    // A window's worth of data each 400 ms, with a word of the other program after it.
    let chunks = |now: u64, is_server: bool| {
        let (cycle, rtt) = (400 * MS, 20 * MS);
        let now = now + 1000 * cycle;
        let (k, p) = (now / cycle, now % cycle);
        let mut script = Script::new(7);
        script.is_server = is_server;
        script.word(68, 20_000).word(148, 20_000).word(228, 500_000).word(232, 500_000).word(80, 200);
        let (data, words) = (k * 65_536, k + u64::from(p >= rtt) - 1);
        let segments = (k * 46) as u32;
        let [at, heard_at] = if is_server { [rtt, 0] } else { [0, rtt] };
        let since = |at: u64| ((if p >= at { p - at } else { p + cycle - at }) / MS) as u32;
        script.word(44, since(at)).word(52, since(heard_at)).word(56, since(heard_at));
        if is_server {
            script.long(128, data).long(120, words * 60).long(200, words * 60);
            script.word(152, segments).word(156, words as u32).word(140, segments + 5).word(136, segments);
        } else {
            script.long(120, data).long(200, data).long(128, words * 60);
            script.word(156, segments).word(152, words as u32).word(136, segments).word(140, segments);
            script.long(168, k * rtt / 1000);
        }
        script
    };
    for is_server in ENDS {
        let finding = of(move |now| chunks(now, is_server));
        assert_eq!(
            (finding.limit, place(&finding)),
            (Limit::SlowWriter, if is_server { THERE } else { HERE }),
            "{finding:#?}"
        );
    }
}

#[test]
fn data_that_comes_without_being_asked_for_waits_for_its_writer() {
    // A word each 350 ms to a client that said something once.
    let news = |now: u64| {
        let mut script = receiver(now, 350 * MS, 900, 20, 30);
        let heard = (now / (350 * MS)) as u32 + 5;
        script
            .word(152, heard)
            .word(140, heard + 3)
            .word(156, 3)
            .word(136, 3 + heard)
            .long(120, 300)
            .long(200, 300);
        if now < 200 * MS {
            script.word(156, 1).long(120, 100).long(200, 100);
        }
        script.word(44, (now / MS) as u32);
        script
    };
    let finding = of(news);
    assert_eq!((finding.limit, place(&finding)), (Limit::SlowWriter, THERE), "{finding:#?}");
}

#[test]
fn who_ends_a_silence_was_waited_for_whoever_spoke_last() {
    // The server has acknowledged a request by a word of its program, and answers four seconds later.
    for is_server in ENDS {
        let slow = move |now: u64| {
            let is_late = now >= 4100 * MS;
            let before = u32::from(now < 150 * MS);
            let mut script = Script::new(7);
            script.is_server = is_server;
            let ((said, heard), (own, other)) = if is_server {
                ((2 + u32::from(is_late), 2), (308 + 5 * u64::from(is_late), 440))
            } else {
                ((2, 2 + u32::from(is_late)), (440, 308 + 5 * u64::from(is_late)))
            };
            let (said, heard, own, other) = (
                said - before,
                heard - before,
                own - 100 * u64::from(before),
                other - 100 * u64::from(before),
            );
            script.word(156, said).word(152, heard).word(136, said + 2).word(140, heard + 2);
            script.long(120, own).long(200, own).long(128, other).word(228, 65_000);
            let since = (if is_late { now - 4100 * MS } else { now + 500 * MS } / MS) as u32;
            let long = (now / MS) as u32 + 540;
            let [sent, received] = if is_server { [since, long] } else { [long, since] };
            script.word(44, sent).word(52, received).word(56, sent.min(received));
            script
        };
        let finding = of(slow);
        assert_eq!(
            (finding.limit, place(&finding)),
            (Limit::SlowWriter, if is_server { HERE } else { THERE }),
            "{finding:#?}"
        );
    }
}

#[test]
fn receiver_of_a_short_transfer_sees_slow_start() {
    // Ten segments in the first round trip of 200 ms, and twice as many in each that follows.
    let doubling = |now: u64| {
        let (trip, part) = (now / (200 * MS), (now % (200 * MS)) as f64 / (200 * MS) as f64);
        let segments = match trip {
            0 => 0.0,
            1..=6 => 10.0 * ((1u64 << (trip - 1)) as f64 * (1.0 + part) - 1.0),
            _ => 630.0,
        };
        let mut script = Script::new(7);
        script.word(68, 200_000).word(148, 200_000).word(92, 200_000).word(232, 4_000_000);
        script.long(128, (segments * 1448.0) as u64).word(152, segments as u32).word(140, segments as u32);
        script.word(52, 5);
        Some(if now < 1400 * MS { vec![script] } else { Vec::new() })
    };
    let (_, watched) = Scripted::new(doubling).run(2);
    let total = &watched.summary.unwrap().sockets[0];
    assert_eq!(total.limits[0].limit, Limit::SlowStart, "{total:#?}");
    // Its own window grows with what comes, and is no limit of it.
    let autotuned = |now: u64| {
        let mut sockets = doubling(now)?;
        for script in &mut sockets {
            let received = u64::from_ne_bytes(script.info[128..136].try_into().unwrap()) as u32;
            script.word(232, 80_000 + received);
        }
        Some(sockets)
    };
    let (_, watched) = Scripted::new(autotuned).run(2);
    assert_eq!(watched.summary.unwrap().sockets[0].limits[0].limit, Limit::SlowStart);
}

#[test]
fn what_was_said_before_data_flows_does_not_hide_a_window() {
    // Two seconds of a login, and a full window each 20 ms since then.
    let receiving = |now: u64| {
        let flows = now.saturating_sub(2 * SECOND);
        let mut script = Script::new(7);
        script
            .long(128, now / (50 * MS) * 30 + flows / (20 * MS) * 65_536)
            .word(232, 65_536)
            .word(92, 20_000);
        script
    };
    assert_eq!(of(receiving).limit, Limit::ReceiveWindow);
}

#[test]
fn silence_that_nobody_has_ended_proves_nothing() {
    // Six turns, and the server spoke last.
    let (rtt, ends) = (20 * MS, 600 * MS);
    for is_server in ENDS {
        let talk = Talk { rtt, server: 80 * MS, think: 0 };
        let quiet = move |now: u64| {
            let mut script = talk.at(now.min(ends - 1), is_server);
            for at in [44, 52, 56] {
                let since = u32::from_ne_bytes(script.info[at..at + 4].try_into().unwrap());
                script.word(at, since + (now.saturating_sub(ends - 1) / MS) as u32);
            }
            script
        };
        let finding = of(quiet);
        assert!(finding.confidence <= Confidence::Medium, "{finding:#?}");
    }
}

/// A server whose last word was no answer, as an acknowledgement of HTTP/2's settings: who ends the silence is known when it is over, and the time is that one's.
#[test]
fn time_of_a_silence_belongs_to_what_ended_it() {
    const SAID: u64 = 500 * MS;
    for (is_ended, limit) in [(true, Limit::SlowWriter), (false, Limit::ClientIdle)] {
        let talk = move |now: u64| {
            const ANSWERED: u64 = 4 * SECOND;
            let answers = is_ended && now >= ANSWERED;
            let mut script = Script::new(7);
            script.is_server = true;
            let said = u64::from(now >= SAID) + 3 * u64::from(answers);
            let last_sent = if answers { ANSWERED } else { SAID };
            let heard = u64::from(now >= SAID - 100 * MS) + 1;
            script.word(44, (now.saturating_sub(last_sent) / MS) as u32);
            script.word(52, (now.saturating_sub(SAID - 100 * MS) / MS) as u32);
            script.word(56, (now.saturating_sub(last_sent) / MS) as u32);
            script.word(136, said as u32 + 2).word(140, heard as u32 + 2);
            script.word(152, heard as u32).word(156, said as u32 + 1);
            let bytes = 60 + 1000 * u64::from(answers);
            script.long(120, bytes).long(128, 400 * heard).long(200, bytes).long(168, said * 20_000);
            script.word(228, 65_000);
            Some(vec![script])
        };
        let (intervals, watched) = Scripted::new(talk).run(5);
        // While it lasts, who spoke last is all that is known.
        let amid = intervals[2].sockets[0].finding.as_ref().unwrap();
        assert_eq!(amid.limit, Limit::ClientIdle, "{amid:#?}");
        assert!(amid.confidence < Confidence::High, "{amid:#?}");
        let total = &watched.summary.unwrap().sockets[0];
        assert_eq!(total.limits[0].limit, limit, "{total:#?}");
    }
}

/// A server that sends 42 KiB and goes on when its client has said a word, 400 ms later: over SSH that word gives room in a channel, since its program reads.
#[test]
fn channel_of_ssh_that_is_not_read_is_the_readers() {
    const CYCLE: u64 = 400 * MS;
    const RTT: u64 = 40 * MS;
    for (program, limit) in [("sshd", Limit::SlowReader), ("nginx", Limit::ClientIdle)] {
        let talk = move |now: u64| {
            let now = now + 100 * CYCLE;
            let (k, p) = (now / CYCLE + 1, now % CYCLE);
            let is_acked = p >= RTT;
            let mut script = Script::new(7);
            script.is_server = true;
            script.info[7] = if cfg!(target_endian = "little") { 1 } else { 0x80 };
            script.word(68, 40_000).word(148, 40_000).word(228, 3_000_000).word(80, 100);
            script.word(24, if is_acked { 0 } else { 30 });
            let since = (p / MS) as u32;
            script.word(44, since).word(52, since);
            script.word(56, if is_acked { since - (RTT / MS) as u32 } else { since });
            let bare_in = 15 * if is_acked { k } else { k - 1 };
            script.word(136, 30 * k as u32).word(140, (k + bare_in) as u32);
            script.word(152, k as u32).word(156, 30 * k as u32);
            let said = 30 * 1448 * k;
            script
                .long(200, said)
                .long(120, if is_acked { said } else { said - 30 * 1448 })
                .long(128, 44 * k);
            script.long(168, ((k - 1) * RTT + p.min(RTT)) / 1000);
            script.queued = if is_acked { 0 } else { 30 * 1448 };
            script
        };
        let mut world = Scripted::new(move |now| Some(vec![talk(now)]));
        world.program = program;
        let finding = last(&mut world);
        assert_eq!((finding.limit, place(&finding)), (limit, THERE), "{finding:#?}");
    }
}

#[test]
fn data_that_waits_though_both_windows_have_room_is_held_by_its_own_host() {
    let waits = |now: u64| {
        let mut script = steady(now, 20 * 1448);
        script.word(144, 200_000).word(76, 0x7fff_ffff).word(80, 60).word(76, 60);
        script.queued += 200_000;
        script
    };
    let finding = of(waits);
    assert_eq!((finding.limit, finding.cause), (Limit::AskedRate, Some(Cause::KeptByHost)), "{finding:#?}");
    assert_eq!(place(&finding), HERE);
    // A congestion window that is used up is the path's matter.
    let full = |now: u64| {
        let mut script = waits(now);
        script.word(80, 20).word(76, 15);
        script
    };
    assert_ne!(of(full).cause, Some(Cause::KeptByHost));
}

#[test]
fn window_that_carries_less_than_it_could_waits_for_a_reader() {
    // 60 KiB each 36 ms, of which 15 are the path's: 25 in the mean of its acknowledgements.
    let of_each = |ms: u64| {
        move |now: u64| {
            let mut script = window_limited(now);
            let acked = now / (ms * MS) * 61_440;
            script.long(120, acked).word(228, 61_440).word(24, 42).word(80, 80);
            script.word(192, (acked / 1448) as u32).word(68, 25_000).word(148, 15_000);
            script
        }
    };
    assert_eq!(of(of_each(36)).limit, Limit::SlowReader);
    // A queue makes a round trip as long, and all of the window comes through in it.
    assert_eq!(of(of_each(25)).limit, Limit::ReceiveWindow);
}

#[test]
fn client_that_polls_is_no_wait_of_nagles_however_many_parts_an_answer_has() {
    let polled = |think: u64| {
        move |now: u64| {
            let talk = Talk { rtt: 20 * MS, server: 0, think };
            let mut script = talk.at(now, false);
            let turns = (now + 1000 * (20 * MS + think)) / (20 * MS + think);
            script.word(152, 2 * turns as u32).word(140, 2 * turns as u32).word(136, 2 * turns as u32);
            script
        }
    };
    assert_eq!(of(polled(250 * MS)).limit, Limit::ClientIdle);
    // What a kernel waits for before it acknowledges the first part alone.
    let finding = of(polled(45 * MS));
    assert_eq!((finding.limit, place(&finding)), (Limit::Nagle, THERE), "{finding:#?}");
}

#[test]
fn bulk_that_waits_for_a_word_each_round_trip_takes_round_trips() {
    // 48 KiB each 45 ms, and the other program's word before the next: 34 segments for each of its own.
    let windows = |now: u64| {
        let mut script = steady(now, 34 * 1448);
        let (k, p) = (now / (45 * MS), now % (45 * MS));
        script.word(68, 45_000).word(148, 45_000);
        let sent = (k + 1) * 34;
        script.long(120, k * 34 * 1448).long(200, sent * 1448).word(156, sent as u32).word(152, k as u32);
        script.long(128, k * 13).word(136, sent as u32).word(140, (k * 5) as u32);
        script.word(44, (p / MS) as u32).word(52, (p / MS) as u32).word(56, (p / MS) as u32);
        // A third of the time in flight.
        let is_flying = p < 15 * MS;
        script.word(24, if is_flying { 34 } else { 0 }).long(168, k * 15_000 + p.min(15 * MS) / 1000);
        script.queued = if is_flying { 34 * 1448 } else { 0 };
        script
    };
    let finding = of(windows);
    assert!(matches!(finding.limit, Limit::RoundTrips | Limit::ProgramWindow), "{finding:#?}");
}
