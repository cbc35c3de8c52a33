//! Data that is sent again and again: what swallows it, or who is gone.

use super::*;

/// A sender whose data is never acknowledged: it tries again and again, each time later.
fn in_vain(now: u64, acked: u64) -> Script {
    let mut script = steady(0, 10 * 1448);
    let tries = (64 - (now / (200 * MS)).leading_zeros()).min(8);
    script
        .long(120, acked)
        .long(200, acked + 14_480)
        .word(80, 1)
        .word(76, 5)
        .word(24, 10)
        .word(100, tries)
        .long(168, now / 1000);
    script.info[1] = 4;
    script.tries = tries as u8;
    script
        .word(44, (now % (700 * MS) / MS) as u32)
        .word(52, (now / MS + 300) as u32)
        .word(56, (now / MS + 300) as u32);
    script
}

#[test]
fn full_segments_that_vanish_while_small_ones_pass_are_a_black_hole() {
    let finding = of(|now| in_vain(now, 300));
    assert_eq!(
        (finding.limit, finding.confidence),
        (Limit::MtuBlackHole, Confidence::Medium),
        "{finding:#?}"
    );
    let with_others = |now: u64| {
        let mut script = in_vain(now, 300);
        script.word(56, 5).word(52, 5).long(128, now / (500 * MS) * 40).word(152, (now / (500 * MS)) as u32);
        script
    };
    let finding = of(with_others);
    assert_eq!((finding.limit, finding.confidence), (Limit::MtuBlackHole, Confidence::High), "{finding:#?}");
    // A small question that nobody answers is no matter of its size.
    let small = |now: u64| {
        let mut script = in_vain(now, 300);
        script.word(24, 1);
        script.queued = 120;
        script
    };
    assert_eq!(of(small).limit, Limit::PeerGone);
    // Where full ones came through before, and nothing comes any more, nobody takes them.
    assert_eq!(of(|now| in_vain(now, 5_000_000)).limit, Limit::PeerGone);
}

#[test]
fn question_that_is_lost_and_sent_again_is_no_wait_for_the_server() {
    let lost = |now: u64| {
        let talk = Talk { rtt: 5 * MS, server: 205 * MS, think: 0 };
        let mut script = talk.at(now, false);
        let again = (now + 1000 * 210 * MS) / (210 * MS);
        script.word(100, again as u32);
        script
    };
    let finding = of(lost);
    assert!(
        matches!(finding.limit, Limit::RandomLoss | Limit::CongestionLoss),
        "its timer was waited for: {finding:#?}"
    );
}

#[test]
fn segment_larger_than_all_that_came_through_is_swallowed() {
    let waits = |bytes: u32| {
        move |now: u64| {
            let mut script = in_vain(now, 300);
            script.word(24, 1);
            script.queued = bytes;
            script
        }
    };
    let finding = of(waits(1_200));
    assert_eq!(
        (finding.limit, finding.confidence),
        (Limit::MtuBlackHole, Confidence::Medium),
        "{finding:#?}"
    );
    assert_eq!(finding.observed(Fact::LargerThanPassed).unwrap().value, 1_200.0);
    assert_eq!(of(waits(280)).limit, Limit::PeerGone);
}

#[test]
fn end_that_answers_after_all_was_not_gone() {
    let comes_back = |now: u64| match now {
        0..6_000_000_000 => {
            let mut script = in_vain(now, 5_000_000);
            let tries = u32::from(script.tries);
            script.word(156, 4_000 + tries);
            script
        }
        _ => {
            let mut script = steady(now, 20 * 1448);
            script.long(120, 5_000_000 + now / (40 * MS) * 28_960).word(80, 21).word(76, 15);
            script
        }
    };
    let (intervals, watched) = Scripted::new(|now| Some(vec![comes_back(now)])).run(9);
    let said = |i: usize| intervals[i].sockets[0].finding.as_ref().map(|finding| finding.limit);
    assert_eq!(said(4), Some(Limit::PeerGone), "nobody can tell by then");
    let limits = &watched.summary.unwrap().sockets[0].limits;
    assert!(limits.iter().all(|of| of.limit != Limit::PeerGone), "{limits:#?}");
    assert!(limits.iter().any(|of| of.limit == Limit::PathChanged), "{limits:#?}");
}
