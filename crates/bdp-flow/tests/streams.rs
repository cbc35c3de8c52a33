//! Many streams on several threads, over loopback: no byte is lost, and none that was changed goes unseen.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;

use bdp_flow::crew::Crew;
use bdp_flow::meter::Meter;
use bdp_flow::receive::{self, ReceivePlan};
use bdp_flow::send::{self, SendPlan};
use bdp_model::flow::application::{Application, IoPattern, Messages};
use bdp_model::flow::method::{EndReason, ReceiveMethod, SendMethod, TriedWay};
use bdp_model::flow::payload::{WrongByte, Zerocopy};
use bdp_model::units::Nanos;
use bdp_wire::control::{Received, Sent};
use bdp_wire::pattern;

fn pairs(count: usize) -> (Vec<TcpStream>, Vec<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (0..count).map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0)).unzip()
}

fn receive_plan(threads: usize, check: bool) -> ReceivePlan {
    ReceivePlan {
        duration: Nanos::secs(30),
        omit: Nanos::ZERO,
        interval: Nanos::millis(20),
        patience: Nanos::secs(30),
        window_bytes: None,
        coalesce: true,
        check,
        application: Application::default(),
        crew: Crew::of(threads, &vec![0; threads]),
    }
}

fn send_plan(threads: usize, zerocopy: Zerocopy, patterned: bool, bytes: u64) -> SendPlan {
    SendPlan {
        length_bytes: 100_000,
        longest: Nanos::secs(30),
        bytes: Some(bytes),
        rate_bps: None,
        whole_writes: false,
        interval: Nanos::millis(20),
        zerocopy,
        patterned,
        application: Application::default(),
        crew: Crew::of(threads, &vec![0; threads]),
    }
}

/// Both ends of one flow.
fn carry(streams: usize, send: SendPlan, receive: &ReceivePlan) -> (Sent, Received) {
    let (near, far) = pairs(streams);
    let sender = thread::spawn(move || send::over(near, &send, &AtomicBool::new(false), &Meter::default()));
    let received = receive::over(far, receive, &AtomicBool::new(false), &Meter::default()).unwrap();
    (sender.join().unwrap().unwrap(), received)
}

#[test]
fn all_bytes_of_all_streams_arrive_whatever_the_threads_and_the_way() {
    let bytes = 20_000_003;
    for (streams, threads, zerocopy) in [
        (1, 1, Zerocopy::Auto),
        (8, 3, Zerocopy::Auto),
        (8, 2, Zerocopy::Off),
        (5, 5, Zerocopy::Splice),
        (3, 2, Zerocopy::Msg),
        (100, 4, Zerocopy::Auto),
    ] {
        let what = format!("{streams} streams, {threads} threads, {zerocopy:?}");
        let (sent, received) =
            carry(streams, send_plan(threads, zerocopy, false, bytes), &receive_plan(threads, false));
        assert_eq!((sent.bytes, received.bytes), (bytes, bytes), "{what}");
        let counted = bytes - received.counted_from.bytes;
        assert_eq!(received.stream_bytes.iter().sum::<u64>(), counted, "{what}");
        assert_eq!(received.ended, EndReason::Closed, "{what}");
        assert_eq!((sent.threads, received.threads), (Some(threads as u32), Some(threads as u32)), "{what}");
        assert!(received.samples.is_sorted_by_key(|s| s.bytes) && !sent.samples.is_empty(), "{what}");
    }
}

#[test]
fn no_byte_is_lost_while_ways_are_tried_and_changed() {
    let bytes = 2_000_000_003;
    let plan = SendPlan {
        length_bytes: 131_072,
        crew: Crew::of(4, &[]),
        ..send_plan(4, Zerocopy::Auto, false, bytes)
    };
    let (sent, received) = carry(4, plan, &receive_plan(4, false));
    assert_eq!((sent.bytes, received.bytes), (bytes, bytes), "{:?}", sent.tried);
    // A machine that is too busy for 4 Gbit/s copies and tries nothing; one that is not tries each way.
    assert!(sent.tried.is_empty() || sent.tried.len() >= 3, "{:?}", sent.tried);
    let is_kept = |way: &TriedWay| way.method == sent.method && way.sent_bps > 0.0;
    assert!(sent.tried.is_empty() || sent.tried.iter().any(is_kept), "{:?}", sent.tried);
}

#[test]
fn every_byte_of_the_pattern_is_checked_and_right() {
    let bytes = 20_000_003;
    let (sent, received) = carry(7, send_plan(3, Zerocopy::Auto, true, bytes), &receive_plan(2, true));
    let check = received.check.unwrap();
    assert!(sent.patterned && sent.method == SendMethod::Write && received.method == ReceiveMethod::Read);
    assert_eq!((check.checked_bytes, check.wrong_bytes, check.first_wrong), (bytes, 0, None));
}

#[test]
fn bytes_that_are_no_pattern_are_all_looked_at() {
    let (_, received) = carry(1, send_plan(1, Zerocopy::Auto, false, 1_000_000), &receive_plan(1, true));
    let check = received.check.unwrap();
    assert_eq!(check.checked_bytes, 1_000_000);
    assert!(check.wrong_bytes > 980_000, "{check:?}");
}

#[test]
fn one_changed_byte_is_found_and_named() {
    let (near, far) = pairs(3);
    let sender = thread::spawn(move || {
        for (stream, mut socket) in near.into_iter().enumerate() {
            let mut bytes = vec![0; 3_000_000];
            pattern::fill(stream as u32, 0, &mut bytes);
            if stream == 1 {
                bytes[1_234_567] ^= 1;
            }
            socket.write_all(&bytes).unwrap();
        }
    });
    let received =
        receive::over(far, &receive_plan(3, true), &AtomicBool::new(false), &Meter::default()).unwrap();
    sender.join().unwrap();
    let check = received.check.unwrap();
    assert_eq!((check.checked_bytes, check.wrong_bytes), (9_000_000, 1));
    assert_eq!(check.first_wrong, Some(WrongByte { stream: 1, offset: 1_234_567 }));
}

#[test]
fn a_processor_that_is_not_there_is_named() {
    let (near, _far) = pairs(1);
    let plan = SendPlan { crew: Crew::of(1, &[1000]), ..send_plan(1, Zerocopy::Auto, false, 1) };
    let error = send::over(near, &plan, &AtomicBool::new(false), &Meter::default()).unwrap_err();
    assert!(error.to_string().contains("processor 1000"), "{error}");
}

#[test]
fn programs_that_hold_back_carry_every_byte_at_their_own_pace() {
    let rate = |rate_bps| Some(IoPattern::Rate { rate_bps });
    let pauses = Some(IoPattern::Pauses { pause: Nanos::millis(150), every: Nanos::millis(200) });
    let messages = Some(Messages { size_bytes: 5_000, writes: 2 });
    // Of 400 kB 16 Mbit/s take 200 ms, less what the first read took late; what has pauses may begin after its first.
    for (application, least_ms) in [
        (Application { reader: rate(16_000_000), ..Default::default() }, 150),
        (Application { writer: rate(16_000_000), ..Default::default() }, 150),
        (Application { writer: pauses, ..Default::default() }, 0),
        (Application { reader: pauses, ..Default::default() }, 0),
        (Application { messages, reader: rate(16_000_000), ..Default::default() }, 150),
    ] {
        let send = SendPlan { application, ..send_plan(1, Zerocopy::Off, true, 400_000) };
        let receive = ReceivePlan { application, coalesce: false, ..receive_plan(1, true) };
        let (sent, received) = carry(1, send, &receive);
        assert_eq!((sent.bytes, received.bytes), (400_000, 400_000), "{application:?}");
        assert_eq!(received.check.map(|check| check.wrong_bytes), Some(0), "{application:?}");
        assert!(received.duration_ns >= least_ms * 1_000_000, "{application:?}: {}", received.duration_ns);
    }
}
