mod capture;
mod iperf;
mod iperf3;
mod model;
mod sockets;
mod wire;

pub use capture::CAPTURE;
pub use iperf::IPERF;
pub use iperf3::IPERF3;
pub use model::MODEL;
pub use sockets::SOCKETS;
pub use wire::WIRE;

/// Bytes as the text that they are; nothing of what is none.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// What is read as a `T` is written, and read again as the same.
fn comes_back<T: serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(bytes) else { return };
    let written = serde_json::to_vec(&value).expect("what was read can be written");
    // A number may lose its last digit on the first way, not on the second.
    let Ok(again) = serde_json::from_slice::<T>(&written) else {
        panic!("not read again: {}", String::from_utf8_lossy(&written))
    };
    let rewritten = serde_json::to_vec(&again).expect("what was read can be written");
    assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&rewritten));
}
