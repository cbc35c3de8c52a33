//! Notes beside the numbers: invalid attempts, missed expectations, windows not reached.

use bdp_model::facts::Facts;
use bdp_model::finding::caveat::WindowShortfall;
use bdp_model::finding::{Finding, Limit};
use bdp_model::record::{Fidelity, FlowRecord, Record};
use bdp_model::units::format_bps;

use crate::breach::{causes, why_broken};
use crate::caveat::window_shortfall;
use crate::finding::{subject, summary};
use crate::grid::{tame, wrap};
use crate::measurement::conclusion::word;
use crate::number::{asked_size, percent, size};
use crate::style::{Style, Tint};
use crate::summary::{Ending, Point, Spread, ending};
use crate::time_spent;
use crate::varied::name;
use crate::virtual_clock;

/// Returns the notes, one or more lines each, most serious first.
pub(crate) fn notes(points: &[Point<'_>], style: &Style) -> String {
    let mut text = String::new();
    for point in points {
        for record in point.records.iter().filter(|r| ending(r) == Ending::Failed) {
            let error = record.error.as_deref().unwrap_or("no error recorded");
            text.push_str(&wrap("FAILED   ", Tint::Bad, &attempts(point, &[record], error), style));
        }
    }
    for (point, why) in skipped(points) {
        text.push_str(&wrap(
            "SKIPPED  ",
            Tint::Doubtful,
            &format!("{}: {}", name(point, None), tame(why)),
            style,
        ));
    }
    for point in points {
        for line in missed(point) {
            text.push_str(&wrap("MISSED   ", Tint::Bad, &line, style));
        }
    }
    text.push_str(&invalid(points, style));
    for line in windows(points) {
        text.push_str(&wrap("WINDOW   ", Tint::Doubtful, &line, style));
    }
    text
}

/// Returns the skipped points with reasons, each once regardless of repetitions.
fn skipped<'a>(points: &'a [Point<'a>]) -> impl Iterator<Item = (&'a Point<'a>, &'a str)> {
    points.iter().filter_map(|point| {
        let record = point.records.iter().find(|r| ending(r) == Ending::Skipped)?;
        Some((point, record.skipped.as_deref()?))
    })
}

/// Returns what limits the flows, one line for all flows of a scenario with the same limit; for a single point also where its time went.
pub(crate) fn limits(points: &[Point<'_>], style: &Style) -> String {
    let mut groups: Vec<Limited<'_>> = Vec::new();
    for point in points {
        let Some(record) = point.representative() else { continue };
        for (i, flow) in record.flows.iter().enumerate() {
            let Some(finding) = flow.findings.first() else { continue };
            let (agree, of) = agreement(point, i, finding);
            let ends = || format!(" {}->{}", tame(&flow.from), tame(&flow.to));
            let several = record.flows.len() > 1;
            match groups.iter_mut().find(|group| group.scenario == point.scenario && group.says(finding)) {
                Some(group) => {
                    group.count += 1;
                    group.agree += agree;
                    group.of += of;
                }
                None => groups.push(Limited {
                    scenario: point.scenario,
                    what: name(point, None) + &if several { ends() } else { String::new() },
                    counted: if several { "flows" } else { "points" },
                    finding,
                    count: 1,
                    agree,
                    of,
                }),
            }
        }
    }
    let lines = groups.iter().map(|group| group.line(style));
    lines.chain(points.iter().filter(|_| points.len() == 1).map(|point| times(point, style))).collect()
}

/// Returns where the time of each flow of a point went.
fn times(point: &Point<'_>, style: &Style) -> String {
    /// Further flows are only in the JSON and on the page.
    const FLOWS: usize = 4;
    let Some(record) = point.representative().filter(|record| record.flows.len() <= FLOWS) else {
        return String::new();
    };
    let of = |(i, flow): (usize, &FlowRecord)| {
        let words = time_spent::in_words(&Facts::emulated(record, i)?)?;
        let ends = format!("{}->{}: ", tame(&flow.from), tame(&flow.to));
        let ends = if record.flows.len() > 1 { ends } else { String::new() };
        Some(wrap("time     ", Tint::None, &format!("{ends}{words}"), style))
    };
    record.flows.iter().enumerate().filter_map(of).collect()
}

/// Flows of a scenario that share a limit.
struct Limited<'a> {
    scenario: &'a str,
    /// Name of the first flow.
    what: String,
    /// Noun for counting them.
    counted: &'static str,
    finding: &'a Finding,
    count: usize,
    /// Number of repetitions that agree, and number of valid ones.
    agree: usize,
    of: usize,
}

/// Returns how many valid repetitions of a point have the same finding for this flow, and how many there are.
pub(crate) fn agreement(point: &Point<'_>, flow: usize, finding: &Finding) -> (usize, usize) {
    let found = |record: &&Record| {
        record
            .flows
            .get(flow)
            .and_then(|flow| flow.findings.first())
            .is_some_and(|f| says_the_same(f, finding))
    };
    (point.valid().filter(found).count(), point.valid().count())
}

fn says_the_same(one: &Finding, other: &Finding) -> bool {
    (one.limit, subject(one)) == (other.limit, subject(other))
}

/// Returns how many repetitions agree; `None` if there is only one.
pub(crate) fn in_repetitions((agree, of): (usize, usize)) -> Option<String> {
    (of > 1).then(|| format!("in {agree} of {of} repetitions"))
}

impl Limited<'_> {
    fn says(&self, finding: &Finding) -> bool {
        says_the_same(self.finding, finding)
    }

    fn line(&self, style: &Style) -> String {
        let Self { scenario, what, counted, finding, count, agree, of } = self;
        let (word, tint) = word(finding);
        // Each point is represented by one repetition, so the count shows how many agree.
        let repeated = match in_repetitions((*agree, *of)).filter(|_| *of > *count) {
            Some(words) if *count == 1 => format!("; {words}"),
            Some(words) => format!(", {words}"),
            None => String::new(),
        };
        let text = match (count, finding.limit) {
            (1, _) => format!("{what}: {}{repeated}", tame(&summary(finding))),
            (n, Limit::Unknown) => {
                format!("{}: limit unknown, in {n} {counted}{repeated}", tame(scenario))
            }
            (n, _) => {
                format!("{}: {}, in {n} {counted}{repeated}", tame(scenario), tame(&subject(finding)))
            }
        };
        wrap(&format!("{word:<7}  "), tint, &text, style)
    }
}

/// Returns the INVALID attempts, one line for each repetition of a point, and their causes.
fn invalid(points: &[Point<'_>], style: &Style) -> String {
    let mut text = String::new();
    let mut all: Vec<&Fidelity> = Vec::new();
    for point in points {
        let invalid: Vec<&Record> =
            point.records.iter().filter(|r| ending(r) == Ending::Invalid).copied().collect();
        for alike in invalid.chunk_by(|a, b| a.repetition == b.repetition) {
            all.extend(alike.iter().map(|record| &record.fidelity));
            let broken = match alike {
                [.., last] if !last.fidelity.broken.is_empty() => why_broken(&last.fidelity),
                _ => "no broken bound recorded".to_owned(),
            };
            text.push_str(&wrap("INVALID  ", Tint::Doubtful, &attempts(point, alike, &broken), style));
        }
    }
    if let Some(causes) = causes(&all) {
        text.push_str(&wrap("CAUSE    ", Tint::Doubtful, &tame(&causes), style));
    }
    for command in virtual_clock::commands(points) {
        // A command is not wrapped, so that it can be copied.
        text.push_str(&wrap("NEXT     ", Tint::None, &format!("{}:", virtual_clock::WHY), style));
        text.push_str(&format!("         {command}\n"));
    }
    text
}

/// Returns `s1-64k #2 attempt 1: <why>; repeated as attempt 2, OK`. `#2` is the repetition, if there are several. For several
/// attempts `why` is that of the last.
fn attempts(point: &Point<'_>, alike: &[&Record], why: &str) -> String {
    let [first, ..] = alike else { return String::new() };
    let record = alike.last().unwrap_or(first);
    let repeated = point.records.iter().any(|r| r.repetition != record.repetition);
    let next = point
        .records
        .iter()
        .filter(|r| r.repetition == record.repetition)
        .filter(|r| r.attempt > record.attempt || record.error.is_some() && r.error.is_none())
        .min_by_key(|r| r.attempt);
    let case = name(point, None);
    let number = if repeated { format!(" #{}", record.repetition) } else { String::new() };
    let sequel = match next {
        None if record.lost_its_guest() => "not repeated; --resume does where the run is stored".to_owned(),
        None => "not repeated".to_owned(),
        Some(next) => {
            let how = match ending(next) {
                Ending::Valid => "OK",
                Ending::Invalid => "INVALID",
                Ending::Failed => "FAILED",
                Ending::Skipped => "SKIPPED",
            };
            format!("repeated as attempt {}, {how}", next.attempt)
        }
    };
    let which = match alike {
        [only] => format!("attempt {}", only.attempt),
        several => format!("{} attempts, the last", several.len()),
    };
    format!("{case}{number} {which}: {}; {sequel}", tame(why))
}

/// Returns one line for each missed expectation of the point, with the actual value.
fn missed(point: &Point<'_>) -> Vec<String> {
    let mut texts: Vec<&str> = Vec::new();
    for expectation in point.missed().filter_map(|r| r.expectation.as_ref()) {
        if !texts.contains(&expectation.text.as_str()) {
            texts.push(&expectation.text);
        }
    }
    let valid = point.count(Ending::Valid);
    let line = |text: &str| {
        let these: Vec<&Record> =
            point.missed().filter(|r| r.expectation.as_ref().is_some_and(|e| e.text == text)).collect();
        let share = if valid > 1 { format!(" in {} of {valid}", these.len()) } else { String::new() };
        let here = match Spread::of(these.iter().filter_map(|r| r.goodput_bps)) {
            None => "no goodput".to_owned(),
            Some(g) if g.min == g.max => format_bps(g.median),
            Some(g) => format!("{} to {}", format_bps(g.min), format_bps(g.max)),
        };
        let model = Spread::of(these.iter().filter_map(|r| r.expected_bps));
        let ratio = model.filter(|m| m.median > 0.0).and_then(|m| {
            Spread::of(these.iter().filter_map(|r| r.goodput_bps)).map(|g| g.median / m.median)
        });
        let ratio = ratio.map_or_else(String::new, |r| format!(", {} of the model", percent(r)));
        format!("{}{share}: {}; here {here}{ratio}", name(point, None), tame(text))
    };
    texts.into_iter().map(line).collect()
}

/// Most lines of one kind and scenario; more are merged into one.
const LINES_OF_A_KIND: usize = 3;

/// Returns the windows that were not reached: one line for each scenario and reason, merged into one per kind of reason if there
/// are many.
fn windows(points: &[Point<'_>]) -> Vec<String> {
    let mut missed: Vec<MissedWindows<'_>> = Vec::new();
    for point in points {
        for record in point.valid().filter(|r| r.window.reached == Some(false)) {
            let note = record.window.note.as_ref();
            let pair = (record.window.on_the_wire_bytes, record.window.asked_bytes);
            let one =
                MissedWindows { scenario: point.scenario, note, pairs: vec![pair], cases: 1, alike: true };
            match missed.iter_mut().find(|other| other.scenario == one.scenario && other.note == one.note) {
                Some(other) => other.take(one),
                None => missed.push(one),
            }
        }
    }
    let of_kind = |of: &MissedWindows<'_>| missed.iter().filter(|other| of.is_of_kind(other)).count();
    let many: Vec<bool> = missed.iter().map(|one| of_kind(one) > LINES_OF_A_KIND).collect();
    let mut lines: Vec<MissedWindows<'_>> = Vec::new();
    for (one, many) in missed.into_iter().zip(many) {
        match lines.iter_mut().find(|other| many && other.is_of_kind(&one)) {
            Some(other) => other.take(one),
            None => lines.push(one),
        }
    }
    lines.iter().map(MissedWindows::line).collect()
}

/// Cases of a scenario whose windows were not reached.
struct MissedWindows<'a> {
    scenario: &'a str,
    /// Reason in the first case.
    note: Option<&'a WindowShortfall>,
    /// Pairs of bytes on the wire and bytes requested.
    pairs: Vec<(Option<u64>, Option<u64>)>,
    cases: usize,
    /// Whether all cases have the same reason.
    alike: bool,
}

impl MissedWindows<'_> {
    fn is_of_kind(&self, other: &Self) -> bool {
        self.scenario == other.scenario
            && self.note.map(std::mem::discriminant) == other.note.map(std::mem::discriminant)
    }

    fn take(&mut self, other: Self) {
        self.alike &= self.note == other.note;
        self.cases += other.cases;
        for pair in other.pairs {
            if !self.pairs.contains(&pair) {
                self.pairs.push(pair);
            }
        }
    }

    fn line(&self) -> String {
        let why =
            self.note.map_or_else(|| "no reason recorded".to_owned(), |note| tame(&window_shortfall(note)));
        let scenario = tame(self.scenario);
        let on_the_wire = |bytes: u64| size(bytes as f64);
        let unknown = || "?".to_owned();
        if self.alike {
            let pair = |(seen, asked): &(Option<u64>, Option<u64>)| {
                let seen = seen.map_or_else(unknown, on_the_wire);
                format!("{seen} of {}", asked.map_or_else(unknown, asked_size))
            };
            let mut pairs: Vec<String> = self.pairs.iter().map(pair).collect();
            pairs.dedup();
            return format!("{scenario}: {} on the wire; {why}", pairs.join(", "));
        }
        let seen = self.pairs.iter().filter_map(|(seen, _)| *seen);
        let range = match (seen.clone().min(), seen.max()) {
            (Some(least), Some(most)) => format!("{} to {}", on_the_wire(least), on_the_wire(most)),
            _ => unknown(),
        };
        let mut asked: Vec<u64> = self.pairs.iter().filter_map(|(_, asked)| *asked).collect();
        asked.sort_unstable();
        asked.dedup();
        let asked: Vec<String> = asked.into_iter().map(asked_size).collect();
        format!(
            "{scenario}: {range} of {} on the wire in {} cases; the first: {why}",
            asked.join(", "),
            self.cases
        )
    }
}
