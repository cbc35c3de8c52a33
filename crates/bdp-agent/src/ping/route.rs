//! Destination and source of probes.

use std::net::SocketAddr;

use bdp_model::measurement::MeasureRequest;
use bdp_model::probes::ping::PingRequest;
use bdp_sys::socket::TcpOptions;

use bdp_flow::session::dial;
use bdp_flow::session::error::SessionError;

/// Returns the request that resolves the address.
pub(super) fn dialling(request: &PingRequest) -> MeasureRequest {
    MeasureRequest {
        port: request.port,
        family: request.family,
        bind_address: request.bind_address.clone(),
        bind_device: request.bind_device.clone(),
        ..MeasureRequest::to(request.host.clone())
    }
}

/// Returns the options of the sockets that carry probes.
pub(super) fn options(request: &PingRequest) -> TcpOptions {
    TcpOptions { device: request.bind_device.clone(), dscp: request.dscp, ..Default::default() }
}

/// Returns the source address of probes, if given.
pub(super) fn local_end(request: &PingRequest, to: SocketAddr) -> Result<Option<SocketAddr>, SessionError> {
    Ok(dial::local_address(&dialling(request))?.map(|local| (local, 0).into()).or_else(|| {
        // A socket that is bound to a device only needs none.
        request.bind_device.as_ref().map(|_| (dial::any_address(to), 0).into())
    }))
}
