//! A host seen from the lab: its process, its control stream, its devices.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bdp_model::flow::method::Privilege;
use bdp_sys::netlink::Netlink;
use bdp_sys::passing;
use bdp_sys::tun::Tun;
use bdp_wire::frame::{self, FrameError};
use bdp_wire::setup::{HostSetup, SetupAnswer};

use crate::{LabError, offload};

/// Deadline for a process to become a host.
const SETUP_DEADLINE: Duration = Duration::from_secs(20);

/// A program and its arguments.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Program {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        command
    }
}

/// What becomes a host: it calls [`crate::agent::enter`] with its end of the control stream, and then serves it.
#[derive(Debug, Clone)]
pub enum AgentCommand {
    /// A process. The control stream is its standard input, and its last argument the process id of its parent.
    Process(Program),
    /// A thread of this process, which must be root, so that the thread can have its own network namespace. For
    /// guests, where starting a process takes as long as sending a thousand segments.
    Thread(fn(UnixStream)),
}

/// The programs that the lab starts.
#[derive(Debug, Clone)]
pub struct LabCommands {
    /// Becomes a host.
    pub host: AgentCommand,
    /// Becomes the keeper of a guest, by [`crate::guest::keep`].
    pub keeper: Program,
}

/// A running host. When dropped, its process is killed and reaped, which ends the namespace; a thread ends with its control stream.
#[derive(Debug)]
pub(crate) struct Host {
    /// `None` for a thread.
    child: Option<Child>,
    /// Its folder in `/proc`.
    seen_at: PathBuf,
    pub(crate) privilege: Privilege,
    /// Socket for changing its routes, if they change.
    pub(crate) netlink: Option<Netlink>,
}

impl Host {
    /// Starts one; returns its control stream and its devices in the setup's order.
    pub(crate) fn start(
        command: &AgentCommand,
        setup: &HostSetup,
    ) -> Result<(Self, UnixStream, Vec<Tun>), LabError> {
        let failed = |cause: String| LabError::Host { host: setup.name.clone(), cause };
        let (ours, theirs) = UnixStream::pair().map_err(|e| failed(format!("create control socket: {e}")))?;
        let (child, seen_at) = match command {
            AgentCommand::Process(program) => {
                let mut command = program.command();
                command
                    .arg(std::process::id().to_string())
                    .stdin(Stdio::from(OwnedFd::from(theirs)))
                    .stdout(Stdio::null());
                let child = command.spawn();
                let child = child.map_err(|e| failed(format!("start {}: {e}", program.path.display())))?;
                let seen_at = PathBuf::from(format!("/proc/{}", child.id()));
                (Some(child), seen_at)
            }
            AgentCommand::Thread(body) => {
                let body = *body;
                let thread = std::thread::Builder::new().name(format!("bdp-{}", setup.name));
                let (number, numbered) = std::sync::mpsc::channel();
                let spawned = thread.spawn(move || {
                    let _ = number.send(bdp_sys::process::thread_id());
                    body(theirs);
                });
                spawned.map_err(|e| failed(format!("start a thread: {e}")))?;
                let number = numbered.recv().map_err(|_| failed("its thread ended".to_owned()))?;
                (None, PathBuf::from(format!("/proc/{}/task/{number}", std::process::id())))
            }
        };
        let mut host = Self { child, seen_at, privilege: Privilege::Unknown, netlink: None };
        let io = |e: io::Error| failed(format!("control socket: {e}"));
        ours.set_read_timeout(Some(SETUP_DEADLINE)).map_err(io)?;
        let lost = |e: FrameError| match e {
            FrameError::Closed => {
                failed("its process ended while the host was being created; run it again".to_owned())
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
            let mut descriptors = passing::receive_descriptors(&ours).map_err(|e| lost(e.source.into()))?;
            if setup.routes_change {
                host.netlink = descriptors.pop().map(Netlink::from_descriptor);
            }
            descriptors
                .into_iter()
                .zip(&setup.devices)
                .map(|(descriptor, device)| Tun::from_descriptor(descriptor, offload::framing(device)))
                .collect()
        };
        if devices.len() != setup.devices.len() {
            return Err(failed(format!(
                "only {} of {} devices were created",
                devices.len(),
                setup.devices.len()
            )));
        }
        Ok((host, ours, devices))
    }

    /// Its folder in `/proc`, where its namespaces are found.
    pub(crate) fn seen_at(&self) -> &Path {
        &self.seen_at
    }

    /// Its process id, if it is a process of its own.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        // Already ended is fine.
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;

    use bdp_wire::setup::DeviceSetup;

    use super::*;

    /// Answers, and ends before it passes its devices on.
    fn ends_in_between(control: UnixStream) {
        let _: HostSetup = frame::read(&mut &control).unwrap();
        frame::write(&mut &control, &SetupAnswer::Ready { privilege: Privilege::Root }).unwrap();
    }

    #[test]
    fn host_that_ends_before_its_devices_came_is_named() {
        let device = DeviceSetup {
            name: "far".to_owned(),
            address: Ipv4Addr::LOCALHOST.into(),
            prefix: 8,
            mtu: 1500,
            transmit_queue: 1,
            super_packets: false,
            netem: None,
        };
        let setup = HostSetup {
            name: "near".to_owned(),
            sysctls: BTreeMap::new(),
            devices: vec![device],
            forwarding: false,
            routes: Vec::new(),
            routes_change: false,
        };
        let error = Host::start(&AgentCommand::Thread(ends_in_between), &setup).err().unwrap();
        let LabError::Host { host, cause } = error else { panic!("{error}") };
        assert_eq!(host, "near");
        assert_eq!(cause, "its process ended while the host was being created; run it again");
    }
}
