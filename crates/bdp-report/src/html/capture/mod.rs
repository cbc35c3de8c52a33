//! Report on captures: a summary, a table of flows, and sections on the largest flows with charts that zoom together.

mod curves;
mod names;
mod pair;
mod section;
mod sequence;

use bdp_model::capture::pair::CapturePair;
use bdp_model::capture::{ExplainedFlow, ReadCapture};
use maud::{Markup, html};

use self::names::{anchor, arrowed};
use super::page::{About, Script, note, numbers, page_with, text, words};
use super::verdict::Verdict;
use crate::capture::pair::Paired;
use crate::capture::{are_known, attempts, caveats, ends, figures, has_streams, read, words as limit_words};

/// Most rows of the table of flows.
const MOST_ROWS: usize = 50;
/// Most flows of a capture with a section.
const MOST_SECTIONS: usize = 20;

/// Script that zooms the charts. It uses no network, and the page is complete without it.
const ZOOM: Script =
    Script { text: include_str!("zoom.js"), sha256: "xLKcFEAnmMl2tAmj9Q5SIcBbx2sUnPlO5oFM1gSN2aE=" };

/// Returns a self-contained HTML page about captures, including the script of its charts.
pub fn html_of_captures(captures: &[ReadCapture], pairs: &[CapturePair], about: &About<'_>) -> String {
    let [first, further @ ..] = captures else {
        let (title, heading) = about.begin(about.label.unwrap_or("No capture").to_owned(), []);
        return page_with(None, &title, html! { (heading) (Verdict::of("No capture was read.").markup()) });
    };
    if further.is_empty() {
        let (title, heading) = about.begin(first.name.clone(), [read(first)]);
        return finished(&title, html! { (heading) (capture(first, "")) });
    }
    let (title, heading) = about.begin(format!("{} captures", captures.len()), []);
    let body = html! {
        (heading)
        @for paired in pairs.iter().filter_map(|pair| Paired::of(captures, pair)) { (pair::section(&paired)) }
        @for (one, number) in captures.iter().zip(1..) {
            h2 id={ "capture-" (number) } { (one.name) } "\n"
            p.facts { (read(one)) } "\n"
            (capture(one, &format!("capture-{number}-")))
        }
    };
    finished(&title, body)
}

/// Returns the page, with the script if there is something to zoom.
fn finished(title: &str, body: Markup) -> String {
    let script = body.0.contains("class=\"zoomable\"").then_some(ZOOM);
    page_with(script, title, body)
}

/// Returns one capture. `prefix` makes its anchors unique.
fn capture(capture: &ReadCapture, prefix: &str) -> Markup {
    let why = match capture.summary.packets {
        0 => "There is no packet in it.",
        _ if !capture.summary.attempts.is_empty() => {
            "None of its flows came to anything: they are counted together."
        }
        _ => "None of its packets belongs to a flow that bdp reads.",
    };
    let flows = &capture.flows;
    let all: Vec<usize> = (0..flows.len()).filter(|&i| has_section(&flows[i])).collect();
    let sections = &all[..all.len().min(MOST_SECTIONS)];
    let largest = sections.iter().find(|&&index| section::is_explained(&flows[index]));
    html! {
        @for kind in attempts(capture) { p.facts { (kind) "." } "\n" }
        @for caveat in caveats(capture) { (note(format!("Note: {caveat}."))) }
        @if flows.is_empty() {
            (Verdict { headline: "No flow in this capture.".to_owned(), why: why.to_owned() }.markup())
        } @else {
            @if let Some(&largest) = largest {
                // The flow's section has the reason.
                (Verdict::of(section::verdict(&flows[largest], Some(largest + 1)).headline).markup())
            }
            (table(flows, sections, prefix))
            @for &index in sections { (section::section(index + 1, &flows[index], prefix)) }
            @if let more @ 1.. = all.len() - sections.len() {
                (note(format!("{more} more flows with fewer bytes have no section.")))
            }
        }
    }
}

/// Whether a flow has enough data to explain it, or its datagrams reveal something.
fn has_section(found: &ExplainedFlow) -> bool {
    section::is_explained(found) || are_known(found)
}

fn table(flows: &[ExplainedFlow], sections: &[usize], prefix: &str) -> Markup {
    let mut headings = vec![numbers("#"), words("flow")];
    headings.extend(["Mbit/s", "MB", "s", "least RTT, ms", "retransmitted"].map(numbers));
    let is_numbered = flows.iter().take(MOST_ROWS).any(has_streams);
    if is_numbered {
        headings.extend(["lost, %", "jitter, ms"].map(numbers));
    }
    headings.push(words("limited by"));
    let rows = flows.iter().enumerate().take(MOST_ROWS).map(|(index, found)| {
        let link = sections.contains(&index).then(|| format!("#{}", anchor(prefix, index + 1)));
        row(index + 1, found, link.as_deref(), is_numbered)
    });
    html! {
        (super::page::table("", &headings, rows))
        @if let more @ 1.. = flows.len().saturating_sub(MOST_ROWS) {
            (note(format!("And {more} more with fewer bytes.")))
        }
    }
}

fn row(number: usize, found: &ExplainedFlow, link: Option<&str>, is_numbered: bool) -> Vec<Markup> {
    let figures = figures(found);
    let linked = |words: &str| match link {
        Some(link) => html! { a href=(link) { (words) } },
        None => text(words),
    };
    let mut row = vec![text(number), linked(&arrowed(&ends(found)))];
    let tcp = [figures.mbps, figures.megabytes, figures.seconds, figures.rtt_min_ms, figures.retransmissions];
    let of_streams = is_numbered.then_some([figures.lost_percent, figures.jitter_ms]);
    row.extend(tcp.into_iter().chain(of_streams.into_iter().flatten()).map(text));
    let findings = &found.findings[found.main_direction()];
    row.push(html! {
        @if findings.is_empty() { "-" }
        @for (i, finding) in findings.iter().enumerate() {
            @if i > 0 { "; also " }
            (linked(&limit_words(finding)))
        }
    });
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lets_its_own_script_run() {
        assert_eq!(base64(&sha256(ZOOM.text.as_bytes())), ZOOM.sha256, "the digest above is of another text");
        assert!(!ZOOM.text.contains("</") && ZOOM.text.matches("]]>").count() == 1);
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        // FIPS 180-4's example.
        assert_eq!(base64(&sha256(b"abc")), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }

    /// FIPS 180-4, section 6.2.
    fn sha256(text: &[u8]) -> [u8; 32] {
        let is_prime = |n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
        let primes: Vec<f64> = (2u32..).filter(is_prime).take(64).map(f64::from).collect();
        // The first 32 bits of the fraction of a root.
        let fraction = |root: f64| (root.fract() * 4_294_967_296.0) as u32;
        let constants: Vec<u32> = primes.iter().map(|p| fraction(p.cbrt())).collect();
        let mut state: Vec<u32> = primes.iter().take(8).map(|p| fraction(p.sqrt())).collect();
        let mut padded = text.to_vec();
        padded.push(0x80);
        padded.resize(padded.len().next_multiple_of(64), 0);
        if (text.len() + 9) > padded.len() {
            padded.resize(padded.len() + 64, 0);
        }
        let length = padded.len();
        padded[length - 8..].copy_from_slice(&(text.len() as u64 * 8).to_be_bytes());
        for block in padded.chunks(64) {
            let mut w: Vec<u32> = block
                .chunks(4)
                .map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
                .collect();
            for i in 16..64 {
                let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
                let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
                w.push(w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1));
            }
            let mut v = state.clone();
            for i in 0..64 {
                let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
                let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
                let first =
                    v[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(constants[i]).wrapping_add(w[i]);
                let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
                let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
                v[3] = v[3].wrapping_add(first);
                v[7] = first.wrapping_add(s0).wrapping_add(majority);
                v.rotate_right(1);
            }
            for (one, add) in state.iter_mut().zip(v) {
                *one = one.wrapping_add(add);
            }
        }
        let mut digest = [0; 32];
        for (place, word) in digest.chunks_mut(4).zip(state) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        digest
    }

    /// RFC 4648, section 4.
    fn base64(bytes: &[u8]) -> String {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let three = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
            let number = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            for i in 0..4 {
                let digit = char::from(ALPHABET[(number >> (18 - 6 * i)) as usize & 63]);
                text.push(if i > group.len() { '=' } else { digit });
            }
        }
        text
    }
}
