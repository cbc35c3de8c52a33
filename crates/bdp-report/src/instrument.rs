//! Text output of `bdp selftest`.

use bdp_model::measurement::instrument::Instrument;
use bdp_model::probes::ping::Distribution;
use bdp_model::units::{Nanos, significant};

use crate::caveat;
use crate::grid::{tame, wrap};
use crate::number::percent;
use crate::style::{Style, Tint};

/// Returns a line for each part of the machine.
pub fn instrument_text(found: &Instrument, style: &Style) -> String {
    let Instrument { clock, stalls, cpus, kernel, .. } = found;
    let mut text = format!("Linux {}, {cpus} processors, bdp {}\n\n", tame(kernel), tame(&found.bdp));
    let mut line =
        |lead: &str, said: &str| text.push_str(&wrap(&format!("{lead:<12}"), Tint::Strong, said, style));
    let across = match (clock.compared, clock.backwards) {
        (0, _) => "not compared with another processor's".to_owned(),
        (n, 0) => format!("never went back in {n} comparisons between processors"),
        (n, back) => {
            format!(
                "WENT BACK {back} times of {n} between processors, by up to {} ns",
                clock.backwards_max_ns
            )
        }
    };
    let source = clock.source.as_deref().map_or_else(|| "of unknown source".to_owned(), tame);
    line(
        "clock",
        &format!(
            "{source}, steps of {} ns, {} ns a reading, {across}",
            clock.step_ns,
            significant(clock.cost_ps as f64 / 1e3)
        ),
    );
    if let Some(sleep) = &found.sleep_overshoot_ns {
        line("timer", &format!("a sleep of 200 us is too long by {}", quantiles(sleep)));
    }
    let share = stalls.sum_ns as f64 / stalls.watched_ns.max(1) as f64;
    line(
        "scheduling",
        &match stalls.count {
            0 => format!("no gap above 10 us in {} of {cpus} processors", Nanos(stalls.watched_ns)),
            n => format!(
                "{n} gaps above 10 us, {} of the time, the longest {}",
                percent(share),
                Nanos(stalls.max_ns)
            ),
        },
    );
    for floor in &found.floors {
        if let Some(rtt) = &floor.rtt_ns {
            let said = format!("round trip over loopback {}, min {}", quantiles(rtt), Nanos(rtt.min));
            line(&format!("{} floor", floor.protocol), &said);
        }
    }
    for caveat in &found.caveats {
        text.push_str(&wrap("NOTE        ", Tint::Doubtful, &caveat::text(caveat), style));
    }
    text
}

/// `p50 53 us, p99 96 us, max 1.2 ms`.
fn quantiles(of: &Distribution) -> String {
    let p99 = of.p99.map_or_else(String::new, |p99| format!(", p99 {}", Nanos(p99)));
    format!("p50 {}{p99}, max {}", Nanos(of.p50), Nanos(of.max))
}
