//! What a measurement tells.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::inside::{in_guest, is_inside};
use crate::support::measure;
use crate::untested;
use bdp_agent::server::Event;
use bdp_flow::session::progress::Stage;
use bdp_model::case::Family;
use bdp_model::flow::method::EndReason;
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::Direction;
use bdp_model::units::{ByteCount, Nanos};

use crate::support::{Serving, TOKEN, options, request, run, run_with};

#[test]
fn both_directions_are_measured_in_turn_and_everything_is_filled() {
    in_guest(|| {
        let server = Serving::start();
        let mut request = server.request();
        request.directions = vec![Direction::To, Direction::From];
        let mut stages = Vec::new();
        let measurement = measure(
            &request,
            Some(TOKEN),
            &mut |progress| stages.push(progress.stage),
            &AtomicBool::new(false),
        )
        .unwrap();
        stages.dedup();
        let direction = Stage::Direction;
        assert_eq!(
            stages,
            [Stage::Connecting, Stage::Idle, direction(Direction::To), direction(Direction::From)]
        );
        assert_eq!(measurement.directions.len(), 2);
        for result in &measurement.directions {
            assert!(result.goodput_bps > 1e6 && result.bytes > 100_000, "{result:?}");
            assert!(result.duration_ns >= 290_000_000 && result.ended == EndReason::Duration, "{result:?}");
            assert!(result.received.len() >= 3 && result.sent.len() >= 3, "{result:?}");
            assert!(result.spread.is_some() && result.retransmits.is_some() && result.mss_bytes.is_some());
            assert!(result.send_buffer_bytes.is_some_and(|b| b > 4096), "{result:?}");
            assert!(result.rtt_ns.loaded.is_some_and(|r| r.received >= 3), "{:?}", result.rtt_ns);
            if is_inside() {
                // 300 ms, each 50 of which begins and ends with a sample.
                assert!((300_000_000..300_100_000).contains(&result.duration_ns), "{result:?}");
                assert_eq!((result.received.len(), result.sent.len()), (7, 7), "{result:?}");
            }
            // Both ends have one machine's clocks, of which the one is compared with the other: no way took less than no time,
            // but for the error.
            let ways = result.each_way_ns.and_then(|ways| ways.loaded).unwrap();
            for way in [ways.there, ways.back] {
                assert!(
                    way.min >= -(way.clock_error as i64) && way.min <= way.p50 && way.p50 <= way.max,
                    "{ways:?}"
                );
            }
            assert!(result.responsiveness_rpm.is_some_and(|rpm| rpm > 0.0));
            assert!(!result.congestion_control.is_empty() && result.window.on_the_wire_bytes.is_some());
        }
        let idle = measurement.rtt_idle_ns.unwrap();
        assert!(idle.received >= 2 && idle.min > 0);
        if is_inside() {
            // Loopback's 100 us, and what two packets take at 1 Gbit/s.
            assert!((100_000..102_000).contains(&idle.min), "{idle:?}");
            assert!(idle.p50 - idle.min < 1_000, "{idle:?}");
        }
        for host in [&measurement.near, &measurement.far] {
            assert_eq!(host.address, "127.0.0.1");
            assert_eq!(host.device.as_ref().unwrap().name, "lo");
        }
        let path = &measurement.path;
        assert!(path.rtt_min_ns.is_some() && path.mtu_to.is_some() && path.mtu_from.is_some(), "{path:?}");
    });
}

#[test]
fn only_probes_sent_after_the_omit_are_under_load() {
    in_guest(|| {
        let server = Serving::start();
        let mut request = server.request();
        request.directions = vec![Direction::To, Direction::From];
        (request.spec.omit, request.spec.duration) = (Nanos::millis(1500), Nanos::millis(2000));
        for result in run(&request).unwrap().directions {
            let loaded = result.rtt_ns.loaded.unwrap();
            // Twenty a second: ten in the half second that counts, and some that a busy machine made late; forty in both seconds.
            let exact = if is_inside() { 10..=10 } else { 1..=20 };
            assert!(exact.contains(&loaded.sent), "{loaded:?}");
            assert_eq!(loaded.sent, loaded.received + loaded.in_flight + loaded.lost());
            assert!(result.responsiveness_rpm.is_some());
        }
    });
}

#[test]
fn both_directions_at_once() {
    let server = Serving::start();
    let mut request = server.request();
    (request.bidirectional, request.spec.streams) = (true, 3);
    let measurement = run(&request).unwrap();
    let ways: Vec<Direction> = measurement.directions.iter().map(|d| d.direction).collect();
    assert_eq!(ways, [Direction::To, Direction::From]);
    assert!(measurement.directions.iter().all(|d| d.bytes > 0 && d.stream_goodput_bps.len() == 3));
}

#[test]
fn ipv6_is_the_same() {
    if !untested::has_ipv6() {
        return;
    }
    let server = Serving::start();
    let measurement = run(&request("::1", server.address.port())).unwrap();
    assert_eq!((measurement.near.address.as_str(), measurement.far.address.as_str()), ("::1", "::1"));
    let mut request = request("::1", server.address.port());
    request.family = Some(Family::Ipv4);
    let error = run(&request).unwrap_err();
    assert!(error.is_request() && error.to_string().contains("is an IPv6 address"), "{error}");
}

#[test]
fn a_number_of_bytes_ends_a_direction_and_all_of_them_arrive() {
    in_guest(|| {
        let server = Serving::start();
        let mut request = server.request();
        request.directions = vec![Direction::To, Direction::From];
        (request.spec.bytes, request.spec.duration) = (Some(ByteCount::bytes(3_000_001)), Nanos::secs(8));
        let measurement = run(&request).unwrap();
        for result in &measurement.directions {
            assert_eq!((result.bytes, &result.ended), (3_000_001, &EndReason::Bytes));
        }
        assert!(measurement.took_ms < 7000);
    });
}

#[test]
fn a_window_is_on_the_wire_in_both_roles() {
    in_guest(|| {
        if !untested::kernel_lowers_windows() {
            return;
        }
        let server = Serving::start();
        for window in [2896, 30_000, 262_144] {
            let mut request = server.request();
            (request.directions, request.spec.mss) = (vec![Direction::To, Direction::From], Some(1460));
            (request.spec.window, request.spec.omit) = (WindowBytes::new(window), Nanos::millis(100));
            // Samples enough for one at which the reader had read all.
            (request.spec.duration, request.spec.interval) = (Nanos::millis(600), Nanos::millis(10));
            for result in run(&request).unwrap().directions {
                // Of the second half: the first windows are those of the handshake, until the receiver has been heard.
                let later = result.sent.iter().skip(result.sent.len() / 2);
                let seen = later.filter_map(|s| s.snd_wnd_bytes).max().unwrap();
                assert!(seen <= window + window / 10, "{window}: {:?}", result.window);
                assert!(seen / 1448 >= window / 1448, "{window}: {:?}", result.window);
                // Where the machine lets the reader wait, what it has not read yet is missing of the window that is seen.
                let late = result.window.on_the_wire_bytes.is_some_and(|median| median < seen);
                assert!(
                    late && !is_inside() || result.window.reached == Some(true),
                    "{window}: {:?}",
                    result.window
                );
                assert!(result.window.socket_buffer_bytes.is_some_and(|b| b >= window));
            }
        }
    });
}

#[test]
fn socket_buffers_segment_size_and_congestion_control_are_set() {
    in_guest(|| {
        let server = Serving::start();
        let mut request = server.request();
        request.directions = vec![Direction::To, Direction::From];
        request.spec.socket_buffer = Some(ByteCount::bytes(40_000));
        (request.spec.mss, request.spec.congestion, request.spec.dscp) =
            (Some(1000), Some("reno".to_owned()), Some(10));
        for result in run(&request).unwrap().directions {
            assert_eq!(result.send_buffer_bytes, Some(80_000));
            assert_eq!(result.window.socket_buffer_bytes, Some(80_000));
            assert_eq!(result.congestion_control, "reno");
            assert!(result.mss_bytes.is_some_and(|mss| mss <= 1000), "{result:?}");
        }
    });
}

#[test]
fn a_thousand_streams_work_and_so_do_clients_side_by_side() {
    let server = Serving::start();
    let mut many = server.request();
    (many.spec.streams, many.directions) = (1000, vec![Direction::To, Direction::From]);
    many.spec.duration = Nanos::secs(1);
    let measurement = run(&many).unwrap();
    for result in &measurement.directions {
        assert_eq!(result.stream_goodput_bps.len(), 1000);
        assert!(result.bytes > 0, "{:?}", result.direction);
    }
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let request = server.request();
            std::thread::spawn(move || run(&request).unwrap().directions[0].bytes)
        })
        .collect();
    assert!(clients.into_iter().all(|client| client.join().unwrap() > 0));
}

#[test]
fn a_server_for_one_session_ends_after_it() {
    in_guest(|| {
        let server = Serving::with(bdp_agent::server::ServerOptions { once: true, ..options() });
        run_with(&server.request(), Some(TOKEN)).unwrap();
        let waiting = Instant::now();
        while !server.is_finished() {
            assert!(waiting.elapsed().as_secs() < 10);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let events = server.events();
        assert!(
            matches!(events[..], [Event::Began { session: 1, .. }, Event::Ended { why: None, flows: 1, .. }]),
            "{events:?}"
        );
    });
}
