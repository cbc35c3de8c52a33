//! docs/queues.md beside the declarations of queues: its tables are made from them. `BDP_QUEUES_PAGE=write` writes them anew.

use bdp_model::link::queue::{Queue, QueueLimit};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/queues.md");

fn kinds() -> String {
    let mut text = "| queue | what it is | decides | default `limit` |\n|---|---|---|---|\n\
                    | `drop-tail` | First in, first out, with the link's `limit` and `ecn_threshold`. | on arrival | the link's |\n"
        .to_owned();
    for queue in Queue::all() {
        let kind = queue.kind();
        let decides = if kind.on_arrival { "on arrival" } else { "on departure" };
        let limit = match kind.limit {
            QueueLimit::Packets(packets) => packets.to_string(),
            QueueLimit::Bytes(bytes) => format!("{} bytes", bytes.as_bytes()),
            QueueLimit::Unlimited => "none".to_owned(),
        };
        text.push_str(&format!("| `{}` | {} | {decides} | {limit} |\n", kind.name, kind.about));
    }
    text
}

fn options() -> String {
    let mut text = "| queue | option | default | allowed | meaning |\n|---|---|---|---|---|\n".to_owned();
    for mut queue in Queue::all() {
        let mut name = format!("`{}`", queue.name());
        for parameter in queue.parameters() {
            text.push_str(&format!(
                "| {name} | `{}` | {} | {} | {} |\n",
                parameter.key,
                parameter.value.shown(),
                parameter.value.allowed(),
                parameter.about
            ));
            name.clear();
        }
    }
    text
}

#[test]
fn the_page_has_the_declared_queues_and_options() {
    let mut page = std::fs::read_to_string(PAGE).unwrap();
    let writes = std::env::var("BDP_QUEUES_PAGE").is_ok_and(|word| word == "write");
    for wanted in [kinds(), options()] {
        let heading = wanted.lines().next().unwrap();
        let start = page.find(heading).unwrap_or_else(|| panic!("no '{heading}' in {PAGE}"));
        let end = start + page[start..].find("\n\n").unwrap() + 1;
        if writes {
            page.replace_range(start..end, &wanted);
        } else {
            assert_eq!(
                page[start..end],
                wanted,
                "BDP_QUEUES_PAGE=write cargo test -p bdp-model writes it anew"
            );
        }
    }
    if writes {
        std::fs::write(PAGE, page).unwrap();
    }
}
