//! A case in a guest, seen from both sides: bdp orders it and takes its record, the bdp in the guest runs it.

use std::collections::HashMap;
use std::path::Path;

use bdp_lab::guest::{ALIVE, ANSWER, Ended, Guest, GuestSpec, ORDER, RootMaker};
use bdp_lab::kernel::{self, Kernel};
use bdp_lab::{AgentCommand, Driver, LabError, Pace};
use bdp_model::record::{Environment, Record};
use bdp_model::scenario::CaseSpec;
use bdp_model::stack::Stack;
use bdp_sys::{clock, init};
use serde::{Deserialize, Serialize};

use crate::case_record::failed;
use crate::case_runner::CaseRunner;
use crate::{Result, RunError};

/// Between two signs of life of a guest, by its own clock.
const BEAT: std::time::Duration = std::time::Duration::from_secs(5);

/// What a guest is to run.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    case: CaseSpec,
    attempt: u32,
}

/// What a guest leaves.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Record(Box<Record>),
    Failed(String),
}

/// Guests that run cases, each in one of its own.
#[derive(Debug)]
pub(crate) struct Guests {
    maker: RootMaker,
    keeper: AgentCommand,
    /// By the stack that a case names; `None` where it names none.
    kernels: HashMap<Option<Stack>, Kernel>,
}

impl Guests {
    /// For those of the cases that run by the virtual clock; `None` where none does.
    pub(crate) fn for_cases(keeper: &AgentCommand, cases: &[CaseSpec]) -> Result<Option<Self>> {
        let mut kernels = HashMap::new();
        for case in cases.iter().filter(|case| !case.clock.is_real()) {
            let stack = case.stack();
            if kernels.contains_key(&stack.cloned()) {
                continue;
            }
            let found = match stack {
                Some(stack) => kernel::find(&stack.to_string()),
                None => kernel::default(),
            };
            kernels.insert(stack.cloned(), found.map_err(|e| RunError::Lab(LabError::Guest(e.to_string())))?);
        }
        if kernels.is_empty() {
            return Ok(None);
        }
        let maker = RootMaker::new(&std::env::temp_dir())?;
        Ok(Some(Self { maker, keeper: keeper.clone(), kernels }))
    }

    /// Runs a case in a guest. The record says what happened, whatever happened.
    pub(crate) fn run(&self, case: &CaseSpec, attempt: u32) -> Result<Record> {
        let (started_unix_ms, started_ns) = (clock::unix_ms(), clock::monotonic_ns());
        let kernel = self.kernels.get(&case.stack().cloned()).or(self.kernels.values().next());
        let outcome =
            kernel.map_or_else(|| Err("no kernel".to_owned()), |kernel| self.ask(kernel, case, attempt));
        let total_ns = clock::monotonic_ns() - started_ns;
        let mut record = outcome.unwrap_or_else(|cause| {
            let environment = Environment {
                bdp: env!("CARGO_PKG_VERSION").to_owned(),
                kernel: kernel.map_or_else(String::new, |kernel| kernel.version.clone()),
                arch: std::env::consts::ARCH.to_owned(),
                clock: case.clock,
                ..Default::default()
            };
            failed(case, attempt, &RunError::Case(cause), environment)
        });
        record.environment.started_unix_ms = started_unix_ms;
        record.environment.took_ms = total_ns / 1_000_000;
        record.environment.stack = kernel.map(|kernel| kernel.name.clone());
        if let Some(guest) = &mut record.environment.guest {
            guest.wall.total_ns = total_ns;
        }
        Ok(record)
    }

    fn ask(&self, kernel: &Kernel, case: &CaseSpec, attempt: u32) -> std::result::Result<Record, String> {
        let order = Order { case: case.clone(), attempt };
        let order = serde_json::to_vec(&order).map_err(|e| format!("order a guest: {e}"))?;
        let root = self.maker.make(&order).map_err(|e| e.to_string())?;
        let spec = GuestSpec {
            kernel: kernel.path.clone(),
            memory_mib: memory_mib(case),
            seed: case.seed.wrapping_add(u64::from(attempt - 1)),
            arguments: vec!["__guest".to_owned()],
        };
        let ended = Guest::boot(&self.keeper, &spec, &root).map_err(|e| e.to_string())?.wait();
        let answer = root.answer().map_err(|e| format!("read a guest's answer: {e}"))?;
        match (answer, ended) {
            (Some(bytes), _) => match serde_json::from_slice(&bytes) {
                Ok(Answer::Record(record)) => Ok(*record),
                Ok(Answer::Failed(cause)) => Err(format!("in the guest: {cause}")),
                Err(e) => Err(format!("a guest's answer can't be read: {e}")),
            },
            (None, Ended::Died(cause)) => Err(format!("the guest died: {cause}")),
            (None, Ended::Off) => Err("the guest left no answer".to_owned()),
        }
    }
}

/// Memory of the guest for a case, in MiB; the same for every machine, since TCP's own limits follow from it.
fn memory_mib(case: &CaseSpec) -> u64 {
    // What all streams may have in flight or in their buffers.
    let windows: u64 = case
        .flows
        .iter()
        .map(|flow| {
            let window = flow.spec.window.map_or(16 << 20, |window| window.as_bytes());
            6 * window * u64::from(flow.spec.streams)
        })
        .sum();
    (512 + 4 * case.hosts.len() as u64 + (windows >> 20)).next_multiple_of(256).min(8192)
}

/// What the first process of a guest does: runs what was ordered on hosts that `agent` makes, leaves the answer, and switches the
/// guest off.
pub fn serve(agent: AgentCommand) -> ! {
    let answer = prepare().and_then(|order| {
        beat();
        let driver = Driver::start(Pace::Virtual).map_err(|e| e.to_string())?;
        let record = CaseRunner::in_guest(agent)
            .run(&order.case, order.attempt, &driver)
            .map_err(|e| e.to_string())?;
        Ok(record)
    });
    let answer = match answer {
        Ok(record) => Answer::Record(Box::new(record)),
        Err(cause) => Answer::Failed(cause),
    };
    let written = serde_json::to_vec(&answer)
        .map_err(|e| e.to_string())
        .and_then(|bytes| init::write_whole_file(ANSWER, &bytes).map_err(|e| e.to_string()));
    if let Err(cause) = written {
        eprintln!("{cause}");
    }
    init::power_off()
}

fn prepare() -> std::result::Result<Order, String> {
    for (kind, folder) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")] {
        init::mount_own(kind, folder).map_err(|e| e.to_string())?;
    }
    let bytes = std::fs::read(Path::new(ORDER)).map_err(|e| format!("read the order: {e}"))?;
    serde_json::from_slice(&bytes).map_err(|e| format!("read the order: {e}"))
}

/// Touches a file from time to time, by which bdp knows that the guest's clock moves.
fn beat() {
    let beat = || {
        for beats in 0u64.. {
            let _ = std::fs::write(ALIVE, beats.to_string());
            std::thread::sleep(BEAT);
        }
    };
    let _ = std::thread::Builder::new().name("bdp-beat".to_owned()).spawn(beat);
}
