use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use bdp_model::probes::hops::{ProbeMethod, ProbeProtocol};
use bdp_sys::SysError;

use super::*;

const PATIENCE_NS: u64 = 50_000_000;

/// A prober whose answers the test gives.
#[derive(Default)]
struct Scripted {
    replies: Arc<Mutex<Vec<Reply>>>,
    given_up: Arc<Mutex<Vec<u32>>>,
}

impl Prober for Scripted {
    fn method(&self) -> ProbeMethod {
        ProbeMethod { protocol: ProbeProtocol::Udp, bytes: 44, raw: false, fallback: false }
    }

    fn send(&mut self, _: &Outgoing) -> Result<(), SysError> {
        Ok(())
    }

    fn receive(&mut self, each: &mut dyn FnMut(Reply)) -> io::Result<()> {
        self.replies.lock().unwrap().drain(..).for_each(each);
        Ok(())
    }

    fn give_up(&mut self, number: u32) {
        self.given_up.lock().unwrap().push(number);
    }

    fn descriptors<'a>(&'a self, _: &mut Vec<(BorrowedFd<'a>, Interest)>) {}

    fn number_of(&self, _: &Quote<'_>) -> Option<Which> {
        None
    }
}

struct Bench {
    engine: Engine,
    replies: Arc<Mutex<Vec<Reply>>>,
    given_up: Arc<Mutex<Vec<u32>>>,
    cancel: AtomicBool,
}

impl Bench {
    fn new() -> Self {
        let prober = Scripted::default();
        let (replies, given_up) = (Arc::clone(&prober.replies), Arc::clone(&prober.given_up));
        let to = "127.0.0.1:9".parse().unwrap();
        let engine = Engine::over(Box::new(prober), to, 0, PATIENCE_NS, clock::monotonic_ns());
        Self { engine, replies, given_up, cancel: AtomicBool::new(false) }
    }

    fn send(&mut self, hop: u8, flow: u16) -> u32 {
        self.engine.send(Aim { phase: Phase::Idle, hop, flow, bytes: 0 }, &self.cancel).unwrap()
    }

    fn reply(&mut self, which: Which, from: u8, rtt_ns: Option<u64>) {
        let from = Some(IpAddr::V4(Ipv4Addr::new(10, 0, from, 1)));
        let kind = AnswerKind::Exceeded;
        self.replies.lock().unwrap().push(Reply { which, from, kind, arrived_unix_ns: None, rtt_ns });
        self.engine.run_until(0, &self.cancel).unwrap();
    }

    /// The third byte of the address that answered each probe.
    fn answered(&self) -> Vec<Option<u8>> {
        let third = |from: IpAddr| if let IpAddr::V4(v4) = from { v4.octets()[2] } else { 0 };
        self.engine.probes().map(|p| p.answer.and_then(|a| a.from).map(third)).collect()
    }
}

#[test]
fn an_answer_is_given_to_the_probe_that_it_names() {
    let mut bench = Bench::new();
    let numbers: Vec<u32> = (1..=3).map(|hop| bench.send(hop, 0)).collect();
    bench.reply(Which::Number(numbers[2]), 3, Some(5));
    bench.reply(Which::Ending(numbers[0] as u16), 1, None);
    // Of none, and a second one of the same.
    bench.reply(Which::Number(77), 9, None);
    bench.reply(Which::Number(numbers[2]), 8, None);
    assert_eq!(bench.answered(), [Some(1), None, Some(3)]);
    assert_eq!(bench.engine.answer(numbers[2]).unwrap().rtt_ns, 5);
}

#[test]
fn an_answer_that_names_its_flow_alone_is_given_by_address() {
    let mut bench = Bench::new();
    for hop in 1..=2 {
        bench.send(hop, 7);
        // One is under way: it is meant.
        bench.reply(Which::OfFlow(7), hop, None);
    }
    let (first, second, other) = (bench.send(1, 7), bench.send(2, 7), bench.send(2, 8));
    bench.reply(Which::OfFlow(7), 2, None);
    assert!(bench.engine.answer(second).is_some() && bench.engine.answer(first).is_none());
    // Another flow's probes are not meant, whatever the address.
    assert!(bench.engine.answer(other).is_none());
    // Two are under way, and nobody knows the address.
    bench.send(2, 7);
    bench.reply(Which::OfFlow(7), 99, None);
    assert_eq!(bench.answered(), [Some(1), Some(2), None, Some(2), None, None]);
}

#[test]
fn a_probe_without_an_answer_is_given_up_after_its_patience() {
    let mut bench = Bench::new();
    let number = bench.send(1, 0);
    bench.engine.settle(&bench.cancel).unwrap();
    assert!(bench.engine.now_ns() >= PATIENCE_NS);
    assert_eq!(*bench.given_up.lock().unwrap(), [number]);
    bench.reply(Which::Number(number), 1, None);
    assert_eq!(bench.answered(), [None]);
}

#[test]
fn a_raised_flag_ends_the_wait() {
    let mut bench = Bench::new();
    bench.send(1, 0);
    bench.cancel.store(true, Ordering::Relaxed);
    assert!(matches!(bench.engine.settle(&bench.cancel), Err(SessionError::Cancelled)));
}
