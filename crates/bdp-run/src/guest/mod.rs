//! Runs a case in a guest, from both sides: bdp boots the guest and collects the record; the bdp in the guest runs
//! the case.

pub(crate) mod calls;
pub(crate) mod exec;
pub mod program;
mod seat;

use std::collections::HashMap;
use std::path::Path;

use bdp_lab::conformance;
use bdp_lab::frame_train::{self, CarriedTrain, FrameTrain};
use bdp_lab::guest::{ALIVE, ANSWER, ERRORS, Ended, Guest, GuestSpec, ORDER, OUTPUT, READY, Root, RootMaker};
use bdp_lab::kernel::{self, Kernel};
use bdp_lab::{AgentCommand, Driver, LabError, Pace, Program};
use bdp_model::case::CaseSpec;
use bdp_model::case::stack::Stack;
use bdp_model::plain::in_words;
use bdp_model::record::{CaptureRecord, Environment, GuestWall, Record};
use bdp_model::tuning::setting::Setting;
use bdp_stack::conformance::Outcome;
use bdp_sys::{clock, init, isolate, process, sysctl};
use serde::{Deserialize, Serialize};

use crate::case::capture::CaptureOrder;
use crate::case::record::failed;
use crate::case::runner::CaseRunner;
use crate::{Result, RunError};
use exec::{CAPTURES, ExecOrder, MACHINE};
use program::{ProgramEnd, ProgramRun, ProgramSpec};
use seat::Seat;

/// Settings that Linux derives from the memory it found, which depends on the kernel's size and on the machine: set
/// to the values of a machine with 8 GiB, for hosts to inherit.
const MEMORY_OF_TCP: [(&str, &str); 4] = [
    (Setting::TcpRmem.row().name, "4096 131072 6291456"),
    (Setting::TcpWmem.row().name, "4096 16384 4194304"),
    (Setting::TcpMem.row().name, "94500 126000 189000"),
    ("net.ipv4.udp_mem", "189000 252000 378000"),
];

/// Memory of a guest that carries frames, in MiB.
const TRAIN_MEMORY_MIB: u64 = 512;
/// Minimum memory of a guest with user programs, in MiB; allocated only as it is used.
const EXEC_MEMORY_MIB: u64 = 2048;
/// Interval of a guest's heartbeat, by its own clock.
const BEAT: std::time::Duration = std::time::Duration::from_secs(5);

/// A request to a guest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// Boot only, to show that guests work here.
    Nothing,
    /// Run a case.
    Case(Box<CaseOrder>),
    /// Carry trains of frames, one after the other.
    Trains(Vec<FrameTrain>),
    /// Run a program.
    Program(ProgramSpec),
    /// Run user programs on the hosts of a case.
    Exec(Box<ExecOrder>),
    /// Test the kernel with the stack conformance suite.
    Conformance,
}

/// A case to run.
#[derive(Debug, Serialize, Deserialize)]
struct CaseOrder {
    case: CaseSpec,
    attempt: u32,
    /// Whether to capture, and if so whether at every link end if the scenario names none.
    capture: Option<bool>,
}

/// The result that a guest leaves.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Booted,
    Record(Box<Record>),
    Trains(Vec<CarriedTrain>),
    Program(ProgramEnd),
    Exec(Box<Record>),
    Conformance(Vec<Outcome>),
    Failed(String),
}

/// The hidden subcommand that a guest's kernel starts; it calls [`serve`].
pub const SUBCOMMAND: &str = "__guest";

/// Runs cases, each in a guest of its own.
#[derive(Debug)]
pub(crate) struct Guests {
    booth: Booth,
    /// Kernels by the stack that a case names; `None` is the default kernel.
    kernels: HashMap<Option<Stack>, Kernel>,
    capture: Option<CaptureOrder>,
}

impl Guests {
    /// Prepares guests for the cases that use the virtual clock; `None` if there are none.
    pub(crate) fn for_cases(
        keeper: &Program,
        cases: &[CaseSpec],
        capture: Option<CaptureOrder>,
    ) -> Result<Option<Self>> {
        let mut kernels = HashMap::new();
        for case in cases.iter().filter(|case| case.needs_guest()) {
            let stack = case.stack();
            if kernels.contains_key(&stack.cloned()) {
                continue;
            }
            let found = stack.map_or_else(kernel::default, |stack| kernel::find(&stack.to_string()));
            kernels.insert(stack.cloned(), found.map_err(|e| RunError::Lab(LabError::Guest(e.to_string())))?);
        }
        if kernels.is_empty() {
            return Ok(None);
        }
        let booth = Booth::new(keeper)?;
        Ok(Some(Self { booth, kernels, capture }))
    }

    /// Removes the files created for guests: a thread that has just run a case may keep this alive slightly longer
    /// than the process lives.
    pub(crate) fn close(&self) {
        self.booth.maker.close();
    }

    /// Runs a case in a guest. The record also covers failures.
    pub(crate) fn run(&self, case: &CaseSpec, attempt: u32) -> Record {
        let (started_unix_ms, started_ns) = (clock::unix_ms(), clock::monotonic_ns());
        let kernel = self.kernels.get(&case.stack().cloned());
        let outcome = kernel
            .ok_or_else(|| RunError::Case("no kernel is installed".to_owned()))
            .and_then(|kernel| self.ask(kernel, case, attempt));
        let total_ns = clock::monotonic_ns() - started_ns;
        let mut record = outcome.unwrap_or_else(|cause| {
            let environment = Environment {
                bdp: env!("CARGO_PKG_VERSION").to_owned(),
                kernel: kernel.map_or_else(String::new, |kernel| kernel.version.clone()),
                arch: std::env::consts::ARCH.to_owned(),
                clock: case.clock,
                ..Default::default()
            };
            failed(case, attempt, &cause, environment)
        });
        record.environment.started_unix_ms = started_unix_ms;
        record.environment.took_ms = total_ns / 1_000_000;
        record.environment.stack = kernel.map(|kernel| kernel.name.clone());
        if let Some(guest) = &mut record.environment.guest {
            guest.wall.total_ns = total_ns;
        }
        record
    }

    fn ask(&self, kernel: &Kernel, case: &CaseSpec, attempt: u32) -> Result<Record> {
        let order = Order::Case(Box::new(CaseOrder {
            case: with_programs_placed(case)?,
            attempt,
            capture: self.capture.as_ref().map(|order| order.everywhere),
        }));
        let seed = case.seed.wrapping_add(u64::from(attempt - 1));
        let answered = self.booth.ask(kernel, memory_mib(case), seed, &order);
        let (answer, root) = answered.map_err(RunError::Case)?;
        let Answer::Record(mut record) = answer else {
            return Err(RunError::Case("the guest ran no case".to_owned()));
        };
        record.case = case.clone();
        if let Some(guest) = &mut record.environment.guest {
            guest.wall.boot_ns = boot_ns(&root);
        }
        if let Some(order) = &self.capture {
            record.captures.iter_mut().for_each(|capture| fetch(capture, &root, order));
        }
        Ok(*record)
    }
}

/// Returns the case with absolute paths for the programs of its stacks, the only way that a guest can find them.
fn with_programs_placed(case: &CaseSpec) -> Result<CaseSpec> {
    let mut case = case.clone();
    for host in &mut case.hosts {
        if let Some(stack) = host.stack.as_ref().and_then(Stack::in_steps) {
            let placed = bdp_stack::placed(stack);
            let placed = placed.map_err(|error| LabError::Stack { host: host.name.clone(), error })?;
            host.stack = Some(Stack::Steps(placed));
        }
    }
    Ok(case)
}

/// Returns the time from a guest's order until it was ready, by this machine's file timestamps.
fn boot_ns(root: &Root) -> u64 {
    let made = |file| std::fs::metadata(root.outside(file)).and_then(|file| file.modified());
    let took = made(ORDER).and_then(|ordered| Ok(made(READY)?.duration_since(ordered).unwrap_or_default()));
    took.map_or(0, |took| took.as_nanos() as u64)
}

/// Moves a capture from a guest's root to the requested folder.
fn fetch(capture: &mut CaptureRecord, root: &Root, order: &CaptureOrder) {
    let from = root.outside(&capture.path);
    let Some(name) = from.file_name() else { return };
    let to = order.folder.join(name);
    let moved = std::fs::rename(&from, &to).or_else(|_| std::fs::copy(&from, &to).map(drop));
    capture.path = to.display().to_string();
    if let Err(error) = moved {
        capture.error = Some(in_words(&format!("write '{}': {error}", to.display())));
    }
}

/// Returns why a folder cannot hold a guest's root.
fn fault_of(folder: &Path) -> Option<&'static str> {
    if folder.to_string_lossy().contains(char::is_whitespace) {
        // Kernel parameters are separated by spaces.
        return Some("has a space in its path, which a guest's kernel does not support");
    }
    (!folder.is_dir()).then_some("is not there")
}

/// Where guests are created: their roots and the processors they are pinned to.
#[derive(Debug)]
struct Booth {
    maker: RootMaker,
    keeper: Program,
    cpus: Vec<usize>,
}

impl Booth {
    fn new(keeper: &Program) -> Result<Self> {
        let cpus = process::allowed_cpus();
        // A guest's kernel has a different working directory.
        let folder = std::env::temp_dir();
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        if let Some(fault) = fault_of(&folder) {
            let text = format!(
                "the folder for temporary files, '{}', {fault}; set TMPDIR to another folder",
                folder.display()
            );
            return Err(LabError::Guest(text).into());
        }
        Ok(Self { maker: RootMaker::new(keeper, &folder)?, keeper: keeper.clone(), cpus })
    }

    /// Boots a guest with an order and waits for its answer; its root still exists afterwards.
    fn ask(
        &self,
        kernel: &Kernel,
        memory_mib: u64,
        seed: u64,
        order: &Order,
    ) -> std::result::Result<(Answer, Root), String> {
        let order = serde_json::to_vec(order).map_err(|e| format!("send a request to a guest: {e}"))?;
        let root = self.maker.make(&order).map_err(|e| e.to_string())?;
        let seat = Seat::take(&self.cpus);
        let spec = GuestSpec {
            kernel: kernel.path.clone(),
            memory_mib,
            seed,
            cpu: seat.cpu,
            arguments: vec![SUBCOMMAND.to_owned()],
        };
        let ended = Guest::boot(&self.keeper, &spec, &root).map_err(|e| e.to_string())?.wait();
        let answer = root.answer().map_err(|e| format!("read a guest's answer: {e}"))?;
        match (answer, ended) {
            (Some(bytes), _) => match serde_json::from_slice(&bytes) {
                Ok(Answer::Failed(cause)) => Err(format!("in the guest: {cause}")),
                Ok(answer) => Ok((answer, root)),
                Err(e) => Err(format!("invalid answer of a guest: {e}")),
            },
            (None, Ended::Died(cause)) => Err(format!("the guest died: {cause}")),
            (None, Ended::Off) => Err("the guest gave no answer".to_owned()),
        }
    }
}

/// Boots a guest of a stack, or of the default kernel, to show that guests work here: returns the kernel, or one line
/// on why they do not.
pub fn try_boot(keeper: &Program, stack: Option<&str>) -> std::result::Result<Kernel, String> {
    let kernel = stack.map_or_else(kernel::default, kernel::find).map_err(|e| e.to_string())?;
    let booth = Booth::new(keeper).map_err(|e| e.to_string())?;
    booth.ask(&kernel, 64, 0, &Order::Nothing).map(|_| kernel)
}

/// Tests the kernel of a stack with the conformance suite.
pub(crate) fn conformance(keeper: &Program, stack: &str) -> Result<(Kernel, Vec<Outcome>)> {
    let failed = |cause: String| RunError::Lab(LabError::Guest(cause));
    let kernel = kernel::find(stack).map_err(|e| failed(e.to_string()))?;
    let booth = Booth::new(keeper)?;
    match booth.ask(&kernel, TRAIN_MEMORY_MIB, 1, &Order::Conformance) {
        Ok((Answer::Conformance(outcomes), _)) => Ok((kernel, outcomes)),
        Ok(_) => Err(failed("the guest gave an unexpected answer".to_owned())),
        Err(cause) => Err(failed(cause)),
    }
}

/// Runs a program in a guest of a stack, or of the default kernel.
pub fn run_program(keeper: &Program, stack: Option<&str>, spec: &ProgramSpec) -> Result<ProgramRun> {
    let failed = |cause: String| RunError::Lab(LabError::Guest(cause));
    let kernel = stack.map_or_else(kernel::default, kernel::find).map_err(|e| failed(e.to_string()))?;
    let mut booth = Booth::new(keeper)?;
    for program in std::iter::once(&spec.path).chain(&spec.programs) {
        booth.maker.take_program(program)?;
    }
    for file in &spec.files {
        booth.maker.take_file(file)?;
    }
    let order = Order::Program(spec.clone());
    let (answer, root) = booth.ask(&kernel, spec.memory_mib, spec.seed, &order).map_err(failed)?;
    let Answer::Program(end) = answer else { return Err(failed("the guest ran no program".to_owned())) };
    let written = |inside: &str| match std::fs::read(root.outside(inside)) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) => Err(failed(format!("read the output of a guest's program: {e}"))),
    };
    Ok(ProgramRun { end, output: written(OUTPUT)?, errors: written(ERRORS)? })
}

/// Runs user programs on the hosts of a case, in a guest; `read` receives the file with the output of each while it
/// exists.
pub(crate) fn run_exec(
    keeper: &Program,
    order: ExecOrder,
    read: &mut dyn FnMut(usize, bool, &Path) -> Result<()>,
) -> Result<Record> {
    let failed = |cause: String| RunError::Lab(LabError::Guest(cause));
    let (started_unix_ms, started_ns) = (clock::unix_ms(), clock::monotonic_ns());
    let case = &order.plan.case;
    let stack = case.stack().map(ToString::to_string);
    let kernel = stack.as_deref().map_or_else(kernel::default, kernel::find);
    let kernel = kernel.map_err(|e| failed(e.to_string()))?;
    let booth = Booth::new(keeper)?;
    let (seed, capture, programs) = (case.seed, order.plan.capture.clone(), order.plan.programs.len());
    let memory_mib = memory_mib(case).max(EXEC_MEMORY_MIB);
    let answered = booth.ask(&kernel, memory_mib, seed, &Order::Exec(Box::new(order)));
    let (answer, root) = answered.map_err(|cause| failed(with_way_out(cause)))?;
    let Answer::Exec(mut record) = answer else { return Err(failed("the guest ran no program".to_owned())) };
    for program in 0..programs {
        for errors in [false, true] {
            read(program, errors, &root.outside(&exec::stream(program, errors)))?;
        }
    }
    if let Some(order) = &capture {
        record.captures.iter_mut().for_each(|capture| fetch(capture, &root, order));
    }
    let total_ns = clock::monotonic_ns() - started_ns;
    let environment = &mut record.environment;
    (environment.started_unix_ms, environment.took_ms) = (started_unix_ms, total_ns / 1_000_000);
    environment.stack = Some(kernel.name.clone());
    if let Some(guest) = &mut environment.guest {
        guest.wall = GuestWall { boot_ns: boot_ns(&root), total_ns };
    }
    Ok(*record)
}

/// Returns why a guest with user programs gave no result, and what to do about it.
fn with_way_out(cause: String) -> String {
    let hung = cause.contains("did not respond") || cause.contains("made no progress");
    let way_out = "; a program that busy-waits without system calls stops the clock: use --clock real \
                   ('bdp help virtual-clock')";
    if hung { cause + way_out } else { cause }
}

/// Carries batches of trains in parallel, each in a guest of its own, with the default kernel.
pub(crate) fn carry<const N: usize>(
    keeper: &Program,
    seed: u64,
    batches: [Vec<FrameTrain>; N],
) -> Result<(Kernel, [Vec<CarriedTrain>; N])> {
    let kernel = kernel::default().map_err(|e| RunError::Lab(LabError::Guest(e.to_string())))?;
    let carried = carry_by(&kernel, keeper, seed, batches)?;
    Ok((kernel, carried))
}

/// Carries batches of trains in parallel, each in a guest of its own, with the given kernel.
pub(crate) fn carry_by<const N: usize>(
    kernel: &Kernel,
    keeper: &Program,
    seed: u64,
    batches: [Vec<FrameTrain>; N],
) -> Result<[Vec<CarriedTrain>; N]> {
    let failed = |cause: String| RunError::Lab(LabError::Guest(cause));
    let booth = Booth::new(keeper)?;
    let one = |trains: Vec<FrameTrain>| {
        let asked = trains.len();
        match booth.ask(kernel, TRAIN_MEMORY_MIB, seed, &Order::Trains(trains)) {
            Ok((Answer::Trains(carried), _)) if carried.len() == asked => Ok(carried),
            Ok(_) => Err("the guest did not forward all frames".to_owned()),
            Err(cause) => Err(cause),
        }
    };
    let carried = std::thread::scope(|scope| {
        let guests = batches.map(|trains| scope.spawn(|| one(trains)));
        guests.map(|guest| guest.join().unwrap_or_else(|_| Err("a thread of bdp panicked".to_owned())))
    });
    let mut all = std::array::from_fn(|_| Vec::new());
    for (to, carried) in all.iter_mut().zip(carried) {
        *to = carried.map_err(failed)?;
    }
    Ok(all)
}

/// Memory of the guest for a case, in MiB; the same on every machine, since TCP's limits derive from it.
fn memory_mib(case: &CaseSpec) -> u64 {
    // The most that all streams may have in flight or in their buffers.
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

/// The first process of a guest: carries out the order on hosts that `agent` creates, leaves the answer, and switches
/// the guest off.
pub fn serve(agent: AgentCommand, warden: &Program) -> ! {
    let answer = prepare().and_then(|order| {
        // The file's timestamp shows the machine's clock at this point.
        let _ = std::fs::write(READY, "");
        beat();
        match order {
            Order::Nothing => Ok(Answer::Booted),
            Order::Case(order) => run_case(agent, &order),
            Order::Trains(trains) => {
                let carried: Result<Vec<_>, _> = trains.iter().map(frame_train::carry).collect();
                carried.map(Answer::Trains).map_err(|e| e.to_string())
            }
            Order::Conformance => Ok(Answer::Conformance(conformance::of_this_kernel())),
            Order::Program(spec) => program::run(&spec).map(Answer::Program),
            Order::Exec(order) => {
                exec::run(&agent, warden, &order).map(|record| Answer::Exec(Box::new(record)))
            }
        }
    });
    let written = serde_json::to_vec(&answer.unwrap_or_else(Answer::Failed))
        .map_err(|e| e.to_string())
        .and_then(|bytes| init::write_whole_file(ANSWER, &bytes).map_err(|e| e.to_string()));
    if let Err(cause) = written {
        eprintln!("{cause}");
    }
    init::power_off()
}

fn run_case(agent: AgentCommand, order: &CaseOrder) -> std::result::Result<Answer, String> {
    let driver = match order.case.traffic.is_empty() {
        true => Driver::start(Pace::Virtual).map_err(|e| e.to_string())?,
        false => exec::preferred_driver()?,
    };
    let capture = order.capture.map(|everywhere| CaptureOrder { folder: CAPTURES.into(), everywhere });
    let runner = CaseRunner::in_guest(agent).capturing(capture);
    let record = match order.case.runs_in_steps() {
        true => {
            isolate::mount_machine(MACHINE).map_err(|e| e.to_string())?;
            process::sharpen_timers();
            runner.run_in_steps(&order.case, order.attempt, Some(Path::new(MACHINE)))
        }
        false => runner.run(&order.case, order.attempt, &driver),
    };
    let record = record.map_err(|e| e.to_string())?;
    Ok(Answer::Record(Box::new(record)))
}

fn prepare() -> std::result::Result<Order, String> {
    for (kind, folder) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        init::mount_own(kind, folder).map_err(|e| e.to_string())?;
    }
    // Programs given to the guest may be there.
    init::mount_own_around("tmpfs", "/tmp").map_err(|e| e.to_string())?;
    init::allow_many_files().map_err(|e| e.to_string())?;
    for (name, value) in MEMORY_OF_TCP {
        sysctl::write(name, value).map_err(|e| e.to_string())?;
    }
    // Until its first tick, the kernel's timers have the granularity of the tick, 4 ms.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let bytes = std::fs::read(Path::new(ORDER)).map_err(|e| format!("read the request: {e}"))?;
    serde_json::from_slice(&bytes).map_err(|e| format!("read the request: {e}"))
}

/// Touches a file periodically, which shows bdp that the guest's clock advances.
fn beat() {
    let beat = || {
        for beats in 0u64.. {
            let _ = std::fs::write(ALIVE, beats.to_string());
            std::thread::sleep(BEAT);
        }
    };
    let _ = std::thread::Builder::new().name("bdp-beat".to_owned()).spawn(beat);
}
