//! `bdp calc`: the models of [`bdp_model::path`], one file a question.

mod bdp;
mod loss;
mod overhead;
mod rate;
mod slow_start;
mod table;

use std::str::FromStr;

use bdp_model::UnitError;
use serde_json::{Value, json};

use crate::exit::Outcome;
use crate::output;

/// Arguments of `bdp calc`.
#[derive(clap::Args)]
pub struct CalcArgs {
    #[command(subcommand)]
    question: Question,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Question {
    /// Which window does a rate need over a round trip?
    #[command(visible_alias = "window", after_help = bdp::AFTER_HELP)]
    Bdp(bdp::BdpArgs),
    /// Which rate does a window allow over a round trip?
    #[command(after_help = rate::AFTER_HELP)]
    Rate(rate::RateArgs),
    /// Which rate does loss allow, or which loss does a rate tolerate?
    #[command(after_help = loss::AFTER_HELP)]
    Loss(loss::LossArgs),
    /// What do headers leave of a link's rate?
    #[command(after_help = overhead::AFTER_HELP)]
    Overhead(overhead::OverheadArgs),
    /// How long does slow start take to fill a window?
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

/// What a question is answered with: the same for people and for programs.
struct Answer {
    text: String,
    json: Value,
}

impl Answer {
    fn print(self, json: bool) -> Outcome {
        if !json {
            return output::print(&self.text);
        }
        let mut document = json!({ "schema": SCHEMA, "bdp": env!("CARGO_PKG_VERSION"), "run": null });
        if let (Some(document), Value::Object(answer)) = (document.as_object_mut(), self.json) {
            document.extend(answer);
        }
        output::print(&format!("{document:#}\n"))
    }
}

/// Version of the shape of `--json`.
const SCHEMA: &str = "bdp.calc/1";

/// Payload of a segment on a path with an MTU of 1500 bytes, IPv4 and timestamps.
const MSS_BYTES: &str = "1448";

/// Payload bytes of a segment: what fits in an IPv4 packet beside 40 bytes of headers.
fn mss(text: &str) -> Result<u64, String> {
    const LARGEST_BYTES: u64 = 65_495;
    let bytes = positive::<bdp_model::ByteCount>(text)?.as_bytes();
    if bytes > LARGEST_BYTES {
        return Err(format!("a segment carries at most {LARGEST_BYTES} bytes"));
    }
    Ok(bytes)
}

/// A quantity above zero.
fn positive<T: FromStr<Err = UnitError> + Default + PartialEq>(text: &str) -> Result<T, String> {
    let quantity = text.parse::<T>().map_err(|error| error.to_string())?;
    if quantity == T::default() {
        return Err("it must be more than 0".to_owned());
    }
    Ok(quantity)
}
