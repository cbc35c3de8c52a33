//! `--label`: name of a run, and labels with names.

use bdp_model::measurement::labels::{Label, Labels};

use crate::exit;
use crate::help;

/// `--label`, repeatable.
#[derive(clap::Args, Clone, Default)]
pub struct LabelArgs {
    /// Name of the run, or NAME=VALUE, a label for metrics, CSV and 'bdp runs'; repeatable
    #[arg(id = "label", short = 'T', long = "label", value_name = "TEXT", value_parser = label, help_heading = help::OUTPUT, hide_short_help = true)]
    all: Vec<Given>,
}

#[derive(Debug, Clone)]
enum Given {
    Plain(String),
    Named(Label),
}

impl LabelArgs {
    /// Returns the name of the run, and the labels; rejects two of one name.
    pub fn read(&self) -> anyhow::Result<(Option<String>, Labels)> {
        let (mut plain, mut labels) = (None, Labels::NONE);
        for given in &self.all {
            match given {
                Given::Plain(text) => {
                    if let Some(before) = plain.replace(text.clone()) {
                        return Err(exit::usage(format!(
                            "--label '{before}' and --label '{text}' both name the run; give one name, and others as NAME=VALUE"
                        )));
                    }
                }
                Given::Named(label) => labels.add(label.clone()).map_err(exit::usage)?,
            }
        }
        Ok((plain, labels))
    }
}

fn label(text: &str) -> Result<Given, String> {
    let trimmed = text.trim();
    if let Some((name, value)) = trimmed.split_once('=') {
        return Label::new(name, value).map(Given::Named);
    }
    if trimmed.is_empty() || trimmed.chars().count() > 100 || trimmed.chars().any(char::is_control) {
        return Err("a label has 1 to 100 printable characters".to_owned());
    }
    Ok(Given::Plain(trimmed.to_owned()))
}
