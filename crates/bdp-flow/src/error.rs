//! Why a workload failed.

/// The result of a workload.
pub type Result<T, E = FlowError> = std::result::Result<T, E>;

/// Why a workload failed.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The operating system refused.
    #[error(transparent)]
    Sys(#[from] bdp_sys::SysError),
    /// The control stream failed.
    #[error(transparent)]
    Frame(#[from] bdp_wire::frame::FrameError),
    /// A socket failed.
    #[error("{operation}: {source}")]
    Io {
        /// The operation.
        operation: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The agent failed to carry out a request.
    #[error("{0}")]
    Refused(String),
    /// The agent sent an unexpected answer.
    #[error("unexpected answer from the agent: {0}")]
    OutOfTurn(String),
    /// An agent ended before its work was done.
    #[error("{0}")]
    Ended(String),
    /// The other end of a flow did not connect in time.
    #[error("{0}")]
    Deadline(String),
    /// Connections were established, but no byte arrived over them.
    #[error("no data came within {within}")]
    Silence {
        /// How long it waited.
        within: bdp_model::units::Nanos,
    },
    /// A flow had begun and then stalled.
    #[error("no data was transferred for {within}: the other end has stopped, or the path is down")]
    Stalled {
        /// For how long.
        within: bdp_model::units::Nanos,
    },
}

impl FlowError {
    /// For `map_err` on a socket operation.
    pub fn io(operation: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { operation, source }
    }
}
