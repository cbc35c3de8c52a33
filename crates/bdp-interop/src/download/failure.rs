//! Why a download failed.

use bdp_flow::session::error::SessionError;

use super::url::Url;

/// Returns the error of this URL's download.
pub(super) fn failed(url: &Url, what: impl Into<String>) -> SessionError {
    SessionError::Download { url: url.to_string(), what: what.into() }
}

/// Returns the error of a failed connection: the way out differs from that of a bdp server.
pub(super) fn unconnected(url: &Url, error: SessionError) -> SessionError {
    match error {
        SessionError::Refused { address } => failed(
            url,
            format!(
                "connect to {address}: connection refused, nothing listens on the port; check the URL's \
                 host and port"
            ),
        ),
        other => other,
    }
}
