//! What stands beside the limit that binds, and what binds next.

use bdp_explain::unweighed as explain;
use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Confidence, Fact, Finding, Limit};
use bdp_model::flow::connection::Connection;
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::Ceiling;

use crate::rules::losses::{repairing, twelve};
use crate::rules::shape::{MIB, MS, found, plain, retransmit};

fn all(change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = plain();
    change(&mut facts);
    explain(&facts)
}

fn limits(findings: &[Finding]) -> Vec<Limit> {
    findings.iter().map(|finding| finding.limit).collect()
}

#[test]
fn repairs_without_sack_stand_beside_what_was_lost() {
    let repaired = |percent| limits(&all(|facts| repairing(facts, false, percent)));
    assert_eq!(repaired(20), [Limit::RandomLoss, Limit::SackMissing]);
    assert_eq!(repaired(5), [Limit::RandomLoss], "repairs take little");
}

#[test]
fn connection_without_timestamps_is_named_where_it_retransmits() {
    let lossy = |timestamps, segments: [u32; 4]| {
        all(|facts| {
            facts.connection = Some(Connection { timestamps, ..Default::default() });
            twelve(facts, segments);
            retransmit(facts, 400);
        })
    };
    let by_chance = [12, 40, 20, 33];
    let findings = lossy(Some(false), by_chance);
    assert_eq!(limits(&findings), [Limit::RandomLoss, Limit::TimestampsMissing]);
    assert_eq!(findings[1].confidence, Confidence::High);
    assert_eq!(findings[1].observed(Fact::TimestampsUsed).unwrap().value, 0.0);
    assert_eq!(findings[1].remedy.as_ref().unwrap().action, Action::EnableTimestamps);
    assert_eq!(limits(&lossy(Some(false), [30, 31, 30, 32])), [Limit::Policer, Limit::TimestampsMissing]);
    assert_eq!(limits(&lossy(Some(true), by_chance)), [Limit::RandomLoss]);
    assert_eq!(limits(&lossy(None, by_chance)), [Limit::RandomLoss], "nobody says");
    let few = all(|facts| {
        facts.connection = Some(Connection { timestamps: Some(false), ..Default::default() });
        twelve(facts, by_chance);
    });
    assert_eq!(limits(&few), [Limit::RandomLoss], "a third of a hundredth");
    let none_lost = all(|facts| {
        facts.connection = Some(Connection { timestamps: Some(false), ..Default::default() });
    });
    assert_eq!(limits(&none_lost), [Limit::Unknown]);
}

/// A program that has nothing to send for 40 % of the time.
fn slow_writer(facts: &mut Facts) {
    for sample in &mut facts.sent {
        sample.busy_ns = Some(sample.at_ns * 6 / 10);
        (sample.unacked, sample.not_sent_bytes) = (Some(12), Some(0));
    }
}

#[test]
fn slow_program_is_followed_by_the_smallest_window_that_the_hosts_are_set_to() {
    let after = |change: fn(&mut Facts)| {
        let finding = found(|facts| {
            slow_writer(facts);
            facts.ceiling = Some(Ceiling { goodput_bps: 9.4e9, by: "10 Gbit/s".to_owned() });
            for (end, sysctl) in
                [(&mut facts.receiver, "net.ipv4.tcp_rmem"), (&mut facts.sender, "net.ipv4.tcp_wmem")]
            {
                end.host.sysctls.insert(sysctl.to_owned(), "4096 131072 33554432".to_owned());
            }
            facts.window.socket_buffer_bytes = Some(16 * MIB);
            change(facts);
        });
        assert_eq!(finding.limit, Limit::SlowWriter);
        finding.next.map(|next| (next.limit, (next.goodput_bps / 1e6).round()))
    };
    // 8 MiB of window of a buffer of 16 MiB: 16 MiB of one of 32 in 24.2 ms, as half of the send buffer.
    let (limit, mbps) = after(|_| {}).unwrap();
    assert!(
        matches!(limit, Limit::ReceiveWindow | Limit::SendBuffer) && (5540.0..5550.0).contains(&mbps),
        "{limit:?} {mbps}"
    );
    let asked = after(|facts| facts.asked.window = WindowBytes::new(256 * 1024)).unwrap();
    assert_eq!(asked, (Limit::ReceiveWindow, 87.0));
    let send = after(|facts| {
        facts.sender.host.sysctls.insert("net.ipv4.tcp_wmem".to_owned(), "4096 16384 1048576".to_owned());
    });
    assert_eq!(send.unwrap(), (Limit::SendBuffer, 173.0));
    // What is no more than the goodput is no gain.
    assert_eq!(after(|facts| facts.asked.window = WindowBytes::new(64 * 1024)), None);
    let ceiling = after(|facts| facts.ceiling.as_mut().unwrap().goodput_bps = 94e6).unwrap();
    assert_eq!(ceiling, (Limit::Ceiling, 94.0));
    assert_eq!(after(|facts| facts.ceiling = None), None, "nobody knows what the path carries");
}

#[test]
fn what_follows_from_the_limit_is_no_finding() {
    // A reader that leaves data unread closes the window: that is no second limit.
    let findings = all(|facts| {
        for sample in &mut facts.received {
            sample.unread_bytes = Some(60_000);
        }
        for sample in &mut facts.sent {
            sample.snd_wnd_bytes = Some(64 * 1024);
            sample.rwnd_limited_ns = sample.busy_ns.map(|busy| busy * 9 / 10);
            sample.srtt_ns = Some(24 * MS);
        }
    });
    assert_eq!(limits(&findings), [Limit::SlowReader], "{findings:#?}");
}
