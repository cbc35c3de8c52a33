//! The kernel's answers about sockets.

use bdp_sys::diag::{Message, messages};
use bdp_sys::tcp_info;

use crate::parser::Target;

/// Targets of crate `bdp-sys`.
pub const SOCKETS: &[Target] = &[
    Target { name: "sock-diag", run: answers, seeds: answer_seeds },
    Target { name: "tcp-info", run: info, seeds: || vec![vec![0; 104], (0..=255).collect()] },
];

/// A message has sixteen bytes at least, an error is the last, and what a socket holds lies in the answer.
fn answers(bytes: &[u8]) {
    let read: Vec<_> = messages(bytes).collect();
    assert!(read.len() <= bytes.len() / 16 + 1);
    assert!(read.iter().rev().skip(1).all(Result::is_ok), "it goes on after an error");
    for envelope in read.into_iter().flatten() {
        let Message::Socket(socket) = envelope.message else { continue };
        assert!(socket.info.len() < bytes.len());
        let _ = (socket.local(), socket.remote(), socket.cookie(), socket.state(), socket.inode());
        let _ = (socket.receive_queue(), socket.send_queue(), socket.user(), socket.memory);
        assert!(socket.congestion.is_none_or(|name| !name.is_empty() && !name.contains('\0')));
        info(socket.info);
    }
}

/// What a shorter one has, a longer one of the same beginning has too.
fn info(bytes: &[u8]) {
    let (whole, half) = (tcp_info::decode(bytes), tcp_info::decode(&bytes[..bytes.len() / 2]));
    assert!(half.rtt_ns.is_none() || half.rtt_ns == whole.rtt_ns);
    assert!(half.bytes_acked.is_none() || half.bytes_acked == whole.bytes_acked);
    assert!(half.snd_wnd.is_none() || half.snd_wnd == whole.snd_wnd);
}

/// A socket of either family with its attributes, and the ends of a list.
fn answer_seeds() -> Vec<Vec<u8>> {
    let message = |kind: u16, body: &[u8]| {
        let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([2, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(body);
        bytes
    };
    let attribute = |kind: u16, value: &[u8]| {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let socket = |family: u8| {
        let mut body = vec![0; 72];
        (body[0], body[1]) = (family, 1);
        body.extend(attribute(2, &[1; 240]));
        body.extend(attribute(4, b"cubic\0"));
        body.extend(attribute(7, &[3; 36]));
        message(20, &body)
    };
    let done = message(3, &[0; 4]);
    let refused = message(2, &(-1i32).to_ne_bytes());
    vec![[socket(2), socket(10), done].concat(), refused]
}
