//! The outside of a host: its process, its control stream, its devices.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bdp_model::method::Privilege;
use bdp_sys::passing;
use bdp_sys::tun::Tun;
use bdp_wire::frame::{self, FrameError};
use bdp_wire::setup::{HostSetup, SetupAnswer};

use crate::{LabError, offload};

/// How long a process may take to become a host.
const SETUP_DEADLINE: Duration = Duration::from_secs(20);

/// The program that becomes a host: it calls [`crate::agent::enter`] with its standard input as control stream and
/// its last argument, a process id, as parent.
#[derive(Debug, Clone)]
pub struct AgentCommand {
    /// Its path.
    pub program: PathBuf,
    /// Arguments before the parent's process id.
    pub arguments: Vec<String>,
}

/// The programs that the lab starts.
#[derive(Debug, Clone)]
pub struct LabCommands {
    /// Becomes a host.
    pub host: AgentCommand,
    /// Becomes the keeper of a guest, by [`crate::guest::keep`].
    pub keeper: AgentCommand,
}

/// A running host. Dropped, its process is killed and reaped, and with it the namespace goes.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    pub(crate) privilege: Privilege,
}

impl Host {
    /// Starts one; gives its control stream and its devices in the setup's order.
    pub(crate) fn start(
        command: &AgentCommand,
        setup: &HostSetup,
    ) -> Result<(Self, UnixStream, Vec<Tun>), LabError> {
        let failed = |cause: String| LabError::Host { host: setup.name.clone(), cause };
        let (ours, theirs) = UnixStream::pair().map_err(|e| failed(format!("create control socket: {e}")))?;
        let child = Command::new(&command.program)
            .args(&command.arguments)
            .arg(std::process::id().to_string())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| failed(format!("start {}: {e}", command.program.display())))?;
        let mut host = Self { child, privilege: Privilege::Unknown };
        let io = |e: io::Error| failed(format!("control socket: {e}"));
        ours.set_read_timeout(Some(SETUP_DEADLINE)).map_err(io)?;
        let lost = |e: FrameError| match e {
            FrameError::Closed => {
                failed("its process ended while the host was being made; run it again".to_owned())
            }
            e => failed(e.to_string()),
        };
        frame::write(&mut &ours, setup).map_err(lost)?;
        match frame::read::<SetupAnswer>(&mut &ours).map_err(lost)? {
            SetupAnswer::Ready { privilege } => host.privilege = privilege,
            SetupAnswer::Failed { error, permission: true } => {
                return Err(LabError::Permission { cause: error });
            }
            SetupAnswer::Failed { error, permission: false } => return Err(failed(error)),
        }
        let devices: Vec<Tun> = if setup.devices.is_empty() {
            Vec::new()
        } else {
            passing::receive_descriptors(&ours)?
                .into_iter()
                .zip(&setup.devices)
                .map(|(descriptor, device)| Tun::from_descriptor(descriptor, offload::framing(device)))
                .collect()
        };
        if devices.len() != setup.devices.len() {
            return Err(failed(format!("{} of {} devices came", devices.len(), setup.devices.len())));
        }
        Ok((host, ours, devices))
    }

    /// Its process id.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
