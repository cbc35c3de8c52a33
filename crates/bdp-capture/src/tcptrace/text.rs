//! The layout of tcptrace's long output.

use std::fmt::Write;

use super::connection::Connection;
use super::fields::{Above, Field};
use super::trace::TcpTrace;

/// Line between two connections.
const RULE: &str = "================================";
const COPIES: &str = "       ** packets that were captured twice count twice in all figures";
const AMBIGUOUS: &str = "\t  The next five figures are of acknowledgements of segments that\n\t  were sent more than once, timed from the last time.";

impl TcpTrace {
    /// Returns the whole long output for the capture.
    pub fn text(mut self) -> String {
        self.finish();
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = write(&mut out, &self);
        out
    }
}

fn write(out: &mut String, trace: &TcpTrace) -> std::fmt::Result {
    writeln!(out, "{} packets seen, {} TCP packets traced", trace.packets, trace.tcp_packets)?;
    let took = trace.now_us.saturating_sub(trace.began_us.unwrap_or(trace.now_us));
    writeln!(out, "trace file elapsed time: {}", elapsed(took))?;
    if trace.left_out > 0 {
        writeln!(out, "{} TCP packets of further connections left out", trace.left_out)?;
    }
    if trace.connections.is_empty() {
        return writeln!(out, "no traced TCP packets");
    }
    writeln!(out, "TCP connection info:")?;
    let count = trace.connections.len();
    writeln!(out, "{count} TCP {} traced:", if count == 1 { "connection" } else { "connections" })?;
    for (index, connection) in trace.connections.iter().enumerate() {
        if index > 0 {
            writeln!(out, "{RULE}")?;
        }
        writeln!(out, "TCP connection {}:", index + 1)?;
        connection.write(out, trace.file.as_deref())?;
    }
    Ok(())
}

impl Connection {
    fn write(&self, out: &mut String, file: Option<&str>) -> std::fmt::Result {
        let [a, b] = self.letters.map(letters);
        for (letters, end) in [(&a, self.ends[0]), (&b, self.ends[1])] {
            writeln!(out, "\thost {:<4}      {}:{}", format!("{letters}:"), end.ip(), end.port())?;
        }
        let (syns, fins) = (self.count(|d| d.syns > 0), self.count(|d| d.fins > 0));
        let is_complete = syns == 2 && fins == 2;
        let complete = match (self.is_reset(), is_complete) {
            (true, _) => "RESET",
            (_, true) => "yes",
            _ => "no",
        };
        let counts = if is_complete { String::new() } else { format!("\t(SYNs: {syns})  (FINs: {fins})") };
        writeln!(out, "\tcomplete conn: {complete}{counts}")?;
        writeln!(out, "\tfirst packet:  {}", time(self.from_us))?;
        writeln!(out, "\tlast packet:   {}", time(self.to_us))?;
        writeln!(out, "\telapsed time:  {}", elapsed(self.elapsed_us()))?;
        writeln!(out, "\ttotal packets: {}", self.directions.iter().map(|d| d.packets).sum::<u64>())?;
        if let Some(file) = file {
            writeln!(out, "\tfilename:      {file}")?;
        }
        writeln!(out, "   {a}->{b}:\t\t\t      {b}->{a}:")?;
        self.fields().iter().try_for_each(|field| line(out, field))
    }
}

fn line(out: &mut String, field: &Field) -> std::fmt::Result {
    match field.above {
        Above::Nothing => {}
        Above::Space => writeln!(out)?,
        Above::Ambiguous => writeln!(out, "{AMBIGUOUS}")?,
    }
    for value in &field.values {
        // Unknown byte counts have no unit, but times do.
        let unit = if value == "NA" && field.unit == "bytes" { "" } else { field.unit };
        write!(out, "     {:<18} {value:>9} {unit:<5}", format!("{}:", field.name))?;
    }
    writeln!(out)?;
    if field.name == "hardware dups" { writeln!(out, "{COPIES}") } else { Ok(()) }
}

/// Returns the letters that name an end: a to z, then aa to zz, and so on.
fn letters(mut number: u64) -> String {
    let mut reversed = Vec::new();
    loop {
        reversed.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return reversed.into_iter().rev().collect();
        }
        number -= 1;
    }
}

/// Formats hours, minutes, seconds and microseconds.
fn elapsed(us: u64) -> String {
    let seconds = us / 1_000_000;
    format!("{}:{:02}:{:02}.{:06}", seconds / 3600, seconds / 60 % 60, seconds % 60, us % 1_000_000)
}

/// Formats a time since 1970 in UTC, like `asctime`.
fn time(us: u64) -> String {
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let day = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let (year, month, date) = date(days);
    let month =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][month as usize];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{day} {month} {date:2} {hour:02}:{minute:02}:{second:02}.{us:06} {year}")
}

/// Returns year, month (from 0) and day of the month for a day since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Years start in March, so that the leap day is last, in eras of 400 years since the year 0.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 2, 0) } else { (month - 10, 1) };
    (era * 400 + year + later, month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_letters_are_written_as_usual() {
        assert_eq!(time(1_767_225_601_019_357), "Thu Jan  1 00:00:01.019357 2026");
        assert_eq!(time(951_782_400_000_000), "Tue Feb 29 00:00:00.000000 2000");
        assert_eq!(time(1_772_323_199_999_999), "Sat Feb 28 23:59:59.999999 2026");
        assert_eq!(elapsed(36_061_000_042), "10:01:01.000042");
        assert_eq!([0, 25, 26, 27, 701, 702].map(letters), ["a", "z", "aa", "ab", "zz", "aaa"]);
        // The latest representable time.
        assert!(time(u64::MAX).contains(':'));
    }
}
