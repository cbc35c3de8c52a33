//! Queues that manage themselves: what each key becomes, and what is said where it is wrong.

use bdp_model::link::DirectionConfig;
use bdp_model::link::queue::{Cake, Codel, DualPi2, FqCodel, Isolation, Pie, Queue, Red, Tins};

use super::*;

fn with(lines: &str) -> String {
    BASE.replacen("rate =", &format!("{lines}\nrate ="), 1)
}

fn direction(lines: &str) -> DirectionConfig {
    plan(&with(lines))[0].links[0].config.forward.clone()
}

#[test]
fn a_name_takes_the_defaults_of_linux() {
    assert_eq!(direction("queue = 'drop-tail'"), direction(""));
    let codel = direction("queue = 'codel'");
    assert_eq!(codel.queue, Some(Queue::Codel(Codel::default())));
    assert_eq!(codel.limit, QueueLimit::Packets(1000));
    let fq = direction("queue = 'fq_codel'");
    assert_eq!(fq.queue, Some(Queue::FqCodel(FqCodel::default())));
    assert_eq!(fq.limit, QueueLimit::Packets(10_240));
    for &kind in Queue::KINDS {
        let queue = direction(&format!("queue = '{kind}'")).queue.unwrap();
        assert_eq!(queue.name(), kind);
        assert_eq!(direction(&format!("queue = {{ kind = '{kind}' }}")).queue, Some(queue));
    }
}

#[test]
fn a_table_sets_options() {
    let config = direction(
        "queue = { kind = 'codel', target = '2ms', interval = '20ms', ecn = true, ce_threshold = '1ms', limit = 200 }",
    );
    let codel = Codel {
        target: Nanos::millis(2),
        interval: Nanos::millis(20),
        ecn: true,
        ce_threshold: Some(Nanos::millis(1)),
    };
    assert_eq!((config.queue, config.limit), (Some(Queue::Codel(codel)), QueueLimit::Packets(200)));
    let config = direction("queue = { kind = 'fq_codel', flows = 16, quantum = 300 }\nlimit = 50");
    let fq = FqCodel { flows: 16, quantum_bytes: 300, ..FqCodel::default() };
    assert_eq!((config.queue, config.limit), (Some(Queue::FqCodel(fq)), QueueLimit::Packets(50)));
}

#[test]
fn every_kind_has_its_options() {
    let queue = |text: &str| direction(&format!("queue = {text}")).queue;
    let pie = Pie { target: Nanos::millis(20), tupdate: Nanos::millis(30), alpha: 3, beta: 10, ecn: true };
    let text = "{ kind = 'pie', target = '20ms', tupdate = '30ms', alpha = 3, beta = 10, ecn = true }";
    assert_eq!(queue(text), Some(Queue::Pie(pie)));
    let red = Red {
        min_bytes: 5_000,
        max_bytes: 15_000,
        burst: 9,
        probability: Probability::new(0.1).unwrap(),
        ..Red::default()
    };
    let text = "{ kind = 'red', min = 5000, max = 15000, probability = '10%' }";
    assert_eq!(queue(text), Some(Queue::Red(red)));
    // tc(8): the weight's logarithm of the default thresholds.
    assert_eq!((red.weight_log(), Red::default().weight_log()), (Some(3), Some(5)));
    let cake = Cake { diffserv: Tins::Diffserv4, isolation: Isolation::Flows, rtt: Nanos::millis(20) };
    let text = "{ kind = 'cake', diffserv = 'diffserv4', isolation = 'flows', rtt = '20ms' }";
    assert_eq!(queue(text), Some(Queue::Cake(cake)));
    let dual = DualPi2 {
        step_thresh: Nanos::micros(500),
        coupling_factor: 3,
        drop_on_overload: false,
        ..DualPi2::default()
    };
    let text = "{ kind = 'dualpi2', step_thresh = '500us', coupling_factor = 3, drop_on_overload = false }";
    assert_eq!(queue(text), Some(Queue::DualPi2(dual)));
    let limit = |text: &str| direction(text).limit;
    assert_eq!(limit("queue = 'red'\nlimit = '64K'"), QueueLimit::Bytes(ByteCount::kib(64)));
    assert_eq!(limit("queue = 'cake'"), QueueLimit::Bytes(ByteCount::bytes(4 << 20)));
    assert_eq!(limit("queue = 'pie'\nlimit = 20"), QueueLimit::Packets(20));
}

#[test]
fn queues_and_their_options_can_be_swept() {
    let swept = |lines: &str, sweep: &str| plan(&format!("{}[sweep]\n{sweep}\n", with(lines)));
    let cases = swept("", "link.queue = ['drop-tail', 'codel', 'fq_codel']");
    let kinds: Vec<_> = cases.iter().map(|c| c.links[0].config.forward.queue.map(|q| q.name())).collect();
    assert_eq!(kinds, [None, Some("codel"), Some("fq_codel")]);
    let cases = swept("queue = { kind = 'codel' }", "link.queue.target = ['1ms', '5ms']");
    let targets: Vec<_> = cases
        .iter()
        .map(|c| match c.links[0].config.forward.queue {
            Some(Queue::Codel(codel)) => codel.target,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(targets, [Nanos::millis(1), Nanos::millis(5)]);
    let cases =
        swept("queue = 'codel'", "link.forward.queue = ['drop-tail', { kind = 'fq_codel', flows = 4 }]");
    assert_eq!(cases.len(), 2);
    assert_eq!(cases[0].links[0].config.forward.queue, None);
    assert!(cases[0].links[0].config.reverse.queue.is_some());
}

#[test]
fn a_record_of_drop_tail_says_nothing_of_it() {
    let text = serde_json::to_string(&direction("")).unwrap();
    assert!(!text.contains("queue"), "{text}");
    let codel = direction("queue = 'codel'");
    let text = serde_json::to_string(&codel).unwrap();
    assert!(text.contains(r#""queue":{"kind":"codel","target_ns":5000000,"#), "{text}");
    assert_eq!(serde_json::from_str::<DirectionConfig>(&text).unwrap(), codel);
}

/// Records of earlier versions stay readable, and repeat to the byte.
#[test]
fn the_record_of_each_queue_is_pinned() {
    for (kind, record) in [
        (
            "codel",
            r#"{"kind":"codel","target_ns":5000000,"interval_ns":100000000,"ecn":false,"ce_threshold_ns":null}"#,
        ),
        (
            "fq_codel",
            r#"{"kind":"fq_codel","codel":{"target_ns":5000000,"interval_ns":100000000,"ecn":true,"ce_threshold_ns":null},"flows":1024,"quantum_bytes":1514}"#,
        ),
        (
            "pie",
            r#"{"kind":"pie","target_ns":15000000,"tupdate_ns":15000000,"alpha":2,"beta":20,"ecn":false}"#,
        ),
        (
            "red",
            r#"{"kind":"red","min_bytes":30000,"max_bytes":90000,"avpkt_bytes":1000,"burst":55,"probability":0.02,"ecn":false,"harddrop":false}"#,
        ),
        ("cake", r#"{"kind":"cake","diffserv":"diffserv3","isolation":"triple-isolate","rtt_ns":100000000}"#),
        (
            "dualpi2",
            r#"{"kind":"dualpi2","target_ns":15000000,"tupdate_ns":16000000,"alpha":41,"beta":819,"coupling_factor":2,"step_thresh_ns":1000000,"drop_on_overload":true,"c_protection_percent":10}"#,
        ),
    ] {
        let queue = direction(&format!("queue = '{kind}'")).queue;
        assert_eq!(serde_json::to_string(&queue).unwrap(), record);
        assert_eq!(serde_json::from_str::<Option<Queue>>(record).unwrap(), queue);
    }
}

#[test]
fn what_does_not_go_together_is_refused_in_a_line() {
    for (lines, expected) in [
        (
            "queue = 'codle'",
            "link.queue = \"codle\": expected \"drop-tail\", KINDS, or a table such as { kind = \"codel\", \
             target = \"5ms\" }",
        ),
        (
            "queue = { target = '5ms' }",
            "link.queue = a table: expected \"drop-tail\", KINDS, or a table such as { kind = \"codel\", \
             target = \"5ms\" }",
        ),
        (
            "queue = { kind = 'codel', flows = 5 }",
            "unknown key 'flows' in link.queue's table of kind \"codel\"; keys here: kind, limit, target, interval, ecn, ce_threshold",
        ),
        (
            "queue = { kind = 'codel', target = 0 }",
            "link.queue.target = 0: expected a time from 1us to 1h such as \"5ms\"",
        ),
        (
            "queue = { kind = 'red', min = 5000, max = 4000 }",
            "link.queue.max = 4000: expected thresholds with max above min",
        ),
        (
            "queue = { kind = 'red', burst = 5 }",
            "link.queue.burst = 5: expected packets that may arrive in a burst, at least min / avpkt: 31",
        ),
        (
            "queue = { kind = 'cake', isolation = 'hosts' }",
            "link.queue.isolation = \"hosts\": expected \"flows\" or \"triple-isolate\"",
        ),
        (
            "queue = { kind = 'pie', alpha = 33 }",
            "link.queue.alpha = 33: expected a whole number from 0 to 32",
        ),
        (
            "queue = 'codel'\nlimit = '64K'",
            "link.forward.limit = \"64K\": expected a queue limit in packets, such as 1000 or \"1000p\"",
        ),
        (
            "queue = { kind = 'codel', limit = 5 }\nlimit = 6",
            "link.forward.queue.limit = 5 conflicts with limit = 6: give the limit in only one of them",
        ),
        (
            "queue = 'codel'\necn_threshold = 20",
            "link.forward.ecn_threshold = 20 conflicts with queue = \"codel\": ecn_threshold is only \
             for drop-tail; for this queue use ecn = true and ce_threshold",
        ),
        (
            "queue = 'codel'\nhalf_duplex = { guard = 0, turn = '1ms' }",
            "link.half_duplex = a table conflicts with queue = \"codel\": on a shared medium queues must be drop-tail",
        ),
    ] {
        let error = error(&with(lines));
        let error = error.split_once(": ").map_or(error.as_str(), |(_, rest)| rest);
        let kinds = format!("\"{}\"", Queue::KINDS.join("\", \""));
        assert_eq!(error, expected.replace("KINDS", &kinds), "{lines}");
    }
    let text = BASE.replacen("rate = \"100M\"", "queue = \"codel\"", 1);
    assert!(
        error(&text).ends_with(
            "link.forward.queue = \"codel\" conflicts with a link without a rate: it has no queue; give \
             it a rate such as rate = \"10M\""
        ),
        "{}",
        error(&text)
    );
}
