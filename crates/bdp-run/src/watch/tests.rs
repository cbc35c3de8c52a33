//! Watching by a scripted kernel and clock.

mod kinds;

use std::collections::VecDeque;
use std::sync::Arc;

use bdp_model::finding::Limit;
use bdp_model::watch::{Holder, Role};
use bdp_sys::cgroup::Throttling;
use bdp_sys::diag::{Message, messages};

use super::processes::Processes;
use super::world::Each;
use super::*;

const SECOND: u64 = 1_000_000_000;

/// A socket as a script has it.
#[derive(Debug, Clone)]
struct Script {
    cookie: u64,
    inode: u32,
    state: u8,
    unread: u32,
    queued: u32,
    tries: u8,
    /// `SO_SNDBUF`, what packets take of it, and `SO_RCVBUF`.
    memory: Option<(u32, u32, u32)>,
    is_server: bool,
    info: Vec<u8>,
}

impl Script {
    fn new(cookie: u64) -> Self {
        let mut info = vec![0; 240];
        info[0] = 1;
        let mut script = Self {
            cookie,
            inode: 100 + cookie as u32,
            state: 1,
            unread: 0,
            queued: 0,
            tries: 0,
            memory: None,
            is_server: false,
            info,
        };
        script.word(16, 1448).word(76, 0x7fff_ffff).word(68, 20_000).word(148, 20_000).word(80, 10);
        script
    }

    fn word(&mut self, at: usize, value: u32) -> &mut Self {
        self.info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn long(&mut self, at: usize, value: u64) -> &mut Self {
        self.info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// As the kernel writes it.
    fn message(&self) -> Vec<u8> {
        let mut body = vec![0u8; 72];
        (body[0], body[1]) = (2, self.state);
        body[3] = self.tries;
        let ports = if self.is_server { [0x01, 0xbb, 0x9c, 0x40] } else { [0x9c, 0x40, 0x01, 0xbb] };
        body[4..8].copy_from_slice(&ports);
        body[8..12].copy_from_slice(&[192, 0, 2, 1]);
        body[24..28].copy_from_slice(&[198, 51, 100, 7]);
        body[44..48].copy_from_slice(&(self.cookie as u32).to_ne_bytes());
        body[48..52].copy_from_slice(&((self.cookie >> 32) as u32).to_ne_bytes());
        body[56..60].copy_from_slice(&self.unread.to_ne_bytes());
        body[60..64].copy_from_slice(&self.queued.to_ne_bytes());
        body[68..72].copy_from_slice(&self.inode.to_ne_bytes());
        if !self.info.is_empty() {
            body.extend((4 + self.info.len() as u16).to_ne_bytes());
            body.extend(2u16.to_ne_bytes());
            body.extend(&self.info);
        }
        if let Some((send_buffer, taken, receive_buffer)) = self.memory {
            body.extend(40u16.to_ne_bytes());
            body.extend(7u16.to_ne_bytes());
            let words = [0, receive_buffer, 0, send_buffer, 0, taken, 0, 0, 0];
            body.extend(words.into_iter().flat_map(u32::to_ne_bytes));
        }
        let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
        bytes.extend([20, 0, 0, 0]);
        bytes.extend([0; 8]);
        bytes.extend(body);
        bytes
    }
}

/// A kernel that shows at each reading what a function of the time gives; `None` refuses to list.
struct Scripted<F> {
    now_ns: u64,
    sockets: F,
    complete: VecDeque<bool>,
    over: bool,
    everything: Vec<bool>,
    quota: fn(u64) -> Option<Throttling>,
    asked: Option<(bool, bool)>,
    program: &'static str,
    host: HostFacts,
}

impl<F: FnMut(u64) -> Option<Vec<Script>>> Scripted<F> {
    fn new(sockets: F) -> Self {
        Self {
            now_ns: 0,
            sockets,
            complete: VecDeque::new(),
            over: false,
            everything: Vec::new(),
            quota: |_| None,
            asked: None,
            program: "rsync",
            host: HostFacts::default(),
        }
    }

    fn run(&mut self, seconds: u64) -> (Vec<WatchInterval>, Watched) {
        let plan = WatchPlan {
            targets: Vec::new(),
            interval: Nanos::secs(1),
            samples_per_second: 10,
            duration: Some(Nanos::secs(seconds)),
        };
        let mut intervals = Vec::new();
        let mut watch = |event: Event<'_>| {
            if let Event::Sockets { interval } = event {
                intervals.push(interval.into_owned());
            }
        };
        let watched = plan.run_in(self, self.host.clone(), &mut watch, &AtomicBool::new(false));
        (intervals, watched)
    }
}

impl<F: FnMut(u64) -> Option<Vec<Script>>> World for Scripted<F> {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn wait_until(&mut self, at_ns: u64, _: &AtomicBool) {
        self.now_ns = self.now_ns.max(at_ns);
    }

    fn refresh(&mut self, _: &Tracker) -> Vec<String> {
        Vec::new()
    }

    fn narrow(&mut self, _: &Tracker) {}

    fn list(&mut self, everything: bool, each: &mut Each<'_>) -> bdp_sys::Result<bool> {
        self.everything.push(everything);
        let refused = || bdp_sys::sysctl::read("no.such.setting").unwrap_err();
        for script in (self.sockets)(self.now_ns).ok_or_else(refused)? {
            let bytes = script.message();
            let Some(Ok(envelope)) = messages(&bytes).next() else { panic!("no message") };
            let Message::Socket(report) = envelope.message else { panic!("no socket") };
            each(0, &report, &|| true);
        }
        Ok(self.complete.pop_front().unwrap_or(true))
    }

    fn holders(&mut self, sockets: &[u32]) -> Option<Vec<(u32, Option<Arc<Holder>>)>> {
        let program = self.program;
        let holder = |&socket| (socket, Some(Arc::new(Holder { pid: socket, name: program.to_owned() })));
        Some(sockets.iter().map(holder).collect())
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

impl<F: FnMut(u64) -> Option<Vec<Script>>> Processes for Scripted<F> {
    fn throttling(&mut self, _: u32) -> Option<Throttling> {
        (self.quota)(self.now_ns)
    }

    fn buffers_asked(&mut self, _: u32, _: u32) -> Option<(bool, bool)> {
        self.asked
    }
}

/// A sender whose receive window of 28960 bytes is full all the time: 20 segments each 20 ms.
fn window_limited(now_ns: u64) -> Script {
    let mut script = Script::new(7);
    let acked = now_ns / 20_000_000 * 28_960;
    script.long(120, acked).word(24, 20).word(80, 40).word(228, 28_960).word(144, 100_000);
    script.long(168, now_ns / 1000).long(176, now_ns / 1000 * 9 / 10).word(192, (acked / 1448) as u32);
    script.queued = 128_960;
    script
}

fn finding(interval: &WatchInterval, socket: usize) -> Option<Limit> {
    interval.sockets[socket].finding.as_ref().map(|finding| finding.limit)
}

#[test]
fn full_receive_window_is_found_and_summed_up_with_its_share_of_time() {
    let (intervals, watched) = Scripted::new(|now| Some(vec![window_limited(now)])).run(4);
    assert_eq!(intervals.len(), 4);
    for interval in &intervals {
        assert_eq!(finding(interval, 0), Some(Limit::ReceiveWindow));
        let socket = &interval.sockets[0];
        assert!((socket.sent_bps - 28_960.0 * 8.0 * 50.0).abs() < 0.03 * socket.sent_bps, "{socket:?}");
        assert_eq!((socket.role, interval.unexplained), (Role::Sending, 0));
        assert_eq!(socket.name.holder.as_ref().unwrap().name, "rsync");
        assert!((socket.limited.unwrap().rwnd_limited - 0.9).abs() < 0.05);
    }
    assert_eq!((intervals[0].samples, intervals[1].samples), (11, 10));
    let summary = watched.summary.unwrap();
    let total = &summary.sockets[0];
    assert_eq!((summary.seen, total.limits.len(), total.limits[0].share), (1, 1, 1.0));
    assert!(!total.ended && total.last.sent_bps > 1e6 && watched.result.is_ok());
    assert_eq!((total.watched_ns, total.active_ns), (4 * SECOND, 4 * SECOND));
}

#[test]
fn what_seldom_changes_is_asked_for_once_an_interval() {
    let mut world = Scripted::new(|now| Some(vec![window_limited(now)]));
    world.run(2);
    let whole: Vec<usize> = (0..world.everything.len()).filter(|&i| world.everything[i]).collect();
    assert_eq!(whole, [0, 11]);
}

#[test]
fn program_that_pauses_is_the_limit_of_its_connection() {
    // Every second 14480 bytes, acknowledged within 20 ms.
    let idle = |now: u64| {
        let mut script = Script::new(7);
        let bursts = now / SECOND + 1;
        script.long(120, bursts * 14_480).long(168, bursts * 20_000).word(228, 65_000);
        script.info[7] = if cfg!(target_endian = "little") { 1 } else { 0x80 };
        Some(vec![script])
    };
    let (intervals, _) = Scripted::new(idle).run(3);
    assert_eq!(finding(&intervals[2], 0), Some(Limit::SlowWriter));
}

#[test]
fn reader_that_leaves_data_is_the_limit_and_one_that_reads_is_not() {
    let receiving = |unread: u32| {
        move |now: u64| {
            let mut script = Script::new(7);
            script.long(128, now / 1000).word(232, 65_536 - unread).word(92, 20_000);
            script.unread = unread;
            Some(vec![script])
        }
    };
    let (intervals, _) = Scripted::new(receiving(60_000)).run(2);
    assert_eq!(finding(&intervals[1], 0), Some(Limit::SlowReader));
    let (intervals, _) = Scripted::new(receiving(0)).run(2);
    let socket = &intervals[1].sockets[0];
    assert_eq!((finding(&intervals[1], 0), socket.role), (Some(Limit::Unknown), Role::Receiving));
    assert_eq!(socket.finding.as_ref().unwrap().missing.len(), 1);
}

#[test]
fn own_receive_window_is_found_by_the_receivers_estimate_of_the_round_trip() {
    let receiving = |now: u64| {
        let mut script = Script::new(7);
        script.long(128, now / 20_000_000 * 65_536).word(232, 65_536).word(92, 20_000);
        Some(vec![script])
    };
    let (intervals, _) = Scripted::new(receiving).run(3);
    assert_eq!(finding(&intervals[2], 0), Some(Limit::ReceiveWindow));
}

#[test]
fn quiet_socket_has_no_finding_and_is_in_no_summary() {
    let (intervals, watched) = Scripted::new(|_| Some(vec![Script::new(7)])).run(3);
    assert!(intervals.iter().all(|i| i.sockets[0].role == Role::Quiet && i.sockets[0].finding.is_none()));
    let summary = watched.summary.unwrap();
    assert_eq!((summary.seen, summary.sockets.len()), (1, 0));
}

#[test]
fn stuck_sender_is_not_quiet() {
    let stuck = |now: u64| {
        let mut script = Script::new(7);
        script.queued = 50_000;
        script.word(24, 10).word(228, 65_000).long(168, now / 1000);
        Some(vec![script])
    };
    let (intervals, _) = Scripted::new(stuck).run(2);
    assert_eq!(intervals[1].sockets[0].role, Role::Sending);
    assert!(intervals[1].sockets[0].finding.is_some());
}

#[test]
fn socket_that_ends_keeps_its_last_figures_and_the_same_ends_anew_are_another() {
    let reused = |now: u64| {
        let mut script = window_limited(now % (2 * SECOND));
        // The same addresses, another socket.
        script.cookie = if now < 2 * SECOND { 7 } else { 8 };
        Some(vec![script])
    };
    let (intervals, watched) = Scripted::new(reused).run(4);
    assert!(intervals.iter().all(|interval| interval.sockets.len() == 1));
    let summary = watched.summary.unwrap();
    let cookies: Vec<(u64, bool)> = summary.sockets.iter().map(|s| (s.last.name.cookie, s.ended)).collect();
    assert_eq!(summary.seen, 2);
    assert!(cookies.contains(&(7, true)) && cookies.contains(&(8, false)), "{cookies:?}");
    let ended = summary.sockets.iter().find(|s| s.ended).unwrap();
    assert!(ended.last.sent_bytes > 2_000_000 && ended.limits[0].limit == Limit::ReceiveWindow);
}

#[test]
fn list_that_lacks_sockets_ends_none_of_them() {
    let mut world =
        Scripted::new(|now| Some(if now == SECOND / 2 { Vec::new() } else { vec![window_limited(now)] }));
    world.complete = VecDeque::from([true, true, true, true, true, false]);
    let (intervals, watched) = world.run(2);
    assert_eq!((intervals[0].incomplete, intervals[0].sockets.len()), (1, 1));
    let summary = watched.summary.unwrap();
    assert_eq!((summary.seen, summary.incomplete, summary.sockets.len()), (1, 1, 1));
    assert!(!summary.sockets[0].ended);
}

#[test]
fn reading_that_fails_is_counted_and_the_first_is_an_error() {
    let (intervals, watched) =
        Scripted::new(|now| (now != SECOND / 2).then(|| vec![window_limited(now)])).run(2);
    assert_eq!((intervals[0].incomplete, intervals[0].notes.len()), (1, 1));
    assert!(watched.result.is_ok());
    let (intervals, watched) = Scripted::new(|_| None).run(2);
    assert!(intervals.is_empty() && watched.summary.is_none() && watched.result.is_err());
}

#[test]
fn it_ends_by_itself_once_nothing_is_left() {
    let mut world =
        Scripted::new(|now| Some(if now < SECOND * 3 / 2 { vec![window_limited(now)] } else { Vec::new() }));
    world.over = true;
    let (intervals, watched) = world.run(100);
    let summary = watched.summary.unwrap();
    assert_eq!(intervals.len(), 2);
    assert!(summary.took_ns < 2 * SECOND && summary.sockets[0].ended);
}

#[test]
fn shorter_tcp_info_of_an_older_kernel_leaves_figures_unknown() {
    let older = |now: u64| {
        let mut script = window_limited(now);
        script.info.truncate(136);
        Some(vec![script])
    };
    let (intervals, _) = Scripted::new(older).run(2);
    let socket = &intervals[1].sockets[0];
    assert!(socket.sent_bps > 1e6);
    assert_eq!((socket.send_window_bytes, socket.limited, socket.min_rtt_ns), (None, None, None));
    assert_eq!(finding(&intervals[1], 0), Some(Limit::Unknown));
    // A longer one than this bdp knows is read as far as it does.
    let newer = |now: u64| {
        let mut script = window_limited(now);
        script.info.extend([0xff; 100]);
        Some(vec![script])
    };
    let (intervals, _) = Scripted::new(newer).run(2);
    assert_eq!(finding(&intervals[1], 0), Some(Limit::ReceiveWindow));
}

#[test]
fn memory_is_bounded_however_many_sockets_move() {
    let mut history = history::History::default();
    for moment in 0..10_000u64 {
        let bytes = window_limited(moment * SECOND / 10).message();
        let Some(Ok(envelope)) = messages(&bytes).next() else { panic!("no message") };
        let Message::Socket(report) = envelope.message else { panic!("no socket") };
        history.push(history::Reading::of(&report, moment * SECOND / 10), 10 * SECOND, 1_000_000);
    }
    assert_eq!(history.held(), 16);
    // Where nothing moves one reading stands for all of that time.
    let mut history = history::History::default();
    for moment in 0..50u64 {
        let bytes = Script::new(7).message();
        let Some(Ok(envelope)) = messages(&bytes).next() else { panic!("no message") };
        let Message::Socket(report) = envelope.message else { panic!("no socket") };
        history.push(history::Reading::of(&report, moment * SECOND / 10), 10 * SECOND, 1);
    }
    assert_eq!(history.held(), 1);
    assert_eq!(history.moments(10 * SECOND).len(), 50);
}

#[test]
fn of_very_many_moving_sockets_those_that_move_most_are_explained() {
    let many = |now: u64| {
        let sockets = (1..=400u64).map(|cookie| {
            let mut script = window_limited(now);
            let moved = now / 20_000_000 * (28_960 + cookie);
            (script.cookie, script.inode) = (cookie, cookie as u32);
            script.long(120, moved);
            script
        });
        Some(sockets.collect())
    };
    let (intervals, _) = Scripted::new(many).run(4);
    assert_eq!(intervals[1].unexplained, 250);
    let explained: Vec<bool> = intervals[1].sockets.iter().map(|s| s.finding.is_some()).collect();
    assert!(explained[300..].iter().all(|&is| is), "those that moved most");
    // The others have their turn.
    let last = intervals[3].sockets.iter().filter(|s| s.finding.is_some()).count();
    assert!(last > explained.iter().filter(|&&is| is).count());
}
