//! Where the sender's time went: limited by the receive window, by its buffer, by neither, or with nothing to send.

use super::page::{Figure, Sign};
use super::transfer::Transfer;
use crate::number::percent;
use crate::svg::{Anchor, Drawing, MARGIN, WIDTH};

const HEIGHT: f64 = 50.0;

/// The figure; `None` where the sender's kernel does not keep these clocks.
pub(crate) fn figure(transfer: &Transfer<'_>, title: &str) -> Option<Figure<'static>> {
    let shares = shares(transfer)?;
    let parts = [
        (shares.receive_window, "fill-model", "limited by the receive window"),
        (shares.send_buffer, "fill-third", "limited by the send buffer"),
        (shares.rest, "fill-here", "busy, limited by neither: congestion window, pacing, the path"),
        (shares.idle, "fill-rest", "nothing to send"),
    ];
    let mut drawing = Drawing::default();
    let mut keys = Vec::new();
    let width = WIDTH - 2.0 * MARGIN;
    let mut x = MARGIN;
    for (share, class, meaning) in parts {
        if share < 0.0005 {
            continue;
        }
        // A gap of one unit separates neighbours without their colours.
        drawing.rect([x, 6.0], [(share * width - 1.0).max(0.5), 18.0], class);
        if share > 0.05 {
            drawing.text([x, 44.0], Anchor::Start, "name", &percent(share));
        }
        keys.push((Sign::Field(class), format!("{} {meaning}", percent(share))));
        x += share * width;
    }
    let description = keys.iter().map(|k| k.1.as_str()).collect::<Vec<_>>().join("; ");
    let mut notes = vec![
        "By the sender's kernel (tcp_info), which is known to count too little time as limited by the receive window."
            .to_owned(),
    ];
    if transfer.streams > 1 {
        notes.push(format!("Of the first of {} streams.", transfer.streams));
    }
    let chart = drawing.finish(HEIGHT, &format!("{title}: where the sender's time went"), &description);
    Some(Figure { title: "Where the time went", keys, notes, chart })
}

/// Shares of the time after omit, which add up to 1.
#[derive(Debug, PartialEq)]
struct Shares {
    receive_window: f64,
    send_buffer: f64,
    rest: f64,
    idle: f64,
}

fn shares(transfer: &Transfer<'_>) -> Option<Shares> {
    let clocks: Vec<[u64; 4]> = transfer
        .sent
        .iter()
        .filter(|s| s.at_ns >= transfer.omit_ns)
        .filter_map(|s| Some([s.at_ns, s.busy_ns?, s.rwnd_limited_ns?, s.sndbuf_limited_ns.unwrap_or(0)]))
        .collect();
    let (first, last) = (clocks.first()?, clocks.last()?);
    let [time, busy, receive_window, send_buffer] =
        [0, 1, 2, 3].map(|i| last[i].saturating_sub(first[i]) as f64);
    if time <= 0.0 {
        return None;
    }
    // The kernel's clocks tick in jiffies and may pass the readings' own by one.
    let busy = busy.min(time);
    let receive_window = receive_window.min(busy);
    let send_buffer = send_buffer.min(busy - receive_window);
    Some(Shares {
        receive_window: receive_window / time,
        send_buffer: send_buffer / time,
        rest: (busy - receive_window - send_buffer) / time,
        idle: (time - busy) / time,
    })
}
