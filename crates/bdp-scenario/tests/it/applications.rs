//! Programs that hold back: `reader`, `writer` and `messages` of a flow.

use bdp_model::flow::application::{Application, IoPattern, Messages};

use super::*;

fn with(keys: &str) -> String {
    format!("title = 't'\n[[link]]\nbetween = ['a', 'b']\n[[flow]]\n{keys}\n")
}

fn of(keys: &str) -> Application {
    plan(&with(keys))[0].flows[0].spec.application
}

#[test]
fn programs_are_read_and_stand_in_the_record() {
    let rate = |rate_bps| Some(IoPattern::Rate { rate_bps });
    let pauses = Some(IoPattern::Pauses { pause: Nanos::millis(300), every: Nanos::secs(1) });
    let messages = |size_bytes, writes| Some(Messages { size_bytes, writes });
    for (keys, application) in [
        ("", Application::default()),
        ("reader = { rate = '10M' }", Application { reader: rate(10_000_000), ..Default::default() }),
        ("writer = { pause = '300ms', every = '1s' }", Application { writer: pauses, ..Default::default() }),
        (
            "reader = { pause = '300ms', every = '1s' }\nmessages = { size = '3000', writes = 3 }",
            Application { reader: pauses, messages: messages(3_000, 3), ..Default::default() },
        ),
        ("messages = { size = '64K' }", Application { messages: messages(65_536, 2), ..Default::default() }),
    ] {
        let case = plan(&with(keys)).remove(0);
        assert_eq!(case.flows[0].spec.application, application, "{keys}");
        let json = serde_json::to_value(&case.flows[0]).unwrap();
        // Plans of before keep their digests.
        assert_eq!(json.get("application").is_some(), !keys.is_empty(), "{json}");
        let read: bdp_model::case::CaseFlow = serde_json::from_value(json).unwrap();
        assert_eq!(read.spec.application, application);
    }
    let swept =
        plan(&format!("{}[sweep]\nflow.reader.rate = ['5M', '10M']\n", with("reader = { rate = '1M' }")));
    let rates: Vec<_> = swept.iter().map(|case| case.flows[0].spec.application.rate_bps()).collect();
    assert_eq!(rates, [Some(5_000_000), Some(10_000_000)]);
    assert_eq!(of("streams = 64\nwriter = { rate = '8k' }").rate_bps(), Some(8_000));
}

#[test]
fn what_no_program_does_is_refused() {
    for (keys, part) in [
        ("reader = '10M'", "flow.reader = \"10M\": expected { rate = \"10M\" }, from 8k to 1G, or { pause"),
        ("reader = {}", "expected { rate = \"10M\" }"),
        ("reader = { rate = '2G' }", "flow.reader.rate = \"2G\": expected payload per second from 8k to 1G"),
        ("writer = { rate = '1M', pause = '1s', every = '2s' }", "expected { rate = \"10M\" }"),
        ("writer = { pause = '1s' }", "expected { rate = \"10M\" }"),
        ("writer = { pause = '2s', every = '2s' }", "a pause must be shorter than its period"),
        ("writer = { pause = 0, every = '2s' }", "flow.writer.pause = 0: expected a time from 1ms to 1h"),
        ("writer = { rat = '1M' }", "unknown key 'rat' in writer, did you mean 'rate'?"),
        ("messages = { size = 0 }", "flow.messages.size = 0: expected bytes of a message, 1 to 16M"),
        ("messages = { writes = 2 }", "expected { size = \"3000\", writes = 2 }"),
        (
            "messages = { size = '1K', writes = 0 }",
            "flow.messages.writes = 0: expected a number of writes, 1 to 16",
        ),
        ("messages = { size = '1K' }\nwriter = { rate = '1M' }", "conflicts with a writer"),
        ("reader = { rate = '1M' }\nstreams = 65", "conflicts with 65 streams: at most 64 streams"),
        ("protocol = 'udp'\nrate = '1M'\nreader = { rate = '1M' }", "reader belongs to the other protocol"),
    ] {
        let text = error(&with(keys));
        assert!(text.contains(part), "{keys}: {text}");
    }
    let stepped = format!("clock = 'virtual'\nstack = 'smoltcp'\n{}", with("reader = { rate = '1M' }"));
    let text = error(&stepped);
    assert!(text.contains("programs with their own pace need a kernel"), "{text}");
}
