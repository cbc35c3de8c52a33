//! Connection options that a flow asks for.

use std::time::Duration;

use bdp_model::flow::FlowSpec;
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::{Direction, MeasureRequest};
use bdp_model::units::ByteCount;
use bdp_sys::socket::TcpOptions;

/// How long the server may take for answers that it has at once.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Returns the options of the local end's connections.
pub fn options(request: &MeasureRequest, way: Direction) -> TcpOptions {
    TcpOptions { device: request.bind_device.clone(), ..of_flow(&request.spec, way == Direction::To) }
}

/// Returns the options of a flow's connections at the sending or the receiving end.
pub fn of_flow(spec: &FlowSpec, sends: bool) -> TcpOptions {
    let bytes = |size: ByteCount| size.as_bytes() as usize;
    TcpOptions {
        congestion: spec.congestion.clone().filter(|_| sends),
        mss: spec.mss,
        nodelay: spec.nodelay,
        receive_buffer: spec.socket_buffer.map(bytes),
        send_buffer: spec.socket_buffer.map(bytes),
        numbers: spec.socket.of_end(sends, true),
        window_bytes: spec.window.map(WindowBytes::get).filter(|_| !sends),
        dscp: spec.dscp,
        device: None,
    }
}
