//! `bdp calc`: the models of [`bdp_model::path`], one file per question.

mod answer;
mod bdp;
mod loss;
mod overhead;
mod rate;
mod slow_start;
mod table;

use crate::exit::Outcome;

/// Arguments of `bdp calc`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp calc bdp --rate 1G --rtt 41ms\n  bdp calc rate --window 64K --rtt 41ms\n  bdp calc overhead --mtu 9000"
)]
pub struct CalcArgs {
    #[command(subcommand)]
    question: Question,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Question {
    /// Window that a rate needs at a given round-trip time
    #[command(visible_alias = "window", after_help = bdp::AFTER_HELP)]
    Bdp(bdp::BdpArgs),
    /// Rate that a window allows at a given round-trip time
    #[command(after_help = rate::AFTER_HELP)]
    Rate(rate::RateArgs),
    /// Rate that a loss rate allows, or loss that a rate tolerates
    #[command(after_help = loss::AFTER_HELP)]
    Loss(loss::LossArgs),
    /// Goodput of a link after headers
    #[command(after_help = overhead::AFTER_HELP)]
    Overhead(overhead::OverheadArgs),
    /// Time that slow start takes to reach a window
    #[command(alias = "slow-start", after_help = slow_start::AFTER_HELP)]
    Slowstart(slow_start::SlowStartArgs),
}

impl CalcArgs {
    /// Calculates and prints.
    pub fn run(self) -> Outcome {
        let answer = match self.question {
            Question::Bdp(args) => args.answer()?,
            Question::Rate(args) => args.answer()?,
            Question::Loss(args) => args.answer(),
            Question::Overhead(args) => args.answer(),
            Question::Slowstart(args) => args.answer()?,
        };
        answer.print(self.json)
    }
}
