//! `bdp lab shell`: a shell on a host of an emulated path.

use bdp_lab::ProgramPlace;
use bdp_model::case::CaseSpec;
use bdp_model::link::DirectionConfig;
use bdp_run::exec::{self, ExecEvent, ExecPlan, ProgramOrder};
use bdp_sys::terminal::Front;

use super::exec::{PathArgs, run, summary};
use crate::exit::{self, Exit, Outcome};
use crate::output;

/// Arguments of `bdp lab shell`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bdp lab shell s1-64k\n  bdp lab shell mine.toml --host server\n\n\
    The shell is $SHELL, on the real clock. Other hosts have names: ping far. Programs started in the shell end with it.\n\
    'bdp lab exec' runs one command, and others in parallel.")]
pub struct ShellArgs {
    #[command(flatten)]
    path: PathArgs,

    /// Host of the shell [default: the scenario's first host]
    #[arg(long, help_heading = crate::help::TEST, value_name = "HOST")]
    host: Option<String>,
}

impl ShellArgs {
    /// Runs the shell.
    pub fn run(self) -> Outcome {
        let path = self.path.find(Some(("clock".to_owned(), "real".to_owned())))?;
        let case = &path.case;
        let host = match &self.host {
            Some(host) => host.clone(),
            None => case.hosts.first().map(|host| host.name.clone()).unwrap_or_default(),
        };
        if !case.hosts.iter().any(|other| other.name == host) {
            return Err(exit::usage(exec::no_such_host(&host, case)));
        }
        let shell = std::env::var("SHELL").ok().filter(|shell| !shell.is_empty());
        let command = vec![shell.unwrap_or_else(|| "/bin/sh".to_owned())];
        let mut plan =
            ExecPlan::new(case.clone(), vec![ProgramOrder { host: host.clone(), command, service: false }]);
        plan.capture = self.path.captures(case)?;
        plan.interactive = true;
        let front = Front::remember();
        let mut watch = |event: ExecEvent<'_>| {
            if let ExecEvent::Ready(places) = event {
                output::note_text(&described(case, places, &host));
            }
        };
        let ended = run(&plan, &mut watch);
        drop(front);
        let record = ended?;
        let kept = self.path.keep(&record, &path)?;
        let again = kept.as_deref().map(|run| self.path.again(run));
        output::note_text(&format!("\n{}", summary(&record, again.as_deref())));
        Ok(Exit::Program(exec::exit_of(&record.programs)))
    }
}

/// Describes hosts with their addresses, and links.
fn described(case: &CaseSpec, places: &[ProgramPlace], here: &str) -> String {
    let width = places.iter().map(|place| place.host.len()).max().unwrap_or(0);
    let mut text = String::new();
    for place in places {
        let own: Vec<String> = place.own.iter().map(ToString::to_string).collect();
        let note = if place.host == here { "  (this shell)" } else { "" };
        text.push_str(&format!("host  {:<width$}  {}{note}\n", place.host, own.join(", ")));
    }
    for link in &case.links {
        let [a, b] = &link.between;
        let (there, back) = (direction(&link.config.forward), direction(&link.config.reverse));
        let both = if there == back { there } else { format!("{there}; back {back}") };
        text.push_str(&format!("link  {a} - {b}: {both}\n"));
    }
    text
}

fn direction(config: &DirectionConfig) -> String {
    let rate = config.rate.map_or_else(|| "no rate".to_owned(), |rate| rate.to_string());
    let loss = config.loss.probability();
    let loss = if loss > 0.0 { format!(", {} % lost", loss * 100.0) } else { String::new() };
    format!("{rate}, {}{loss}", config.delay)
}
