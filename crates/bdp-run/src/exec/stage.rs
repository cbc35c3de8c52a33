//! Runs user programs on the hosts and links of a case, by either clock, and records the traffic of the links.

use std::ffi::OsString;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, SyncSender};

use bdp_agent::remote::Agents;
use bdp_lab::fidelity::{Bounds, judge as judge_fidelity};
use bdp_lab::program::ProgramOptions;
use bdp_lab::testbed::DeviceReading;
use bdp_lab::{AgentCommand, CapturePace, Captures, Driver, Program, ProgramPlace, Testbed};
use bdp_model::case::{CaseSpec, Expect, HostSpec, LinkSpec};
use bdp_model::record::{Environment, Record};
use bdp_model::units::{Nanos, Rate};
use bdp_sys::clock;
use bdp_sys::process::{self, HostCpu};
use serde::{Deserialize, Serialize};

use crate::case::capture::CaptureOrder;
use crate::case::observe;
use crate::case::record::blank;
use crate::case::runner::default_sysctls;
use crate::case::session::Session;
use crate::exec::programs::{Message, ProgramOrder, Programs};
use crate::{Result, RunError};

/// Below this round trip of a link, or above this rate, a driver must spin.
const SHORTEST_SHARED_RTT: Nanos = Nanos::millis(20);
const FASTEST_SHARED: Rate = Rate::bps(300_000_000);

/// Most output of a program, standard output and error together, if it is kept until the end.
pub const OUTPUT_MOST: u64 = 64 << 20;

/// Programs on the hosts of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecPlan {
    /// The hosts and links, with the clock and the seed.
    pub case: CaseSpec,
    /// The programs, in the order of the command line.
    pub programs: Vec<ProgramOrder>,
    /// What to capture.
    pub capture: Option<CaptureOrder>,
    /// Time limit of the programs, by the clock of the case.
    pub time_limit: Option<Nanos>,
    /// Whether the session is interactive: the driver then sleeps between packets.
    pub interactive: bool,
    /// Whether the only program that is not a service uses this process's own streams; otherwise output is passed on
    /// by line.
    pub own_streams: bool,
}

/// An event while programs run.
pub enum ExecEvent<'a> {
    /// The hosts and links are ready.
    Ready(&'a [ProgramPlace]),
    /// A program wrote a line, or part of a long one.
    Output {
        /// Index of the program, in the order of the plan.
        program: usize,
        /// Whether it was written to standard error.
        errors: bool,
        /// The output.
        line: &'a [u8],
    },
}

impl ExecPlan {
    /// Plans programs on the hosts and links of a case.
    pub fn new(mut case: CaseSpec, programs: Vec<ProgramOrder>) -> Self {
        case.flows.clear();
        case.expect = Expect::default();
        case.published_bps = None;
        case.published_rows.clear();
        Self { case, programs, capture: None, time_limit: None, interactive: false, own_streams: true }
    }

    /// Whether a driver that sleeps between packets is enough: if a wake-up that is late by 100 us does no harm, or
    /// if the session is interactive.
    pub(crate) fn may_sleep(&self) -> bool {
        let slow = |rate: Option<Rate>| rate.is_some_and(|rate| rate <= FASTEST_SHARED);
        let patient = |link: &LinkSpec| {
            let [there, back] = [&link.config.forward, &link.config.reverse];
            there.delay + back.delay >= SHORTEST_SHARED_RTT && slow(there.rate) && slow(back.rate)
        };
        self.interactive || self.case.links.iter().all(patient)
    }

    /// Returns the hosts, with the default buffers of every host of the lab.
    fn hosts(&self) -> Vec<HostSpec> {
        let host = |host: &HostSpec| {
            let mut sysctls = default_sysctls(0);
            sysctls.extend(host.all_sysctls());
            HostSpec { sysctls, ..host.clone() }
        };
        self.case.hosts.iter().map(host).collect()
    }
}

/// Standard input, output and error of a program.
type Streams = [Stdio; 3];

/// Where programs run: on this machine's kernel or in a guest.
pub(crate) struct Stage<'a> {
    pub(crate) host: &'a AgentCommand,
    pub(crate) warden: &'a Program,
    pub(crate) driver: Driver,
    pub(crate) options: ProgramOptions,
    pub(crate) stdio: &'a dyn Fn(&ExecPlan, usize) -> Result<Streams>,
}

impl Stage<'_> {
    pub(crate) fn run(
        &self,
        plan: &ExecPlan,
        channel: (SyncSender<Message>, Receiver<Message>),
        watch: &mut dyn FnMut(ExecEvent<'_>),
    ) -> Result<Record> {
        let (started_unix_ms, started) = (clock::unix_ms(), clock::monotonic_ns());
        let mut links = plan.case.links.clone();
        let mut captures = None;
        if let Some(order) = &plan.capture {
            captures =
                order.open(&plan.case, 1, &mut links, CapturePace::Machine(self.driver.host_cpus()))?;
        }
        let outcome = self.carry_out(plan, &links, captures.as_ref(), channel, watch);
        let captures = captures.map_or_else(Vec::new, Captures::finish);
        let mut record = outcome?;
        record.captures = captures;
        record.environment.started_unix_ms = started_unix_ms;
        record.environment.took_ms = (clock::monotonic_ns() - started) / 1_000_000;
        Ok(record)
    }

    fn carry_out(
        &self,
        plan: &ExecPlan,
        links: &[LinkSpec],
        captures: Option<&Captures>,
        (outbox, inbox): (SyncSender<Message>, Receiver<Message>),
        watch: &mut dyn FnMut(ExecEvent<'_>),
    ) -> Result<Record> {
        let case = &plan.case;
        let (mut testbed, streams) =
            Testbed::build(self.host, &self.driver, case.family, &plan.hosts(), links, case.seed, captures)?;
        let agents = Agents::new(case.hosts.iter().map(|h| h.name.clone()).zip(streams))?;
        let mut session = Session { case, agents };
        let places: Vec<ProgramPlace> =
            case.hosts.iter().filter_map(|host| testbed.place(&host.name)).collect();
        let place = |name: &str| {
            let found = places.iter().find(|place| place.host == name);
            found.ok_or_else(|| RunError::Request(no_such_host(name, case)))
        };
        plan.programs.iter().try_for_each(|order| place(&order.host).map(drop))?;
        watch(ExecEvent::Ready(&places));
        let cpu_before = HostCpu::read();
        let mut start = |index: usize| {
            let order = &plan.programs[index];
            let words: Vec<OsString> = order.command.iter().map(OsString::from).collect();
            let options = ProgramOptions { service: order.service, ..self.options.clone() };
            let [input, output, errors] = (self.stdio)(plan, index)?;
            let mut command = place(&order.host)?.command(self.warden, &options, &words);
            let child = command.stdin(input).stdout(output).stderr(errors).spawn();
            child.map_err(|e| RunError::Case(format!("start bdp: {e}")))
        };
        let programs = Programs {
            orders: &plan.programs,
            start: &mut start,
            listeners: &|name| place(name).map_or(0, ProgramPlace::listeners),
            inbox,
            outbox,
            time_limit: plan.time_limit.map(Nanos::to_duration),
            output_limit: (!case.clock.is_real()).then_some(OUTPUT_MOST),
            output: &mut |program, errors, line| watch(ExecEvent::Output { program, errors, line }),
        };
        testbed.start_clock(clock::monotonic_ns())?;
        let programs = programs.run()?;
        let sysctls = session.read_sysctls()?;
        let mut outcomes = testbed.disconnect()?;
        for outcome in &mut outcomes {
            let mut readings = [DeviceReading::default(); 2];
            for (reading, (host, device)) in readings.iter_mut().zip(outcome.ports()) {
                *reading = session.read_device(host, device)?;
            }
            outcome.hold_against(readings);
        }
        let mut seen = observe::seen(case, &[], &[], &outcomes);
        seen.host_cpu = HostCpu::read().since(cpu_before);
        seen.cpus = process::online_cpus();
        seen.still = !case.clock.is_real();
        let fidelity = judge_fidelity(seen, &Bounds::default());
        let environment = Environment { privilege: testbed.privilege(), sysctls, ..environment(case) };
        Ok(Record { valid: fidelity.valid, fidelity, programs, ..blank(case, 1, environment) })
    }
}

/// Returns the message that lists which hosts there are.
pub fn no_such_host(name: &str, case: &CaseSpec) -> String {
    let names: Vec<&str> = case.hosts.iter().map(|host| host.name.as_str()).collect();
    format!("{} has no host '{name}'; its hosts: {}", case.scenario, names.join(", "))
}

fn environment(case: &CaseSpec) -> Environment {
    Environment {
        bdp: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: process::kernel_release(),
        arch: std::env::consts::ARCH.to_owned(),
        cpus: process::online_cpus(),
        clock: case.clock,
        ..Default::default()
    }
}
