//! A case in a guest, seen from both sides: bdp orders it and takes its record, the bdp in the guest runs it.

use std::path::{Path, PathBuf};

use bdp_lab::guest::{ALIVE, ANSWER, Ended, Guest, GuestSpec, ORDER, RootMaker};
use bdp_lab::{AgentCommand, Driver, LabError, Pace};
use bdp_model::record::Record;
use bdp_model::scenario::CaseSpec;
use bdp_sys::init;
use serde::{Deserialize, Serialize};

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

/// Guests that run cases.
#[derive(Debug)]
pub(crate) struct Guests {
    maker: RootMaker,
    keeper: AgentCommand,
    kernel: PathBuf,
    memory_folder: PathBuf,
}

impl Guests {
    pub(crate) fn new(keeper: AgentCommand, kernel: PathBuf) -> Result<Self> {
        let maker = RootMaker::new(&std::env::temp_dir())?;
        Ok(Self { maker, keeper, kernel, memory_folder: PathBuf::from("/dev/shm") })
    }

    /// Runs a case in a guest of its own.
    pub(crate) fn run(&self, case: &CaseSpec, attempt: u32) -> Result<Record> {
        let failed = |cause: String| RunError::Lab(LabError::Guest(cause));
        let order = Order { case: case.clone(), attempt };
        let order = serde_json::to_vec(&order).map_err(|e| failed(format!("order a guest: {e}")))?;
        let root = self.maker.make(&order)?;
        let spec = GuestSpec {
            kernel: self.kernel.clone(),
            memory_mib: 512,
            memory_folder: self.memory_folder.clone(),
            seed: case.seed.wrapping_add(u64::from(attempt - 1)),
            arguments: vec!["__guest".to_owned()],
        };
        let ended = Guest::boot(&self.keeper, &spec, &root)?.wait();
        let answer = root.answer().map_err(|e| failed(format!("read a guest's answer: {e}")))?;
        match (answer, ended) {
            (Some(bytes), _) => match serde_json::from_slice(&bytes) {
                Ok(Answer::Record(record)) => Ok(*record),
                Ok(Answer::Failed(cause)) => Err(failed(format!("in the guest: {cause}"))),
                Err(e) => Err(failed(format!("a guest's answer can't be read: {e}"))),
            },
            (None, Ended::Died(cause)) => Err(failed(cause)),
            (None, Ended::Off) => Err(failed("the guest left no answer".to_owned())),
        }
    }
}

/// What the first process of a guest does: runs what was ordered on hosts that `agent` makes, leaves the answer, and switches the
/// guest off.
pub fn serve(agent: AgentCommand) -> ! {
    let answer = prepare().and_then(|order| {
        beat();
        let driver = Driver::start(Pace::Virtual).map_err(|e| e.to_string())?;
        let record = CaseRunner::new(agent).run(&order.case, order.attempt, &driver).map_err(|e| e.to_string())?;
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
