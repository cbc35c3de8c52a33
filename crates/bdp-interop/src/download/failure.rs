//! Why a download failed.

use bdp_flow::session::error::SessionError;

use super::url::Url;

/// Why this URL is not downloaded.
pub(super) fn failed(url: &Url, what: impl Into<String>) -> SessionError {
    SessionError::Download { url: url.to_string(), what: what.into() }
}

/// Why there is no connection: what helps is not what helps with a bdp.
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
