use bdp_model::finding::fact::{self, Bps, Bytes, Share};
use bdp_model::finding::{
    Action, At, Cause, Confidence, Evidence, Fact, Finding, Lack, Likely, Limit, Missing, Next, Place,
    Quantity, Remedy,
};
use bdp_model::units::Nanos;

use super::*;

const MIB: f64 = 1_048_576.0;

/// 78.6 KiB in 24.6 ms is 26.2 Mbit/s; 97 % of it was reached.
fn window_bound() -> Finding {
    Finding::new(Limit::ReceiveWindow, Place::receiver("ams1"), Confidence::High)
        .cause(Cause::RmemMaximum)
        .evidence([
            Evidence::share(
                fact::OfWindowRate {
                    window: Bytes(80_512.0),
                    round_trip: Nanos(24_600_000),
                    carries: Bps(26.18e6),
                    streams: None,
                },
                0.970,
            )
            .at_least(0.7),
            Evidence::share(fact::WindowFull::ALONE, 0.96).at_least(0.5).samples(96, 100),
            Evidence::bytes(fact::SettingMaximum, 2.0 * MIB).named("net.ipv4.tcp_rmem").on("ams1"),
            Evidence::share(fact::KernelCountsWindow, 0.47).at_least(0.05),
        ])
        .next(Next { limit: Limit::Ceiling, goodput_bps: 941e6, needed_bytes: Some(2.72 * MIB) })
        .remedy(
            Remedy::new(Action::RaiseMaximum)
                .setting("net.ipv4.tcp_rmem")
                .value(Quantity::bytes(5.43 * MIB))
                .host("ams1"),
        )
}

#[test]
fn receive_window_is_worded_with_its_numbers() {
    let finding = window_bound();
    assert_eq!(subject(&finding), "receive window of ams1");
    assert_eq!(
        summary(&finding),
        "limited by the receive window of ams1: 78.6 KiB / 24.6 ms RTT = 26.2 Mbit/s (97 % reached)"
    );
    assert_eq!(
        lines(&finding),
        [
            "78.6 KiB / 24.6 ms = 26.2 Mbit/s, 97 % of it reached, window full 96 % of the time",
            "941 Mbit/s needs 2.72 MiB on the wire; tcp_rmem max on ams1 is 2 MiB",
            "the kernel counts 47 % of the busy time as limited by it, at least",
        ]
    );
    assert_eq!(
        remedy(&finding).unwrap(),
        "raise the last number of net.ipv4.tcp_rmem on ams1 to 5.43 MiB or more"
    );
}

#[test]
fn window_of_several_streams_is_worded_as_that_of_all() {
    let mut finding = window_bound();
    let of_rate = fact::OfWindowRate {
        window: Bytes(65_536.0),
        round_trip: Nanos(50_000_000),
        carries: Bps(41.94e6),
        streams: Some(4),
    };
    finding.evidence[0] = Evidence::share(of_rate, finding.evidence[0].value);
    let larger = Remedy::new(Action::AskWindow).setting("-w").value(Quantity::bytes(MIB));
    let finding = finding.remedy(larger);
    assert_eq!(
        summary(&finding),
        "limited by the receive window of ams1: 4 x 64 KiB / 50 ms RTT = 41.9 Mbit/s (97 % reached)"
    );
    assert!(lines(&finding)[1].starts_with("941 Mbit/s needs 4 x 2.72 MiB on the wire"), "{finding:?}");
    assert_eq!(
        remedy(&finding).unwrap(),
        "ask for a larger window (-w, 1 MiB or more for each stream), or for none; twice the window would carry 83.9 Mbit/s, \
         if the path does"
    );
}

#[test]
fn no_share_is_more_than_all() {
    let mut finding = window_bound();
    for (value, words) in [
        (1.0, "100 % of it reached"),
        (1.004, "all of it reached"),
        (1.12, "all of it reached and 12 % more"),
    ] {
        finding.evidence[0].value = value;
        assert!(lines(&finding)[0].contains(&format!("= 26.2 Mbit/s, {words}, ")), "{:?}", lines(&finding));
    }
    let model = |goodput| {
        let losses = Finding::new(Limit::RandomLoss, Place::path(), Confidence::Low);
        let rate = Evidence::rate(fact::CubicRate { loss: Share(1e-3), goodput: Bps(goodput) }, 6.63e6);
        lines(&losses.evidence([rate])).remove(0)
    };
    assert_eq!(model(7e6), "CUBIC carries about 6.63 Mbit/s with such losses (RFC 9438)");
    assert_eq!(
        model(35.3e6),
        "CUBIC carries about 6.63 Mbit/s with such losses (RFC 9438); 35.3 Mbit/s came through: the losses were milder than \
         the model's"
    );
}

#[test]
fn asked_window_is_named_with_its_option_and_what_it_needs_besides() {
    let mut finding = window_bound().cause(Cause::WindowAsked);
    finding.evidence.push(Evidence::bytes(fact::WindowAsked, MIB).named("-w"));
    let scaling = Remedy::new(Action::Set).setting("net.ipv4.tcp_window_scaling").value(Quantity::count(1));
    let larger = Remedy::new(Action::AskWindow).setting("-w").value(Quantity::bytes(2.72 * MIB));
    let finding = finding.remedy(larger.also(scaling.host("far")));
    assert!(
        summary(&finding).starts_with("limited by the receive window of ams1, which -w 1 MiB asks for: 78.6")
    );
    assert_eq!(
        remedy(&finding).unwrap(),
        "ask for a larger window (-w, 2.72 MiB or more), or for none; for more than 64 KiB also set \
         net.ipv4.tcp_window_scaling = 1 on far; twice the window would carry 52.4 Mbit/s, if the path does"
    );
    let json = json(&finding);
    assert_eq!(json["remedy"]["also"]["text"], "set net.ipv4.tcp_window_scaling = 1 on far");
    assert_eq!(json["remedy"]["also"]["also"], Value::Null);
}

#[test]
fn window_scaling_is_worded_by_what_shows_it() {
    let of = |cause, evidence: Vec<Evidence>, action| {
        Finding::new(Limit::ReceiveWindow, Place::receiver("ams1"), Confidence::High)
            .cause(cause)
            .evidence(evidence)
            .remedy(Remedy::new(action))
    };
    let removed = of(
        Cause::ScalingStripped,
        vec![Evidence::flag(fact::ScalingRemoved, false)],
        Action::PassWindowScaling,
    );
    assert!(lines(&removed)[0].contains("a middlebox removed the option"), "{:?}", lines(&removed));
    assert!(remedy(&removed).unwrap().ends_with("have it pass; a larger tcp_rmem does not help"));
    let uses = |host, uses| Evidence::flag(fact::ScalingUsed, uses).on(host);
    let half = of(
        Cause::ScalingHalfStripped,
        vec![uses("fra1", true), uses("ams1", false)],
        Action::PassWindowScaling,
    );
    assert_eq!(subject(&half), "window scaling on the path");
    assert_eq!(
        summary(&half),
        "limited by a receive window that fra1 scales and ams1 does not: a middlebox removed the window scale option from \
         one segment of the handshake"
    );
    assert!(
        lines(&half)[0]
            .starts_with("fra1 uses window scaling on this connection, ams1 does not: a middlebox")
    );
    assert!(!remedy(&half).unwrap().contains("tcp_rmem"));
}

#[test]
fn send_buffer_is_worded_with_its_numbers() {
    let finding = Finding::new(Limit::SendBuffer, Place::sender("fra1"), Confidence::High).evidence([
        Evidence::share(
            fact::OfFlightRate {
                in_flight: Bytes(MIB / 2.0),
                round_trip: Nanos(24_200_000),
                carries: Bps(173e6),
                streams: None,
            },
            0.98,
        ),
        Evidence::share(fact::KernelCountsSendBuffer, 0.9).at_least(0.3),
    ]);
    assert_eq!(
        summary(&finding),
        "limited by the send buffer of fra1: 512 KiB in flight / 24.2 ms RTT = 173 Mbit/s (98 % reached)"
    );
    assert_eq!(
        lines(&finding),
        ["512 KiB in flight / 24.2 ms = 173 Mbit/s, 98 % of it reached, send buffer full 90 % of the time"]
    );
    let dry = Finding::new(Limit::SendBuffer, Place::sender("fra1"), Confidence::Medium)
        .cause(Cause::BufferRunsDry)
        .evidence([
            Evidence::share(fact::Starved, 0.9),
            Evidence::bytes(
                fact::BufferBelowNeed {
                    goodput: Bps(61e6),
                    round_trip: Nanos(24_200_000),
                    needed: Bytes(184_525.0),
                    streams: None,
                },
                65_536.0,
            ),
        ]);
    assert_eq!(
        summary(&dry),
        "limited by the send buffer of fra1, 64 KiB: it runs dry between writes in 90 % of the samples"
    );
    assert_eq!(
        lines(&dry)[1],
        "61 Mbit/s in the idle round trip of 24.2 ms are 180 KiB, and the socket buffer is 64 KiB"
    );
}

#[test]
fn full_path_and_reached_rate_are_told_apart() {
    let queue = || Evidence::time(fact::QueueOneWay { idle: None }, Nanos(63_800_000)).at_least(4.84e6);
    let steady = Evidence::share(fact::Steady { goodput: Bps(92e6) }, 0.97);
    let full = Finding::new(Limit::PathRate, Place::path(), Confidence::Medium).evidence([queue(), steady]);
    assert_eq!(summary(&full), "the path's bottleneck is full: 92 Mbit/s, with a standing queue of 63.8 ms");
    let asked = || {
        let of_asked = Evidence::share(fact::OfAskedRate { goodput: Bps(198e6), asked: Bps(200e6) }, 0.99);
        Finding::new(Limit::AskedRate, Place::request(), Confidence::High).evidence([of_asked.named("-b")])
    };
    assert_eq!(summary(&asked()), "asked rate reached: 198 Mbit/s; the path may carry more");
    assert_eq!(lines(&asked()), ["198 Mbit/s is 99 % of the 200 Mbit/s that -b asks for"]);
    let queued = asked().evidence([queue()]);
    assert_eq!(summary(&queued), "asked rate reached: 198 Mbit/s; the path has a standing queue");
}

#[test]
fn loss_and_its_absence_are_worded_with_shares() {
    let unknown = |evidence: [Evidence; 2]| {
        Finding::new(Limit::Unknown, Place::path(), Confidence::Low).evidence(evidence)
    };
    let again =
        Evidence::count(fact::Retransmitted { segments: 291_782, share: Share(240.0 / 291_782.0) }, 240);
    let needless = Evidence::count(fact::NeedlessRetransmits, 200);
    let finding = unknown([again, needless]);
    assert_eq!(
        lines(&finding),
        [
            "240 segments of 291782 were retransmitted, 823 in a million; 200 needlessly, the receiver had them already \
          (DSACK): late or reordered, not lost"
        ]
    );
    assert!(summary(&finding).starts_with("limit unknown; 240 segments of 291782"));
    let one = Evidence::count(fact::Retransmitted { segments: 3_000_000, share: Share(3e-7) }, 1);
    let full = Evidence::share(fact::CongestionWindowFull, 0.96).named("cubic");
    assert_eq!(
        lines(&unknown([one, full])),
        [
            "1 segment of 3000000 was retransmitted, fewer than 1 in a million",
            "the congestion window (cubic) was full 96 % of the time",
        ]
    );
    let random = Finding::new(Limit::RandomLoss, Place::path(), Confidence::Medium).evidence([
        Evidence::share(fact::RetransmittedShare, 0.012),
        Evidence::time(fact::NoQueue, Nanos(400_000)).at_most(2e6),
        Evidence::share(fact::LossesAtAnyRate { losses: 31 }, 0.42).named("reno"),
    ]);
    assert_eq!(
        summary(&random),
        "limited by losses that the load does not cause: 1.2 % of the segments, which keep reno's window small"
    );
    assert_eq!(
        lines(&random)[0],
        "1.2 % of the segments were retransmitted, and load adds 400 us to the round trip at p95: no queue was full"
    );
}

#[test]
fn datagrams_are_worded_by_what_became_of_them() {
    let received = Evidence::rate(fact::Received { sent: Bps(100e6), lost: 9 }, 52.9e6);
    let lost = Evidence::count(fact::DatagramsLost { sent: 84_918, share: Share(0.471) }, 40_000);
    let lower = |value: Option<f64>| {
        Remedy::new(Action::LowerRate)
            .setting("-b")
            .value(value.map(Quantity::rate))
            .also(Remedy::new(Action::SearchRate).setting("-b auto"))
    };
    let loss = Finding::new(Limit::PathLoss, Place::path(), Confidence::Medium)
        .evidence([lost, received.clone()])
        .remedy(lower(None));
    assert_eq!(summary(&loss), "the path lost 47 % of what was sent at 100 Mbit/s");
    assert_eq!(
        remedy(&loss).unwrap(),
        "a lower rate (-b), or -b auto, which finds one; loss that remains does not depend on the rate"
    );
    let overload = loss
        .evidence([Evidence::time(fact::DatagramQueue, Nanos(19_000_000)).at_least(2e6)])
        .remedy(lower(Some(52.9e6)));
    assert_eq!(summary(&overload), "the path carried 52.9 Mbit/s of the 100 Mbit/s sent and lost the rest");
    assert_eq!(remedy(&overload).unwrap(), "a rate below 52.9 Mbit/s (-b), or -b auto, which finds one");
    let held = |allowed| {
        let held = Evidence::rate(
            fact::RateHeld { time: Nanos(10_000_000_000), lost: 0, allowed: Share(allowed) },
            100e6,
        );
        Finding::new(Limit::PathLoss, Place::path(), Confidence::High).evidence([held])
    };
    assert_eq!(summary(&held(0.0)), "100 Mbit/s is the most that the path carries without loss");
    assert_eq!(summary(&held(0.05)), "100 Mbit/s is the most that the path carries with 5.0 % lost at most");
    let buffer = Remedy::new(Action::LargerSocketBuffer)
        .setting("--sockbuf")
        .value(Quantity::bytes(212_992.0))
        .also(Remedy::new(Action::LargerDatagrams).setting("-l"))
        .also(Remedy::new(Action::LowerRate).setting("-b"));
    let host = Finding::new(Limit::ReceivingHost, Place::receiver("ams1"), Confidence::High)
        .cause(Cause::SocketDrops)
        .evidence([received, Evidence::count(fact::DroppedBySocket { lost: 40_000 }, 0).on("ams1")])
        .remedy(buffer);
    assert_eq!(
        summary(&host),
        "ams1 read 52.9 Mbit/s of 100 Mbit/s sent, and dropped what its socket could not hold: that is no loss of the path"
    );
    assert_eq!(lines(&host)[1], "none of them was dropped by ams1, whose socket was never full");
    assert_eq!(
        remedy(&host).unwrap(),
        "a larger socket buffer than 208 KiB (--sockbuf), larger datagrams (-l), or a lower rate (-b)"
    );
}

#[test]
fn what_is_missing_counts_its_samples() {
    let finding = Finding::new(Limit::Unknown, Place::path(), Confidence::Low).missing([
        Missing::new(Lack::LongerAfterOmit).samples(3),
        Missing::new(Lack::LongerMeasurement).samples(1),
    ]);
    assert_eq!(
        missing(&finding),
        [
            "a longer measurement: 3 samples after what is omitted are too few",
            "a longer measurement: 1 sample is too few",
        ]
    );
}

#[test]
fn next_limit_is_worded_with_what_it_takes() {
    let of = |next| window_bound().next(next);
    let buffer = Next { limit: Limit::SendBuffer, goodput_bps: 300e6, needed_bytes: Some(MIB) };
    assert!(
        lines(&of(buffer))[1]
            .starts_with("300 Mbit/s needs 1 MiB on the wire; then the send buffer is the limit")
    );
    let loss = Next { limit: Limit::RandomLoss, goodput_bps: 40e6, needed_bytes: None };
    assert!(lines(&of(loss))[1].starts_with("the next limit that is known is random loss, at 40 Mbit/s"));
}

/// Checks for words that reveal a missing operand.
fn is_whole(text: &str) {
    assert!(!text.trim().is_empty() && !text.contains("NaN") && !text.contains("inf "), "{text}");
    assert!(!text.ends_with('.') && !text.contains("  ") && text == text.trim(), "{text}");
}

#[test]
fn every_limit_is_worded_even_without_evidence() {
    let places =
        [Place::path(), Place::sender("a"), Place::receiver("b"), Place::way_back(), Place::request()];
    let causes = Cause::ALL.iter().copied().map(Some).chain([None]);
    for (&limit, cause) in Limit::ALL.iter().flat_map(|limit| causes.clone().map(move |cause| (limit, cause)))
    {
        for place in &places {
            let finding = Finding::new(limit, place.clone(), Confidence::Low).cause(cause);
            is_whole(&subject(&finding));
            is_whole(&summary(&finding));
            assert!(summary(&finding).starts_with(&claim(&finding)));
            for sentence in reason(&finding, "a", "b") {
                assert!(sentence.ends_with('.') && sentence.starts_with(char::is_uppercase), "{sentence}");
            }
        }
    }
    // No two limits share their wording.
    let words: std::collections::BTreeSet<String> =
        Limit::ALL.iter().map(|&limit| limit.noun().to_owned()).collect();
    assert_eq!(words.len(), Limit::ALL.len());
}

#[test]
fn a_name_that_looks_like_a_placeholder_is_kept() {
    let finding = Finding::new(Limit::HostDrops, Place::sender("{to}"), Confidence::High);
    let [cause, advice] = &reason(&finding, "{to}", "b")[..] else { panic!() };
    assert!(cause.contains(" {to} discards") && advice.contains(" {to} help"), "{cause} {advice}");
}

/// A fact as stored in a document, with additional numbers that are all 7.
fn stored(fact: Fact, value: f64, numbers: usize) -> Evidence {
    let all = fact.figures().iter().take(numbers);
    let with: Vec<Value> = all.map(|(_, unit)| value!({ "value": 7.0, "unit": unit })).collect();
    let stored = value!({ "fact": fact, "value": 0.0, "unit": "share", "with": with });
    let mut evidence: Evidence = serde_json::from_value(stored).unwrap();
    evidence.value = value;
    evidence
}

#[test]
fn numbers_that_a_document_lacks_are_left_out() {
    let finding = window_bound();
    let said = |fact: Fact, numbers| evidence::text(&finding, &stored(fact, 0.5, numbers));
    assert_eq!(said(Fact::OfWindowRate, 3), "7 B / 7 ns = 7 bit/s, 50 % of it reached");
    assert_eq!(said(Fact::OfWindowRate, 4), "7 x 7 B / 7 ns = 7 bit/s, 50 % of it reached");
    assert_eq!(said(Fact::OfWindowRate, 2), "of_window_rate is 50 %");
    assert_eq!(said(Fact::TimeShare, 0), "unknown took 50 % of the time");
    let without = Finding { evidence: vec![stored(Fact::OfWindowRate, 0.5, 2)], ..finding };
    assert_eq!(summary(&without), "limited by the receive window of ams1");
}

#[test]
fn every_fact_remedy_and_lack_is_worded() {
    for limit in [Limit::Unknown, Limit::PathRate, Limit::PathLoss, Limit::ReversePath] {
        let finding = Finding::new(limit, Place::path(), Confidence::Low);
        for (fact, numbers) in
            Fact::ALL.iter().flat_map(|fact| (0..=fact.figures().len()).map(move |n| (*fact, n)))
        {
            for value in [0.0, 1.0, 0.5, 4e9, f64::NAN] {
                let text = evidence::text(&finding, &stored(fact, value, numbers));
                assert!(!text.is_empty(), "{fact:?}");
                assert!(value.is_nan() || !text.contains("NaN"), "{fact:?}: {text}");
            }
        }
        for &action in Action::ALL {
            is_whole(&remedy::chain(&finding, &Remedy::new(action)));
        }
        for &lack in Lack::ALL {
            is_whole(&missing_text(&finding, &Missing::new(lack)));
        }
    }
    let mut texts: Vec<String> = Vec::new();
    let finding = Finding::new(Limit::Unknown, Place::path(), Confidence::Low);
    for &fact in Fact::ALL {
        let whole = stored(fact, 3.0, fact.figures().len());
        assert!(whole.observed().is_some(), "{fact:?}");
        let text = evidence::text(&finding, &whole);
        assert!(!texts.contains(&text), "{fact:?} is worded as another fact: {text}");
        texts.push(text);
    }
}

#[test]
fn json_has_the_words_beside_the_numbers_and_is_read_back() {
    let finding = window_bound().missing([Missing::new(Lack::NicSpeed)]);
    let json = json(&finding);
    assert_eq!(json["subject"], "receive window of ams1");
    assert_eq!(json["summary"], summary(&finding));
    assert_eq!(json["cause"], "rmem_maximum");
    assert_eq!(json["place"]["at"], At::Receiver.name());
    let full = &json["evidence"][1];
    assert_eq!(
        (&full["fact"], &full["value"], &full["unit"]),
        (&"window_full".into(), &0.96.into(), &"share".into())
    );
    assert_eq!((&full["at_least"], &full["samples"]), (&0.5.into(), &value!({ "met": 96, "of": 100 })));
    assert_eq!(full["text"], "the receive window was full 96 % of the time");
    assert_eq!(json["next"]["text"], "941 Mbit/s needs 2.72 MiB on the wire");
    assert_eq!(json["remedy"]["action"], "raise_maximum");
    assert!(json["remedy"]["text"].as_str().unwrap().starts_with("raise the last number"));
    assert_eq!(json["missing"][0]["text"], "the speed of the NICs");
    assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), finding);
}

#[test]
fn quantities_have_three_digits() {
    assert_eq!(
        (size(80_512.0), size(2.0 * MIB), size(536.0)),
        ("78.6 KiB".into(), "2 MiB".into(), "536 B".into())
    );
    assert_eq!((rate(26.18e6), rate(0.0)), ("26.2 Mbit/s".into(), "0 bit/s".into()));
    assert_eq!(time(Nanos(24_648_000)), "24.6 ms");
}

#[test]
fn processor_of_a_host_is_worded_by_what_keeps_the_thread_from_running() {
    let of = |cause, evidence: Vec<Evidence>, action| {
        Finding::new(Limit::Cpu, Place::sender("fra1"), Confidence::High)
            .cause(cause)
            .evidence(evidence)
            .remedy(Remedy::new(action).host("fra1"))
    };
    let ready = Evidence::share(fact::SendingThreadReady { ran: Share(0.1) }, 0.95).on("fra1");
    let quota = of(
        Cause::Throttled,
        vec![Evidence::share(fact::Throttled, 0.74).on("fra1"), ready.clone()],
        Action::RaiseQuota,
    );
    assert_eq!(subject(&quota), "processor quota of fra1");
    assert_eq!(
        summary(&quota),
        "limited by the processor quota of fra1: the quota of its control group held it back 74 % of the time"
    );
    assert_eq!(
        lines(&quota)[1],
        "the sending thread on fra1 ran 10 % of the time, and was ready to run or running for 95 % of it"
    );
    assert_eq!(remedy(&quota).unwrap(), "raise the processor quota of its control group on fra1");
    let shared = of(Cause::ProcessorShared, vec![ready], Action::QuieterHost);
    assert!(
        summary(&shared).starts_with(
            "limited by the processor of fra1, which other programs use: the sending thread on fra1 ran 10 %"
        ),
        "{}",
        summary(&shared)
    );
    assert_eq!(remedy(&shared).unwrap(), "less other work on fra1");
    let stolen = of(Cause::Stolen, vec![Evidence::share(fact::Stolen, 0.4).on("fra1")], Action::MoveMachine);
    assert_eq!(
        summary(&stolen),
        "limited by the processor of fra1, of which its hypervisor takes a part: the hypervisor of fra1 took 40 % of its \
         processor time"
    );
}

#[test]
fn packets_that_a_host_drops_are_worded_with_where_it_dropped_them() {
    let of = |cause, evidence: Evidence| {
        Finding::new(Limit::HostDrops, Place::receiver("ams1"), Confidence::High)
            .cause(cause)
            .evidence([evidence.on("ams1")])
    };
    let device = Evidence::count(fact::DroppedByDevice { missing: 200 }, 190).named("eth0");
    assert_eq!(
        summary(&of(Cause::DeviceDrops, device)),
        "limited by packets that the network device of ams1 drops: eth0 on ams1 dropped 190 packets, and 200 segments were \
         retransmitted"
    );
    assert_eq!(
        summary(&of(
            Cause::BacklogDrops,
            Evidence::count(fact::DroppedByBacklog { retransmitted: Some(200) }, 190)
        )),
        "limited by packets that the kernel of ams1 drops: the kernel of ams1 dropped 190 packets of its backlog (softnet), \
         and 200 segments were retransmitted"
    );
    assert_eq!(
        lines(&of(Cause::BacklogDrops, Evidence::count(fact::DroppedByStack { retransmitted: 200 }, 190))),
        ["190 segments found no room in a socket of ams1, and 200 were retransmitted"]
    );
}

#[test]
fn a_socket_buffer_that_a_program_locked_names_the_program_and_the_call() {
    let of = |remedy: Remedy| {
        let finding = Finding::new(Limit::SendBuffer, Place::sender("fra1"), Confidence::High);
        remedy::text(&finding.remedy(remedy)).unwrap()
    };
    let asked = Remedy::new(Action::AskSocketBuffer);
    assert_eq!(
        of(asked.clone().setting("SO_SNDBUF").host("fra1")),
        "ask for a larger SO_SNDBUF in the program on fra1, or for none: once setsockopt(SO_SNDBUF) is called, the kernel no longer \
         sizes the buffer, whatever tcp_wmem says"
    );
    assert_eq!(
        of(asked.setting("--sockbuf")),
        "ask for a larger socket buffer (--sockbuf, which sets SO_SNDBUF and SO_RCVBUF), or for none"
    );
    let smaller = Remedy::new(Action::SmallerWindow).setting("-w");
    assert_eq!(of(smaller.clone()), "a smaller window (-w) keeps the goodput and empties the queue");
    assert_eq!(
        of(smaller.value(Quantity::bytes(MIB))),
        "a smaller window (-w, about 1 MiB) keeps the goodput and empties the queue"
    );
}

#[test]
fn twice_a_window_is_not_said_to_carry_more_than_what_binds_next() {
    let of = |goodput_bps| {
        let next = Next { limit: Limit::PathRate, goodput_bps, needed_bytes: Some(2.0 * MIB) };
        remedy::text(&window_bound().next(next).remedy(Remedy::new(Action::AskWindow).setting("-w"))).unwrap()
    };
    assert!(of(941e6).contains("twice the window would carry"), "{}", of(941e6));
    assert!(!of(40e6).contains("twice"), "{}", of(40e6));
}

#[test]
fn more_capacity_names_what_keeps_the_bottleneck_busier_if_that_is_known() {
    let of = |remedy: Remedy| {
        let finding = Finding::new(Limit::CongestionLoss, Place::path(), Confidence::Medium);
        remedy::text(&finding.remedy(remedy)).unwrap()
    };
    let more = Remedy::new(Action::AddCapacity);
    let busier = "keeps the bottleneck busier; beyond its rate only a faster one carries more";
    let control = "a congestion control that reduces its window less (cubic, bbr)";
    assert_eq!(of(more.clone()), "only a faster bottleneck carries more");
    assert_eq!(of(more.clone().setting("-C")), format!("{control} {busier}"));
    let queue = more.value(Quantity::bytes(MIB));
    assert_eq!(of(queue.clone()), format!("a queue of rate x round trip (1 MiB) {busier}"));
    assert_eq!(
        of(queue.setting("-C")),
        format!("{control}, or a queue of rate x round trip (1 MiB) {busier}")
    );
    let longer = Remedy::new(Action::DeepenQueue).value(Quantity::bytes(MIB));
    assert_eq!(of(longer), "lengthen the queue before the bottleneck to rate x round trip (1 MiB)");
}

#[test]
fn errors_on_the_way_are_found_and_sack_is_turned_on_besides() {
    let errors = Remedy::new(Action::FindErrors).also(Remedy::new(Action::EnableSack).host("fra1"));
    let finding = Finding::new(Limit::RandomLoss, Place::path(), Confidence::High).remedy(errors);
    let text = remedy::text(&finding).unwrap();
    assert!(text.contains("radio); and set net.ipv4.tcp_sack = 1 on fra1"), "{text}");
}

#[test]
fn an_unknown_limit_says_what_it_may_be() {
    let unknown = |candidates: &[(Limit, f64)]| Finding {
        candidates: candidates.iter().map(|&(limit, probability)| Likely { limit, probability }).collect(),
        ..Finding::new(Limit::Unknown, Place::path(), Confidence::Low)
    };
    let three = [(Limit::Policer, 0.414), (Limit::RandomLoss, 0.33), (Limit::CrossTraffic, 0.12)];
    let said = [&three[..], &three[..1], &[]].map(|candidates| summary(&unknown(candidates)));
    assert_eq!(
        said,
        [
            "limit unknown, perhaps the policer (41 %), random loss (33 %) or other traffic (12 %)",
            "limit unknown, perhaps the policer (41 %)",
            "limit unknown",
        ]
    );
}
