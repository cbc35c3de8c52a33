//! `bdp report`: a stored run as an HTML page or as CSV.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use bdp_model::measurement::Measurement;
use bdp_model::measurement::labels::Labels;
use bdp_model::record::Record;
use bdp_report::{About, VectorFigure};
use bdp_store::{SqliteStore, StoredMeasurement};
use serde_json::Value;

use crate::exit::{self, Outcome};
use crate::found::{Found, Kept, by_id};
use crate::help;
use crate::output::{self, print};
use crate::store::StoreArgs;

/// Arguments of `bdp report`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bdp report 7f3a\n  bdp report 7f3a --output - | less\n  \
    bdp report 7f3a --csv > 7f3a.csv\n  bdp lab run s3-30k --json > s3.json; bdp report s3.json\n  bdp report --csv    the newest run\n  \
    bdp report 7f3a --figures figures    the curves of a sweep as SVG and PDF\n  \
    bdp report 7f3a --title 'Office to Tokyo' --note 'Before the new line.'")]
pub struct ReportArgs {
    /// Run: its id, a prefix of the id, or its label, as listed by 'bdp runs'; or a file written by --json or 'bdp runs
    /// export' [default: the newest run]
    run: Option<String>,

    /// File for the page; '-' is standard output [default: ./bdp-RUN.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write CSV instead ('bdp help reports') [default: to standard output]
    #[arg(long, conflicts_with_all = ["title", "note"])]
    csv: bool,

    /// Write the curves of a sweep instead, as SVG and PDF, to this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["csv", "output", "title", "note"])]
    figures: Option<PathBuf>,

    #[command(flatten)]
    words: PageWords,

    #[command(flatten)]
    store: StoreArgs,
}

/// What its author writes on a page.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PageWords {
    /// Title of the page [default: the label, or the kind of run and its target]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Note below the title; an empty line begins a paragraph
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

impl PageWords {
    /// Adds the author's words to the description.
    pub fn on<'a>(&'a self, about: About<'a>) -> About<'a> {
        About { title: self.title.as_deref(), note: self.note.as_deref(), ..about }
    }
}

/// The page that a command writes beside what it prints.
#[derive(clap::Args)]
pub struct PageArgs {
    /// Also write an HTML page to this file
    #[arg(long, value_name = "FILE", help_heading = help::OUTPUT)]
    report: Option<PathBuf>,

    /// Title of the page [default: the label, or the kind of run and its target]
    #[arg(long, value_name = "TEXT", requires = "report", help_heading = help::OUTPUT, hide_short_help = true)]
    title: Option<String>,

    /// Note below the title; an empty line begins a paragraph
    #[arg(long, value_name = "TEXT", requires = "report", help_heading = help::OUTPUT, hide_short_help = true)]
    note: Option<String>,
}

impl PageArgs {
    /// Writes the page of a run from the store, or without a store the page that `unkept` makes, and prints its path
    /// on standard error. Does nothing if no page was requested.
    pub fn write(
        &self,
        kept: Option<(&str, &SqliteStore)>,
        given: &StoreArgs,
        unkept: impl FnOnce(&About<'_>) -> String,
    ) -> anyhow::Result<()> {
        let Some((run, store)) = kept else { return self.write_page(unkept) };
        let Some((path, words)) = self.parts() else { return Ok(()) };
        let found = by_id(run, store)?;
        put(&path, &page(&found, &words.on(found.about(given.given().as_deref()))))
    }

    /// Writes a page about unstored results, and prints its path on standard error. Does nothing if no page was requested.
    pub fn write_page(&self, make: impl FnOnce(&About<'_>) -> String) -> anyhow::Result<()> {
        let Some((path, words)) = self.parts() else { return Ok(()) };
        put(&path, &make(&words.on(About::default())))
    }

    /// Rejects a path where the page can't be written, before anything is measured for it.
    pub fn check(&self) -> anyhow::Result<()> {
        check_place(self.report.as_deref(), "report")
    }

    /// Path of the page and its author's words; `None` if no page was requested.
    pub fn parts(&self) -> Option<(PathBuf, PageWords)> {
        let words = PageWords { title: self.title.clone(), note: self.note.clone() };
        Some((self.report.clone()?, words))
    }
}

/// Writes a page, and prints its path.
fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    write(path, text, "report")?;
    output::note(&format!("report  {}", shown(path)));
    Ok(())
}

impl ReportArgs {
    /// Writes the report.
    pub fn run(self) -> Outcome {
        let found = Found::find(self.run.as_deref(), &self.store)?;
        if let Some(folder) = &self.figures {
            let figures = figures(&found);
            if figures.is_empty() {
                return Err(exit::usage(format!(
                    "run {} has no curve: it needs at least 3 points of one parameter, as made by 'bdp sweep'",
                    output::tame(&found.info.id)
                )));
            }
            return print(&write_figures(folder, &figures)?);
        }
        if self.csv {
            let text = csv(&found);
            return match &self.output {
                Some(path) if path.as_os_str() != "-" => {
                    write(path, &text, "values")?;
                    print(&format!("{}\n", shown(path)))
                }
                _ => print(&text),
            };
        }
        let store = self.store.given();
        let text = page(&found, &self.words.on(found.about(store.as_deref())));
        let path = self.output.unwrap_or_else(|| format!("bdp-{}.html", name(&found)).into());
        if path.as_os_str() == "-" {
            return print(&text);
        }
        write(&path, &text, "report")?;
        print(&format!("{}\n", shown(&path)))
    }
}

/// Name for the page: that of the file, if it was made from one.
fn name(found: &Found) -> String {
    let stem = found.file.as_deref().and_then(Path::file_stem);
    stem.map_or_else(|| found.info.id.clone(), |stem| stem.to_string_lossy().into_owned())
}

/// The HTML page of a run.
pub fn page(found: &Found, about: &About<'_>) -> String {
    match &found.kept {
        Kept::Records(_) => bdp_report::html(&found.records(), about),
        Kept::Measurements(kept) => page_of_measurements(kept, about),
    }
}

/// A run as CSV.
pub fn csv(found: &Found) -> String {
    match &found.kept {
        Kept::Records(_) => bdp_report::csv(&found.records(), &found.info.labels),
        Kept::Measurements(kept) => bdp_report::csv_of_measurements(&varied(kept)),
    }
}

fn figures(found: &Found) -> Vec<VectorFigure> {
    match &found.kept {
        Kept::Records(_) => bdp_report::figures_of_cases(&found.records()),
        Kept::Measurements(kept) => bdp_report::figures_of_measurements(&varied(kept)),
    }
}

/// Writes each figure as SVG and as PDF into a folder, created if missing; returns their paths, one per line.
pub fn write_figures(folder: &Path, figures: &[VectorFigure]) -> anyhow::Result<String> {
    fs::create_dir_all(folder).map_err(|error| {
        exit::environment(format!(
            "create the folder '{}' for figures: {error}; choose another",
            folder.display()
        ))
    })?;
    let mut paths = String::new();
    for figure in figures {
        for (ending, bytes) in [("svg", figure.svg.as_bytes()), ("pdf", figure.pdf.as_slice())] {
            let path = folder.join(format!("{}.{ending}", figure.name));
            write(&path, bytes, "figure")?;
            paths.push_str(&format!("{}\n", shown(&path)));
        }
    }
    Ok(paths)
}

fn varied(kept: &[StoredMeasurement]) -> Vec<(&BTreeMap<String, Value>, &Measurement)> {
    kept.iter().map(|k| (&k.params, &k.measurement)).collect()
}

/// Writes a page about `records` to `path`.
pub fn write_page(path: &Path, records: &[Record], about: &About<'_>) -> anyhow::Result<()> {
    write(path, bdp_report::html(records, about), "report")
}

/// A page about measurements that are not stored.
pub fn page_of_measurements(kept: &[StoredMeasurement], about: &About<'_>) -> String {
    bdp_report::html_of_measurements(&varied(kept), about)
}

/// Writes the Prometheus metrics of the cases of scenarios.
pub fn write_case_metrics(path: &Path, records: &[Record], labels: &Labels) -> anyhow::Result<()> {
    write(path, bdp_report::prometheus_of_cases(records, labels, env!("CARGO_PKG_VERSION")), "metrics")
}

/// Rejects a given path whose folder is missing, or that is a folder.
pub fn check_place(path: Option<&Path>, what: &str) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let why = match folder {
        _ if path.is_dir() => "it is a folder".to_owned(),
        Some(folder) if !folder.is_dir() => format!("no folder {}", folder.display()),
        _ => return Ok(()),
    };
    Err(exit::environment(format!(
        "cannot write the {what} to {}: {why}; choose another file",
        path.display()
    )))
}

/// Writes a file completely or not at all: no reader finds half of it.
pub fn write(path: &Path, text: impl AsRef<[u8]>, what: &str) -> anyhow::Result<()> {
    let refused = |error: std::io::Error| {
        exit::environment(format!(
            "cannot write the {what} to {}: {error}; choose another file",
            path.display()
        ))
    };
    // A device or a pipe can't be replaced by a file.
    if path.exists() && !path.is_file() {
        return fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_ref()))
            .map_err(refused);
    }
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map_err(refused)
}

/// A path as typed: with `./` before a name in this folder.
pub fn shown(path: &Path) -> String {
    let text = output::tame(&path.to_string_lossy());
    if path.parent().is_some_and(|p| p.as_os_str().is_empty()) { format!("./{text}") } else { text }
}
