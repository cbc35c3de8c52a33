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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bdp_model::flow::socket::{SocketNumbers, SocketOption};
    use bdp_sys::{socket, socket_option};

    use super::*;

    #[test]
    fn every_number_is_in_force_at_the_ends_that_have_it() {
        let numbers = SocketNumbers::of(|option| Some(option.most.min(5)));
        let spec = FlowSpec { socket: numbers, dscp: Some(46), ..FlowSpec::default() };
        let listener = socket::listen("127.0.0.1:0".parse().unwrap(), &TcpOptions::default(), 8).unwrap();
        let open = |sends| {
            let options = of_flow(&spec, sends);
            socket::connect(listener.local_addr().unwrap(), &options, Duration::from_secs(3)).unwrap()
        };
        let (sender, receiver) = (open(true), open(false));
        for option in SocketOption::all() {
            let of = |end| socket_option::named(end, option.kernel).unwrap();
            assert_eq!(of(&sender), 5, "{}", option.flag);
            assert_eq!(of(&receiver) == 5, !option.is_of_sender, "{}", option.flag);
        }
    }
}
