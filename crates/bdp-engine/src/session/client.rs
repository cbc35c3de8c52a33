//! The end that asks.

use std::sync::atomic::AtomicBool;

use bdp_model::measurement::{MeasureRequest, Measurement};
use bdp_model::units::Nanos;
use bdp_sys::socket::TcpOptions;

use super::{Credentials, Progress, SessionError, Stage, dial};

pub(super) fn measure(
    request: &MeasureRequest,
    _credentials: &Credentials,
    progress: &mut dyn FnMut(&Progress),
    cancel: &AtomicBool,
) -> Result<Measurement, SessionError> {
    progress(&Progress {
        stage: Stage::Connecting,
        elapsed: Nanos::ZERO,
        total: Nanos::ZERO,
        goodput_bps: Vec::new(),
        rtt_ns: None,
    });
    let (_control, address) =
        dial::connect_any(&dial::resolve(request)?, request, &TcpOptions::default(), cancel)?;
    Err(SessionError::Lost { address, doing: "greeting it" })
}
