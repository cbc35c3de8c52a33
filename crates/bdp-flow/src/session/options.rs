//! What a request makes of the near end's connections.

use std::time::Duration;

use bdp_model::measurement::{Direction, MeasureRequest};
use bdp_model::window::WindowBytes;
use bdp_sys::socket::TcpOptions;

/// How long the server may take to answer what it can answer at once.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Options of the near end's connections.
pub fn options(request: &MeasureRequest, way: Direction) -> TcpOptions {
    let spec = &request.spec;
    let buffer = spec.socket_buffer.map(|b| b.as_bytes() as usize);
    TcpOptions {
        congestion: spec.congestion.clone().filter(|_| way == Direction::To),
        mss: spec.mss,
        nodelay: spec.nodelay,
        receive_buffer: buffer,
        send_buffer: buffer,
        window_bytes: spec.window.map(WindowBytes::get).filter(|_| way == Direction::From),
        dscp: spec.dscp,
        device: request.bind_device.clone(),
    }
}
