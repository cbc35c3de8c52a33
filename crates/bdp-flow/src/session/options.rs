//! What a request makes of the near end's connections.

use std::time::Duration;

use bdp_model::measurement::{MeasureRequest, Way};
use bdp_sys::socket::TcpOptions;

/// How long the server may take to answer what it can answer at once.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Options of the near end's connections.
pub fn options(request: &MeasureRequest, way: Way) -> TcpOptions {
    let buffer = request.socket_buffer.map(|b| b.as_bytes() as usize);
    TcpOptions {
        congestion: request.congestion.clone().filter(|_| way == Way::To),
        mss: request.mss,
        nodelay: request.nodelay,
        receive_buffer: buffer,
        send_buffer: buffer,
        window_bytes: window(request).filter(|_| way == Way::From),
        dscp: request.dscp,
        device: request.bind_device.clone(),
    }
}

/// The window that is asked for.
pub fn window(request: &MeasureRequest) -> Option<u32> {
    request.window.map(|w| u32::try_from(w.as_bytes()).unwrap_or(u32::MAX))
}
