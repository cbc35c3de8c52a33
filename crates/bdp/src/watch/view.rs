//! State of the live table, and the effect of its keys. Without terminal or clock: takes keys and intervals, returns text.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use bdp_model::watch::{Role, SocketReading, WatchInterval};
use bdp_report::{Style, watch_detail, watch_limit, watch_table};
use bdp_sys::terminal::Key;

/// Number of intervals whose rate is remembered.
const REMEMBERED: usize = 120;
/// Maximum number of sockets whose rates are remembered.
const MOST_REMEMBERED: usize = 10_000;
/// Lines above and below the table, headings included.
const LINES_AROUND: usize = 6;

/// Sort order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Rate,
    RoundTrip,
    Retransmits,
    Limit,
}

/// The display.
pub struct View {
    asked: String,
    interval: Option<WatchInterval>,
    rates: HashMap<u64, VecDeque<f32>>,
    order: Order,
    filter: String,
    typing: bool,
    paused: bool,
    detail: bool,
    selected: Option<u64>,
    notes: Vec<String>,
}

/// Request of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Continue.
    Nothing,
    /// Quit.
    Quit,
}

impl View {
    /// Creates it with the description of the request.
    pub fn new(asked: &str) -> Self {
        Self {
            asked: asked.to_owned(),
            interval: None,
            rates: HashMap::new(),
            order: Order::Rate,
            filter: String::new(),
            typing: false,
            paused: false,
            detail: false,
            selected: None,
            notes: Vec::new(),
        }
    }

    /// Takes an interval.
    pub fn take(&mut self, interval: WatchInterval) {
        for socket in &interval.sockets {
            let rate = socket.sent_bps + socket.received_bps;
            let known = self.rates.len() < MOST_REMEMBERED || self.rates.contains_key(&socket.name.cookie);
            if known && (rate > 0.0 || self.rates.contains_key(&socket.name.cookie)) {
                let rates = self.rates.entry(socket.name.cookie).or_default();
                rates.push_back(rate as f32);
                while rates.len() > REMEMBERED {
                    rates.pop_front();
                }
            }
        }
        let open: std::collections::HashSet<u64> = interval.sockets.iter().map(|s| s.name.cookie).collect();
        self.rates.retain(|cookie, _| open.contains(cookie));
        self.notes.extend(interval.notes.iter().cloned());
        let old = self.notes.len().saturating_sub(2);
        self.notes.drain(..old);
        if !self.paused {
            self.interval = Some(interval);
        }
    }

    /// Handles a key.
    pub fn press(&mut self, key: Key) -> Asked {
        if self.typing {
            match key {
                Key::Enter => self.typing = false,
                Key::Escape => {
                    self.typing = false;
                    self.filter.clear();
                }
                Key::Backspace => drop(self.filter.pop()),
                Key::Character('\u{3}') => return Asked::Quit,
                Key::Character(c) if !c.is_control() && self.filter.len() < 64 => self.filter.push(c),
                _ => {}
            }
            return Asked::Nothing;
        }
        match key {
            Key::Character('q' | '\u{3}' | '\u{4}') => return Asked::Quit,
            Key::Character('r') => self.order = Order::Rate,
            Key::Character('t') => self.order = Order::RoundTrip,
            Key::Character('x') => self.order = Order::Retransmits,
            Key::Character('l') => self.order = Order::Limit,
            Key::Character('/') => (self.typing, self.detail) = (true, false),
            Key::Character('p' | ' ') => self.paused = !self.paused,
            Key::Character('j') | Key::Down => self.step(1),
            Key::Character('k') | Key::Up => self.step(-1),
            Key::Enter => {
                if self.selected.is_none() {
                    self.step(0);
                }
                self.detail = self.selected.is_some();
            }
            Key::Escape | Key::Backspace => match self.detail {
                true => self.detail = false,
                false => self.filter.clear(),
            },
            _ => {}
        }
        Asked::Nothing
    }

    fn step(&mut self, by: isize) {
        let rows: Vec<u64> = self.rows().iter().map(|socket| socket.name.cookie).collect();
        let at = self.selected.and_then(|cookie| rows.iter().position(|&row| row == cookie));
        let next = at.map_or(0, |at| at.saturating_add_signed(by).min(rows.len().saturating_sub(1)));
        self.selected = rows.get(next).copied();
    }

    /// The selected sockets, in order.
    fn rows(&self) -> Vec<&SocketReading> {
        let Some(interval) = &self.interval else { return Vec::new() };
        let wanted = self.filter.to_lowercase();
        let mut rows: Vec<&SocketReading> = interval
            .sockets
            .iter()
            .filter(|socket| wanted.is_empty() || words(socket).contains(&wanted))
            .collect();
        let rate = |s: &SocketReading| s.sent_bps + s.received_bps;
        rows.sort_by(|a, b| {
            let first = match self.order {
                Order::Rate => Ordering::Equal,
                Order::RoundTrip => b.rtt_ns.cmp(&a.rtt_ns),
                Order::Retransmits => b.retransmits.cmp(&a.retransmits),
                Order::Limit => limit_order(a).cmp(&limit_order(b)),
            };
            let quiet = (a.role == Role::Quiet).cmp(&(b.role == Role::Quiet));
            first.then(rate(b).total_cmp(&rate(a))).then(quiet).then(a.name.cookie.cmp(&b.name.cookie))
        });
        rows
    }

    /// The whole screen, with this many lines, none longer than the style's width.
    pub fn frame(&self, lines: usize, style: &Style) -> String {
        let rows = self.rows();
        let shown = lines.saturating_sub(LINES_AROUND + self.notes.len()).max(1);
        let mut text = self.heading(&rows) + "\n\n";
        let selected = self.selected.and_then(|cookie| rows.iter().position(|s| s.name.cookie == cookie));
        match selected.filter(|_| self.detail) {
            Some(at) => {
                let rates = self.rates.get(&rows[at].name.cookie).into_iter().flatten();
                let rates: Vec<f64> = rates.map(|&rate| f64::from(rate)).collect();
                text.push_str(&watch_detail(rows[at], &rates, style));
            }
            None => {
                // The selected row stays visible.
                let from = selected.map_or(0, |at| at.saturating_sub(shown - 1));
                let part: Vec<&SocketReading> = rows.iter().skip(from).take(shown).copied().collect();
                text.push_str(&watch_table(&part, selected.map(|at| at - from), style));
            }
        }
        for note in &self.notes {
            text.push_str(&format!("{note}\n"));
        }
        let keys = match (self.typing, self.detail) {
            (true, _) => format!("filter: {}_   Enter keep   Esc clear", self.filter),
            (_, true) => "Esc table   Up/Down other socket   p pause   q quit".to_owned(),
            _ => "sort: r rate  t RTT  x retransmits  l limit   / filter   Enter detail   p pause   q quit"
                .to_owned(),
        };
        let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
        all.truncate(lines.saturating_sub(2));
        all.resize(lines.saturating_sub(1), String::new());
        all.push(keys);
        all.iter().map(|line| clipped(line, usize::from(style.width))).collect::<Vec<_>>().join("\n")
    }

    fn heading(&self, rows: &[&SocketReading]) -> String {
        let Some(interval) = &self.interval else { return format!("bdp watch {}: reading", self.asked) };
        let moving = rows.iter().filter(|s| s.role != Role::Quiet).count();
        let order = match self.order {
            Order::Rate => "rate",
            Order::RoundTrip => "RTT",
            Order::Retransmits => "retransmits",
            Order::Limit => "limit",
        };
        let mut text = format!(
            "bdp watch {}   {:.0} s   {} sockets, {moving} moving   by {order}",
            self.asked,
            interval.at_ns as f64 / 1e9,
            interval.sockets.len()
        );
        if !self.filter.is_empty() {
            text.push_str(&format!("   filter '{}'", self.filter));
        }
        if interval.unexplained > 0 {
            text.push_str(&format!("   {} not explained in this interval", interval.unexplained));
        }
        if self.paused {
            text.push_str("   PAUSED");
        }
        text
    }
}

/// Sockets without a finding come last.
fn limit_order(socket: &SocketReading) -> (bool, String) {
    (socket.finding.is_none(), watch_limit(socket))
}

/// Text that a filter searches.
fn words(socket: &SocketReading) -> String {
    let holder = socket.name.holder.as_ref();
    let holder = holder.map_or_else(String::new, |holder| format!("{} {}", holder.name, holder.pid));
    format!("{holder} {} {} {}", socket.name.local, socket.name.remote, watch_limit(socket)).to_lowercase()
}

/// The first columns of a line; colours take none, and end with it.
fn clipped(line: &str, columns: usize) -> String {
    let (mut out, mut taken, mut inside) = (String::new(), 0, false);
    for c in line.chars() {
        match (inside, c) {
            (false, '\x1b') => inside = true,
            (true, 'm') => inside = false,
            (true, _) => {}
            (false, _) if taken == columns => continue,
            (false, _) => taken += 1,
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use bdp_model::finding::{Confidence, Finding, Limit, Place};
    use bdp_model::watch::{ConnectionState, Holder, SocketName};

    use super::*;

    fn socket(cookie: u64, program: &str, bps: f64, rtt_ms: u64) -> SocketReading {
        SocketReading {
            name: SocketName {
                cookie,
                inode: 1,
                holder: Some(Holder { pid: 4242, name: program.to_owned() }),
                user: 0,
                local: "192.0.2.1:40000".parse().unwrap(),
                remote: "198.51.100.7:443".parse().unwrap(),
            },
            state: ConnectionState::Established,
            role: Role::Sending,
            congestion_control: Some("cubic".to_owned()),
            sent_bps: bps,
            received_bps: 0.0,
            sent_bytes: 0,
            received_bytes: 0,
            rtt_ns: Some(rtt_ms * 1_000_000),
            min_rtt_ns: None,
            mss_bytes: Some(1448),
            cwnd_segments: Some(10),
            ssthresh_segments: None,
            in_flight_segments: Some(3),
            send_window_bytes: Some(65_536),
            receive_window_bytes: None,
            retransmits: Some(cookie),
            retransmits_total: Some(cookie),
            out_of_order: Some(0),
            delivery_rate_bps: None,
            app_limited: None,
            limited: None,
            unread_bytes: 0,
            queued_bytes: 0,
            not_sent_bytes: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            finding: Some(Finding::new(Limit::ReceiveWindow, Place::receiver(program), Confidence::High)),
        }
    }

    fn view() -> View {
        let mut view = View::new(":443");
        view.take(WatchInterval {
            at_ns: 1_000_000_000,
            took_ns: 1_000_000_000,
            samples: 10,
            incomplete: 0,
            sockets: vec![
                socket(1, "rsync", 2e6, 80),
                socket(2, "curl", 9e6, 20),
                socket(3, "backup", 1e6, 50),
            ],
            unexplained: 0,
            notes: vec!["process 7 (ssh) ended".to_owned()],
        });
        view
    }

    /// Programs in the order of the rows.
    fn order(view: &View) -> Vec<String> {
        let programs = ["rsync", "curl", "backup"];
        let frame = view.frame(20, &Style { width: 120, ..Style::plain() });
        let found = |line: &str| programs.into_iter().find(|name| line.contains(&format!("{name} 4242")));
        frame.lines().filter_map(found).map(str::to_owned).collect()
    }

    fn press(view: &mut View, keys: &str) {
        for key in keys.chars() {
            assert_eq!(
                view.press(if key == '\n' { Key::Enter } else { Key::Character(key) }),
                Asked::Nothing
            );
        }
    }

    #[test]
    fn keys_sort_and_filter() {
        let mut view = view();
        assert_eq!(order(&view), ["curl", "rsync", "backup"]);
        for (key, sorted) in [
            ("t", ["rsync", "backup", "curl"]),
            ("x", ["backup", "curl", "rsync"]),
            ("l", ["backup", "curl", "rsync"]),
        ] {
            press(&mut view, key);
            assert_eq!(order(&view), sorted, "{key}");
        }
        press(&mut view, "r/RSy");
        assert_eq!(order(&view), ["rsync"]);
        // Typed text is no command meanwhile.
        press(&mut view, "q\n");
        assert_eq!(order(&view), Vec::<String>::new());
        view.press(Key::Escape);
        assert_eq!(order(&view).len(), 3);
        assert_eq!(view.press(Key::Character('q')), Asked::Quit);
        assert_eq!(view.press(Key::Character('\u{3}')), Asked::Quit);
    }

    #[test]
    fn selected_socket_is_shown_by_itself_and_stays_selected_where_rows_move() {
        let mut view = view();
        view.press(Key::Down);
        view.press(Key::Down);
        press(&mut view, "t\n");
        let frame = view.frame(40, &Style { width: 100, ..Style::plain() });
        assert!(frame.contains("rsync 4242") && frame.contains("receive window of rsync"), "{frame}");
        assert!(
            frame.contains("ssthresh none yet") && frame.contains("send buffer") == frame.contains("busy"),
            "{frame}"
        );
        view.press(Key::Escape);
        assert_eq!(order(&view).len(), 3);
    }

    #[test]
    fn pause_keeps_what_is_shown() {
        let mut view = view();
        press(&mut view, "p");
        view.take(WatchInterval { sockets: Vec::new(), ..view.interval.clone().unwrap() });
        assert_eq!(order(&view).len(), 3);
        press(&mut view, "p");
        view.take(WatchInterval { sockets: Vec::new(), ..view.interval.clone().unwrap() });
        assert_eq!(order(&view).len(), 0);
    }

    #[test]
    fn frame_has_the_lines_and_columns_of_the_terminal() {
        let view = view();
        for (lines, width) in [(24, 80), (8, 120), (50, 200), (5, 60), (3, 40)] {
            for colour in [false, true] {
                let style = Style { width, colour, ..Style::plain() };
                let frame = view.frame(lines, &style);
                assert_eq!(frame.lines().count(), lines, "{frame}");
                assert!(frame.lines().last().unwrap().contains("sort: r rate"), "{frame}");
                for line in frame.lines() {
                    let bare =
                        clipped(line, usize::MAX).split('\x1b').enumerate().fold(0, |taken, (i, part)| {
                            let text =
                                if i == 0 { part } else { part.split_once('m').map_or("", |(_, text)| text) };
                            taken + text.chars().count()
                        });
                    assert!(bare <= usize::from(width), "{bare} > {width}: {line}");
                }
            }
        }
    }
}
