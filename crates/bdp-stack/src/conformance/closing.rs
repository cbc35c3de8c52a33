//! Tests how connections end: half closed, and by a reset.

use bdp_model::units::Nanos;

use super::bench::Bench;
use super::segment::{ACK, FIN, Options, RST, SYN, Segment};
use super::subject::{Verdict, differs};
use crate::SocketState;

pub(super) fn half_close_of_other(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(Options::usual())?;
    bench.read(None)?;
    let mut fin = bench.data(bench.next, 0, 100);
    fin.flags |= FIN;
    bench.say(&fin)?;
    bench.next = bench.next.wrapping_add(101);
    let next = bench.next;
    bench.expect("acknowledgement of the FIN", |s| s.acknowledgement == next)?;
    bench.has_read(100)?;
    if !bench.state()?.ended {
        return differs("its socket does not report the end");
    }
    bench.send_data(20_000)?;
    bench.take(20_000, Nanos::secs(30))?;
    bench.finish()?;
    let fin = bench.expect("FIN", |s| s.has(FIN))?;
    bench.expected = fin.end();
    bench.acknowledge()?;
    bench.settle()?;
    match bench.state()?.state {
        SocketState::Closed => Ok(String::new()),
        other => differs(format!("at the end its socket is {other:?}").to_lowercase()),
    }
}

pub(super) fn half_close_of_own(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(Options::usual())?;
    bench.read(None)?;
    bench.send_data(100)?;
    bench.finish()?;
    bench.take(100, Nanos::secs(5))?;
    let fin = match bench.await_within(Nanos::secs(5), |s| s.has(FIN))? {
        Some((_, fin)) => fin,
        None => return differs("no FIN arrived"),
    };
    bench.expected = fin.end();
    bench.acknowledge()?;
    bench.settle()?;
    let first = bench.next;
    for part in 0..10 {
        let segment = bench.data(first, part * 1000, 1000);
        bench.say(&segment)?;
    }
    bench.settle()?;
    bench.has_read(10_000)?;
    bench.next = first.wrapping_add(10_000);
    let end = bench.segment(FIN | ACK);
    bench.say(&end)?;
    let next = bench.next.wrapping_add(1);
    bench.expect("acknowledgement of the FIN", |s| s.acknowledgement == next)?;
    match bench.state()?.state {
        SocketState::Closed => Ok(String::new()),
        other => differs(format!("at the end its socket is {other:?}").to_lowercase()),
    }
}

pub(super) fn reset_received(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(Options::plain())?;
    bench.read(None)?;
    bench.settle()?;
    let mut reset = bench.segment(RST);
    reset.sequence = bench.next.wrapping_add(1000);
    bench.say(&reset)?;
    let challenge = bench.all_within(Nanos::millis(100))?;
    let survived = bench.state()?.state == SocketState::Open;
    let reset = bench.segment(RST);
    bench.say(&reset)?;
    bench.settle()?;
    let lost = bench.state()?.state == SocketState::Lost;
    match (survived, lost) {
        (true, true) if challenge.is_empty() => Ok("no challenge of the other one".to_owned()),
        (true, true) => Ok(String::new()),
        (false, _) => differs("a reset anywhere in the window ends the connection"),
        (true, false) => differs("a reset at the expected number does not end the connection"),
    }
}

pub(super) fn reset_sent(bench: &mut Bench<'_>) -> Verdict {
    let syn = Segment { to_port: 4_999, options: Options::plain(), ..bench.segment(SYN) };
    bench.say(&syn)?;
    let refused = bench.await_within(Nanos::secs(1), |s| s.from_port == 4_999 && s.has(RST))?;
    bench.open_to_it(Options::plain())?;
    bench.settle()?;
    bench.abort()?;
    let reset = bench.await_within(Nanos::secs(1), |s| s.has(RST))?;
    match (refused, reset) {
        (Some((_, refused)), Some((_, reset))) => {
            let right = refused.acknowledgement == syn.end() && reset.sequence == bench.expected;
            if right { Ok(String::new()) } else { differs("its reset has another number") }
        }
        (None, _) => differs("it does not refuse a SYN to a closed port"),
        (_, None) => differs("it sends no reset when it aborts"),
    }
}
